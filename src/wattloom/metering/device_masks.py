"""Which devices are ours: the lists of visible devices that NVIDIA's and AMD's runtimes obey.

Owns how such a list is read. Knows no driver: it is handed the numbers and identities of the devices.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

NVIDIA: Final = ("CUDA_VISIBLE_DEVICES",)
AMD: Final = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
"""Applied one after the other: the second counts among what the first has left."""


class Identity(msgspec.Struct, frozen=True):
    """What a list may call a device by, beside its number."""

    uuids: tuple[str, ...]
    """Its own, and those of the instances that it is cut into: who may use an instance, uses the device."""


def visible(devices: Sequence[Identity], environment: Mapping[str, str], variables: Sequence[str]) -> list[int]:
    """Positions of the devices that are visible, in the order of the devices. No variable is set: all."""
    left = list(range(len(devices)))
    for variable in variables:
        if (mask := environment.get(variable)) is not None:
            left = _listed(mask, [devices[place] for place in left], left)
    return sorted(left)


def set_masks(environment: Mapping[str, str], variables: Sequence[str]) -> str:
    """The variables that are set, in words. Empty: none."""
    return " and ".join(f"{name}={environment[name]}" for name in variables if name in environment)


def _listed(mask: str, devices: Sequence[Identity], places: Sequence[int]) -> list[int]:
    """As the runtimes do: the first entry that names no device ends the list, and an empty list hides all."""
    found: list[int] = []
    for entry in mask.split(","):
        at = _position(entry.strip(), devices)
        if at is None:
            break
        if places[at] not in found:
            found.append(places[at])
    return found


def _position(entry: str, devices: Sequence[Identity]) -> int | None:
    if entry.isdecimal():
        return int(entry) if int(entry) < len(devices) else None
    if not entry.lower().startswith(("gpu-", "mig-")):
        return None
    # The beginning of an identity is enough where it fits one device only.
    fitting = [at for at, device in enumerate(devices) if any(_begins(uuid, entry) for uuid in device.uuids)]
    return fitting[0] if len(fitting) == 1 else None


def _begins(uuid: str, entry: str) -> bool:
    return uuid.lower().startswith(entry.lower())
