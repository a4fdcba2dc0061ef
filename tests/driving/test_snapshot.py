"""An engine rebuilt from its snapshot holds what the other held, and decides as it does from there on."""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.engine.test_state_machine import FUNCTIONS, EngineMachine, WithLeases, WithLingering

from wattloom.cluster.node_class import Mode
from wattloom.driving.snapshot import may_be_cut, snapshot
from wattloom.energy.used import Used
from wattloom.policies.exec_capacity import ExecCapacity
from wattloom.policies.fifo import Fifo
from wattloom.policies.least_joules import LeastJoules
from wattloom.policies.marginal_energy import MarginalEnergy
from wattloom.policies.pack import Pack
from wattloom.policies.protocol import Policy
from wattloom.policies.spread import Spread
from wattloom.prediction.placement_estimate import PlacementEstimate
from wattloom.scheduling import events as ev
from wattloom.scheduling.engine import Engine
from wattloom.scheduling.instructions import AnyInstruction, Evict, Place, Wait
from wattloom.scheduling.invariants import check
from wattloom.scheduling.lease_terms import LeaseTerms
from wattloom.scheduling.state import STAGES, Stage
from wattloom.testing import builders
from wattloom.testing.builders import LINEAR, MACHINES, SLEEPER, node, task
from wattloom.testing.fingerprint import nodes_fingerprint
from wattloom.testing.harness import Harness
from wattloom.units import GIB

NewPolicy = Callable[[], Policy]
POLICIES: list[NewPolicy] = [
    Fifo,
    Pack,
    Spread,
    lambda: MarginalEnergy(tdp=True, guarantee=0.8),
    lambda: LeastJoules(sleep=False),
]
NAMES = ["fifo", "pack", "spread", "marginal-energy", "least-joules"]


class Life:
    """Random events, all of them true of the engine they are drawn from, within a minute: nobody's patience ends."""

    def __init__(self, engine: Engine, seed: int) -> None:
        self.engine = engine
        self.random = Random(seed)
        self.time = 0.0
        self.made = 0
        self.cut = False

    def begin(self) -> list[ev.AnyEvent]:
        return [
            *(ev.MachineDefined(0.0, each) for each in MACHINES),
            *(ev.FunctionDefined(0.0, each) for each in FUNCTIONS),
            *(self._joined() for _ in range(4)),
        ]

    def next(self) -> ev.AnyEvent | None:
        self.time += self.random.choice((0.0, 0.0, 0.1, 0.3))
        draw = self.random.random()
        if draw < 0.45:
            return self._submitted()
        if draw < 0.65:
            return self._ended(finished=True)
        if draw < 0.72:
            return self._ended(finished=False)
        if draw < 0.80:
            return self._started()
        if draw < 0.85:
            return ev.CapChanged(self.time, self.random.choice((None, None, 300.0, 500.0)))
        if draw < 0.90:
            return self._joined()
        return self._cancelled_or_lost(draw)

    def _joined(self) -> ev.AnyEvent:
        self.made += 1
        kind = self.random.choice([each for each in MACHINES if each.watts])
        devices = self.random.choice((None, {"gpu": 1}, {"gpu": 2}))
        asleep = kind is SLEEPER and self.random.random() < 0.5
        cpu = self.random.choice((None, 2.0))
        return ev.NodeJoined(self.time, node(f"n{self.made}", kind, cpu=cpu, devices=devices, asleep=asleep))

    def _submitted(self) -> ev.AnyEvent:
        self.made += 1
        open_tasks = list(self.engine.ledger.tasks)
        needs = builders.requirements(
            self.random.choice((0.5, 1.0, 2.0, 3.5)),
            self.random.choice((0, GIB, 5 * GIB)),
            devices=self.random.choice((None, None, {"gpu": 0.3}, {"gpu": 1.0})),
        )
        return ev.TaskSubmitted(
            self.time,
            task(
                f"t{self.made}",
                self.random.choice(("f", "g", "h")),
                self.random.choice((None, needs)),
                priority=self.random.choice((0, 0, 1)),
                after=(self.random.choice(open_tasks),) if open_tasks and self.random.random() < 0.1 else (),
                retries=0 if self.cut else self.random.choice((0, 2)),
            ),
        )

    def _some(self, *stages: int) -> str | None:
        found = sorted(name for name, each in self.engine.ledger.tasks.items() if each.stage in stages)
        return self.random.choice(found) if found else None

    def _ended(self, *, finished: bool) -> ev.AnyEvent | None:
        name = self._some(Stage.PLACED, Stage.RUNNING, Stage.CANCELLING)
        if name is None:
            return None
        record = self.engine.ledger.tasks[name]
        if not finished and not (self.cut and record.task.retries):  # who comes back after the cut may change places
            return ev.TaskFailed(self.time, name, record.attempt, "function")
        return ev.TaskFinished(self.time, name, record.attempt)

    def _started(self) -> ev.AnyEvent | None:
        name = self._some(Stage.PLACED)
        return None if name is None else ev.TaskStarted(self.time, name, self.engine.ledger.tasks[name].attempt)

    def _cancelled_or_lost(self, draw: float) -> ev.AnyEvent | None:
        waking = [name for name, each in self.engine.ledger.index.nodes.items() if each.mode == Mode.WAKING]
        if waking:
            return ev.NodeAwake(self.time, waking[0])
        if draw < 0.96:
            name = self._some(
                *(stage for stage in range(len(STAGES)) if stage not in (Stage.CANCELLING, Stage.ASSIGNED))
            )
            return None if name is None else ev.CancelRequested(self.time, name)
        names = sorted(self.engine.ledger.index.nodes)
        return ev.NodeLost(self.time, self.random.choice(names)) if len(names) > 2 else None


def acts(instructions: list[AnyInstruction]) -> list[AnyInstruction]:
    """All but news for those who wait."""
    return [each for each in instructions if not isinstance(each, Wait)]


@pytest.mark.parametrize("new_policy", POLICIES, ids=NAMES)
@pytest.mark.parametrize("seed", range(25))
def test_the_rebuilt_engine_decides_as_the_other(new_policy: NewPolicy, seed: int) -> None:
    one = Engine(new_policy())
    life = Life(one, seed)
    for event in life.begin():
        one.handle(event)
    for _ in range(life.random.randrange(20, 90)):
        drawn = life.next()
        if drawn is not None:
            one.handle(drawn)
    for name, state in list(one.ledger.index.nodes.items()):
        if state.mode == Mode.WAKING:
            one.handle(ev.NodeAwake(life.time, name))

    other = rebuilt(one, new_policy(), life.time)

    assert nodes_fingerprint(other) == nodes_fingerprint(one)
    assert stages(other) == stages(one)
    life.cut = True
    decided = 0
    for _ in range(60):
        drawn = life.next()
        if drawn is not None:
            wanted = acts(one.handle(drawn))
            assert acts(other.handle(drawn)) == wanted, drawn
            decided += sum(isinstance(each, Place) for each in wanted)
    assert nodes_fingerprint(other) == nodes_fingerprint(one)
    assert decided, "a life in which nothing is decided shows nothing"


def rebuilt(one: Engine, policy: Policy, time: float, lease: LeaseTerms | None = None) -> Engine:
    other = Engine(policy, lease, one.placed)
    said = [each for event in snapshot(one, time) for each in other.handle(event)]
    assert all(isinstance(each, Wait | Evict) for each in said), "nothing is decided anew"
    check(other)
    return other


def stages(engine: Engine) -> dict[str, tuple[object, ...]]:
    return {
        name: (each.stage, each.node, each.attempt, each.failures, each.losses, each.submitted, sorted(each.after))
        for name, each in engine.ledger.tasks.items()
    }


# -- whatever happened before ------------------------------------------------------------------------------------------


class Cut(EngineMachine):
    """The engine that is told everything, cut at its end."""

    def teardown(self) -> None:
        engine, time = self.h.engine, self.h.time
        if not may_be_cut(engine):
            return
        other = Engine(type(self).new_policy(), self.lease, engine.placed)
        told = snapshot(engine, time)
        first = next((at for at, each in enumerate(told) if isinstance(each, ev.TaskSubmitted)), len(told))
        for event in told[:first]:
            other.handle(event)
        assert taken(other) == taken(engine)
        for event in told[first:]:
            other.handle(event)
            check(other)
        assert set(engine.ledger.tasks) == set(other.ledger.tasks)


class CutWithLeases(Cut, WithLeases):
    pass


class CutWithLingering(Cut, WithLingering):
    pass


def taken(engine: Engine) -> dict[str, tuple[object, ...]]:
    return {
        name: (node.mode == Mode.ASLEEP, node.demand, node.allocated, node.memory, node.devices, sorted(node.tasks))
        for name, node in engine.ledger.index.nodes.items()
    }


@pytest.mark.parametrize("machine", [Cut, CutWithLeases, CutWithLingering])
def test_whatever_it_was_told_another_can_be_told_how_things_stand(machine: type[EngineMachine]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=30,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.explicit, Phase.reuse, Phase.generate],
        ),
    )


# -- one by one --------------------------------------------------------------------------------------------------------


def test_a_build_and_its_devices_stay_the_tasks_own() -> None:
    h = Harness()
    h.node("a", LINEAR, devices={"gpu": 2}).define(FUNCTIONS[2])
    for name in ("one", "two"):
        h.submit(name, "h")
    h.finish("one")
    has = h.record("two").holding
    assert has.estimate.variant.name == "gpu"

    other = rebuilt(h.engine, Fifo(), 1.0)

    again = other.ledger.tasks["two"].holding
    assert (again.estimate.variant.name, again.devices) == ("gpu", has.devices)


def test_what_was_learned_is_told() -> None:
    h = Harness()
    h.node("a", LINEAR).function("f")
    for number in range(6):
        h.submit(f"t{number}")
        h.finish(f"t{number}", seconds=7.0)
    used = Used(6, 42.0, 294.0, 840.0, 117_600.0, 6, 42.0)
    h.tell(ev.UsageArrived(h.time, "a", 42.0, 1000.0, 0.0, 160.0, functions={"f": used}))

    other = rebuilt(h.engine, Fifo(), h.time)

    expected, before = estimate_at(other, "a"), estimate_at(h.engine, "a")
    assert (expected.seconds, expected.watts) == pytest.approx((before.seconds, before.watts))
    assert other.ledger.predictor.intensity("f", "linear") == pytest.approx(2.0)


def estimate_at(engine: Engine, name: str) -> PlacementEstimate:
    site = engine.ledger.index.nodes[name].site
    assert site is not None
    estimate = engine.ledger.estimates.at(engine.ledger.shape_of(task("t")), site)
    assert isinstance(estimate, PlacementEstimate)
    return estimate


def test_what_meters_said_is_told() -> None:
    h = Harness(ExecCapacity())
    h.node("a", LINEAR).function("f")
    h.submit("measured")
    h.start("measured")
    h.reading("a", 50.0, {"measured": 12.0})
    h.submit("since")

    other = rebuilt(h.engine, ExecCapacity(), h.time)

    assert other.ledger.readings.usual("f") == 12.0
    assert other.ledger.readings.covers("a", "measured")
    assert not other.ledger.readings.covers("a", "since")
    assert other.ledger.readings.measured() == {"a": 50.0}


ELSEWHERE = {
    "readings": "test_what_meters_said_is_told",
    "instances": "their own fields are compared",
    "last_node": "nothing is decided by it but what the policy round-robin does next; told by no event",
    "usual_cost": "a moving average; the snapshot's docstring says that it is left out",
    "running": "filled while a policy reconsiders",
    "shape_of": "a question to the engine",
    "more_preferences": "a question to the engine",
    "graph": "worked out from the tasks",
    "graph_revision": "counts changes",
}
"""Public parts of a view that are not plain values, or that a snapshot says nothing of, and why."""


def test_whatever_a_policy_can_see_is_told_also_what_will_be_added_to_the_view() -> None:
    h = Harness()
    h.node("a", LINEAR).function("f")
    for event in (
        ev.CapChanged(h.time, 5_000.0),
        ev.SignalChanged(h.time, "carbon", 321.0, ((10.0, 300.0),)),
        ev.PlanChanged(h.time, "c0ffee"),
        ev.ModelChanged(h.time, "feed"),
        ev.InstanceReady(h.time, "a", "f", "default"),
    ):
        h.tell(event)
    fresh, view, other = Engine(Fifo()).ledger.view, h.engine.ledger.view, rebuilt(h.engine, Fifo(), h.time).ledger.view
    plain = [name for name in vars(view) if not name.startswith("_") and name not in ELSEWHERE]
    assert {"cap_microwatts", "signals", "plan", "model", "queued"} <= set(plain)
    assert {name: getattr(other, name) for name in plain} == {name: getattr(view, name) for name in plain}
    unchanged = {name for name in plain if getattr(view, name) == getattr(fresh, name)}
    assert unchanged <= {"time", "queued"}, "what is new in the view is told an event here, or the test says nothing"
    assert other.instances.ready == view.instances.ready


def test_who_is_being_stopped_is_stopped_again() -> None:
    h = Harness()
    h.node("a", LINEAR)
    h.submit("t")
    h.cancel("t")

    other = rebuilt(h.engine, Fifo(), h.time)

    assert other.ledger.tasks["t"].stage == Stage.CANCELLING


def test_those_behind_a_share_follow_on_it() -> None:
    lease = LeaseTerms(seconds=50.0, ahead_s=60.0, most=3)
    h = Harness(lease=lease)
    h.node("a", LINEAR, cpu=1.0).function("f", seconds={"linear": 10.0})
    for name in ("one", "two", "three"):
        h.submit(name)
    assert h.stage("three") == Stage.BEHIND

    other = rebuilt(h.engine, Fifo(), h.time, lease)
    other.handle(ev.TaskFinished(h.time, "one", 1))

    assert [other.ledger.tasks[name].stage for name in ("two", "three")] == [Stage.PLACED, Stage.BEHIND]


def test_functions_that_nobody_calls_can_be_left_out() -> None:
    h = Harness()
    h.node("a", LINEAR).function("called").function("unused")
    h.submit("t", "called")

    told = snapshot(h.engine, h.time, unused_functions=False)

    assert [each.function.name for each in told if isinstance(each, ev.FunctionDefined)] == ["called"]


def test_who_waits_can_be_told_at_the_time_of_submission() -> None:
    h = Harness()
    h.node("a", LINEAR).submit("first", needs=builders.requirements(3.0))
    h.time = 5.0
    h.submit("runs", needs=builders.requirements(1.0))
    h.time = 7.0
    h.submit("waits", needs=builders.requirements(4.0))

    told = snapshot(h.engine, 100.0, since_submitted=True)

    assert [each.time for each in told] == [7.0] * len(told)
    other = Engine(Fifo())
    for event in told:
        other.handle(event)
    assert other.ledger.tasks["waits"].waiting_since == 7.0
