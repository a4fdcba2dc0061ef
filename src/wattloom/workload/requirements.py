"""What a task needs of a node.

Owns the requirements and the validation of their values. Knows no node.
"""

from typing import Final

import msgspec

MOST_BYTES: Final = 2**63
MOST_DEVICES: Final = 1_000_000
LEAST_SHARE: Final = 0.001
"""Shares of a device are counted in thousandths."""


class Requirements(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """Needs of one task. Hashable, so that equal needs are recognised as one shape."""

    cpu: float = 1.0
    """Cores it keeps busy, and asks for."""
    memory: int = 0
    """Bytes."""
    arch: tuple[str, ...] = ()
    """Architectures it can run on; empty: any."""
    labels: tuple[tuple[str, str], ...] = ()
    """Labels the node must carry."""
    devices: tuple[tuple[str, float], ...] = ()
    """Kind and amount: a whole number of devices, or a share (below 1) of one device."""

    def problem(self) -> tuple[str, str] | None:
        """The first wrong field and what is wrong with it."""
        if not 0.0 <= self.cpu < 1e6:
            return "cpu", f"must be between 0 and 1000000 cores, not {self.cpu}"
        if not 0 <= self.memory < MOST_BYTES:
            return "memory", f"must be a number of bytes, not negative, not {self.memory}"
        return devices_problem(self.devices)


def devices_problem(devices: tuple[tuple[str, float], ...]) -> tuple[str, str] | None:
    """The first wrong kind or amount, and what is wrong with it."""
    for kind, amount in devices:
        whole = 1.0 <= amount < MOST_DEVICES and amount == int(amount)
        if not (whole or LEAST_SHARE <= amount < 1.0):
            return f"devices.{kind}", f"must be a share from {LEAST_SHARE} to below 1 or a whole number, not {amount}"
    if len({kind for kind, _ in devices}) != len(devices):
        return "devices", "names the same kind twice"
    return None
