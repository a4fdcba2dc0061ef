"""A number that nobody means: every event with every such number in every place is refused by its field, or followed.

Followed means: the engine comes back, keeps its promises, goes on placing tasks, and says nothing that a log could not
hold and give back.
"""

from collections.abc import Callable
from itertools import pairwise
from math import inf, nan
from typing import get_args

import msgspec
import pytest
from tests.engine.absurd import FRACTIONS, WHOLE, Path, numbers, with_number
from tests.local.chaos.patience import within_seconds

from wattloom.cluster.index import Rank, rank_of
from wattloom.cluster.node import Node
from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import Site
from wattloom.energy.used import Used
from wattloom.errors import EventRefused, PolicyError
from wattloom.machines.profile import MachineProfile
from wattloom.policies.answers import Frequency, Migration, Preparation, Resizing
from wattloom.policies.exec_capacity import ExecCapacity
from wattloom.policies.least_joules import LeastJoules
from wattloom.policies.marginal_energy import MarginalEnergy
from wattloom.policies.pack import Pack
from wattloom.policies.protocol import Policy, Proposal, Refusal
from wattloom.policies.spread import Spread
from wattloom.policies.view import Ask, Ranked, View
from wattloom.policies.weighted import Weighted
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import AnyInstruction, Place, Wait
from wattloom.scheduling.invariants import check
from wattloom.scheduling.state import Stage
from wattloom.testing import builders
from wattloom.testing.builders import CONCAVE, LINEAR, SLEEPER, SMT, machine
from wattloom.testing.harness import Harness, assert_equal, fingerprint
from wattloom.testing.odd_policies import Scripted
from wattloom.units import GIB
from wattloom.workload.constraints import Constraints, Port
from wattloom.workload.constraints import Spread as SpreadRule
from wattloom.workload.function import Function, Variant
from wattloom.workload.requirements import Requirements
from wattloom.workload.shape import Shape
from wattloom.workload.task import Task

POLICIES: list[Callable[[], Policy]] = [LeastJoules, MarginalEnergy, Weighted, ExecCapacity, Spread, Pack]
SLOW = MachineProfile(
    "slow", "x86_64", 4, 8, 8 * GIB, ((0.0, 20.0), (4.0, 60.0), (8.0, 70.0)),
    smt_slowdown=1.5, speed=0.5, tdp_w=80.0, sleep_w=2.0, wake_s=10.0, wake_j=500.0,
)  # fmt: skip
TASK = Task(
    "new",
    "f",
    Requirements(
        1.0, GIB, devices=(("gpu", 0.5),), resources=(("pods", 1),),
        constraints=Constraints(ports=(Port(80),), spread=(SpreadRule("zone", 1, (), 1),)),
    ),
    1, 0.7, 100.0, 50.0, retries=1, infrastructure_retries=2, size=7,
)  # fmt: skip
NODE = Node(
    "new",
    "slow",
    4.0,
    8 * GIB,
    {"zone": "a"},
    {"gpu": 2},
    75.0,
    asleep=True,
    resources={"pods": 4},
    own={"host": "new"},
)
PAST = ev.Past(2, 1, 1, 2.0, 30.0, 1.0, "measured", 7, 6)
GPU_BUILD = Variant(devices=(("gpu", 1.0),), seconds={"linear": 3.0})
EVENTS: list[ev.AnyEvent] = [
    ev.MachineDefined(5.0, msgspec.structs.replace(SLOW, name="other")),
    ev.FunctionDefined(5.0, Function("f", Requirements(1.0, GIB), (GPU_BUILD, Variant("b")))),
    ev.NodeJoined(5.0, NODE),
    ev.NodeChanged(5.0, msgspec.structs.replace(NODE, name="waking")),
    ev.NodeLost(5.0, "a"),
    ev.NodeAwake(5.0, "waking"),
    ev.NodeAsleep(5.0, "idle"),
    ev.CapChanged(5.0, 400.0),
    ev.TaskSubmitted(5.0, TASK, PAST),
    ev.TaskOrphaned(5.0, TASK, past=PAST),
    ev.TaskFound(5.0, TASK, "a", 3, past=PAST),
    ev.TaskLeaving(5.0, "t"),
    ev.TaskChanged(5.0, msgspec.structs.replace(TASK, id="t")),
    ev.TaskRemoved(5.0, "t"),
    ev.TaskStarted(5.0, "placed", 1),
    ev.TaskProgressed(5.0, "t", 1, 0.5, "half", 1000),
    ev.TaskMigrated(5.0, "moving", 1, "spare"),
    ev.TaskResized(5.0, "t", 1),
    ev.TaskFinished(5.0, "t", 1, 4.0, 3.0, 0.5),
    ev.TaskFailed(5.0, "t", 1, cpu_s=3.0, seconds=4.0),
    ev.TaskReturned(5.0, "placed", 1),
    ev.CancelRequested(5.0, "t"),
    ev.InstructionFailed(5.0, "place", "placed", 1),
    ev.FrequencyChanged(5.0, "a", 0.5),
    ev.InstanceReady(5.0, "a", "f"),
    ev.InstanceGone(5.0, "a", "f"),
    ev.SignalChanged(5.0, "carbon", 300.0, ((6.0, 250.0), (7.0, 200.0))),
    ev.PlanChanged(5.0, "abc123"),
    ev.ModelChanged(5.0, "abc123"),
    ev.ReadingArrived(5.0, "a", 35.0, {"t": 10.0}),
    ev.UsageArrived(
        5.0, "a", 4.0, 100.0, 50.0, 10.0, 5.0,
        functions={"f": Used(2, 8.0, 32.5, 60.0, 1800.5, 2, 8.0)},
        tasks={"t": (30.0, 1.0)},
        cpu_second=(7.0, 0.1, 0.2),
        cpu_second_of={"f": (8.0, 0.1, 0.2)},
    ),
    ev.FunctionLearned(5.0, "f", "slow", Used(2, 8.0, 32.5, 60.0, 1800.5, 2, 8.0)),
    ev.FunctionsForgotten(5.0, ("never-called",)),
    ev.Tick(5.0),
]  # fmt: skip


def a_cluster(policy: Policy) -> Harness:
    """One node at work, an idle one, and one that wakes up for a task; run times are known."""
    h = Harness(policy)
    h.machine(LINEAR, SMT, SLEEPER, SLOW).function("never-called").function("f", seconds={"linear": 10.0}).function(
        "big", seconds={"slow": 500.0}
    )
    h.node("a", LINEAR, devices={"gpu": 1}).submit("t")
    h.start("t")
    h.submit("moving")
    h.start("moving")
    h.submit("placed")
    h.join(builders.node("waking", SLOW, labels={"zone": "a"}, asleep=True), SLOW)
    h.submit("assigned", "big", builders.requirements(4.0))
    h.node("idle", SLEEPER)
    h.node("spare", LINEAR)
    h.tick(5.0)
    h.tell(ev.InstanceReady(5.0, "a", "f"))
    for move in (Migration("moving", "spare"), Resizing("t", 0.5, GIB), Frequency("a", 0.5), Preparation("a", "f")):
        assert h.engine.moves.make(move) == ""
    return h


def goes_on(h: Harness, taken: list[AnyInstruction]) -> None:
    """Tasks of all kinds still find their places, and all that is said can be written down and read again."""
    engine, said = h.engine, list(taken)
    for name, known in engine.ledger.machines.items():
        said += engine.handle(ev.NodeJoined(engine.time, Node(f"of-{name}", name, asleep=known.can_sleep)))
    for number, (needs, defer_s) in enumerate([(None, 0.0), (builders.requirements(2.0), 5.0)]):
        time = engine.time
        said += engine.handle(ev.TaskSubmitted(time, builders.task(f"after{number}", "f", needs, defer_s=defer_s)))
    for record in list(engine.ledger.tasks.values()):
        if record.stage in (Stage.PLACED, Stage.RUNNING):
            said += engine.handle(ev.TaskFinished(engine.time, record.name, record.attempt, 1.0))
    check(engine)
    for each in said:
        assert msgspec.json.decode(msgspec.json.encode(each), type=type(each)) == each


def test_there_is_an_event_of_each_kind_and_none_leaves_a_figure_out() -> None:
    assert [type(event) for event in EVENTS] == list(get_args(ev.AnyEvent))
    for event in EVENTS:
        hints = msgspec.structs.fields(type(event))
        given = {path[0] for path, _ in numbers(event)}
        assert {each.name for each in hints if "float" in str(each.type) or each.type is int} <= given, event


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
@pytest.mark.parametrize("new_policy", POLICIES, ids=lambda policy: policy.__name__)
def test_each_event_is_taken_as_it_is(event: ev.AnyEvent, new_policy: Callable[[], Policy]) -> None:
    """Else the next test would be about nothing."""
    h = a_cluster(new_policy())
    assert h.stage("assigned") == Stage.ASSIGNED
    h.tell(event)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_a_number_that_nobody_means_is_refused_by_its_field_or_followed(event: ev.AnyEvent) -> None:
    cases = [(path, number) for path, whole in numbers(event) for number in (WHOLE if whole else FRACTIONS + WHOLE)]
    with within_seconds(300):
        for turn, (path, number) in enumerate(cases):
            for new_policy in (LeastJoules, POLICIES[1 + turn % (len(POLICIES) - 1)]):
                one_case(with_number(event, path, number), path, a_cluster(new_policy()))


def one_case(absurd: ev.AnyEvent, path: Path, h: Harness) -> None:
    before = fingerprint(h.engine)
    taken, refused = told(h, absurd)
    if refused is not None:
        assert_equal(before, fingerprint(h.engine), f"{absurd} was refused, and yet changed something")
        assert refused.field.split(".")[0] == path[0], refused
        named = any(part in str(refused) for part in path[-3:] if isinstance(part, str))
        assert named or "cannot draw more" in str(refused), refused
        return
    msgspec.json.decode(msgspec.json.encode(absurd), type=type(absurd))
    check(h.engine)
    goes_on(h, taken)


def told(h: Harness, event: ev.AnyEvent) -> tuple[list[AnyInstruction], EventRefused | None]:
    try:
        return h.engine.handle(event), None
    except EventRefused as refused:
        return [], refused


# -- what a policy answers -------------------------------------------------------------------------------------------


class Ranks(LeastJoules):
    """Ranks every site as it was told."""

    name = "ranks"

    def __init__(self, rank: object) -> None:
        super().__init__()
        self.rank_told = rank

    def rank(self, shape: Shape, site: Site, view: View) -> Rank | None:
        return self.rank_told  # type: ignore[return-value]


class NotComparable(float):
    """A number that does not want to be compared."""

    def __lt__(self, other: object) -> bool:
        raise RuntimeError("never")

    __gt__ = __eq__ = __le__ = __ge__ = __lt__
    __hash__ = float.__hash__


NUMBERS = (*FRACTIONS, *WHOLE, True, NotComparable(1.0))
HOST_A = Requirements(1.0, constraints=Constraints(selector=(("host", "a"),)))


@pytest.mark.parametrize("capped", [False, True])
@pytest.mark.parametrize("needs", [None, HOST_A], ids=["anywhere", "by a rule"])
def test_whatever_a_policy_ranks_its_sites_by_the_task_gets_a_place(needs: Requirements | None, capped: bool) -> None:
    for number in NUMBERS:
        for rank in ((number, 0.0), (0.0, number), (number, number)):
            with within_seconds(10):
                h = Harness(Ranks(rank))
                for name in ("a", "b", "c"):
                    node = msgspec.structs.replace(builders.node(name), own={"host": name})
                    h.join(node, LINEAR)
                h.cap(1000.0 if capped else None)
                h.submit("t", needs=needs)
                assert h.where("t") == "a", rank
                cost = h.placements["t"][0].cost
                assert cost is None or -1e300 <= cost <= 1e300
                h.replay()


@pytest.mark.parametrize("rank", ["cheap", 1.0, (1.0,), (1.0, "a"), (None, 0.0), ([], []), (0.5, 1.0, 0.0)], ids=repr)
def test_a_rank_that_is_no_rank_is_the_policy_s_failure(rank: object) -> None:
    h = Harness(Ranks(rank)).node("a")
    (wait,) = h.submit("t")
    assert isinstance(wait, Wait)
    assert wait.reason == Reason.POLICY_FAILED
    assert "a rank is" in wait.message
    wrong = rank if not isinstance(rank, tuple) or len(rank) < 2 else rank[1] if rank[0] == 1.0 else rank[0]
    assert repr(wrong) in wait.message


def test_a_tier_goes_before_every_cost_and_a_pair_is_of_the_first() -> None:
    class Tiers(Pack):
        def rank(self, shape: Shape, site: Site, view: View) -> Ranked | None:
            ranks: dict[str, Ranked] = {"linear": (1, -1e9, 0.0), "concave": (5.0, 0.0), "smt": (0, 6.0, 0.0)}
            return ranks[site.cls.machine.name]

    h = Harness(Tiers()).node("a", LINEAR).node("b", SMT).node("c", CONCAVE)
    h.submit("t")
    assert h.where("t") == "c"


def test_a_cost_beyond_all_numbers_is_behind_every_tier() -> None:
    assert rank_of((3, 1.0, 0.0)) < rank_of((0, inf, 0.0)) == rank_of((inf, 0.0))  # type: ignore[operator]
    assert rank_of((-7, 1.0, 0.0)) == rank_of((1.0, 0.0)) == (0, 1.0, 0.0)


def test_what_is_not_a_number_comes_last() -> None:
    class Nan(Pack):
        def cost(self, shape: Shape, site: Site, estimate: object) -> float:
            return nan if site.cls.machine.name == "linear" else 5.0

    h = Harness(Nan()).node("a", LINEAR).node("b", SMT)
    h.submit("t")
    assert h.where("t") == "b"


@pytest.mark.parametrize("cost", NUMBERS, ids=repr)
def test_a_cost_that_is_none_is_told_as_unknown(cost: float) -> None:
    h = Harness(Scripted(lambda ask, view: Proposal("a", cost))).node("a")
    (place,) = h.submit("t")
    assert isinstance(place, Place)
    assert place.cost is None or -1e300 <= place.cost <= 1e300
    assert msgspec.json.decode(msgspec.json.encode(place), type=Place) == place


@pytest.mark.parametrize("until", [*FRACTIONS, *WHOLE], ids=repr)
@pytest.mark.parametrize("time", [0.0, 1e3, 9.9e10, 99_999_999_999.0])
def test_however_long_a_policy_wants_to_wait_time_goes_on(until: float, time: float) -> None:
    asked: list[float] = []

    def wait(ask: Ask, view: View) -> Refusal:
        asked.append(view.time)
        return Refusal(Reason.WAITING_IS_CHEAPER, until if until > 1.0 or until != until else view.time + until)

    with within_seconds(10):
        h = Harness(Scripted(wait)).node("a")
        h.time = time
        h.submit("t", defer_s=10.0)
        for _ in range(3):
            wanted = h.engine.next_tick
            assert wanted is not None
            assert wanted > h.engine.time
            if wanted < 1e11:
                h.tick(wanted)
        assert asked == sorted(set(asked))
        assert all(later - earlier >= 0.9e-3 for earlier, later in pairwise(asked))


def test_the_latest_time_is_not_reached() -> None:
    h = Harness()
    assert h.refused(ev.Tick(1e11)).field == "time"


@pytest.mark.parametrize("linger", [*NUMBERS, "soon", [], 1j], ids=repr)
def test_however_long_a_policy_lets_nodes_linger_the_engine_goes_on(linger: float) -> None:
    h = Harness(Scripted(lambda ask, view: Proposal("a", 0.0), linger)).node("a", SLEEPER)
    h.submit("t")
    if h.stage("t") == Stage.ASSIGNED:
        h.awake("a")
    h.finish("t")
    h.tick(10.0)
    assert h.outcome("t") == "finished"


@pytest.mark.parametrize("guarantee", [nan, inf, -0.1, 1.1, 1e308, 10**400], ids=repr)
def test_a_policy_with_terms_that_cannot_be_kept_is_refused_at_once(guarantee: float) -> None:
    policy = Pack()
    policy.terms = msgspec.structs.replace(policy.terms, guarantee=guarantee)
    with pytest.raises(PolicyError, match=r"terms\.guarantee: must be between 0 and 1"):
        Harness(policy)


@pytest.mark.parametrize("interval", [nan, inf, 0.0, -1.0, 1e-320, 10**400], ids=repr)
def test_a_policy_that_wants_readings_all_the_time_is_refused_at_once(interval: float) -> None:
    policy = Pack()
    policy.reading_interval_s = interval
    with pytest.raises(PolicyError, match="reading_interval_s: must be"):
        Harness(policy)


def test_a_policy_whose_error_cannot_be_printed_fails_like_any_other() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    def fail(ask: Ask, view: View) -> Proposal:
        raise Mute

    h = Harness(Scripted(fail)).node("a")
    (wait,) = h.submit("t")
    assert isinstance(wait, Wait)
    assert wait.reason == Reason.POLICY_FAILED
    assert wait.message.startswith("Mute: (it cannot be printed)")


def test_figures_that_were_learned_far_apart_are_unknown_and_not_infinite() -> None:
    """Sizes that explain run times, asked about a size far beyond: the line through them leaves what a float holds."""
    h = Harness(LeastJoules()).node("a").function("f", seconds={"linear": 1.0})
    for number in range(64):
        size = 1 + number % 2
        task = msgspec.structs.replace(builders.task(f"t{number}"), size=size)
        h.submit_task(task)
        h.finish(f"t{number}", 1e-9 if size == 1 else 9.9e10)
    h.submit_task(msgspec.structs.replace(builders.task("far"), size=1000))
    assert h.where("far") == "a"


def test_a_factor_beyond_all_measure_is_not_learned() -> None:
    faint = machine("faint", watts=((0.0, 20.0), (4.0, 20.0 + 1e-12)))
    h = Harness(LeastJoules()).node("a", faint).function("f", seconds={"faint": 10.0})
    used = Used(2, 8.0, 32.5, 1e30, 1e59, 2, 8.0)
    h.tell(ev.FunctionLearned(0.0, "f", "faint", used))
    h.submit("t")
    (place,) = h.placements["t"]
    assert msgspec.json.decode(msgspec.json.encode(place), type=Place) == place
