"""Asks meters whether they work: side by side, and none for ever.

Owns the threads that ask. A meter may be anybody's: what it raises is its answer, and one that hangs is left behind.
"""

from collections.abc import Mapping
from threading import Thread
from typing import Final

from wattloom.metering.protocol import Meter

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
