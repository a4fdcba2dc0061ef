"""What a task needs of a node.

Owns the requirements and the validation of their values. Knows no node.
"""

from typing import Final

import msgspec

from wattloom.bounds import MOST_CORES, MOST_COUNT
from wattloom.workload.constraints import Constraints, Labels, constraints_problem

MOST_DEVICES: Final = 1_000_000
LEAST_SHARE: Final = 0.001
"""Shares of a device are counted in thousandths."""


ON_THE_WIRE: Final = {"constraints": "where", "task_labels": "tags", "namespace": "space"}
"""Fields that logs and files call otherwise."""


class Requirements(
    msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True, rename=ON_THE_WIRE
):
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
    resources: tuple[tuple[str, int], ...] = ()
    """Whatever else is counted, and how much of it: sorted by name, nothing of which 0 is wanted."""
    constraints: Constraints | None = None
    """Rules about where it may go; None: no rules."""
    task_labels: Labels = ()
    """Labels of the task itself, sorted by name: what others' rules look for."""
    namespace: str = ""
    """Namespace of the task: rules look in some of them."""

    def problem(self) -> tuple[str, str] | None:
        """The first wrong field and what is wrong with it."""
        if not 0.0 <= self.cpu < MOST_CORES:
            return "cpu", f"must be between 0 and {MOST_CORES} cores, not {self.cpu}"
        if not 0 <= self.memory <= MOST_COUNT:
            return "memory", f"must be a number of bytes, not negative, at most {MOST_COUNT}, not {self.memory}"
        wrong = devices_problem(self.devices) or resources_problem(self.resources)
        if wrong is not None:
            return wrong
        if list(self.task_labels) != sorted(dict(self.task_labels).items()):
            return "tags", "must be sorted by name, each once"
        wrong = None if self.constraints is None else constraints_problem(self.constraints)
        return None if wrong is None else (f"where.{wrong[0]}", wrong[1])


def resources_problem(resources: tuple[tuple[str, int], ...]) -> tuple[str, str] | None:
    """The first wrong name or amount, and what is wrong with it."""
    for name, amount in resources:
        if not 1 <= amount <= MOST_COUNT:
            return f"resources.{name}", f"must be a positive whole number, at most {MOST_COUNT}, not {amount}"
    if list(resources) != sorted(dict(resources).items()):
        return "resources", "must be sorted by name, each once"
    return None


def devices_problem(devices: tuple[tuple[str, float], ...]) -> tuple[str, str] | None:
    """The first wrong kind or amount, and what is wrong with it."""
    for kind, amount in devices:
        whole = 1.0 <= amount < MOST_DEVICES and amount == int(amount)
        if not (whole or LEAST_SHARE <= amount < 1.0):
            return f"devices.{kind}", f"must be a share from {LEAST_SHARE} to below 1 or a whole number, not {amount}"
    if len({kind for kind, _ in devices}) != len(devices):
        return "devices", "names the same kind twice"
    return None
