"""What a policy changes of running work and of nodes: checked and committed in one step, and undone if it fails."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import pytest

from wattloom.cluster.reasons import Reason
from wattloom.errors import PolicyError
from wattloom.policies.answers import Dismissal, Eviction, Frequency, Migration, Move, Preparation, Resizing
from wattloom.policies.protocol import Proposal, Refusal
from wattloom.policies.view import Ask, View
from wattloom.scheduling import events as ev
from wattloom.scheduling.engine import Engine
from wattloom.scheduling.instructions import (
    AnyInstruction,
    Evict,
    Migrate,
    Prepare,
    Release,
    Resize,
    SetFrequency,
    Wait,
)
from wattloom.scheduling.state import Stage
from wattloom.testing import builders
from wattloom.testing.builders import SLEEPER, requirements
from wattloom.testing.harness import Harness, places
from wattloom.testing.odd_policies import Lingering
from wattloom.units import GIB


class Planned(Lingering):
    """Names, every ten seconds, the moves of a table; proposes as marginal-energy does, or what it was told to."""

    name = "planned"
    summary = "for tests"
    reconsider_interval_s = 10.0

    def __init__(self, *moves: Move, proposal: Proposal | None = None) -> None:
        super().__init__()
        self.moves = moves
        self.proposal = proposal

    def reconsider(self, view: View) -> Iterable[Move]:
        return self.moves

    def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
        answer = super().propose(ask, view)
        return self.proposal if self.proposal is not None and isinstance(answer, Refusal) else answer


def running(*moves: Move, proposal: Proposal | None = None) -> Harness:
    """t runs on a, with b beside it; the moves are made at 10 s."""
    h = Harness(Planned(*moves, proposal=proposal)).node("a").node("b", SLEEPER)
    h.submit("t", needs=requirements(2.0, GIB), idempotent=True)
    assert h.where("t") == "a"
    h.start("t")
    return h


def load(h: Harness, node: str) -> tuple[int, int, int]:
    state = h.engine.ledger.index.nodes[node]
    return state.demand, state.allocated, state.memory


def only(said: list[AnyInstruction], kind: type) -> list[AnyInstruction]:
    return [each for each in said if isinstance(each, kind)]


# -- to another node -------------------------------------------------------------------------------------------------


def test_a_task_that_moves_has_both_nodes_until_it_has_moved() -> None:
    h = running(Migration("t", "b"))
    (move,) = only(h.tick(10.0), Migrate)
    assert isinstance(move, Migrate)
    assert (move.task, move.attempt, move.node, move.to, move.number) == ("t", 1, "a", "b", 2)
    assert load(h, "a") == load(h, "b") == (2000, 2000, GIB)
    h.tell(ev.TaskMigrated(11.0, "t", 1, "b"))
    assert (load(h, "a"), load(h, "b")) == ((0, 0, 0), (2000, 2000, GIB))
    assert (h.where("t"), h.stage("t"), h.record("t").holding.started) == ("b", Stage.RUNNING, True)
    h.finish("t")
    assert load(h, "b") == (0, 0, 0)
    h.replay()


def test_a_move_that_fails_is_undone() -> None:
    h = running(Migration("t", "b"))
    h.tick(10.0)
    h.tell(ev.InstructionFailed(11.0, "migrate", "t", 1))
    assert (load(h, "a"), load(h, "b"), h.where("t")) == ((2000, 2000, GIB), (0, 0, 0), "a")
    assert h.refused(ev.TaskMigrated(12.0, "t", 1, "b")).field == "task"


@pytest.mark.parametrize("end", ["finish", "evicted", "lose a", "lose b", "removed"])
def test_whatever_happens_while_it_moves_nothing_stays_taken(end: str) -> None:
    h = running(Migration("t", "b"))
    h.tick(10.0)
    if end == "finish":
        h.finish("t")
    elif end == "evicted":
        h.cancel("t")
        h.evicted("t")
    elif end == "removed":
        h.tell(ev.TaskRemoved(h.time, "t"))
    else:
        h.lose(end[-1])
    if end == "lose b":
        assert (h.where("t"), h.record("t").holding.target) == ("a", None)
    elif end == "lose a":
        assert h.where("t") == "b"
        assert h.attempt("t") == 2
    else:
        assert load(h, "a") == load(h, "b") == (0, 0, 0)
    h.replay()


def test_a_task_with_other_needs_has_them_on_both_nodes() -> None:
    h = running(Migration("t", "b"))
    h.tick(10.0)
    h.tell(ev.TaskChanged(11.0, builders.task("t", needs=requirements(1.0, 2 * GIB), idempotent=True)))
    assert load(h, "a") == load(h, "b") == (1000, 1000, 2 * GIB)
    h.tell(ev.TaskMigrated(12.0, "t", 1, "b"))
    assert (load(h, "a"), load(h, "b")) == ((0, 0, 0), (1000, 1000, 2 * GIB))


def test_who_waits_for_the_node_that_a_task_moves_to_is_asked_when_it_wants_less() -> None:
    h = running(Migration("t", "b"))
    h.tick(10.0)
    h.submit("beside", needs=requirements(2.0))
    assert h.where("beside") == "a"
    h.submit("u", needs=requirements(3.0))
    assert h.stage("u") == Stage.QUEUED
    smaller = builders.task("t", needs=requirements(1.0, GIB), idempotent=True)
    assert places(h.tell(ev.TaskChanged(11.0, smaller))) == [("u", "b")]


def test_it_moved_where_it_was_to_move_or_the_report_is_refused() -> None:
    h = running(Migration("t", "b"))
    h.tick(10.0)
    assert h.refused(ev.TaskMigrated(11.0, "t", 1, "a")).field == "node"


@pytest.mark.parametrize("room", [(3.0, GIB), (2.0, GIB // 2)])
def test_a_task_that_was_resized_stays_where_it_is_until_it_has_what_it_asked_for(room: tuple[float, int]) -> None:
    h = running(Resizing("t", *room)).node("c")
    h.tick(10.0)
    h.tell(ev.TaskResized(11.0, "t", 1))
    h.policy.moves = (Migration("t", "c"), Resizing("t", 2.0, GIB))  # type: ignore[attr-defined]
    assert only(h.tick(20.0), Migrate) == []
    assert "was resized" in h.engine.reconsideration.refused[0][1]
    h.tell(ev.TaskResized(21.0, "t", 1))
    assert len(only(h.tick(30.0), Migrate)) == 1
    h.tell(ev.TaskMigrated(31.0, "t", 1, "c"))
    assert (load(h, "a"), load(h, "c")) == ((0, 0, 0), (2000, 2000, GIB))


def test_a_task_whose_resize_failed_can_move() -> None:
    h = running(Resizing("t", 3.0, GIB // 2))
    h.tick(10.0)
    h.tell(ev.InstructionFailed(11.0, "resize", "t", 1))
    h.policy.moves = (Migration("t", "b"),)  # type: ignore[attr-defined]
    assert len(only(h.tick(20.0), Migrate)) == 1


# -- in place --------------------------------------------------------------------------------------------------------


def test_a_task_that_is_resized_keeps_the_larger_of_both_until_it_is_done() -> None:
    h = running(Resizing("t", 3.0, GIB // 2))
    (resize,) = only(h.tick(10.0), Resize)
    assert resize == Resize("t", 1, "a", 3.0, GIB // 2)
    assert load(h, "a") == (2000, 3000, GIB)
    h.tell(ev.TaskResized(11.0, "t", 1))
    assert load(h, "a") == (2000, 3000, GIB // 2)
    h.finish("t")
    assert load(h, "a") == (0, 0, 0)
    h.replay()


def test_a_resize_that_fails_leaves_what_was() -> None:
    h = running(Resizing("t", 3.0, GIB // 2))
    h.tick(10.0)
    h.tell(ev.InstructionFailed(11.0, "resize", "t", 1))
    assert load(h, "a") == (2000, 2000, GIB)
    assert h.refused(ev.TaskResized(11.0, "t", 1)).field == "task"


@pytest.mark.parametrize("report", [ev.TaskResized(12.0, "t", 1), ev.InstructionFailed(12.0, "resize", "t", 1)])
def test_a_resize_of_a_task_that_has_other_needs_meanwhile_changes_nothing(report: ev.AnyEvent) -> None:
    h = running(Resizing("t", 3.0, GIB // 2))
    h.tick(10.0)
    h.tell(ev.TaskChanged(11.0, builders.task("t", needs=requirements(1.0, 2 * GIB), idempotent=True)))
    assert load(h, "a") == (1000, 1000, 2 * GIB)
    h.tell(report)
    assert load(h, "a") == (1000, 1000, 2 * GIB)
    assert h.refused(report).field == "task"
    h.finish("t")
    assert load(h, "a") == (0, 0, 0)
    h.replay()


@pytest.mark.parametrize("change", ["moves", "is resized", "was resized"])
def test_nobody_is_found_behind_a_task_whose_place_changes_or_is_not_as_its_shape(change: str) -> None:
    h = running(Migration("t", "b") if change == "moves" else Resizing("t", 3.0, GIB // 2))
    h.tick(10.0)
    if change == "was resized":
        h.tell(ev.TaskResized(11.0, "t", 1))
    follower = builders.task("u", needs=requirements(2.0, GIB))
    assert h.refused(ev.TaskFound(12.0, follower, "a", behind="t")).field == "behind"


# -- making room -----------------------------------------------------------------------------------------------------


def test_an_evicted_task_goes_back_to_the_queue_and_has_not_failed() -> None:
    h = running(Eviction("t"))
    assert only(h.tick(10.0), Evict) == [Evict("t", 1, "a", Reason.EVICTED)]
    assert h.stage("t") == Stage.EVICTING
    said = h.evicted("t")
    assert (h.record("t").failures, h.record("t").losses) == (0, 0)
    assert places(said) == [("t", "a")]
    assert h.attempt("t") == 2


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_task_that_began_while_it_was_evicted_runs_again_only_if_it_may(idempotent: bool) -> None:
    h = Harness(Planned(Eviction("t"))).node("a")
    h.submit("t", idempotent=idempotent)
    assert len(only(h.tick(10.0), Evict)) == 1
    h.start("t")
    said = h.evicted("t")
    assert places(said) == ([("t", "a")] if idempotent else [])
    assert h.outcome("t") == (None if idempotent else "unknown")


def test_a_node_is_not_kept_free_for_room_that_nobody_makes() -> None:
    h = Harness(Planned(proposal=Proposal("a", 0.0, ("t",)))).node("a")
    h.submit("t", needs=requirements(2.0), idempotent=True)
    h.start("t")
    h.submit("urgent", needs=requirements(4.0), priority=1)
    h.submit("small")
    assert h.stage("small") == Stage.QUEUED
    assert places(h.evict_failed("t")) == [("small", "a")]
    assert h.engine.reservations.held == {}
    assert (h.stage("t"), h.stage("urgent")) == (Stage.RUNNING, Stage.QUEUED)
    h.replay()


def test_a_task_that_could_not_be_evicted_runs_on() -> None:
    h = running(Eviction("t"))
    h.tick(10.0)
    h.evict_failed("t")
    assert h.stage("t") == Stage.RUNNING


def test_a_task_makes_room_for_one_that_goes_before_it() -> None:
    h = Harness(Planned(proposal=Proposal("a", 0.0, ("t", "u")))).node("a")
    for name in ("t", "u"):
        h.submit(name, needs=requirements(2.0), idempotent=True)
        h.start(name)
    said = h.submit("urgent", needs=requirements(4.0), priority=1)
    assert [each.task for each in only(said, Evict) if isinstance(each, Evict)] == ["t", "u"]
    assert [each.reason for each in only(said, Wait) if isinstance(each, Wait)] == [Reason.NO_ROOM]
    assert list(h.engine.reservations.held) == ["a"]
    assert places(h.evicted("t")) == []
    assert places(h.evicted("u")) == [("urgent", "a")]
    assert (h.stage("t"), h.stage("u"), h.record("t").losses) == (Stage.QUEUED, Stage.QUEUED, 0)
    h.replay()


@pytest.mark.parametrize(
    ("proposal", "problem"),
    [
        (Proposal("nowhere", 0.0, ("t",)), "not awake"),
        (Proposal("a", 0.0, ("nobody",)), "nobody is not there"),
        (Proposal("a", 0.0, ("first",)), "first goes before it"),
        (Proposal("a", 0.0, ("once",)), "must not run twice"),
        (Proposal("a", 0.0, ("t",)), "no room without them"),
    ],
)
def test_nobody_is_evicted_for_a_proposal_that_does_not_hold(proposal: Proposal, problem: str) -> None:
    h = Harness(Planned(proposal=proposal)).node("a")
    h.submit("first", priority=2, idempotent=True)
    h.submit("once")
    h.submit("t", idempotent=True)
    for name in ("first", "once", "t"):
        h.start(name)
    said = h.submit("urgent", needs=requirements(4.0), priority=1)
    (wait,) = said
    assert isinstance(wait, Wait)
    assert wait.reason == Reason.BAD_PROPOSAL
    assert problem in wait.message


# -- nodes -----------------------------------------------------------------------------------------------------------


def test_a_slower_node_is_another_site_and_draws_less() -> None:
    h = running(Frequency("a", 0.5))
    assert only(h.tick(10.0), SetFrequency) == [SetFrequency("a", 0.5)]
    before = h.engine.ledger.index.microwatts
    full = h.engine.ledger.index.nodes["a"].site
    h.tell(ev.FrequencyChanged(10.0, "a", 0.5))
    site = h.engine.ledger.index.nodes["a"].site
    assert site is not full
    assert site is not None
    assert site.frequency == 500
    assert before - h.engine.ledger.index.microwatts == round(20e6 * (1 - 0.125))  # 20 W of two cores above idle
    assert site.machine.load(1000)[0] == 0.5
    h.tell(ev.FrequencyChanged(11.0, "a", 1.0))
    assert h.engine.ledger.index.microwatts == before
    h.replay()


def slow_under_a_cap(watts: float) -> Harness:
    """a and b, with two busy cores each, at half their frequency under a cap; both are to run at full at 10 s. They
    draw 22.5 W each now, and 40 W at full."""
    h = Harness(Planned(Frequency("a", 1.0), Frequency("b", 1.0))).node("a").node("b").function("f")
    for task, node in (("t", "a"), ("u", "b")):
        h.tell(ev.TaskFound(0.0, builders.task(task, needs=requirements(2.0)), node, started=True))
        h.tell(ev.FrequencyChanged(0.0, node, 0.5))
    assert h.engine.ledger.index.microwatts == 45_000_000
    h.cap(watts)
    return h


@pytest.mark.parametrize(("watts", "faster"), [(80.0, ["a", "b"]), (79.9, ["a"]), (62.5, ["a"]), (62.4, [])])
def test_nodes_run_faster_only_as_far_as_the_cap_of_the_cluster_allows(watts: float, faster: list[str]) -> None:
    h = slow_under_a_cap(watts)
    said = only(h.tick(10.0), SetFrequency)
    assert [each.node for each in said if isinstance(each, SetFrequency)] == faster
    assert all("cluster-watts" in why for _, why in h.engine.reconsideration.refused)
    for node in faster:
        h.tell(ev.FrequencyChanged(11.0, node, 1.0))
    assert h.engine.ledger.index.microwatts <= watts * 1e6


def test_a_node_above_the_cap_may_run_slower() -> None:
    h = slow_under_a_cap(30.0)
    h.policy.moves = (Frequency("a", 0.4),)  # type: ignore[attr-defined]
    assert only(h.tick(10.0), SetFrequency) == [SetFrequency("a", 0.4)]


def test_warm_instances_are_counted_as_they_are_reported() -> None:
    h = running(Preparation("b", "f"), Dismissal("b", "f"))
    said = h.tick(10.0)
    assert (only(said, Prepare), only(said, Release)) == ([Prepare("b", "f", "default")], [])
    instances = h.engine.ledger.view.instances
    assert (instances.count("b", "f"), instances.expected("b", "f")) == (0, 1)
    h.tell(ev.InstanceReady(12.0, "b", "f"))
    assert instances.count("b", "f") == 1
    assert only(h.tick(20.0), Release) == [Release("b", "f", "default")]
    h.tell(ev.InstanceGone(21.0, "b", "f"))
    assert (instances.count("b", "f"), instances.expected("b", "f")) == (0, 1)  # it asked for another one meanwhile
    h.lose("b")
    assert instances.expected("b", "f") == 0
    h.replay()


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("move", "why"),
    [
        (Migration("t", "a"), "not another node"),
        (Migration("t", "nowhere"), "nowhere is not here"),
        (Migration("nobody", "b"), "nobody is not here"),
        (Resizing("t", float("nan"), 0), "cannot have"),
        (Resizing("t", 1.0, -1), "cannot have"),
        (Resizing("t", 2.0, GIB), "has that already"),
        (Resizing("t", 5.0, GIB), "cpu"),
        (Resizing("t", 2.0, 100 * GIB), "memory"),
        (Frequency("a", 0.0), "cannot run at"),
        (Frequency("a", 1.0), "runs so already"),
        (Frequency("nowhere", 0.5), "nowhere is not here"),
        (Preparation("b", "unheard-of"), "has no build"),
        (Dismissal("b", "f"), "no instance"),
    ],
)
def test_a_move_that_cannot_be_made_changes_nothing_and_says_why(move: Move, why: str) -> None:
    h = running(move)
    assert h.tick(10.0) == []
    ((refused, said),) = h.engine.reconsideration.refused
    assert refused is move
    assert why in said


def test_a_backend_is_not_asked_for_what_it_cannot_do() -> None:
    moves: list[Move] = [
        Migration("t", "a"),
        Resizing("t", 1.0, 0),
        Eviction("t"),
        Frequency("a", 0.5),
        Preparation("a", "f"),
    ]
    engine = Engine(Planned(*moves))
    engine.handle(ev.MachineDefined(0.0, builders.LINEAR))
    engine.handle(ev.FunctionDefined(0.0, builders.function("f")))
    engine.handle(ev.NodeJoined(0.0, builders.node("a")))
    engine.handle(ev.TaskSubmitted(0.0, builders.task("t", idempotent=True)))
    engine.handle(ev.TaskStarted(0.0, "t", 1))
    assert engine.handle(ev.Tick(10.0)) == []
    assert all("the backend cannot" in why for _, why in engine.reconsideration.refused)
    assert len(engine.reconsideration.refused) == len(moves)


NONSENSE: list[Callable[[], object]] = [
    lambda: None,
    lambda: 5,
    lambda: ["nonsense"],
    lambda: [Migration(1, "b")],  # type: ignore[arg-type]
    lambda: [Resizing("t", "much", 0)],  # type: ignore[arg-type]
    lambda: 1 / 0,
]


@pytest.mark.parametrize("say", NONSENSE)
def test_a_policy_that_talks_nonsense_changes_nothing(say: Callable[[], object]) -> None:
    h = running()
    h.policy.reconsider = lambda view: say()  # type: ignore[method-assign, assignment, return-value]
    assert h.tick(10.0) == []


def test_a_policy_that_names_no_interval_is_never_asked() -> None:
    h = Harness().node("a")
    h.submit("t")
    assert h.engine.next_tick is None


def test_a_policy_is_asked_as_long_as_there_are_tasks() -> None:
    h = running()
    assert h.engine.next_tick == 10.0
    h.tick(10.0)
    assert h.engine.next_tick == 20.0
    h.finish("t")
    h.tick(20.0)
    assert all(timer.kind != "reconsider" for timer in h.engine.timers._heap)


@pytest.mark.parametrize("interval", [0.0, -1.0, float("nan"), float("inf")])
def test_a_policy_that_would_be_asked_all_the_time_is_refused(interval: float) -> None:
    policy = Planned()
    policy.reconsider_interval_s = interval
    with pytest.raises(PolicyError, match="reconsider_interval_s"):
        Harness(policy)


@pytest.mark.parametrize("together", [0, -1, 2.0, None, "many"])
def test_a_policy_that_wants_to_see_no_number_of_tasks_is_refused(together: object) -> None:
    policy = Planned()
    policy.most_at_once = together  # type: ignore[assignment]
    with pytest.raises(PolicyError, match="most_at_once"):
        Harness(policy)


def test_of_a_plan_without_end_only_as_much_is_read_as_was_asked() -> None:
    class Endless(Planned):
        read = 0

        def propose_many(self, asks: Sequence[Ask], view: View) -> Iterator[Proposal | None]:  # type: ignore[override]
            while self.read < 1000:  # far more than two, and the test ends where the guard does not
                self.read += 1
                yield None

    policy = Endless()
    policy.most_at_once = 8
    h = Harness(policy)
    h.submit("t")
    h.submit("u")
    h.node("a")
    assert (h.where("t"), h.where("u"), policy.read) == ("a", "a", 2)


# -- what is told ----------------------------------------------------------------------------------------------------


def test_progress_is_of_the_attempt_and_a_checkpoint_of_the_task() -> None:
    h = running()
    h.tell(ev.TaskProgressed(5.0, "t", 1, 0.4, "t-40", 1000))
    assert (h.record("t").holding.progress, h.record("t").checkpoint) == (0.4, ("t-40", 1000))
    h.fail_infrastructure("t")
    assert (h.record("t").holding.progress, h.record("t").checkpoint) == (0.0, ("t-40", 1000))


def test_signals_plans_and_models_are_in_the_view_and_whoever_waits_is_asked_again() -> None:
    h = Harness().node("a")
    h.submit("t", needs=requirements(64.0))
    view, asked = h.engine.ledger.view, h.engine.proposals
    h.tell(ev.SignalChanged(1.0, "carbon", 300.0, ((2.0, 100.0),)))
    h.tell(ev.PlanChanged(2.0, "0a1b"))
    h.tell(ev.ModelChanged(3.0, "2c3d"))
    assert (view.signals["carbon"].value, view.signals["carbon"].since) == (300.0, 1.0)
    assert (view.plan, view.model) == ("0a1b", "2c3d")
    assert h.engine.proposals == asked + 3
    h.replay()


@pytest.mark.parametrize(
    ("event", "field"),
    [
        (ev.SignalChanged(5.0, "", 1.0), "name"),
        (ev.SignalChanged(5.0, "price", float("nan")), "value"),
        (ev.SignalChanged(5.0, "price", 1.0, ((1e12, 1.0),)), "forecast"),
        (ev.SignalChanged(5.0, "price", 1.0, ((7.0, 1.0), (6.0, 1.0))), "forecast"),
        (ev.SignalChanged(5.0, "price", 1.0, ((6.0, float("inf")),)), "forecast"),
        (ev.PlanChanged(5.0, "../plan"), "digest"),
        (ev.ModelChanged(5.0, "0" * 129), "digest"),
        (ev.FrequencyChanged(5.0, "nowhere", 0.5), "node"),
        (ev.InstanceGone(5.0, "a", "f"), "function"),
        (ev.InstanceReady(5.0, "a", "f", "other"), "variant"),
        (ev.TaskProgressed(5.0, "t", 1, 1.1), "share"),
        (ev.TaskProgressed(5.0, "t", 1, 0.1, "c", -1), "checkpoint_bytes"),
        (ev.InstructionFailed(5.0, "migrate", "t", 1), "task"),
        (ev.InstructionFailed(5.0, "resize", "t", 1), "task"),
        (ev.InstructionFailed(5.0, "set-frequency", node="a"), "node"),
        (ev.InstructionFailed(5.0, "prepare", node="a", function="f", variant="default"), "function"),
    ],
)
def test_what_cannot_be_true_is_refused(event: ev.AnyEvent, field: str) -> None:
    assert running().refused(event).field == field
