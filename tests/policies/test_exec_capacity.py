from collections import Counter
from pathlib import Path

import pytest

import wattloom
from wattloom.cluster.node import Node
from wattloom.errors import PolicyError
from wattloom.history.log import Log
from wattloom.machines.profile import MachineProfile
from wattloom.policies.exec_capacity import ExecCapacity
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import Place
from wattloom.testing.policy_clusters import History
from wattloom.units import GIB
from wattloom.workload.function import Function
from wattloom.workload.requirements import Requirements
from wattloom.workload.task import Task


def machine(name: str, tdp_w: float | None) -> MachineProfile:
    return MachineProfile(
        name, "x86_64", 8, 8, 16 * GIB, watts=((0, 20.0), (8, 100.0)), tdp_w=tdp_w, quantity="package"
    )


def history(*nodes: Node) -> History:
    return History(ExecCapacity()).set_up(nodes, [machine("plain", None), machine("rated", 150.0)])


def test_the_limit_is_the_cap_else_the_tdp_else_the_top_of_the_curve() -> None:
    assert history(Node("a", "plain"), Node("b", "rated")).place(Task("t", "declared")) == "b"
    assert history(Node("a", "plain"), Node("b", "rated", cap_w=90.0)).place(Task("t", "declared")) == "a"


def test_a_reading_replaces_the_forecast() -> None:
    one = history(Node("a", "plain"), Node("b", "plain"))
    one.send(ev.ReadingArrived(0.0, "a", 60.0))
    assert one.place(Task("t0", "declared")) == "b"
    one.send(ev.ReadingArrived(0.0, "a", 5.0))
    assert one.place(Task("t1", "declared")) == "a"


def test_what_was_placed_since_the_reading_counts_with_the_functions_usual_draw() -> None:
    one = history(Node("a", "plain"), Node("b", "plain"))
    one.place(Task("t0", "declared"))
    one.send(ev.ReadingArrived(0.0, "a", 30.0, {"t0": 10.0}))
    one.send(ev.ReadingArrived(0.0, "b", 25.0))
    assert [one.place(Task(f"t{n}", "declared")) for n in (1, 2, 3)] == ["b", "a", "b"]  # 35, then 40, then 45


def test_a_task_is_placed_even_where_no_watts_are_left() -> None:
    one = history(Node("a", "plain"))
    one.send(ev.ReadingArrived(0.0, "a", 500.0))
    assert one.place(Task("t", "declared")) == "a"


def test_meters_are_read_as_often_as_asked() -> None:
    assert ExecCapacity(interval_s=1.0).reading_interval_s == 1.0
    with pytest.raises(PolicyError, match="interval_s"):
        ExecCapacity(interval_s=0.0)


# -- bursts of what was never seen -------------------------------------------------------------------------------------

WITHOUT_CURVE = MachineProfile("bare", "x86_64", 8, 8, 16 * GIB)
SMALL = [Function("small", Requirements(cpu=0.25)), Function("nothing", Requirements(cpu=0.0)), Function("known")]


def burst(machine: MachineProfile, readings: dict[str, float], function: str, cap_w: float | None = None) -> list[int]:
    """How many of 32 tasks go to each of four equal nodes."""
    nodes = [Node(name, machine.name, cap_w=cap_w) for name in "abcd"]
    one = History(ExecCapacity()).set_up(nodes, [machine], SMALL)
    for node, watts in readings.items():
        one.send(ev.ReadingArrived(0.0, node, watts))
    found = Counter(one.place(Task(f"t{n}", function)) for n in range(32))
    return [found[name] for name in "abcd"]


EQUAL = dict.fromkeys("abcd", 20.0)


@pytest.mark.parametrize("function", ["small", "nothing"])
@pytest.mark.parametrize("readings", [{}, EQUAL], ids=["never measured", "measured"])
@pytest.mark.parametrize(
    ("of", "cap_w"),
    [(machine("plain", None), None), (machine("plain", None), 300.0), (WITHOUT_CURVE, None)],
    ids=["curve", "curve and cap", "no curve"],
)
def test_a_burst_of_a_function_nobody_has_seen_spreads_over_equal_nodes(
    of: MachineProfile, cap_w: float | None, readings: dict[str, float], function: str
) -> None:
    assert burst(of, readings, function, cap_w) == [8, 8, 8, 8]


def test_such_a_burst_spreads_though_meters_differ_a_little() -> None:
    """In 31 of 32 cases once the same node: the one whose meter said least."""
    for of in (machine("plain", None), WITHOUT_CURVE):
        found = burst(of, {"a": 20.3, "b": 20.2, "c": 20.1, "d": 20.0}, "small")
        assert max(found) - min(found) <= 1, of.name


def test_a_function_nobody_has_seen_counts_with_the_mean_of_the_others_where_there_is_no_curve() -> None:
    one = History(ExecCapacity()).set_up([Node("a", "bare"), Node("b", "bare")], [WITHOUT_CURVE], SMALL)
    one.place(Task("t", "known"))
    one.send(ev.ReadingArrived(0.0, "a", 60.0, {"t": 12.0}))
    one.send(ev.ReadingArrived(0.0, "b", 50.0))
    one.place(Task("u", "small"))
    assert one.engine.ledger.readings.expected("b") == 62.0


# -- the correction changes a placement -------------------------------------------------------------------------------

THREE = """
name = "three"
forecasts = "declared"
machines.one = { arch = "x86_64", cores = 8, memory_gib = 8, cores_watts = [[0, 20], [8, 100]] }
nodes = [{ machine = "one", name = "a" }, { machine = "one", name = "b" }]
functions.long = { cpu = 2, work_s = 60 }
functions.second = { cpu = 3, work_s = 60 }
functions.third = { cpu = 1, work_s = 60 }
arrivals = [
  { kind = "at-once", count = 1, functions = { long = 1 } },
  { kind = "at-once", count = 1, start_s = 7, functions = { second = 1 } },
  { kind = "at-once", count = 1, start_s = 8, functions = { third = 1 } },
]
"""


def test_in_the_simulator_what_was_placed_and_is_not_measured_changes_a_placement(tmp_path: Path) -> None:
    """Measured at 5 s: a 40 W, with the long task, and b 20 W. The second goes to b and is expected to draw 30 W there,
    so the third goes to a, though b's meter was last seen at 20 W."""
    (tmp_path / "three.toml").write_text(THREE)
    log = tmp_path / "log"
    wattloom.simulate(tmp_path / "three.toml", "exec", log=log)
    assert [place.node for place in Log(log).records() if isinstance(place, Place)] == ["a", "b", "a"]


def test_without_naming_what_they_cover_readings_would_count_the_long_task_twice() -> None:
    for covered, expected in (({"long": 20.0}, "a"), ({}, "b")):
        functions = [Function(name, Requirements(cpu=cpu)) for name, cpu in (("long", 2.0), ("2nd", 3.0), ("3rd", 1.0))]
        one = History(ExecCapacity()).set_up(
            [Node("a", "plain"), Node("b", "plain")], [machine("plain", None)], functions
        )
        one.place(Task("long", "long"))
        one.send(ev.ReadingArrived(5.0, "a", 40.0, covered))
        one.send(ev.ReadingArrived(5.0, "b", 20.0))
        assert one.place(Task("second", "2nd")) == "b"
        assert one.place(Task("third", "3rd")) == expected
