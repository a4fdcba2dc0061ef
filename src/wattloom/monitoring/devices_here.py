"""The accelerators of this machine, by whichever installed meters tell of single devices and work here.

Owns the choice. Loads meters by the same door as everybody else's: entry points of the group `wattloom.meters`.
"""

from collections.abc import Callable
from importlib.metadata import entry_points

from wattloom.cluster.profile import MachineProfile
from wattloom.metering.choosing import GROUP
from wattloom.metering.devices import DeviceMeter
from wattloom.monitoring.accelerators import Accelerators
from wattloom.monitoring.process import Process


def devices_here(profile: MachineProfile, living: Callable[[int], Process | None]) -> Accelerators | None:
    """`living`: a process by its PID. None: there are none, or no meter of theirs works here."""
    found: list[DeviceMeter] = []
    for entry in entry_points(group=GROUP):
        try:
            meter = entry.load()(profile)
        except (Exception, SystemExit):  # a package that fails must not take the others down with it
            continue
        if isinstance(meter, DeviceMeter) and meter.quantity == "device" and meter.available() is None:
            found.append(meter)
    return Accelerators(found, living) if found else None
