"""A trial: everything a simulation needs but the policy.

Owns the data a scenario file and a recorded log are both turned into: machines, functions, nodes, tasks with their
true lengths, and what happens to nodes. The engine sees none of the truth.
"""

from typing import Annotated

import msgspec

from wattloom.cluster.node import Node
from wattloom.history.run_trace import OutsideEvent
from wattloom.machines.profile import MachineProfile
from wattloom.scheduling.events import NodeJoined, NodeLost
from wattloom.workload.function import Function
from wattloom.workload.task import Task

Happening = NodeJoined | NodeLost | OutsideEvent


class Arrival(msgspec.Struct, frozen=True, gc=False):
    """A task, when it comes, and how long it is against its function's usual length."""

    time: float
    task: Task
    factor: float = 1.0


class ColdStart(msgspec.Struct, frozen=True):
    """What the first call on a node costs, and how long an idle instance is kept."""

    seconds: float = 0.0
    keep_alive_s: float = 0.0


class SchedulerCost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What deciding costs: modelled, so that results are the same on every machine."""

    seconds_per_proposal: Annotated[float, msgspec.Meta(ge=0, le=1e6)] = 30e-6
    seconds_per_reading: Annotated[float, msgspec.Meta(ge=0, le=1e6)] = 5e-6
    watts: Annotated[float, msgspec.Meta(ge=0, le=1e6)] = 10.0
    """Draw of the core that decides, above idle."""


class Trial(msgspec.Struct, frozen=True):
    """What is run, on what, and what really happens."""

    name: str
    machines: list[MachineProfile]
    functions: list[Function]
    nodes: list[Node]
    arrivals: list[Arrival]
    seconds: dict[tuple[str, str, str], float]
    """True seconds alone by (function, variant, machine)."""
    happenings: list[Happening] = []
    cold_starts: dict[str, ColdStart] = {}
    power_cap_w: float | None = None
    scheduler: SchedulerCost = SchedulerCost()
    assumptions: list[str] = []
