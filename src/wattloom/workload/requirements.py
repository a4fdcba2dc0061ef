"""What a task needs of a node.

Owns the requirements and the validation of their values. Knows no node.
"""

import msgspec


class Requirements(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
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
        if self.memory < 0:
            return "memory", f"must not be negative, not {self.memory}"
        for kind, amount in self.devices:
            whole = amount >= 1.0 and amount == int(amount)
            if not (whole or 0.0 < amount < 1.0):
                return f"devices.{kind}", f"must be a share below 1 or a whole number, not {amount}"
        if len({kind for kind, _ in self.devices}) != len(self.devices):
            return "devices", "names the same kind twice"
        return None
