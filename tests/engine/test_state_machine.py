"""Random events, true and false, in any order: the engine keeps its promises whatever it is told."""

from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar, Literal

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.engine.absurd import FRACTIONS, WHOLE, numbers, with_number
from tests.local.chaos.patience import within_seconds

from wattloom.cluster.fit import booked_watts
from wattloom.cluster.node import Node
from wattloom.cluster.node_class import Mode
from wattloom.cluster.site import NodeState
from wattloom.energy.used import Used
from wattloom.errors import EventRefused
from wattloom.machines.profile import MachineProfile
from wattloom.policies.marginal_energy import MarginalEnergy
from wattloom.policies.protocol import Policy
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import AnyInstruction, Sleep
from wattloom.scheduling.lease_terms import LeaseTerms
from wattloom.scheduling.state import ON_A_NODE, STAGES, Stage
from wattloom.testing import builders
from wattloom.testing.builders import CONVEX, MACHINES, SLEEPER, machine, variant
from wattloom.testing.harness import Harness, nodes_fingerprint
from wattloom.testing.odd_policies import Absurd, Hesitant, Lingering, Moody, Restless, Sleepless, least_rise
from wattloom.units import GIB
from wattloom.workload.constraints import (
    AffinityTerm,
    Constraints,
    Expression,
    NodeTerm,
    Port,
    Spread,
    Taint,
    Toleration,
)
from wattloom.workload.requirements import Requirements

STEPS = st.sampled_from([0.0, 0.0, 0.0, 0.5, 2.0, 7.0, 31.0, 61.0, 400.0])
PICK = st.integers(0, 50)
NODE_NAMES = st.sampled_from([f"n{number}" for number in range(6)])
ABSURD = st.one_of(st.sampled_from([*FRACTIONS, *WHOLE]), st.floats(), st.integers())
WEB = (Expression("app", "In", ("web",)),)
RULES = st.sampled_from(
    [
        Constraints(),
        Constraints(ports=(Port(80),)),
        Constraints(spread=(Spread("zone", 1, WEB),)),
        Constraints(affinity=(AffinityTerm("zone", ()),)),
        Constraints(anti_affinity=(AffinityTerm("host", WEB),)),
        Constraints(terms=(NodeTerm((Expression("host", "In", ("n0", "n1", "zz-big-x86-a")),)),)),
        Constraints(tolerations=(Toleration("", "Exists"),)),
    ]
)
NEEDS = st.one_of(
    st.none(),
    st.builds(
        Requirements,
        st.sampled_from([0.5, 1.0]),
        resources=st.sampled_from([(), (("pods", 1),)]),
        constraints=RULES,
        task_labels=st.sampled_from([(), (("app", "web"),)]),
    ),
    st.builds(
        builders.requirements,
        st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.5, 4.0, 8.0]),
        st.sampled_from([0, GIB, 5 * GIB, 8 * GIB]),
        arch=st.sampled_from([(), (), ("x86_64",), ("aarch64",)]),
        labels=st.sampled_from([None, None, {"zone": "a"}]),
        devices=st.sampled_from([None, None, {"gpu": 0.3}, {"gpu": 0.5}, {"gpu": 1.0}, {"gpu": 2.0}]),
    ),
)
BIG = [
    machine("big-x86", cores=64, memory=512 * GIB, watts=((0.0, 100.0), (64.0, 400.0))),
    machine("big-arm", cores=64, memory=512 * GIB, watts=((0.0, 50.0), (64.0, 200.0)), arch="aarch64"),
]
AT_THE_PLUG = msgspec.structs.replace(machine("at-the-plug", tdp_w=30.0), quantity="wall")
WITH_TDP = (
    machine("hot", tdp_w=45.0),
    machine("cool", watts=CONVEX.watts, tdp_w=60.0),
    machine("above-idle", tdp_w=21.0),
    machine("below-idle", tdp_w=10.0),
    machine("tdp-without-curve", watts=(), tdp_w=20.0),
    AT_THE_PLUG,
)
FUNCTIONS = [
    builders.function("f", seconds={"linear": 10.0, "arm": 25.0}),
    builders.function("g"),
    builders.function(
        "h",
        builders.requirements(2.0),
        variants=(
            variant("gpu", devices={"gpu": 0.5}, seconds={"linear": 1.0}),
            variant("arm", arch=("aarch64",), seconds={"arm": 5.0}),
            variant("plain", seconds={"linear": 8.0}),
        ),
    ),
]


class EngineMachine(RuleBasedStateMachine):
    """One engine, told everything."""

    new_policy: ClassVar[Callable[[], Policy]] = staticmethod(least_rise)
    lease: ClassVar[LeaseTerms | None] = None
    machines: ClassVar[tuple[MachineProfile, ...]] = MACHINES

    def __init__(self) -> None:
        super().__init__()
        self.h = Harness(new_policy=type(self).new_policy, lease=self.lease)
        self.h.machine(*self.machines, *BIG)
        for function in FUNCTIONS:
            self.h.define(function)
        self.accepted: list[str] = []

    @initialize(
        nodes=st.lists(st.tuples(PICK, PICK, st.booleans()), min_size=1, max_size=4),
        cap=st.sampled_from([None, None, 60.0, 90.0, 150.0]),
        burst=st.lists(NEEDS, max_size=8),
    )
    def begin(self, nodes: list[tuple[int, int, bool]], cap: float | None, burst: list[Requirements | None]) -> None:
        """An empty engine is dull."""
        for number, (pick, extra, asleep) in enumerate(nodes):
            self.maybe(ev.NodeJoined(0.0, self.draw_node(f"n{number}", pick, extra, asleep)))
        self.tell(ev.CapChanged(0.0, cap))
        for needs in burst:
            self.submit_one("g", needs)

    def submit_one(self, function: str, needs: Requirements | None) -> str:
        name = f"t{len(self.accepted)}"
        self.tell(ev.TaskSubmitted(self.h.time, builders.task(name, function, needs, idempotent=True)))
        self.accepted.append(name)
        return name

    # -- telling -------------------------------------------------------------------------------------------------------

    def tell(self, event: ev.AnyEvent) -> list[AnyInstruction]:
        """Tell it; what it places must be within all limits."""
        nodes = self.h.engine.ledger.index.nodes
        before = {name: set(node.tasks) for name, node in nodes.items()}
        instructions = self.h.tell(event)
        gained = [name for name, node in nodes.items() if node.tasks - before.get(name, set())]
        for name in gained:
            cap_w = nodes[name].cls.cap_w
            if cap_w is not None:
                assert nodes[name].cls.machine.watts(nodes[name].demand) <= cap_w
            self.within_tdp(nodes[name])
        cap = self.h.engine.ledger.view.cap_microwatts
        if gained and cap is not None:
            assert self.h.engine.ledger.index.microwatts <= cap
        return instructions

    def within_tdp(self, node: NodeState) -> None:
        """What is booked there, if the policy wants that kept."""
        machine = node.cls.machine
        if self.h.policy.terms.tdp and machine.knows_power and machine.profile.tdp_w is not None:
            assert booked_watts(node.cls, node.demand) <= machine.profile.tdp_w

    def maybe(self, event: ev.AnyEvent) -> bool:
        """Tell it something that may be false: refused, and nothing changes, or taken."""
        with suppress(EventRefused):
            self.tell(event)
            return True
        return False

    def mangled(self, event: ev.AnyEvent, pick: int, number: float) -> ev.AnyEvent:
        """The same event with a number in it that nobody means."""
        there = [(path, whole) for path, whole in numbers(event) if path != ("time",)]
        path, whole = there[pick % len(there)]
        fits = not whole or isinstance(number, int)
        mangled: ev.AnyEvent = with_number(event, path, number if fits else WHOLE[pick % len(WHOLE)])
        return mangled

    def later(self, step: float) -> float:
        self.h.time += step
        return self.h.time

    def some_task(self, pick: int, *stages: int) -> str | None:
        found = [name for name, record in self.h.engine.ledger.tasks.items() if record.stage in stages]
        return found[pick % len(found)] if found else None

    def some_node(self, pick: int, *modes: Mode) -> str | None:
        found = [name for name, node in self.h.engine.ledger.index.nodes.items() if node.mode in modes]
        return found[pick % len(found)] if found else None

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def draw_node(self, name: str, pick: int, extra: int, asleep: bool) -> Node:
        drawn = builders.node(
            name,
            self.machines[pick % len(self.machines)],
            cpu=(None, None, 2.0, 8.0)[extra % 4],
            labels={"zone": "a"} if extra % 3 == 0 else None,
            devices={"gpu": 1 + extra % 2} if pick % 2 else None,
            cap_w=(None, None, 45.0)[extra % 3],
            asleep=asleep,
        )
        return msgspec.structs.replace(
            drawn,
            resources={"pods": 2} if extra % 5 < 3 else {},
            taints=(Taint("spot"),) if extra % 11 == 0 else (),
            closed=pick % 13 == 0,
            own={"host": name} if extra % 7 else {},
        )

    @rule(step=STEPS, name=NODE_NAMES, pick=PICK, extra=PICK, asleep=st.booleans())
    def join(self, step: float, name: str, pick: int, extra: int, asleep: bool) -> None:
        self.maybe(ev.NodeJoined(self.later(step), self.draw_node(name, pick, extra, asleep)))

    @rule(step=STEPS, name=NODE_NAMES, pick=PICK, extra=PICK)
    def change(self, step: float, name: str, pick: int, extra: int) -> None:
        self.maybe(ev.NodeChanged(self.later(step), self.draw_node(name, pick, extra, False)))

    @rule(step=STEPS, name=NODE_NAMES)
    def lose(self, step: float, name: str) -> None:
        self.maybe(ev.NodeLost(self.later(step), name))

    @rule(step=STEPS, pick=PICK)
    def wakes(self, step: float, pick: int) -> None:
        node = self.some_node(pick, Mode.WAKING)
        if node is not None:
            self.tell(ev.NodeAwake(self.later(step), node))

    @rule(step=STEPS, name=NODE_NAMES, awake=st.booleans())
    def wakes_or_sleeps_by_itself(self, step: float, name: str, awake: bool) -> None:
        time = self.later(step)
        self.maybe(ev.NodeAwake(time, name) if awake else ev.NodeAsleep(time, name))

    @rule(step=STEPS, burst=st.lists(NEEDS, min_size=2, max_size=6))
    def submit_a_burst(self, step: float, burst: list[Requirements | None]) -> None:
        self.later(step)
        for needs in burst:
            self.submit_one("f", needs)

    @rule(step=STEPS, watts=st.sampled_from([None, None, 60.0, 90.0, 150.0, 400.0, -1.0, float("nan")]))
    def cap(self, step: float, watts: float | None) -> None:
        self.maybe(ev.CapChanged(self.later(step), watts))

    @rule(name=NODE_NAMES, watts=st.sampled_from([0.0, 30.0, 55.5, float("inf")]), pick=PICK)
    def reading(self, name: str, watts: float, pick: int) -> None:
        task = self.some_task(pick, Stage.RUNNING) or "nobody"
        self.maybe(ev.ReadingArrived(self.h.time, name, watts, {task: watts / 2.0}))

    # -- tasks ---------------------------------------------------------------------------------------------------------

    @rule(
        step=STEPS,
        function=st.sampled_from(["f", "f", "g", "h"]),
        needs=NEEDS,
        priority=st.sampled_from([0, 0, 0, 1, -1]),
        after=st.lists(PICK, max_size=2),
        defer_s=st.sampled_from([0.0, 0.0, 5.0, 100.0]),
        idempotent=st.booleans(),
        retries=st.integers(0, 2),
    )
    def submit(
        self,
        step: float,
        function: str,
        needs: Requirements | None,
        priority: int,
        after: list[int],
        defer_s: float,
        idempotent: bool,
        retries: int,
    ) -> None:
        name = f"t{len(self.accepted)}"
        others = tuple(self.accepted[-1 - pick % min(len(self.accepted), 5)] for pick in after if self.accepted)
        self.tell(
            ev.TaskSubmitted(
                self.later(step),
                builders.task(
                    name,
                    function,
                    needs,
                    priority=priority,
                    after=others,
                    defer_s=defer_s,
                    idempotent=idempotent,
                    retries=retries,
                    infrastructure_retries=retries,
                ),
            )
        )
        self.accepted.append(name)

    @rule(step=STEPS, name=NODE_NAMES, needs=NEEDS, pick=PICK)
    def found(self, step: float, name: str, needs: Requirements | None, pick: int) -> None:
        known = self.some_task(pick, *range(len(STAGES))) if pick % 3 == 0 else None
        found = known or f"t{len(self.accepted)}"
        try:
            self.h.tell(ev.TaskFound(self.later(step), builders.task(found, "f", needs, idempotent=True), name))
        except EventRefused:
            return
        if known is None:
            self.accepted.append(found)

    @rule(step=STEPS, pick=PICK)
    def leaving(self, step: float, pick: int) -> None:
        task = self.some_task(pick, *range(len(STAGES)))
        if task is not None:
            self.maybe(ev.TaskLeaving(self.later(step), task))

    @rule(step=STEPS, pick=PICK, needs=NEEDS, priority=st.sampled_from([0, 0, 1]), other=st.booleans())
    def changed(self, step: float, pick: int, needs: Requirements | None, priority: int, other: bool) -> None:
        """Its function too, which it may while it waits."""
        task = self.some_task(pick, *range(len(STAGES)))
        if task is not None:
            known = self.h.record(task).task
            function = "h" if other else known.function
            now = msgspec.structs.replace(known, requirements=needs, priority=priority, function=function)
            self.maybe(ev.TaskChanged(self.later(step), now))

    @rule(step=STEPS, pick=PICK)
    def removed(self, step: float, pick: int) -> None:
        task = self.some_task(pick, *range(len(STAGES)))
        if task is not None:
            self.tell(ev.TaskRemoved(self.later(step), task, "by somebody"))

    @rule(needs=NEEDS, pick=PICK, where=PICK, number=ABSURD)
    def absurd_change(self, needs: Requirements | None, pick: int, where: int, number: float) -> None:
        task = self.some_task(pick, *range(len(STAGES)))
        if task is not None:
            known = msgspec.structs.replace(self.h.record(task).task, requirements=needs, deadline_s=50.0, size=5)
            self.maybe(self.mangled(ev.TaskChanged(self.h.time, known), where, number))

    @rule(pick=PICK, share=st.sampled_from([0.0, 0.25, 1.0, 1.5, float("nan")]), named=st.booleans())
    def progressed(self, pick: int, share: float, named: bool) -> None:
        task = self.some_task(pick, *ON_A_NODE[1:])
        if task is not None:
            name, attempt = "half" if named else "", self.h.attempt(task)
            self.maybe(ev.TaskProgressed(self.h.time, task, attempt, share, name, 100 * named))

    def some_move(self, pick: int) -> ev.AnyEvent | None:
        """That something is done, or not, which a policy wanted."""
        engine, time, done = self.h.engine, self.h.time, pick % 3 > 0
        reports: list[ev.AnyEvent] = []
        for name, record in engine.ledger.tasks.items():
            has = record.allocation
            if has is not None and has.target is not None:
                to = has.target.node.name
                moved = ev.TaskMigrated(time, name, has.attempt, to)
                reports.append(moved if done else ev.InstructionFailed(time, "migrate", name, has.attempt))
            elif has is not None and has.resizing is not None:
                resized = ev.TaskResized(time, name, has.attempt)
                reports.append(resized if done else ev.InstructionFailed(time, "resize", name, has.attempt))
        for node, frequency in engine.moves.frequencies.items():
            changed = ev.FrequencyChanged(time, node, frequency / 1000)
            reports.append(changed if done else ev.InstructionFailed(time, "set-frequency", node=node))
        instances = engine.ledger.view.instances
        for node, function, build in instances.coming:
            ready = ev.InstanceReady(time, node, function, build)
            failed = ev.InstructionFailed(time, "prepare", node=node, function=function, variant=build)
            reports.append(ready if done else failed)
        for node, function, build in instances.going:
            gone = ev.InstanceGone(time, node, function, build)
            failed = ev.InstructionFailed(time, "release", node=node, function=function, variant=build)
            reports.append(gone if done else failed)
        return reports[pick % len(reports)] if reports else None

    @rule(step=STEPS, pick=PICK)
    def a_move_is_reported(self, step: float, pick: int) -> None:
        self.later(step)
        report = self.some_move(pick)
        if report is not None:
            self.tell(report)

    @rule(step=STEPS, pick=PICK)
    def makes_room(self, step: float, pick: int) -> None:
        task = self.some_task(pick, Stage.EVICTING)
        if task is not None:
            losses = self.h.record(task).losses
            self.tell(ev.TaskFailed(self.later(step), task, self.h.attempt(task), "evicted"))
            assert self.h.record(task).losses == losses

    @rule(name=NODE_NAMES, share=st.sampled_from([0.05, 0.5, 1.0, 0.0, 2.0]), what=st.integers(0, 5))
    def told_from_outside(self, name: str, share: float, what: int) -> None:
        time = self.h.time
        told: list[ev.AnyEvent] = [
            ev.FrequencyChanged(time, name, share),
            ev.InstanceReady(time, name, "h", "arm"),
            ev.InstanceGone(time, name, "h", "arm"),
            ev.SignalChanged(time, "price", share, ((time + 1.0, 2.0),)),
            ev.PlanChanged(time, "0f" if share < 2.0 else "no digest"),
            ev.ModelChanged(time, "0e" if share < 2.0 else "no digest"),
        ]
        self.maybe(told[what])

    @rule(step=STEPS, pick=PICK)
    def start(self, step: float, pick: int) -> None:
        task = self.some_task(pick, Stage.PLACED)
        if task is not None:
            self.tell(ev.TaskStarted(self.later(step), task, self.h.attempt(task)))

    @rule(step=STEPS, pick=PICK, seconds=st.sampled_from([None, 1.0, 12.0, 100.0]))
    def finish(self, step: float, pick: int, seconds: float | None) -> None:
        task = self.some_task(pick, *ON_A_NODE[1:])
        if task is not None:
            self.tell(ev.TaskFinished(self.later(step), task, self.h.attempt(task), seconds))

    @rule(step=STEPS, pick=PICK, kind=st.sampled_from(["function", "infrastructure", "evicted"]))
    def fail(self, step: float, pick: int, kind: Literal["function", "infrastructure", "evicted"]) -> None:
        task = self.some_task(pick, *ON_A_NODE[1:])
        if task is not None:
            self.tell(ev.TaskFailed(self.later(step), task, self.h.attempt(task), kind))

    @rule(step=STEPS, pick=PICK)
    def cancel(self, step: float, pick: int) -> None:
        task = self.some_task(pick, *(stage for stage in range(len(STAGES)) if stage != Stage.CANCELLING))
        if task is not None:
            self.tell(ev.CancelRequested(self.later(step), task))

    @rule(step=STEPS, pick=PICK)
    def start_is_refused(self, step: float, pick: int) -> None:
        task = self.some_task(pick, Stage.PLACED)
        if task is not None:
            self.tell(ev.InstructionFailed(self.later(step), "place", task, self.h.attempt(task)))

    @rule(step=STEPS, pick=PICK)
    def taken_back_from_behind(self, step: float, pick: int) -> None:
        task = self.some_task(pick, Stage.BEHIND)
        if task is not None:
            self.maybe(ev.TaskReturned(self.later(step), task, self.h.attempt(task)))

    @rule(name=NODE_NAMES, joules=st.sampled_from([0.0, 5.0, 4000.0, -1.0]), seconds=st.sampled_from([0.1, 20.0]))
    def usage(self, name: str, joules: float, seconds: float) -> None:
        used = Used(2, seconds, seconds**2 / 2.0, joules, joules**2 / 2.0, 2)
        self.maybe(ev.UsageArrived(self.h.time, name, seconds, joules, 0.0, 0.0, functions={"f": used}))

    @rule(function=st.sampled_from(["f", "g", "nothing"]), seconds=st.sampled_from([0.5, 40.0]))
    def learned_before(self, function: str, seconds: float) -> None:
        used = Used(3, 3 * seconds, 3 * seconds**2, 30.0, 300.0, 3)
        self.maybe(ev.FunctionLearned(self.h.time, function, "linear", used))

    @rule(step=STEPS, pick=PICK)
    def evict_fails(self, step: float, pick: int) -> None:
        task = self.some_task(pick, Stage.CANCELLING)
        if task is not None:
            self.tell(ev.InstructionFailed(self.later(step), "evict", task, self.h.attempt(task)))

    @rule(step=STEPS, pick=PICK, wake=st.booleans())
    def waking_or_sleeping_fails(self, step: float, pick: int, wake: bool) -> None:
        node = self.some_node(pick, Mode.WAKING if wake else Mode.ASLEEP)
        if node is not None:
            self.tell(ev.InstructionFailed(self.later(step), "wake" if wake else "sleep", node=node))

    @precondition(lambda self: self.h.engine.ledger.view.queued == 0)
    @rule(needs=NEEDS)
    def undo_restores_the_nodes(self, needs: Requirements | None) -> None:
        self.tell(ev.Tick(self.h.time))
        before = nodes_fingerprint(self.h.engine)
        name = self.submit_one("g", needs)
        if self.h.stage(name) == Stage.PLACED:
            instructions = self.tell(ev.InstructionFailed(self.h.time, "place", name, self.h.attempt(name)))
            if not any(isinstance(each, Sleep) for each in instructions):
                assert nodes_fingerprint(self.h.engine) == before

    # -- numbers that nobody means -----------------------------------------------------------------------------------

    @rule(name=NODE_NAMES, pick=PICK, extra=PICK, joins=st.booleans(), where=PICK, number=ABSURD)
    def absurd_node(self, name: str, pick: int, extra: int, joins: bool, where: int, number: float) -> None:
        there = msgspec.structs.replace(self.draw_node(name, pick, extra, joins), cpu=4.0, memory=GIB, cap_w=45.0)
        event = ev.NodeJoined(self.h.time, there) if joins else ev.NodeChanged(self.h.time, there)
        self.maybe(self.mangled(event, where, number))

    @rule(name=NODE_NAMES, where=PICK, number=ABSURD, asleep=st.booleans())
    def absurd_machine(self, name: str, where: int, number: float, asleep: bool) -> None:
        profile = msgspec.structs.replace(SLEEPER, name=f"odd-{name}", tdp_w=70.0)
        if self.maybe(self.mangled(ev.MachineDefined(self.h.time, profile), where, number)):
            self.maybe(ev.NodeJoined(self.h.time, Node(name, profile.name, asleep=asleep)))

    @rule(where=PICK, number=ABSURD)
    def absurd_function(self, where: int, number: float) -> None:
        function = builders.function("g", builders.requirements(1.0, GIB), seconds={"linear": 3.0, "convex": 4.0})
        self.maybe(self.mangled(ev.FunctionDefined(self.h.time, function), where, number))

    @rule(needs=NEEDS, where=PICK, number=ABSURD)
    def absurd_task(self, needs: Requirements | None, where: int, number: float) -> None:
        task = builders.task(f"t{len(self.accepted)}", "f", needs, deadline_s=50.0, defer_s=5.0, idempotent=True)
        event = self.mangled(ev.TaskSubmitted(self.h.time, msgspec.structs.replace(task, size=5)), where, number)
        if self.maybe(event):
            self.accepted.append(task.id)

    @rule(pick=PICK, number=ABSURD, size=st.booleans())
    def absurd_run(self, pick: int, number: float, size: bool) -> None:
        task = self.some_task(pick, Stage.PLACED, Stage.RUNNING)
        if task is not None:
            self.maybe(ev.TaskFinished(self.h.time, task, self.h.attempt(task), number, 1.0 if size else number))

    @rule(name=NODE_NAMES, where=PICK, number=ABSURD, what=st.integers(0, 6))
    def absurd_figures(self, name: str, where: int, number: float, what: int) -> None:
        used, time = Used(2, 8.0, 32.5, 60.0, 1800.5, 2, 8.0), self.h.time
        told: list[ev.AnyEvent] = [
            ev.CapChanged(time, 90.0),
            ev.ReadingArrived(time, name, 30.0, {"t0": 5.0}),
            ev.UsageArrived(time, name, 4.0, 100.0, 50.0, 10.0, functions={"f": used}),
            ev.FunctionLearned(time, "f", "smt", used),
            ev.FrequencyChanged(time, name, 0.5),
            ev.SignalChanged(time, "carbon", 300.0, ((time + 1.0, 200.0),)),
            ev.TaskProgressed(time, self.some_task(where, Stage.RUNNING) or "t0", 1, 0.5, "half", 10),
        ]
        self.maybe(self.mangled(told[what], where, number))

    # -- what is not true ----------------------------------------------------------------------------------------------

    @rule(pick=PICK, attempt=st.integers(0, 3), what=st.integers(0, 11))
    def late_repeated_or_contradictory_report(self, pick: int, attempt: int, what: int) -> None:
        names = [*self.accepted, "nobody"]
        task, time = names[pick % len(names)], self.h.time
        reports: list[ev.AnyEvent] = [
            ev.TaskStarted(time, task, attempt),
            ev.TaskFinished(time, task, attempt, float("nan") if pick % 2 else -1.0),
            ev.TaskFailed(time, task, attempt),
            ev.CancelRequested(time, task),
            ev.InstructionFailed(time, "place", task, attempt),
            ev.InstructionFailed(time, "evict", task, attempt),
            ev.TaskReturned(time, task, attempt),
            ev.TaskMigrated(time, task, attempt, "n0"),
            ev.TaskResized(time, task, attempt),
            ev.InstructionFailed(time, "migrate", task, attempt),
            ev.InstructionFailed(time, "resize", task, attempt),
            ev.TaskSubmitted(time, builders.task(task, after=("never-heard-of",))),
        ]
        self.maybe(reports[what])

    @rule(name=st.sampled_from(["n0", "n1", "nowhere"]), what=st.integers(0, 7))
    def report_of_a_node_that_may_be_wrong(self, name: str, what: int) -> None:
        time = self.h.time
        reports: list[ev.AnyEvent] = [
            ev.NodeAwake(time, name),
            ev.NodeAsleep(time, name),
            ev.InstructionFailed(time, "sleep", node=name),
            ev.InstructionFailed(time, "wake", node=name),
            ev.NodeJoined(time, Node(name, "no-such-machine")),
            ev.NodeChanged(time, Node(name, "linear", cpu=-1.0)),
            ev.NodeChanged(time, builders.node(name, cpu=0.5)),
            ev.MachineDefined(time, machine("linear", cores=7)),
        ]
        self.maybe(reports[what])

    @rule(time=st.sampled_from([float("nan"), float("inf"), float("-inf"), -1.0, 1e300]))
    def impossible_time(self, time: float) -> None:
        assert self.h.refused(ev.Tick(time)).field == "time"

    @rule(step=STEPS)
    def tick(self, step: float) -> None:
        self.tell(ev.Tick(self.later(step)))

    @rule()
    def tick_when_wanted(self) -> None:
        wanted = self.h.engine.next_tick
        if wanted is not None and wanted < 1e6:
            self.tell(ev.Tick(self.later(max(0.0, wanted - self.h.time))))

    @rule(seconds=st.sampled_from([{}, {"linear": 3.0}, {"linear": 30.0, "convex": 4.0}]))
    def function_changes(self, seconds: dict[str, float]) -> None:
        self.tell(ev.FunctionDefined(self.h.time, builders.function("g", seconds=seconds)))

    # -- what must hold ------------------------------------------------------------------------------------------------

    @invariant()
    def every_task_is_here_or_has_ended_once(self) -> None:
        here = self.h.engine.ledger.tasks
        for name in self.accepted:
            assert (name in here) + len(self.h.ends.get(name, [])) == 1, name

    @invariant()
    def nobody_waits_though_there_is_room(self) -> None:
        """No lost wake-ups. A policy that has moods may refuse what fits."""
        engine = self.h.engine
        view = engine.ledger.view
        for lane in engine.queue.blocked.values():
            head = lane.head()
            if (
                isinstance(self.h.policy, Moody)
                or head is None
                or head.by_choice
                or engine.reservations.first is not None
            ):
                continue
            if head in engine.reservations.held.values():  # others make room for it: it waits for that
                continue
            fitting = [site for site, _ in view.fitting(lane.shape)]
            assert not fitting, (head.task.id, lane.blocked_by, fitting)

    @invariant()
    def the_engine_does_not_ask_for_ticks_in_the_past(self) -> None:
        wanted = self.h.engine.next_tick
        assert wanted is None or wanted > self.h.engine.time or not self.h.recorded

    def teardown(self) -> None:
        """Finish everything, add room for all, let time pass: every task must end."""
        h = self.h
        h.cap(None)
        for profile in BIG:
            for zone in "ab":
                name = f"zz-{profile.name}-{zone}"
                big = builders.node(name, profile, labels={"zone": zone}, devices={"gpu": 4})
                big = msgspec.structs.replace(big, own={"host": name}, resources={"pods": 100})
                h.tell(ev.NodeJoined(h.time, big))
        for _ in range(400):
            self.give_up_what_will_never_be()
            if not h.engine.ledger.tasks:
                break
            self.carry_out()
            h.pass_time(30.0)
        assert not h.engine.ledger.tasks, {
            name: (STAGES[r.stage], r.reason) for name, r in h.engine.ledger.tasks.items()
        }
        self.every_task_is_here_or_has_ended_once()
        assert h.engine.ledger.view.queued == 0
        h.replay()

    def give_up_what_will_never_be(self) -> None:
        """Tasks that want more than there is, and those that want to wait for years."""
        h = self.h
        ledger = h.engine.ledger
        for name, record in list(ledger.tasks.items()):
            if name not in ledger.tasks or record.stage not in (Stage.QUEUED, Stage.HELD_BACK, Stage.BACKING_OFF):
                continue
            too_much = all(ledger.estimates.never(record.shape, site) is not None for site in ledger.index.sites())
            if too_much or record.task.defer_s > 1e3:
                h.cancel(name)

    def carry_out(self) -> None:
        """Be a backend that works."""
        h = self.h
        for name, node in list(h.engine.ledger.index.nodes.items()):
            if node.mode == Mode.WAKING:
                h.awake(name)
        for name, record in list(h.engine.ledger.tasks.items()):
            if name in h.engine.ledger.tasks and record.stage in (Stage.PLACED, Stage.RUNNING):
                h.finish(name)
            elif name in h.engine.ledger.tasks and record.stage in (Stage.EVICTING, Stage.CANCELLING):
                h.evicted(name)


class WithLingering(EngineMachine):
    new_policy = Lingering


class WithHesitant(EngineMachine):
    new_policy = Hesitant


class WithLeases(EngineMachine):
    lease = LeaseTerms(seconds=50.0, ahead_s=60.0, most=3)


class WithRestless(EngineMachine):
    """Something of what runs is always being changed."""

    new_policy = Restless

    @initialize(cores=st.sampled_from([None, 2.0]))
    def somewhere_to_go(self, cores: float | None) -> None:
        for name in ("m0", "m1", "m2"):
            self.tell(ev.NodeJoined(self.h.time, builders.node(name, cpu=cores)))
        for function in ("f", "f", "g", "f"):
            self.submit_one(function, None)

    @rule(step=STEPS, name=st.sampled_from(["m0", "m1", "m2"]), lost=st.booleans())
    def it_may_be_gone_meanwhile(self, step: float, name: str, lost: bool) -> None:
        time = self.later(step)
        self.maybe(ev.NodeLost(time, name) if lost else ev.NodeChanged(time, builders.node(name, cpu=8.0)))

    @rule(step=STEPS, pick=PICK, reports=st.integers(0, 4))
    def all_run_when_it_reconsiders(self, step: float, pick: int, reports: int) -> None:
        for name, record in list(self.h.engine.ledger.tasks.items()):
            if record.stage == Stage.PLACED:
                self.tell(ev.TaskStarted(self.h.time, name, self.h.attempt(name)))
        self.tell(ev.Tick(self.later(7.0 + step)))
        for number in range(reports):
            report = self.some_move(pick + number)
            if report is not None:
                self.tell(report)


class WithRestlessLeases(WithRestless):
    lease = LeaseTerms(seconds=50.0, ahead_s=60.0, most=3)


class WithMoody(EngineMachine):
    new_policy = Moody


class WithAbsurd(EngineMachine):
    new_policy = Absurd


class WithLeastJoules(EngineMachine):
    """The policy that works with most figures."""

    new_policy = Sleepless


class EightyPercent(EngineMachine):
    """Half of the nodes have a TDP: of their packages or at the plug, above what they draw, or not even at idle."""

    machines = (*MACHINES, *WITH_TDP)

    @staticmethod
    def new_policy() -> Policy:
        return MarginalEnergy(tdp=True, guarantee=0.8)


MACHINES_UNDER_TEST = [
    EngineMachine, WithLingering, WithHesitant, WithLeases, WithMoody, WithAbsurd, WithLeastJoules, EightyPercent,
    WithRestless, WithRestlessLeases,
]  # fmt: skip


@pytest.mark.parametrize("machine", MACHINES_UNDER_TEST)
def test_whatever_it_is_told_the_engine_keeps_its_promises(
    machine: type[EngineMachine],
) -> None:
    with within_seconds(1_200):
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=80, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
            ),
        )
