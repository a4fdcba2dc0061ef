"""One picture of this machine in joules: what every view presents and nobody works out again.

Owns the records and the sums they promise. Of `Parts`, whether of one interval or of all so far:
`meter_j == entities_j + idle_j + overhead_j + unattributed_j`, to the last bit. Of a `Snapshot`: what processes have,
and `gone` holds of them, is `entities_j`; so is what containers, units and machines outside of containers have.
"""

from typing import Literal

import msgspec

from wattloom.attribution.idle_policy import IdlePolicy
from wattloom.energy.forecast import Provenance
from wattloom.metering.protocol import Quantity

Kind = Literal["process", "container", "pod", "vm", "unit"]
KINDS: tuple[Kind, ...] = ("process", "container", "pod", "vm", "unit")


class Parts(msgspec.Struct, frozen=True, gc=False):
    """Joules of some time, and what they are made of."""

    seconds: float = 0.0
    meter_j: float = 0.0
    entities_j: float = 0.0
    """Of somebody: processes, living and ended, with what they bear of the shared joules."""
    idle_j: float = 0.0
    """What the machine draws with nothing to do, as far as it stays with the machine."""
    overhead_j: float = 0.0
    """Of this program, which watches, as far as it stays with the machine."""
    unattributed_j: float = 0.0
    """Used while somebody ran whom nobody saw: the kernel's own work, mostly."""
    shared_j: float = 0.0
    """The part of `entities_j` that is idle draw and overhead, borne by them."""
    unknown_s: float = 0.0
    """Time whose joules nobody will ever know, beside `seconds`."""

    def plus(self, more: "Parts") -> "Parts":
        return Parts(*(getattr(self, field) + getattr(more, field) for field in self.__struct_fields__))


class Entity(msgspec.Struct, frozen=True, gc=False):
    """A process, container, pod, virtual machine or unit, since it was first seen."""

    kind: Kind
    key: str
    """Which one it is, for good: a PID with its start, a container's id."""
    name: str
    cpu_s: float
    active_j: float
    """Joules above the machine's idle draw."""
    spread_j: float
    """One standard deviation of `active_j`."""
    shared_j: float = 0.0
    """What it bears of idle draw and overhead by the policy in force."""
    watts: float = 0.0
    """Of both, over the last interval."""
    pid: int = 0
    command: str = ""
    container: str = ""
    engine: str = ""
    pod: str = ""
    vm: str = ""
    unit: str = ""
    exited: bool = False
    """Not one process but those that came and went unseen."""
    ended: bool = False

    @property
    def joules(self) -> float:
        return self.active_j + self.shared_j


class DeviceUser(msgspec.Struct, frozen=True, gc=False):
    """Who used an accelerator: a container, a virtual machine or a program outside of both. All empty: who it was is
    not known, or it has ended."""

    container: str
    pod: str
    name: str
    joules: float


class DeviceUse(msgspec.Struct, frozen=True):
    """An accelerator. Its joules are beside those of the node's meter unless that one is at the plug."""

    uuid: str
    index: int
    name: str
    kind: str
    joules: float
    """Since it was first read: users + idle + unattributed, to the last bit."""
    idle_j: float
    unattributed_j: float
    users: tuple[DeviceUser, ...]
    watts: float | None
    utilisation: float | None
    memory_used: int | None
    memory_total: int | None
    provenance: Provenance
    problem: str = ""
    """Why it cannot be read now. Empty: it can."""
    unknown_s: float = 0.0


class TaskUse(msgspec.Struct, frozen=True):
    """What the calls of a function have cost since we watch, by the journals of programs that use Wattloom."""

    function: str
    node: str
    device: str
    joules: float
    calls: int
    seconds: float
    provenance: str
    watts: float = 0.0
    """Joules that were told of since the last look, over its time: it comes in steps, as calls end."""


class Snapshot(msgspec.Struct, frozen=True):
    """This machine after a look."""

    node: str
    time: float
    """As it was handed in."""
    meter: str
    quantity: Quantity
    provenance: Provenance
    model_error: float
    """One relative standard deviation of a single entity's joules, beside what the meter's own steps leave open."""
    policy: IdlePolicy
    shared_by: str
    """What active joules are shared by: CPU time, or counted events."""
    last: Parts
    """Of the last closed interval."""
    totals: Parts
    """Since the first good reading."""
    problem: str = ""
    """Why there is no reading now. Empty: there is one."""
    waiting_s: float = 0.0
    """How long the meter has been silent."""
    processes: tuple[Entity, ...] = ()
    containers: tuple[Entity, ...] = ()
    pods: tuple[Entity, ...] = ()
    vms: tuple[Entity, ...] = ()
    units: tuple[Entity, ...] = ()
    gone: dict[str, float] = {}
    """By kind: joules of those that ended long ago."""
    devices: tuple[DeviceUse, ...] = ()
    tasks: tuple[TaskUse, ...] = ()
    living: int = 0
    hidden: int = 0
    look_s: float = 0.0
    """CPU seconds of this program, from its start."""

    def of(self, kind: Kind) -> tuple[Entity, ...]:
        found: tuple[Entity, ...] = getattr(self, f"{kind}s" if kind != "process" else "processes")
        return found

    def watts(self, joules: float) -> float | None:
        """Mean power of joules of the last interval. None: there was none."""
        return joules / self.last.seconds if self.last.seconds > 0.0 else None
