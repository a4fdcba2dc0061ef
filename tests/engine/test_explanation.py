"""Every site appears, exactly one is taken, and the reasons are right."""

from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import Site
from wattloom.energy.forecast import Unknown
from wattloom.history.explanation import Explanation, explain
from wattloom.machines.catalogue import machines
from wattloom.policies.loading import load_policy
from wattloom.policies.protocol import Policy, Proposal, RankingPolicy, Refusal
from wattloom.prediction.placement_estimate import PlacementEstimate
from wattloom.scheduling.state import TaskRecord
from wattloom.testing.builders import ARM, CONCAVE, CONVEX, LINEAR, SLEEPER, WITHOUT_CURVE, requirements
from wattloom.testing.harness import Harness, fingerprint
from wattloom.testing.odd_policies import Scripted
from wattloom.testing.policy_conformance import check_policy
from wattloom.units import GIB
from wattloom.workload.shape import Shape


def explained(h: Harness) -> list[Explanation]:
    """What the engine sees at each decision from now on."""
    found: list[Explanation] = []

    def watch(record: TaskRecord) -> None:
        found.append(explain(record, h.engine.ledger.view, h.policy))

    h.engine.watcher = watch
    return found


def mixed(policy: Policy | None = None) -> Harness:
    h = Harness(policy)
    h.node("a1", LINEAR).node("a2", LINEAR).node("b", CONCAVE).node("c", CONVEX).node("d", ARM)
    h.node("e", WITHOUT_CURVE).node("f", SLEEPER, asleep=True).node("g", LINEAR, cpu=0.5)
    return h


def test_every_site_appears_once_and_exactly_one_is_taken() -> None:
    h = mixed()
    found = explained(h)
    for number in range(12):
        h.submit(f"t{number}")
    for explanation in found:
        taken = [each for each in explanation.candidates if each.reason == Reason.TAKEN]
        assert len(taken) == 1
        assert taken[0].first == explanation.node == h.where(explanation.task)
        assert explanation.reason == Reason.TAKEN
        assert sum(each.nodes for each in explanation.candidates) == 8
    firsts = [each.first for each in found[0].candidates]
    assert len(set(firsts)) == len(firsts) == 7


def test_each_candidate_says_why_it_was_not_taken() -> None:
    h = mixed()
    found = explained(h)
    h.submit("t", needs=requirements(1.0, arch=("x86_64",)))
    reasons = {each.first: each.reason for each in found[0].candidates}
    assert reasons == {
        "c": Reason.TAKEN,
        "a1": Reason.DEARER,
        "b": Reason.DEARER,
        "f": Reason.DEARER,
        "d": Reason.ARCHITECTURE,
        "e": Reason.RUNTIME_UNKNOWN,
        "g": Reason.TOO_SMALL,
    }


def test_a_place_of_a_later_tier_says_so_and_is_listed_after_the_first() -> None:
    class ConcaveFirst(RankingPolicy):
        name = "concave-first"
        summary = "for tests"
        needs_power = True

        def tier(self, shape: Shape, site: Site, estimate: PlacementEstimate) -> int:
            return int(site.cls.machine.name != "concave")

        def cost(self, shape: Shape, site: Site, estimate: PlacementEstimate) -> float:
            return estimate.watts

    h = mixed(ConcaveFirst())
    found = explained(h)
    h.submit("t", needs=requirements(1.0, arch=("x86_64",)))
    reasons = {each.first: each.reason for each in found[0].candidates}
    assert next(iter(reasons)) == h.where("t") == "b"
    assert reasons["a1"] == reasons["c"] == Reason.LATER_TIER
    check_policy(ConcaveFirst)


def test_candidates_are_listed_best_first_and_unknown_ones_after_them() -> None:
    h = mixed()
    found = explained(h)
    h.submit("t")
    costs = [each.cost for each in found[0].candidates]
    known = [cost for cost in costs if cost is not None]
    assert known == sorted(known)
    assert costs[: len(known)] == known
    unknown = next(each for each in found[0].candidates if each.first == "e")
    assert isinstance(unknown.forecast, Unknown)


def test_an_equal_candidate_of_another_site_is_a_tie() -> None:
    h = Harness().node("a", LINEAR).node("b", LINEAR, labels={"zone": "b"})
    found = explained(h)
    h.submit("t")
    assert [(each.first, each.reason) for each in found[0].candidates] == [("a", Reason.TAKEN), ("b", Reason.TIE)]


def test_a_task_that_waits_is_explained_with_the_reason_and_nobody_taken() -> None:
    h = Harness().node("a", cpu=1.0)
    h.submit("x")
    h.submit("t")
    why = h.why("t")
    assert (why.node, why.reason) == (None, Reason.NO_ROOM)
    assert [each.reason for each in why.candidates] == [Reason.CPU]
    assert (why.candidates[0].cores_in_use, why.candidates[0].cores) == (1.0, 1.0)


def test_under_a_cluster_cap_each_candidate_says_so() -> None:
    h = Harness().node("a").node("b", CONCAVE)
    h.cap(45.0)
    h.submit("t")
    assert {each.reason for each in h.why("t").candidates} == {Reason.CLUSTER_WATTS}


def test_a_node_kept_for_another_says_so() -> None:
    h = Harness().node("a")
    h.submit("x0")
    h.submit("big", needs=requirements(4.0))
    h.pass_time(60.0)
    h.submit("x1")
    h.pass_time(1.0)
    h.submit("t")
    assert h.why("t").candidates[0].reason == Reason.HELD
    assert h.why("t").candidates[0].mode == "held"


def test_explaining_asks_and_changes_nothing() -> None:
    h = mixed()
    h.submit("x", needs=requirements(64.0))
    before = fingerprint(h.engine)
    h.why("x")
    assert fingerprint(h.engine) == before


def test_a_policy_that_raises_is_explained_as_having_failed() -> None:
    def script(ask: object, view: object) -> Proposal | Refusal:
        raise ValueError("no idea")

    h = Harness(Scripted(script)).node("a")
    h.submit("t")
    assert (h.why("t").node, h.why("t").reason) == (None, Reason.POLICY_FAILED)


def test_a_proposal_the_engine_would_refuse_is_explained_as_refused() -> None:
    h = Harness(Scripted(lambda ask, view: Proposal("b", 0.0))).node("a")
    h.submit("t")
    assert (h.why("t").node, h.why("t").reason) == (None, Reason.BAD_PROPOSAL)
    h.node("b", cpu=0.5)
    assert (h.why("t").node, h.why("t").reason) == (None, Reason.TOO_SMALL)


def test_without_a_run_time_watts_are_told_and_compared() -> None:
    h = Harness(load_policy("least-joules")).function("f")
    h.node("dear", CONCAVE).node("fair", LINEAR).node("other", LINEAR, labels={"zone": "b"}).node("best", CONVEX)
    h.node("odd", WITHOUT_CURVE)
    found = explained(h)
    h.submit("t")
    assert [(each.first, each.watts, each.reason) for each in found[0].candidates] == [
        ("best", 5.0, Reason.TAKEN),
        ("fair", 10.0, Reason.MORE_WATTS),
        ("other", 10.0, Reason.MORE_WATTS),
        ("dear", 20.0, Reason.MORE_WATTS),
        ("odd", None, Reason.POWER_UNKNOWN),
    ]


def test_watts_that_no_policy_ranks_by_to_the_last_digit_decide_all_the_same() -> None:
    """On one core of a real machine's curve, watts have more digits than least-joules keeps."""
    h = Harness(load_policy("least-joules")).function("f")
    for name, machine in sorted(machines().items()):
        h.node(name, machine, cpu=1.0)
    found = explained(h)
    h.submit("t")
    taken, *others = (each for each in found[0].candidates if each.watts is not None)
    assert taken.watts is not None
    assert taken.reason == Reason.TAKEN
    dearer = [each for each in others if each.watts is not None and each.watts > taken.watts + 1e-5]
    assert len(dearer) > 5
    assert {each.first: each.reason for each in dearer} == {each.first: Reason.MORE_WATTS for each in dearer}


def test_without_a_run_time_equal_watts_are_a_tie() -> None:
    h = Harness(load_policy("least-joules")).function("f").node("a").node("b", labels={"zone": "b"})
    found = explained(h)
    h.submit("t")
    assert [(each.first, each.reason) for each in found[0].candidates] == [("a", Reason.TAKEN), ("b", Reason.TIE)]


def test_a_policy_that_does_not_go_by_watts_is_not_said_to() -> None:
    class Sooner(RankingPolicy):
        name, summary, needs_runtime = "sooner", "the shortest run", True

        def cost(self, shape: Shape, site: Site, estimate: PlacementEstimate) -> float:
            return estimate.seconds

    h = Harness(Sooner()).function("f").node("a", CONCAVE).node("b", LINEAR)
    found = explained(h)
    h.submit("t")
    reasons = {each.first: (each.watts, each.reason) for each in found[0].candidates}
    assert reasons == {"a": (20.0, Reason.TAKEN), "b": (10.0, Reason.TIE)}


def test_where_something_is_known_the_unknown_ranks_behind_it() -> None:
    h = Harness(load_policy("least-joules")).function("f", seconds={"linear": 10.0})
    h.node("a", LINEAR).node("b", WITHOUT_CURVE)
    found = explained(h)
    h.submit("t")
    assert found[0].candidates[0].reason == Reason.TAKEN
    assert found[0].candidates[1].reason in (Reason.POWER_UNKNOWN, Reason.RUNTIME_UNKNOWN)


def test_what_there_is_too_little_of_is_named() -> None:
    h = Harness().node("small", cpu=2.0, memory=GIB).node("busy", cpu=4.0, memory=8 * GIB)
    h.submit("x", needs=requirements(3.0, GIB))
    assert h.where("x") == "busy"
    h.submit("t", needs=requirements(4.0, 2 * GIB))
    lacks = {each.first: (each.reason, each.lacks) for each in h.why("t").candidates}
    assert lacks == {"small": (Reason.TOO_SMALL, ("cpu", "memory")), "busy": (Reason.CPU, ("cpu",))}
