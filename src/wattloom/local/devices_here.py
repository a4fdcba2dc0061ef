"""Whether devices are metered beside the processors: where there are any, and the machine's meter does not see them.

Owns that question. Where the kernel shows no device nothing is loaded and nobody is asked.
"""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wattloom.machines.profile import MachineProfile
from wattloom.metering.protocol import Meter

if TYPE_CHECKING:
    from wattloom.attribution.gpu_beside import DevicesBeside

LOG: Final = logging.getLogger("wattloom")
DEV = Path("/dev")
NODES: Final = ("nvidiactl", "kfd", "dxg", "accel")
"""NVIDIA's driver, AMD's, either in a Windows' Linux, and accelerators of others."""


def devices_beside(meter: Meter, profile: MachineProfile) -> "DevicesBeside | None":
    """The devices whose joules are to be added to the meter's. None: there are none, or they are in it already."""
    if sees_devices(meter) or not any((DEV / node).exists() for node in NODES):
        return None
    from wattloom.attribution.gpu_beside import DevicesBeside
    from wattloom.metering.choosing import device_meters

    found = device_meters(profile)
    if not found:
        LOG.info("there is a device that no meter can read, so its joules are no call's: see `wattloom meter list`")
    return DevicesBeside(found) if found else None


def sees_devices(meter: Meter) -> bool:
    """Whether the devices' joules are in the meter's: at the plug they are, if it is measured. An estimate of the plug
    is worked out from CPU time, which knows of no device."""
    return meter.quantity == "device" or (meter.quantity == "wall" and meter.provenance == "measured")
