"""Moves: what a policy would change of work that runs and of nodes that are there.

Owns the one place where a move is checked and committed, and what follows when the backend reports it done or failed.
A move that cannot be made changes nothing and says why. What is taken for a move is taken before the backend is asked,
and what is given up is given back when it is done: nobody can take the room in between.
"""

from typing import Final

from wattloom.bounds import MOST_CORES, MOST_COUNT
from wattloom.cluster.node_class import Mode, use_of
from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import FULL, MICRO, NodeState
from wattloom.cluster.warm_instances import InstanceKey, add
from wattloom.policies.answers import (
    Eviction,
    Frequency,
    Migration,
    Move,
    Preparation,
    Resizing,
)
from wattloom.scheduling.evictions import Evictions
from wattloom.scheduling.instructions import Migrate, MoveKind, Prepare, Release, Resize, SetFrequency
from wattloom.scheduling.leases import Leases
from wattloom.scheduling.ledger import Ledger
from wattloom.scheduling.placement import Placement
from wattloom.scheduling.state import Stage, TaskRecord
from wattloom.scheduling.turn import Turn
from wattloom.units import MILLI, millicores

LEAST_FREQUENCY: Final = 0.05
"""Of a node, as a share of what it runs at by itself."""


class Moves:
    """`can` is what the backend carries out beside placing, evicting, sleep and wake-up."""

    def __init__(
        self,
        turn: Turn,
        ledger: Ledger,
        leases: Leases,
        evictions: Evictions,
        placement: Placement,
        can: frozenset[MoveKind],
        readings: bool,
    ) -> None:
        self._turn: Final = turn
        self._ledger: Final = ledger
        self._leases: Final = leases
        self._evictions: Final = evictions
        self._placement: Final = placement
        self._can: Final = can
        self._readings: Final = readings
        self.frequencies: Final[dict[str, int]] = {}
        """By node: what it was asked to run at and has not reported yet, in thousandths."""

    def make(self, move: Move) -> str:
        """Check and commit; why not, or empty."""
        if isinstance(move, (Migration, Resizing, Eviction)):
            record = self._ledger.tasks.get(move.task)
            if record is None:
                return f"{move.task} is not here"
            if isinstance(move, Eviction):
                return self._evict(record)
            if isinstance(move, Migration):
                return self._migrate(record, move.node)
            return self._resize(record, move.cpu, move.memory)
        node = self._ledger.index.nodes.get(move.node)
        if node is None:
            return f"{move.node} is not here"
        if isinstance(move, Frequency):
            return self._set_frequency(node, move.share)
        if isinstance(move, Preparation):
            return self._prepare(node, (node.name, move.function, move.variant))
        return self._release(node, (node.name, move.function, move.variant))

    def _evict(self, record: TaskRecord) -> str:
        problem = self._evictions.problem(record)
        if not problem:
            self._evictions.evict(record)
        return problem

    # -- to another node ---------------------------------------------------------------------------------------------

    def _migrate(self, record: TaskRecord, to: str) -> str:
        node = self._ledger.index.nodes.get(to)
        problem = self._unmovable(record, "migrate")
        if problem or node is None:
            return problem or f"{to} is not here"
        has = record.holding
        if node is has.node or node.mode != Mode.AWAKE:
            return f"{to} is not another node that is awake"
        estimate = self._ledger.check(record, node)
        if isinstance(estimate, Reason):
            return f"{to}: {estimate}"
        if estimate.variant.name != has.estimate.variant.name:
            return f"{to} would run another build of {record.name}"
        if has.lease is not None:
            self._leases.close(has.lease)
        target = self._ledger.take_target(record, node, estimate)
        self._placement.placed += 1
        target.number = self._placement.placed
        devices = use_of(node.cls, target.devices)
        variant, number = estimate.variant.name, target.number
        self._turn.out.append(
            Migrate(record.name, has.attempt, has.node.name, to, variant, devices, estimate.forecast, number)
        )
        return ""

    def migrated(self, record: TaskRecord) -> None:
        """It is where it was to go: what it had before is given back."""
        before = record.holding
        after = self._ledger.arrive(record)
        if self._readings:
            self._ledger.readings.gone(before.node.name, record.name)
            self._ledger.will_draw(after.node, record, after.estimate)
        self._placement.freed(before.node)

    def stays(self, record: TaskRecord) -> NodeState:
        """Undo of a migration: what was taken is given back. The node."""
        return self._ledger.drop_target(record)

    # -- in place ----------------------------------------------------------------------------------------------------

    def _resize(self, record: TaskRecord, cpu: float, memory: int) -> str:
        problem = self._unmovable(record, "resize")
        if problem:
            return problem
        if not 0.0 <= cpu <= MOST_CORES or not 0 <= memory <= MOST_COUNT:
            return f"{record.name} cannot have {cpu} cores and {memory} bytes"
        has = record.holding
        old, new = (has.guaranteed, has.memory_of(record.shape)), (millicores(cpu), memory)
        if old == new:
            return f"{record.name} has that already"
        most = (max(old[0], new[0]), max(old[1], new[1]))
        node = has.node
        if node.allocated - old[0] + most[0] > node.cls.cpu and most[0] > old[0]:
            return f"{node.name}: {Reason.CPU}"
        if node.memory - old[1] + most[1] > node.cls.memory and most[1] > old[1]:
            return f"{node.name}: {Reason.MEMORY}"
        if has.lease is not None:
            self._leases.close(has.lease)
        self._ledger.set_room(has, record.shape, most[0], most[1])
        has.resizing = (old, new)
        self._turn.out.append(Resize(record.name, has.attempt, node.name, new[0] / MILLI, memory))
        return ""

    def resized(self, record: TaskRecord, *, done: bool) -> None:
        """It has what it was to have; or, the undo, what it had."""
        has = record.holding
        assert has.resizing is not None
        room = has.resizing[1 if done else 0]
        has.resizing = None
        self._ledger.set_room(has, record.shape, room[0], room[1])
        self._placement.freed(has.node)

    def _unmovable(self, record: TaskRecord, kind: MoveKind) -> str:
        has = record.allocation
        if kind not in self._can:
            return f"the backend cannot {kind} tasks"
        if has is None or not has.taken or record.stage != Stage.RUNNING:
            return f"{record.name} does not run"
        if has.target is not None or has.resizing is not None or has.leaving:
            return f"{record.name} is being changed or removed already"
        if has.lease is not None and has.lease.behind:
            return f"others follow on the share of {record.name}"
        if kind == "migrate" and has.memory >= 0:  # on the other node it would get what its shape wants
            return f"{record.name} was resized"
        return ""

    # -- nodes -------------------------------------------------------------------------------------------------------

    def _set_frequency(self, node: NodeState, share: float) -> str:
        if "set-frequency" not in self._can:
            return "the backend cannot set frequencies"
        if not LEAST_FREQUENCY <= share <= 1.0:
            return f"{node.name} cannot run at {share} of its frequency"
        frequency = round(share * FULL)
        if not node.mode.is_awake or node.name in self.frequencies or node.frequency == frequency:
            return f"{node.name} is not awake, or runs so already, or will"
        if self._above_the_cap(node, frequency):
            return f"{node.name}: {Reason.CLUSTER_WATTS}"
        self.frequencies[node.name] = frequency
        self._turn.out.append(SetFrequency(node.name, share))
        return ""

    def _above_the_cap(self, node: NodeState, frequency: int) -> bool:
        """Whether the cluster would draw more than it may, with whatever else was asked to run faster."""
        cap, index = self._ledger.view.cap_microwatts, self._ledger.index
        rise = _rise(node, frequency)
        if cap is None or rise <= 0:
            return False
        asked = sum(max(0, _rise(index.nodes[name], each)) for name, each in self.frequencies.items())
        return index.microwatts + asked + rise > cap

    def _prepare(self, node: NodeState, key: InstanceKey) -> str:
        problem = self._unprepared(node, key, "prepare")
        if not problem:
            add(self._ledger.view.instances.coming, key, 1)
            self._turn.out.append(Prepare(*key))
        return problem

    def _release(self, node: NodeState, key: InstanceKey) -> str:
        instances = self._ledger.view.instances
        problem = self._unprepared(node, key, "release")
        if not problem and instances.ready.get(key, 0) <= instances.going.get(key, 0):
            problem = f"{node.name} has no instance of {key[1]} ({key[2]}) to spare"
        if not problem:
            add(instances.going, key, 1)
            self._turn.out.append(Release(*key))
        return problem

    def _unprepared(self, node: NodeState, key: InstanceKey, kind: MoveKind) -> str:
        if kind not in self._can:
            return f"the backend cannot {kind} instances"
        if not node.mode.is_awake:
            return f"{node.name} is not awake"
        function = self._ledger.functions.get(key[1])
        if function is None or all(variant.name != key[2] for variant in function.variants):
            return f"{key[1]} has no build {key[2]}"
        return ""

    def node_lost(self, node: str) -> None:
        """Nothing that was asked of it will be reported any more."""
        self.frequencies.pop(node, None)
        self._ledger.view.instances.node_lost(node)


def _rise(node: NodeState, frequency: int) -> int:
    """Microwatts that one node draws more at this frequency, by its curve."""
    machine, site = node.cls.machine, node.site
    assert site is not None
    watts = (machine if frequency == FULL else machine.at(frequency)).load(node.demand)[1]
    return round(watts * MICRO) - site.microwatts
