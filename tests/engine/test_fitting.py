"""Every check of a proposal: what fits where, with which build, and the reason if it does not."""

import msgspec
import pytest

from wattloom.cluster.reasons import Reason
from wattloom.errors import EventRefused
from wattloom.policies.marginal_energy import MarginalEnergy
from wattloom.scheduling.instructions import Place
from wattloom.testing.builders import ARM, CONCAVE, CONVEX, LINEAR, WITHOUT_CURVE, machine, requirements, variant
from wattloom.testing.harness import Harness
from wattloom.units import GIB
from wattloom.workload.requirements import Requirements

REASONS: list[tuple[str, Requirements, Reason]] = [
    ("more cores than the node has left", requirements(3.0), Reason.CPU),
    ("more cores than the node has at all", requirements(5.0), Reason.TOO_SMALL),
    ("more memory than it has left", requirements(1.0, 6 * GIB), Reason.MEMORY),
    ("more memory than it has at all", requirements(1.0, 9 * GIB), Reason.TOO_SMALL),
    ("another architecture", requirements(1.0, arch=("aarch64",)), Reason.ARCHITECTURE),
    ("a label it lacks", requirements(1.0, labels={"disk": "nvme"}), Reason.LABELS),
    ("a label with another value", requirements(1.0, labels={"zone": "b"}), Reason.LABELS),
    ("a device it lacks", requirements(1.0, devices={"fpga": 1.0}), Reason.NO_SUCH_DEVICE),
    ("more devices than it has", requirements(1.0, devices={"gpu": 3.0}), Reason.TOO_SMALL),
    ("more devices than are free", requirements(1.0, devices={"gpu": 2.0}), Reason.DEVICES),
    ("more watts than its cap", requirements(2.0), Reason.NODE_WATTS),
]


@pytest.mark.parametrize(("what", "needs", "reason"), REASONS, ids=[row[0] for row in REASONS])
def test_a_node_is_passed_over_because_the_task_wants(what: str, needs: Requirements, reason: Reason) -> None:
    h = Harness().node("a", labels={"zone": "a"}, devices={"gpu": 2}, cap_w=52.0)
    h.submit("there", needs=requirements(2.0, 4 * GIB, devices={"gpu": 0.5}))
    h.submit("t", needs=needs)
    assert h.where("t") is None
    assert [candidate.reason for candidate in h.why("t").candidates] == [reason]


FITS: list[tuple[str, Requirements]] = [
    ("exactly the cores that are left", requirements(2.0)),
    ("exactly the memory that is left", requirements(0.0, 4 * GIB)),
    ("one of several architectures", requirements(1.0, arch=("aarch64", "x86_64"))),
    ("labels it has", requirements(1.0, labels={"zone": "a", "disk": "ssd"})),
    ("a whole device that is free", requirements(1.0, devices={"gpu": 1.0})),
    ("the share that is left", requirements(1.0, devices={"gpu": 0.5})),
    ("nothing at all", requirements(0.0)),
]


@pytest.mark.parametrize(("what", "needs"), FITS, ids=[row[0] for row in FITS])
def test_a_node_fits_a_task_that_wants(what: str, needs: Requirements) -> None:
    h = Harness().node("a", labels={"zone": "a", "disk": "ssd"}, devices={"gpu": 2})
    h.submit("there", needs=requirements(2.0, 4 * GIB, devices={"gpu": 0.5}))
    h.submit("t", needs=needs)
    assert h.where("t") == "a"


def test_a_share_goes_to_the_fullest_device_with_room() -> None:
    h = Harness().node("a", devices={"gpu": 3})
    for name, share in (("t0", 0.3), ("t1", 0.6), ("t2", 0.5), ("t3", 0.1)):
        h.submit(name, needs=requirements(0.0, devices={"gpu": share}))
    granted = [h.placements[name][0].devices for name in ("t0", "t1", "t2", "t3")]
    assert granted == [((300, 0, 0),), ((600, 0, 0),), ((0, 500, 0),), ((100, 0, 0),)]


def test_a_whole_device_is_one_nobody_shares() -> None:
    h = Harness().node("a", devices={"gpu": 2})
    h.submit("share", needs=requirements(0.0, devices={"gpu": 0.1}))
    h.submit("whole", needs=requirements(0.0, devices={"gpu": 1.0}))
    h.submit("other", needs=requirements(0.0, devices={"gpu": 1.0}))
    assert h.placements["whole"][0].devices == ((0, 1000),)
    assert h.where("other") is None
    h.finish("share")
    assert h.placements["other"][0].devices == ((1000, 0),)


def test_devices_are_returned_however_a_task_leaves() -> None:
    h = Harness().node("a", devices={"gpu": 1})
    needs = requirements(0.0, devices={"gpu": 1.0})
    for name, leave in (("t0", h.finish), ("t1", h.fail), ("t2", h.evicted), ("t3", h.place_failed)):
        h.submit(name, needs=needs)
        assert h.where(name) == "a"
        leave(name)
    assert h.engine.ledger.index.nodes["a"].devices == ((0,),)


# -- watts -----------------------------------------------------------------------------------------------------------


def test_the_nodes_cap_counts_what_is_there_already() -> None:
    h = Harness().node("a", cap_w=45.0)
    for name in ("t0", "t1", "t2"):
        h.submit(name)
    assert [h.where(name) for name in ("t0", "t1", "t2")] == ["a", "a", None]
    h.finish("t0")
    assert h.where("t2") == "a"


def test_a_node_with_a_cap_and_without_a_curve_takes_nothing() -> None:
    h = Harness().node("a", WITHOUT_CURVE, cap_w=100.0)
    h.submit("t")
    assert h.why("t").candidates[0].reason == Reason.POWER_UNKNOWN


def test_a_tdp_is_not_compared_with_all_of_the_draw_at_the_plug() -> None:
    hot = msgspec.structs.replace(machine("hot", tdp_w=45.0), quantity="wall")
    h = Harness(MarginalEnergy(tdp=True)).node("a", hot)
    for name in ("t0", "t1", "t2"):
        h.submit(name)
    assert h.where("t2") == "a"


def test_tdp_counts_only_if_the_policy_wants_it() -> None:
    hot = machine("hot", tdp_w=45.0)
    for tdp, expected in ((False, "a"), (True, None)):
        h = Harness(MarginalEnergy(tdp=tdp)).node("a", hot)
        for name in ("t0", "t1", "t2"):
            h.submit(name)
        assert h.where("t2") == expected
    assert h.why("t2").candidates[0].reason == Reason.TDP


def test_the_clusters_cap_counts_idle_nodes_and_all_tasks() -> None:
    h = Harness().node("a").node("b")
    h.cap(61.0)
    for name in ("t0", "t1", "t2"):
        h.submit(name)
    assert [h.where(name) is not None for name in ("t0", "t1", "t2")] == [True, True, False]
    assert h.reason("t2") == Reason.CLUSTER_WATTS
    h.finish("t0")
    assert h.where("t2") is not None


def test_under_a_cluster_cap_the_dearer_node_that_still_fits_is_not_needed_when_a_cheaper_one_does() -> None:
    h = Harness().node("a", CONCAVE).node("b", CONVEX)
    h.cap(46.0)
    h.submit("t")
    assert h.where("t") == "b"


def test_a_cluster_cap_with_a_node_nobody_knows_the_draw_of_lets_nothing_run() -> None:
    h = Harness().node("a").node("b", WITHOUT_CURVE)
    h.cap(1000.0)
    h.submit("t")
    assert h.where("t") is None
    h.lose("b")
    assert h.where("t") == "a"


# -- the 80% rule ----------------------------------------------------------------------------------------------------


def test_under_the_80_percent_rule_five_tasks_share_four_cores() -> None:
    h = Harness(MarginalEnergy(guarantee=0.8)).node("a")
    for number in range(6):
        h.submit(f"t{number}")
    assert [h.where(f"t{number}") for number in range(6)] == ["a"] * 5 + [None]
    assert h.placements["t0"][0].guarantee == 0.8
    assert h.engine.ledger.index.nodes["a"].allocated == 4000
    assert h.engine.ledger.index.nodes["a"].demand == 5000


def test_what_was_guaranteed_is_given_back_exactly() -> None:
    h = Harness(MarginalEnergy(guarantee=0.333)).node("a")
    for number in range(9):
        h.submit(f"t{number}", needs=requirements(0.777))
    for number in range(9):
        h.finish(f"t{number}")
    node = h.engine.ledger.index.nodes["a"]
    assert (node.demand, node.allocated) == (0, 0)


# -- variants --------------------------------------------------------------------------------------------------------

BUILDS = (
    variant("cuda", devices={"gpu": 1.0}, seconds={"linear": 2.0}),
    variant("neon", arch=("aarch64",), seconds={"arm": 30.0}),
    variant("avx", arch=("x86_64",), seconds={"linear": 8.0}),
)


def build_of(h: Harness, task: str) -> str:
    return h.placements[task][-1].variant


def test_the_decision_names_the_build_for_the_nodes_architecture() -> None:
    h = Harness().node("a", ARM).function(variants=BUILDS)
    h.submit("t")
    assert build_of(h, "t") == "neon"


def test_the_faster_build_is_taken_where_both_run() -> None:
    h = Harness().node("a", devices={"gpu": 1}).function(variants=BUILDS)
    h.submit("t")
    assert build_of(h, "t") == "cuda"


def test_when_the_device_is_taken_the_slower_build_is() -> None:
    h = Harness().node("a", devices={"gpu": 1}).function(variants=BUILDS)
    h.submit("t")
    h.submit("u")
    assert build_of(h, "u") == "avx"


def test_a_build_whose_run_time_is_unknown_comes_last() -> None:
    h = Harness().node("a").function(variants=(variant("new"), variant("old", seconds={"linear": 900.0})))
    h.submit("t")
    assert build_of(h, "t") == "old"


def test_a_build_whose_run_time_is_unknown_comes_last_where_power_is_unknown_too() -> None:
    h = Harness().node("a", WITHOUT_CURVE)
    h.function(variants=(variant("new"), variant("old", seconds={"without-curve": 900.0})))
    h.submit("t")
    assert build_of(h, "t") == "old"


def test_among_builds_of_unknown_run_time_the_first_declared_is_taken() -> None:
    h = Harness().node("a").function(variants=(variant("z"), variant("a")))
    h.submit("t")
    assert build_of(h, "t") == "z"


def test_a_function_none_of_whose_builds_runs_here_waits() -> None:
    h = Harness().node("a").function(variants=(variant("neon", arch=("aarch64",)),))
    h.submit("t")
    assert h.reason("t") == Reason.NEVER_FITS
    assert h.why("t").candidates[0].reason == Reason.ARCHITECTURE
    h.node("b", ARM)
    assert h.where("t") == "b"


# -- unknowns are never good -----------------------------------------------------------------------------------------


def test_a_machine_without_a_curve_ranks_last_even_if_the_run_time_is_unknown_too() -> None:
    h = Harness().node("a", WITHOUT_CURVE).node("b", LINEAR)
    h.submit("t")
    assert h.where("t") == "b"


def test_a_machine_without_a_curve_is_taken_if_there_is_no_other_and_its_cost_is_unknown() -> None:
    h = Harness().node("a", WITHOUT_CURVE)
    placed = h.submit("t")[0]
    assert isinstance(placed, Place)
    assert placed.cost is None


# -- what is asked for must make sense -------------------------------------------------------------------------------


@pytest.mark.parametrize("amount", [float("inf"), float("nan"), -1.0, 0.0, 1.5, 0.0001])
def test_an_amount_of_devices_that_makes_no_sense_is_refused(amount: float) -> None:
    h = Harness().node("a", devices={"gpu": 2})
    with pytest.raises(EventRefused, match=r"devices\.gpu"):
        h.submit("t", needs=requirements(1.0, devices={"gpu": amount}))
    with pytest.raises(EventRefused, match=r"variants\.x\.devices\.gpu"):
        h.function("g", variants=(variant("x", devices={"gpu": amount}),))
