"""A node as it joins: the spec.

Owns its fields and the validation of their values.
"""

from typing import Final

import msgspec

from wattloom.bounds import MOST_CORES, MOST_COUNT, MOST_WATTS
from wattloom.workload.constraints import Taint

MOST_DEVICES: Final = 10_000
"""Of one kind, on one node."""


class Node(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A node as it joins."""

    name: str
    machine: str
    cpu: float | None = None
    """Cores that may be given out; None: the machine's hardware threads."""
    memory: int | None = None
    """Bytes that may be given out; None: the machine's."""
    labels: dict[str, str] = {}
    devices: dict[str, int] = {}
    """Number of devices by kind."""
    cap_w: float | None = None
    """A limit on this node's draw."""
    asleep: bool = False
    resources: dict[str, int] = {}
    """Whatever else is counted, and how much of it may be given out."""
    taints: tuple[Taint, ...] = ()
    closed: bool = False
    """Whether nothing new may come here (`unschedulable`)."""
    own: dict[str, str] = {}
    """Labels that tell this node from its equals, such as its host name: rules look at them node by node."""

    def problem(self) -> tuple[str, str] | None:
        """The first wrong field and what is wrong with it."""
        if not self.name:
            return "name", "must not be empty"
        if self.cpu is not None and not 0.0 < self.cpu <= MOST_CORES:
            return "cpu", f"must be positive, at most {MOST_CORES} cores, not {self.cpu}"
        if self.memory is not None and not 0 <= self.memory <= MOST_COUNT:
            return "memory", f"must not be negative, at most {MOST_COUNT} bytes, not {self.memory}"
        for kind, count in self.devices.items():
            if not 1 <= count <= MOST_DEVICES:
                return f"devices.{kind}", f"must be between 1 and {MOST_DEVICES}, not {count}"
        for name, amount in self.resources.items():
            if not 0 <= amount <= MOST_COUNT:
                return f"resources.{name}", f"must not be negative, at most {MOST_COUNT}, not {amount}"
        if not self.own.keys().isdisjoint(self.labels):
            return "own", "names a label that is also among the labels"
        if self.cap_w is not None and not 0.0 < self.cap_w <= MOST_WATTS:
            return "cap_w", f"must be positive, at most {MOST_WATTS:g} W, not {self.cap_w}"
        return None
