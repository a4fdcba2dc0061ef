"""What a policy can see beyond one task on equal nodes: several tasks at once, the graph of tasks, preferences."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wattloom.cluster.index import Rank, rank_of
from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import Site
from wattloom.energy.forecast import Unknown
from wattloom.errors import EventRefused
from wattloom.history.explanation import Explanation, explain
from wattloom.policies import view as view_module
from wattloom.policies.least_joules import LeastJoules
from wattloom.policies.marginal_energy import MarginalEnergy
from wattloom.policies.protocol import Ask, Policy, Proposal, RankingPolicy, View
from wattloom.prediction.placement_estimate import PlacementEstimate
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import Place
from wattloom.scheduling.state import TaskRecord
from wattloom.testing import builders
from wattloom.testing.builders import ARM, CONCAVE, CONVEX, LINEAR, SLEEPER, SMT, WITHOUT_CURVE, requirements
from wattloom.testing.harness import Harness
from wattloom.testing.policy_conformance import check_policy
from wattloom.workload.preference import Preference
from wattloom.workload.shape import Shape

# -- several tasks at once ---------------------------------------------------------------------------------------------


class Fastest(RankingPolicy):
    name = "fastest"
    summary = "for tests: fewest seconds"
    needs_runtime = True

    def cost(self, shape: Shape, site: Site, estimate: PlacementEstimate) -> float:
        return estimate.seconds


class Swaps(Fastest):
    """Greedy, and if that leaves somebody out, the last that has a place makes room for him and goes elsewhere."""

    name = "swaps"
    summary = "for tests: two tasks may change places"
    most_at_once = 8

    def propose_many(self, asks: Sequence[Ask], view: View) -> Sequence[Proposal | None]:
        one, other = asks[0], asks[1]
        places = [{name: out.seconds for name, out in self.free(ask, view).items()} for ask in (one, other)]
        pairs = [(a, b) for a in places[0] for b in places[1] if a != b]
        if not pairs:
            return [None] * len(asks)
        a, b = min(pairs, key=lambda pair: places[0][pair[0]] + places[1][pair[1]])
        return [Proposal(a, places[0][a]), Proposal(b, places[1][b])]

    def free(self, ask: Ask, view: View) -> dict[str, PlacementEstimate]:
        return {name: estimate for site, estimate in view.fitting(ask.shape) for name in site.members()}


def released_together(policy: Policy) -> Harness:
    """Two tasks become ready in one turn: the first may go to x or y, and is faster on x; the second only to x."""
    h = Harness(policy).node("x", LINEAR, memory=4 << 30).node("y", CONCAVE, memory=1 << 30)
    h.function("gate").function("small", requirements(4.0, memory=1 << 30), seconds={"linear": 10.0, "concave": 11.0})
    h.function("large", requirements(4.0, memory=4 << 30), seconds={"linear": 10.0, "concave": 11.0})
    h.submit("first", "gate")
    h.submit("s", "small", after=("first",))
    h.submit("l", "large", after=("first",))
    return h


def test_two_tasks_change_places_which_one_after_the_other_they_cannot() -> None:
    greedy = released_together(Fastest())
    greedy.finish("first")
    assert (greedy.where("s"), greedy.where("l")) == ("x", None)
    h = released_together(Swaps())
    assert [each.task for each in h.finish("first") if isinstance(each, Place)] == ["s", "l"]
    assert (h.where("s"), h.where("l")) == ("y", "x")
    h.replay()


class Claims(Swaps):
    """Wants one node for everybody, names one that is not there, and says nonsense; then too little."""

    name = "claims"
    summary = "for tests: proposals that do not hold"

    def propose_many(self, asks: Sequence[Ask], view: View) -> Sequence[Proposal | None]:
        if len(asks) == 3:
            raise RuntimeError("not three")
        nonsense: list[Proposal | None] = [Proposal("nowhere", 0.0), Proposal("x", 0.0), "x", Proposal("x", 0.0)]  # type: ignore[list-item]
        return nonsense[: len(asks) - 1]


@pytest.mark.parametrize("tasks", [2, 3, 4, 6])
def test_what_does_not_hold_of_a_plan_is_asked_alone(tasks: int) -> None:
    h = Harness(Claims()).node("x", LINEAR).node("y", CONCAVE)
    h.function("gate").function("f", requirements(1.0), seconds={"linear": 10.0, "concave": 11.0})
    h.submit("first", "gate")
    for number in range(tasks):
        h.submit(f"t{number}", "f", after=("first",))
    h.finish("first")
    assert all(h.where(f"t{number}") for number in range(tasks))
    h.replay()


def test_a_planned_place_is_explained_as_such() -> None:
    h = released_together(Swaps())
    found: dict[str, Explanation] = {}

    def watch(record: TaskRecord) -> None:
        found[record.name] = explain(record, h.engine.ledger.view, h.policy, h.engine.placement.planned)

    h.engine.watcher = watch
    h.finish("first")
    assert found["s"].node == "y"
    assert {each.first: each.reason for each in found["s"].candidates} == {"x": None, "y": Reason.TAKEN}
    assert any("together" in note for note in found["s"].notes)


def test_policies_that_plan_are_good_citizens() -> None:
    check_policy(Swaps)


# -- the graph of tasks ------------------------------------------------------------------------------------------------


def diamond() -> Harness:
    """a, then b (long) and c (short), then d."""
    h = Harness().node("x", LINEAR)
    for name, seconds in (("a", 5.0), ("b", 20.0), ("c", 8.0), ("d", 3.0)):
        h.function(name, requirements(1.0), seconds={"linear": seconds})
    for name, after in (("a", ()), ("b", ("a",)), ("c", ("a",)), ("d", ("b", "c"))):
        h.submit(name, name, after=after)
    return h


def test_the_view_knows_who_comes_after_whom_and_who_has_time() -> None:
    h = diamond()
    graph = h.engine.ledger.view.graph
    assert (graph.after("d"), graph.dependents("a"), graph.after("a")) == (["b", "c"], ["b", "c"], [])
    assert [graph.remaining(name) for name in "abcd"] == [28.0, 23.0, 11.0, 3.0]
    assert [graph.slack(name) for name in "abcd"] == [0.0, 0.0, 12.0, 0.0]
    assert graph.critical_path("a") == ["a", "b", "d"]
    h.finish("a")
    assert [graph.slack(name) for name in "bcd"] == [0.0, 12.0, 0.0]
    h.finish("b")
    assert (graph.after("d"), graph.slack("c")) == (["c"], 0.0)


def test_lengths_follow_what_is_learned_and_the_unknown_stays_unknown() -> None:
    h = diamond()
    graph = h.engine.ledger.view.graph
    assert graph.remaining("c") == 11.0
    h.function("c", requirements(1.0), seconds={"linear": 30.0})
    h.submit("e", "c", after=("a",))
    assert graph.remaining("e") == 30.0
    h.function("dark", requirements(1.0))
    h.submit("f", "dark", after=("d",))
    assert isinstance(graph.remaining("a"), Unknown)
    assert isinstance(graph.slack("c"), Unknown)
    assert isinstance(graph.seconds("nobody"), Unknown)


def test_a_graph_may_be_deep() -> None:
    h = Harness().node("x", LINEAR)
    h.function("f", requirements(1.0), seconds={"linear": 1.0})
    h.submit("t0", "f")
    for number in range(1, 1500):
        h.engine.handle(_submitted(number))
    assert h.engine.ledger.view.graph.remaining("t0") == 1500.0
    assert h.engine.ledger.view.graph.slack("t700") == 0.0


def test_tasks_that_seem_to_wait_for_each_other_are_looked_at_once() -> None:
    """One was found where it runs, and names another that was submitted after it and waits for it."""
    h = Harness().node("x", LINEAR).function("f", requirements(1.0), seconds={"linear": 5.0})
    h.tell(ev.TaskFound(h.engine.time, builders.task("a", after=("b",)), "x"))
    h.submit("b", "f", after=("a",))
    graph = h.engine.ledger.view.graph
    assert [isinstance(graph.slack(name), float) for name in "ab"] == [True, True]


def _submitted(number: int) -> ev.TaskSubmitted:
    return ev.TaskSubmitted(0.0, builders.task(f"t{number}", "f", after=(f"t{number - 1}",)))


# -- preferences -------------------------------------------------------------------------------------------------------


MACHINES = (LINEAR, CONCAVE, CONVEX, SMT, ARM, SLEEPER, WITHOUT_CURVE)
FUNCTIONS = {machine.name: 10.0 + number for number, machine in enumerate(MACHINES)}
FIGURES = st.sampled_from([0.0, -50.0, 50.0, -400.0, 400.0, 3.0, -3.0])
PREFERENCES = st.lists(
    st.tuples(st.one_of(st.integers(0, 24), st.sampled_from("abc")), FIGURES, st.sampled_from([0.0, -4.0, 9.0])),
    max_size=6,
)


def by_a_full_scan(ask: Ask, view: View, policy: Policy) -> tuple[Rank, str] | None:
    """Every node with what the task prefers, one by one, by the stated rule."""
    found: list[tuple[Rank, str]] = []
    for name, node in view.nodes().items():
        mine = [each for each in ask.task.prefers if each.node == name or (each.labels and _has(node, each))]
        joules, seconds = sum(each.joules for each in mine), sum(each.seconds for each in mine)
        assert node.site is not None
        if not view.takes(ask.shape, node):
            continue
        rank = rank_of(view._rank_with(ask.shape, node.site, policy, (joules, seconds)))  # type: ignore[arg-type]
        if rank is not None:
            found.append((rank, name))
    return min(found, default=None)


def _has(node: object, preference: Preference) -> bool:
    return all(node.label(key) == value for key, value in preference.labels)  # type: ignore[attr-defined]


def _preference(where: int | str, joules: float, seconds: float) -> Preference:
    if isinstance(where, int):
        return Preference(f"n{where:02}", joules=joules, seconds=seconds)
    return Preference(labels=(("zone", where),), joules=joules, seconds=seconds)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.lists(PREFERENCES, min_size=4, max_size=12), st.booleans(), st.booleans())
def test_the_best_place_with_preferences_is_that_of_a_full_scan(
    random: object, tasks: list[list[tuple[int | str, float, float]]], one_by_one: bool, capped: bool
) -> None:
    draw = random.randrange  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(view_module, "FEW", 32 if one_by_one else 0)
        for policy in (LeastJoules(sleep=False), Fastest(), MarginalEnergy(guarantee=1.0)):
            h = Harness(policy)
            for number in range(20):
                h.node(f"n{number:02}", MACHINES[draw(len(MACHINES))], labels={"zone": "abc"[draw(3)]})
            h.function("f", requirements(1.0), seconds=FUNCTIONS)
            if capped and not h.engine.ledger.index.unknown_power:
                h.cap(600.0)
            expected: list[tuple[Rank, str] | None] = []

            def watch(record: TaskRecord, h: Harness = h, expected: list[tuple[Rank, str] | None] = expected) -> None:
                best = by_a_full_scan(record, h.engine.ledger.view, h.policy)
                found = h.engine.ledger.view.best(record, h.policy)  # type: ignore[arg-type]
                assert (None if found is None else found[:2]) == best
                expected.append(best)

            h.engine.watcher = watch
            for number, prefers in enumerate(tasks):
                task = builders.task(f"t{number}", "f")
                h.submit_task(msgspec.structs.replace(task, prefers=tuple(_preference(*each) for each in prefers)))
            assert expected


def test_data_that_is_there_outweighs_a_cheaper_machine_and_why_says_so() -> None:
    h = Harness(Fastest()).node("a", LINEAR).node("b", LINEAR).node("c", CONCAVE)
    h.function("f", requirements(1.0), seconds={"linear": 10.0, "concave": 12.0})
    found: list[Explanation] = []
    h.engine.watcher = lambda record: found.append(explain(record, h.engine.ledger.view, h.policy))
    h.submit_task(msgspec.structs.replace(builders.task("t", "f"), prefers=(Preference("c", seconds=-5.0),)))
    assert h.where("t") == "c"
    assert [(each.first, each.cost, each.reason) for each in found[0].candidates] == [
        ("c", 7.0, Reason.TAKEN),
        ("a", 10.0, Reason.DEARER),
    ]
    h.submit_task(msgspec.structs.replace(builders.task("u", "f"), prefers=(Preference("b", seconds=-5.0),)))
    assert h.where("u") == "b"
    assert [(each.first, each.nodes, each.cost) for each in found[1].candidates][:2] == [("b", 1, 5.0), ("a", 1, 10.0)]
    h.submit_task(msgspec.structs.replace(builders.task("v", "f"), prefers=(Preference("a", seconds=50.0),)))
    assert h.where("v") != "a"
    h.replay()


@pytest.mark.parametrize(
    ("preference", "field"),
    [
        (Preference(joules=1.0), "task.prefers.node"),
        (Preference("a", (("zone", "b"),)), "task.prefers.node"),
        (Preference("a", joules=float("nan")), "task.prefers.joules"),
        (Preference("a", seconds=float("inf")), "task.prefers.seconds"),
    ],
)
def test_a_preference_that_says_nothing_is_refused(preference: Preference, field: str) -> None:
    h = Harness().node("a")
    h.function("f")
    with pytest.raises(EventRefused) as refused:
        h.submit_task(msgspec.structs.replace(builders.task("t", "f"), prefers=(preference,)))
    assert refused.value.field == field
