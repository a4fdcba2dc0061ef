"""The real engine with nothing around it: feed events, look at instructions, and every invariant is checked on the way.

Owns the short forms of events, the record of what was told and answered, and its replay. A test in five lines:

    h = Harness()
    h.node("a", LINEAR).function("f", seconds={"linear": 10.0})
    h.submit("t")
    assert h.where("t") == "a"
    h.finish("t")
"""

from collections.abc import Callable

from wattloom.cluster.node import Node
from wattloom.cluster.reasons import Reason
from wattloom.errors import EventRefused
from wattloom.history.explanation import Explanation, explain
from wattloom.machines.profile import MachineProfile
from wattloom.policies.protocol import Policy
from wattloom.scheduling import events as ev
from wattloom.scheduling.engine import Engine
from wattloom.scheduling.instructions import ALL_MOVES, AnyInstruction, Conclude, Outcome, Place, Wait
from wattloom.scheduling.invariants import check
from wattloom.scheduling.lease_terms import LeaseTerms
from wattloom.scheduling.state import TaskRecord
from wattloom.testing import builders
from wattloom.testing.builders import LINEAR
from wattloom.testing.fingerprint import Fingerprint, fingerprint, nodes_fingerprint
from wattloom.testing.odd_policies import least_rise
from wattloom.workload.function import Function, Variant
from wattloom.workload.requirements import Requirements
from wattloom.workload.task import Task

__all__ = ["Fingerprint", "Harness", "Recorded", "fingerprint", "nodes_fingerprint"]

Recorded = tuple[ev.AnyEvent, list[AnyInstruction]]


class Harness:
    """An engine under test. `time` is the time of the next event; set it, or let it `pass_time`."""

    def __init__(
        self,
        policy: Policy | None = None,
        new_policy: Callable[[], Policy] | None = None,
        lease: LeaseTerms | None = None,
    ) -> None:
        self.lease: LeaseTerms | None = lease
        self._new_policy: Callable[[], Policy] = new_policy or (lambda: self.policy)
        self.policy: Policy = policy if policy is not None else (new_policy or least_rise)()
        self.engine: Engine = Engine(self.policy, lease, moves=ALL_MOVES)
        self.time: float = 0.0
        self.recorded: list[Recorded] = []
        """Every event that was taken, with its instructions."""
        self.placements: dict[str, list[Place]] = {}
        """Every placement of every task."""
        self.ends: dict[str, list[Outcome]] = {}
        """Every end of every task: there must be exactly one."""

    # -- events ------------------------------------------------------------------------------------------------------

    def tell(self, event: ev.AnyEvent) -> list[AnyInstruction]:
        """Hand any event to the engine; checks all invariants, and if it is refused, that nothing has changed."""
        before = fingerprint(self.engine)
        try:
            instructions = self.engine.handle(event)
        except EventRefused:
            assert_equal(before, fingerprint(self.engine), f"a refused event changed the engine: {event}")
            raise
        self.time = max(self.time, event.time)
        self.recorded.append((event, instructions))
        self._note(event, instructions)
        check(self.engine)
        return instructions

    def _note(self, event: ev.AnyEvent, instructions: list[AnyInstruction]) -> None:
        if isinstance(event, ev.TaskFinished):
            self.ends.setdefault(event.task, []).append("finished")
        for instruction in instructions:
            if isinstance(instruction, Place):
                self.placements.setdefault(instruction.task, []).append(instruction)
            elif isinstance(instruction, Conclude):
                self.ends.setdefault(instruction.task, []).append(instruction.outcome)

    def refused(self, event: ev.AnyEvent) -> EventRefused:
        """The engine must refuse this event; what it said. That nothing changed is checked."""
        try:
            instructions = self.tell(event)
        except EventRefused as refusal:
            return refusal
        raise AssertionError(f"{event} was not refused but answered with {instructions}")

    # -- machines, nodes, functions: these return the harness, so that they can be chained ---------------------------

    def machine(self, *profiles: MachineProfile) -> "Harness":
        for profile in profiles:
            self.tell(ev.MachineDefined(self.time, profile))
        return self

    def node(
        self,
        name: str,
        machine: MachineProfile = LINEAR,
        *,
        cpu: float | None = None,
        memory: int | None = None,
        labels: dict[str, str] | None = None,
        devices: dict[str, int] | None = None,
        cap_w: float | None = None,
        asleep: bool = False,
    ) -> "Harness":
        """A node joins; its machine is defined before if need be."""
        self.join(
            builders.node(
                name, machine, cpu=cpu, memory=memory, labels=labels, devices=devices, cap_w=cap_w, asleep=asleep
            ),
            machine,
        )
        return self

    def join(self, node: Node, machine: MachineProfile) -> list[AnyInstruction]:
        """The same with its instructions."""
        if machine.name not in self.engine.ledger.machines:
            self.machine(machine)
        return self.tell(ev.NodeJoined(self.time, node))

    def function(
        self,
        name: str = "f",
        needs: Requirements | None = None,
        *,
        seconds: dict[str, float] | None = None,
        variants: tuple[Variant, ...] = (),
    ) -> "Harness":
        self.define(builders.function(name, needs, seconds=seconds, variants=variants))
        return self

    def define(self, function: Function) -> list[AnyInstruction]:
        return self.tell(ev.FunctionDefined(self.time, function))

    # -- nodes -------------------------------------------------------------------------------------------------------

    def change(self, node: Node) -> list[AnyInstruction]:
        return self.tell(ev.NodeChanged(self.time, node))

    def lose(self, node: str) -> list[AnyInstruction]:
        return self.tell(ev.NodeLost(self.time, node))

    def awake(self, node: str) -> list[AnyInstruction]:
        return self.tell(ev.NodeAwake(self.time, node))

    def asleep(self, node: str) -> list[AnyInstruction]:
        return self.tell(ev.NodeAsleep(self.time, node))

    def cap(self, watts: float | None) -> list[AnyInstruction]:
        """Limit the whole cluster's draw."""
        return self.tell(ev.CapChanged(self.time, watts))

    def reading(self, node: str, watts: float, tasks: dict[str, float] | None = None) -> list[AnyInstruction]:
        return self.tell(ev.ReadingArrived(self.time, node, watts, tasks or {}))

    # -- tasks -------------------------------------------------------------------------------------------------------

    def submit(
        self,
        id: str,
        function: str = "f",
        needs: Requirements | None = None,
        *,
        priority: int = 0,
        energy_weight: float = 0.5,
        deadline_s: float | None = None,
        defer_s: float = 0.0,
        after: tuple[str, ...] = (),
        idempotent: bool = False,
        retries: int = 0,
        infrastructure_retries: int = 3,
    ) -> list[AnyInstruction]:
        """Submit a task; a function that was not defined is defined before, with defaults."""
        return self.submit_task(
            builders.task(
                id,
                function,
                needs,
                priority=priority,
                energy_weight=energy_weight,
                deadline_s=deadline_s,
                defer_s=defer_s,
                after=after,
                idempotent=idempotent,
                retries=retries,
                infrastructure_retries=infrastructure_retries,
            )
        )

    def submit_task(self, task: Task) -> list[AnyInstruction]:
        if task.function not in self.engine.ledger.functions:
            self.function(task.function)
        return self.tell(ev.TaskSubmitted(self.time, task))

    def start(self, task: str) -> list[AnyInstruction]:
        return self.tell(ev.TaskStarted(self.time, task, self.attempt(task)))

    def finish(self, task: str, seconds: float | None = None) -> list[AnyInstruction]:
        return self.tell(ev.TaskFinished(self.time, task, self.attempt(task), seconds))

    def fail(self, task: str, message: str = "") -> list[AnyInstruction]:
        """By the function's own fault."""
        return self.tell(ev.TaskFailed(self.time, task, self.attempt(task), "function", message))

    def fail_infrastructure(self, task: str, message: str = "") -> list[AnyInstruction]:
        """By the machinery's fault."""
        return self.tell(ev.TaskFailed(self.time, task, self.attempt(task), "infrastructure", message))

    def evicted(self, task: str) -> list[AnyInstruction]:
        return self.tell(ev.TaskFailed(self.time, task, self.attempt(task), "evicted"))

    def cancel(self, task: str) -> list[AnyInstruction]:
        return self.tell(ev.CancelRequested(self.time, task))

    # -- instructions that could not be carried out --------------------------------------------------------------------

    def place_failed(self, task: str, message: str = "") -> list[AnyInstruction]:
        return self.tell(ev.InstructionFailed(self.time, "place", task, self.attempt(task), message=message))

    def evict_failed(self, task: str) -> list[AnyInstruction]:
        return self.tell(ev.InstructionFailed(self.time, "evict", task, self.attempt(task)))

    def sleep_failed(self, node: str) -> list[AnyInstruction]:
        return self.tell(ev.InstructionFailed(self.time, "sleep", node=node))

    def wake_failed(self, node: str) -> list[AnyInstruction]:
        return self.tell(ev.InstructionFailed(self.time, "wake", node=node))

    # -- time --------------------------------------------------------------------------------------------------------

    def tick(self, time: float | None = None) -> list[AnyInstruction]:
        """A tick, now or at some time."""
        return self.tell(ev.Tick(self.time if time is None else time))

    def pass_time(self, seconds: float) -> list[AnyInstruction]:
        """Let time pass, with a tick whenever the engine wants one and one at the end."""
        end = self.time + seconds
        instructions: list[AnyInstruction] = []
        while self.engine.next_tick is not None and self.engine.next_tick < end:
            instructions += self.tick(max(self.time, self.engine.next_tick))
        return instructions + self.tick(end)

    # -- what came of it ---------------------------------------------------------------------------------------------

    def record(self, task: str) -> TaskRecord:
        """What the engine knows of a task that has not ended."""
        return self.engine.ledger.tasks[task]

    def stage(self, task: str) -> int | None:
        """Where a task is in its life; None if it has ended."""
        record = self.engine.ledger.tasks.get(task)
        return None if record is None else record.stage

    def attempt(self, task: str) -> int:
        record = self.engine.ledger.tasks.get(task)
        return 0 if record is None else record.attempt

    def where(self, task: str) -> str | None:
        """The node a task is on or will be on once that has woken; None if it has no place."""
        record = self.engine.ledger.tasks.get(task)
        return record.node or None if record is not None else None

    def outcome(self, task: str) -> Outcome | None:
        """How a task ended; None if it has not."""
        return self.engine.ledger.ended.get(task)

    def reason(self, task: str) -> Reason | None:
        """Why a task waits, as its owner was told."""
        return self.engine.ledger.tasks[task].reason

    def why(self, task: str) -> Explanation:
        """The explanation of the decision the engine would take for this task now."""
        return explain(self.record(task), self.engine.ledger.view, self.policy)

    def instructions(self) -> list[AnyInstruction]:
        """Everything the engine has asked for so far."""
        return [instruction for _, instructions in self.recorded for instruction in instructions]

    def replay(self) -> "Harness":
        """Hand all events to a fresh engine: it must give the same instructions. Returns the other harness."""
        other = Harness(self._new_policy(), lease=self.lease)
        for event, instructions in self.recorded:
            again = other.engine.handle(event)
            if again != instructions:
                raise AssertionError(f"{event} gave {instructions} first and {again} when replayed")
        assert_equal(fingerprint(self.engine), fingerprint(other.engine), "replaying led to another state")
        return other


def assert_equal(one: Fingerprint, other: Fingerprint, message: str) -> None:
    """Raise AssertionError with the topics in which two fingerprints differ."""
    if one != other:
        topics = [f"{topic}:\n  {one[topic]}\n  {other[topic]}" for topic in one if one[topic] != other[topic]]
        raise AssertionError("\n".join([message, *topics]))


def waits(instructions: list[AnyInstruction]) -> list[tuple[str, Reason]]:
    """Who was told to wait, and why."""
    return [(each.task, each.reason) for each in instructions if isinstance(each, Wait)]


def places(instructions: list[AnyInstruction]) -> list[tuple[str, str]]:
    """Who was placed where, in order."""
    return [(each.task, each.node) for each in instructions if isinstance(each, Place)]
