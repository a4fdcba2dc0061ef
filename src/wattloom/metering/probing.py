"""Which meters are worth loading when one is chosen, and whether those that were loaded work.

Owns the looks at folders and settings, and at no meter: loading a dozen modules costs more than many a short program,
and few machines have more than two of these sources. Whoever is not listed here, ours or anybody's, is loaded and
asked. Owns also the threads that ask, side by side: what a meter raises is its answer, and one that hangs is left
behind.
"""

import os
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from threading import Thread
from typing import Final

from wattloom.metering.configured import settings_here
from wattloom.metering.protocol import Meter

OURS: Final = "wattloom.metering."
FOLDERS: Final = {
    "powercap": ("/sys/class/powercap",),
    "amd_energy": ("/sys/class/hwmon",),
    "smpro": ("/sys/class/hwmon",),
    "battery": ("/sys/class/power_supply",),
    "host-share": ("/var/wattloom", "/var/scaphandre"),
}
"""Where the kernel, or the host of this machine, would show something."""
ASKED_FOR: Final = ("prometheus", "scaphandre", "kepler", "powerapi", "pcp", "ipmi", "redfish", "pdu", "host-share")
"""Nobody is asked by these unless the settings say so."""
VARIABLES: Final = {"host-share": "SCAPHANDRE_POWERCAP_PATH"}
NEVER: Final = ("nvml", "amdsmi", "recording")
"""Of devices beside the machine, or used only where it is named."""


def may_be_chosen(entry: EntryPoint) -> bool:
    """Whether it may turn out to be the best meter of this machine. Must not say no to one that works."""
    name = entry.name
    if not entry.value.startswith(OURS) or not any(name in known for known in (FOLDERS, ASKED_FOR, NEVER)):
        return True
    if name in NEVER:
        return False
    return any(map(_holds_something, FOLDERS.get(name, ()))) or is_set_up(name) or VARIABLES.get(name, "") in os.environ


def _holds_something(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is not None
    except FileNotFoundError:
        return False
    except OSError:  # it is there, and its meter says what is wrong with it
        return True


def is_set_up(name: str) -> bool:
    """Whether the settings ask for this meter. Raises SettingsError if there is something wrong in them."""
    return settings_here().are_given(name)


PATIENCE_S: Final = 15.0
"""Longer than the time limits of those that ask over a network."""


def problems(meters: Mapping[str, Meter], within_s: float = PATIENCE_S) -> dict[str, str]:
    """What each of them lacks, by name; empty: it works."""
    found: dict[str, str] = {}
    # Threads that nobody waits for at the program's end: one may never come back.
    threads = [Thread(target=_ask, args=(name, meter, found), daemon=True) for name, meter in meters.items()]
    for thread in threads:
        thread.start()
    left_s = within_s
    for thread in threads:
        thread.join(left_s)
        if thread.is_alive():  # all were asked at the same time, so the others had as long
            left_s = 0.0
    silent = f"it did not say within {within_s:g} s whether it works: it hangs"
    return {name: found.get(name, silent) for name in meters}


def problem(meter: Meter, within_s: float = PATIENCE_S) -> str:
    """The same of one."""
    return problems({meter.name: meter}, within_s)[meter.name]


def _ask(name: str, meter: Meter, found: dict[str, str]) -> None:
    try:
        found[name] = meter.available() or ""
    except Exception as failure:
        found[name] = f"it failed when asked whether it works: {type(failure).__name__}: {failure}"
