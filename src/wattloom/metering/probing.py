"""Which of our own meters are worth loading when one is chosen: a look at folders and settings, and at none of them.

Owns the looks. Loading a dozen modules costs more than many a short program, and few machines have more than two of
these sources. Whoever is not listed here, ours or anybody's, is loaded and asked. Whether a meter works it says itself.
"""

import os
from importlib.metadata import EntryPoint
from typing import Final

from wattloom.metering.configured import settings_here

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
