"""Our own policy: what it counts, what it bounds, and that it wins where we say it does."""

import pytest

import wattloom
from wattloom.cluster.node import Node
from wattloom.cluster.reasons import Reason
from wattloom.errors import PolicyError
from wattloom.machines.profile import MachineProfile
from wattloom.policies.least_joules import LeastJoules
from wattloom.policies.loading import load_policy
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import Sleep, Wake
from wattloom.simulation.comparison import Comparison
from wattloom.testing.policy_clusters import History
from wattloom.units import GIB
from wattloom.workload.function import Function, Variant
from wattloom.workload.task import Task

OTHERS = (
    "fifo,round-robin,random,spread,pack,arch-first,arch-first:first=aarch64,marginal-energy,"
    "marginal-energy:tdp=false,guarantee=1,exec,weighted"
)


def machine(name: str, watts: tuple[tuple[float, float], ...], **more: object) -> MachineProfile:
    return MachineProfile(name, "x86_64", 4, 8, 64 * GIB, watts=watts, **more)  # type: ignore[arg-type]


CHEAP = machine("cheap", ((0, 10.0), (4, 18.0), (8, 20.0)), sleep_w=1.0, wake_s=10.0, wake_j=90.0)
DEAR = machine("dear", ((0, 10.0), (4, 50.0), (8, 60.0)), sleep_w=1.0, wake_s=10.0, wake_j=90.0)

SMT = machine("smt", ((0, 10.0), (4, 50.0), (8, 66.0)))


def calls(**seconds: float) -> Function:
    return Function("f", variants=(Variant(seconds=seconds),))


def history(policy: LeastJoules, function: Function, *nodes: Node) -> History:
    return History(policy).set_up(nodes, [CHEAP, DEAR], [function])


def test_the_fewest_joules_win_over_the_fewest_watts_and_the_fewest_seconds() -> None:
    slow_and_frugal = calls(cheap=15.0, dear=10.0)
    assert history(LeastJoules(), slow_and_frugal, Node("a", "dear"), Node("b", "cheap")).place(Task("t", "f")) == "b"


def test_a_place_that_stretches_the_task_too_far_is_passed_over() -> None:
    far_too_slow = calls(cheap=18.0, dear=10.0)
    nodes = (Node("a", "dear"), Node("b", "cheap"))
    assert history(LeastJoules(stretch=1.6, sleep=False), far_too_slow, *nodes).place(Task("t", "f")) == "a"
    assert history(LeastJoules(stretch=3.0, sleep=False), far_too_slow, *nodes).place(Task("t", "f")) == "b"


def test_the_energy_weight_of_the_task_stretches_the_bound() -> None:
    twice_as_long = calls(cheap=20.0, dear=10.0)
    for weight, expected in ((0.0, "a"), (0.5, "a"), (1.0, "b")):
        one = history(LeastJoules(stretch=1.6), twice_as_long, Node("a", "dear"), Node("b", "cheap"))
        assert one.place(Task("t", "f", energy_weight=weight)) == expected


def test_tasks_share_a_node_rather_than_keep_two_awake() -> None:
    one = history(LeastJoules(), calls(cheap=10.0), Node("a", "cheap"), Node("b", "cheap"))
    assert [one.place(Task(f"t{n}", "f")) for n in range(4)] == ["a", "a", "a", "a"]


def test_what_the_neighbours_lose_counts() -> None:
    """The fifth task of four cores costs few watts and slows four others down; without sleep another node is free."""
    one = History(LeastJoules(sleep=False)).set_up([Node("a", "smt"), Node("b", "smt")], [SMT], [calls(smt=10.0)])
    assert [one.place(Task(f"t{n}", "f")) for n in range(5)] == ["a", "a", "a", "a", "b"]


def test_an_idle_node_sleeps_after_as_long_as_a_wake_up_costs() -> None:
    one = history(LeastJoules(), calls(cheap=10.0), Node("a", "cheap"))
    assert one.engine.next_tick == pytest.approx(90.0 / 9.0)
    assert one.send(ev.Tick(9.99)) == []
    assert one.send(ev.Tick(10.0)) == [Sleep("a")]
    assert Wake("a") in one.send(ev.TaskSubmitted(11.0, Task("t", "f")))


def test_without_sleep_no_node_is_sent_to_sleep() -> None:
    assert history(LeastJoules(sleep=False), calls(cheap=10.0), Node("a", "cheap")).engine.next_tick is None


def test_nobody_waits_for_nodes_that_are_all_asleep() -> None:
    one = history(LeastJoules(), calls(cheap=1.0), Node("a", "cheap", asleep=True))
    assert one.send(ev.TaskSubmitted(1.0, Task("t", "f"))) == [Wake("a")]


def test_a_task_waits_for_a_fast_machine_if_that_ends_sooner_than_a_slow_one_now() -> None:
    hopeless = calls(cheap=1000.0, dear=10.0)
    one = history(LeastJoules(), hopeless, Node("a", "dear", cpu=1.0), Node("b", "cheap"))
    assert one.place(Task("t0", "f")) == "a"
    assert one.place(Task("t1", "f")) == ""
    assert one.engine.ledger.tasks["t1"].reason == Reason.WAITING_IS_SOONER


def test_an_unknown_run_time_ranks_last() -> None:
    untold = Function("f", variants=(Variant("told", seconds={"dear": 10.0}),))
    nameless = MachineProfile("nameless", "x86_64", 8, 8, 64 * GIB)
    one = History(LeastJoules()).set_up([Node("a", "nameless"), Node("b", "dear")], [nameless, DEAR], [untold])
    assert one.place(Task("t", "f")) == "b"


@pytest.mark.parametrize("wrong", [{"stretch": 0.9}, {"linger": -1.0}, {"company": 2.0}, {"wait_margin": 1.1}])
def test_a_wrong_option_is_named(wrong: dict[str, float]) -> None:
    with pytest.raises(PolicyError, match=next(iter(wrong))):
        LeastJoules(**wrong)  # type: ignore[arg-type]


def compared(scenario: str, seeds: int) -> Comparison:
    return wattloom.compare(scenario, f"{OTHERS},least-joules", seeds=seeds)


@pytest.mark.parametrize(("scenario", "seeds"), [("hsc-cpu", 1), ("heats-bursts", 5), ("isa-mixed", 1)])
def test_it_has_the_least_energy_at_no_more_than_5_percent_longer_makespan(scenario: str, seeds: int) -> None:
    """Than policies that set aside what tasks request: who gives out more cores than there are may start them sooner.
    Algorithm 1 does by default, and is 9.5% faster on hsc-cpu, at 1.5% more energy."""
    rows = {row.policy: row for row in compared(scenario, seeds).rows}
    ours = rows.pop("least-joules")
    assert ours.energy.total < min(row.energy.total for row in rows.values())
    in_full = [row for row in rows.values() if not load_policy(row.policy).terms.overcommits]
    assert ours.makespan_s <= 1.05 * min(row.makespan_s for row in in_full)


SLOW_AND_FRUGAL = MachineProfile("slow", "x86_64", 8, 8, 64 * GIB, watts=((0, 100.0), (8, 180.0)))
FAST = MachineProfile("fast", "x86_64", 8, 8, 64 * GIB, watts=((0, 100.0), (8, 196.0)))


def test_without_sleep_time_costs_what_the_cluster_idles_at_meanwhile() -> None:
    """12 W for 10 s are more than 10 W for 11 s; but the cluster idles for a second less."""
    calls_there = Function("f", variants=(Variant(seconds={"slow": 11.0, "fast": 10.0}),))
    nodes = [Node("a", "slow"), Node("b", "fast")]
    awake = History(LeastJoules(sleep=False)).set_up(nodes, [SLOW_AND_FRUGAL, FAST], [calls_there])
    assert awake.place(Task("t", "f")) == "b"
    asleep = History(LeastJoules()).set_up(nodes, [SLOW_AND_FRUGAL, FAST], [calls_there])
    assert asleep.place(Task("t", "f")) == "a"


@pytest.mark.parametrize(
    ("scenario", "seeds", "margin"),
    [
        ("hsc-cpu", 1, 1e-9),
        ("heats-bursts", 3, 0.0),
        ("heats-bursts", 8, 0.01),
        ("isa-mixed", 1, 0.0),
        pytest.param("mixed-1000", 3, 0.0, marks=pytest.mark.slow),
    ],
)
def test_without_sleep_it_is_first_or_equal_among_those_that_keep_requests_in_full(
    scenario: str, seeds: int, margin: float
) -> None:
    """On heats-bursts seeds differ by 2.4%: over eight of them it is within 1%."""
    rows = {row.policy: row for row in wattloom.compare(scenario, f"{OTHERS},least-joules", seeds, sleep=False).rows}
    ours = rows.pop("least-joules:sleep=false")
    in_full = [row for row in rows.values() if not load_policy(row.policy).terms.overcommits]
    assert ours.energy.total <= (1.0 + margin) * min(row.energy.total for row in in_full)
