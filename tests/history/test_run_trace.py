"""A run's trace: every record says in rows what has changed, whoever reads them."""

from pathlib import Path
from typing import get_args

import pytest
from tests.beds.recording import Backend

from wattloom.cluster.node_class import Mode
from wattloom.history import run_trace
from wattloom.history.log import VERSION, Header, Log, LogWriter
from wattloom.history.replayer import Fold
from wattloom.history.run_trace import (
    OTHER_FAILURES,
    OWN_FAILURES,
    RECORDS,
    CameFromOutside,
    LoadChanged,
    NodeAdded,
    NodeFrequencySet,
    NodeModeSet,
    NodeRemoved,
    NodeUpdated,
    RanAs,
    RunTrace,
    TraceRow,
)
from wattloom.policies.fifo import Fifo
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import AnyInstruction, Place, Sleep, Wake
from wattloom.testing import builders
from wattloom.testing.builders import CONCAVE, LINEAR, SLEEPER, requirements

EPOCH = 1_700_000_000.0
SAY_NOTHING_OF_IT = {
    "FunctionLearned", "FunctionsForgotten", "InstanceGone", "InstanceReady", "TaskLeaving", "TaskProgressed",
    "TaskResized", "Tick",  # events
    "Evict", "Migrate", "Prepare", "Release", "Resize", "SetFrequency", "Wait",  # instructions: what comes of them does
}  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "run.log"


def traced(path: Path) -> tuple[RunTrace, list[TraceRow]]:
    trace = RunTrace(Fold(Log(path), None))
    return trace, list(trace.rows())


def of(b: Backend, log: Path) -> tuple[RunTrace, list[TraceRow]]:
    return traced(b.write(log))


def written(path: Path, *records: ev.AnyEvent | AnyInstruction) -> Path:
    """A log of records that no engine was asked about, on nodes a and b."""
    told: list[tuple[ev.AnyEvent, list[AnyInstruction]]] = [
        (ev.MachineDefined(0.0, SLEEPER), []),
        (ev.FunctionDefined(0.0, builders.function()), []),
        (ev.NodeJoined(0.0, builders.node("a", SLEEPER)), []),
        (ev.NodeJoined(0.0, builders.node("b", SLEEPER, asleep=True)), []),
    ]
    for record in records:
        if isinstance(record, ev.Event):
            told.append((record, []))
        else:
            told[-1][1].append(record)
    with path.open("wb") as file:
        writer = LogWriter(file, Header(VERSION, "fifo", "test"))
        for event, instructions in told:
            writer.write(event, instructions)
    return path


def test_every_kind_of_record_says_what_ran_or_is_known_to_say_nothing_of_it() -> None:
    kinds = {kind.__name__ for kind in (*get_args(ev.AnyEvent), *get_args(AnyInstruction))}
    assert {kind.__name__ for kind in RECORDS} == kinds - SAY_NOTHING_OF_IT


def test_a_task_loads_its_node_from_its_placement_to_its_end(log: Path) -> None:
    b = Backend(Fifo(), time=EPOCH)
    b.node("a", LINEAR)
    b.after(3.0).submit("t", needs=requirements(2.0))
    b.after(1.0).start("t")
    b.after(10.0).finish("t", 9.0)
    trace, rows = of(b, log)
    assert [type(row) for row in rows] == [NodeAdded, LoadChanged, LoadChanged]
    assert rows[1:] == [LoadChanged(3.0, "a", "t", 2000), LoadChanged(14.0, "a", "t", -2000)]
    assert (trace.arrivals["t"].time, trace.waits, trace.ends) == (3.0, {"t": 1.0}, {"t": 14.0})
    assert (trace.seconds, trace.ran_as) == ({"t": 9.0}, {"t": RanAs("default", "linear")})
    assert (trace.decisions, trace.last_end, trace.used_machines) == (1, 14.0, {"linear"})


def test_a_start_that_was_not_reported_is_known_by_the_end(log: Path) -> None:
    b = Backend()
    b.node("a")
    b.submit("t")
    b.after(10.0).finish("t", 4.0)
    assert of(b, log)[0].waits == {"t": 6.0}


def test_who_stood_behind_a_task_has_its_share_after_it(log: Path) -> None:
    first, second = (ev.TaskSubmitted(1.0, builders.task(name)) for name in "tu")
    path = written(
        log,
        first,
        Place("t", 1, "a", "default", 0.0),
        second,
        Place("u", 1, "a", "default", None, behind="t"),
        ev.TaskFinished(5.0, "t", 1),
        ev.TaskFinished(7.0, "u", 1),
    )
    loads = [row for row in traced(path)[1] if isinstance(row, LoadChanged)]
    assert loads == [LoadChanged(1.0, "a", "t", 1000), LoadChanged(7.0, "a", "u", -1000)]


def test_a_task_that_moves_or_has_other_needs_loads_otherwise(log: Path) -> None:
    bigger = builders.task("t", needs=requirements(3.0))
    path = written(
        log,
        ev.TaskSubmitted(1.0, builders.task("t")),
        Place("t", 1, "a", "default", 0.0),
        ev.TaskChanged(2.0, bigger),
        ev.TaskMigrated(3.0, "t", 1, "b"),
        ev.TaskFailed(4.0, "t", 1, "evicted"),
    )
    trace, rows = traced(path)
    assert rows[2:] == [
        LoadChanged(1.0, "a", "t", 1000),
        LoadChanged(2.0, "a", "t", 2000),
        LoadChanged(3.0, "a", "t", -3000),
        LoadChanged(3.0, "b", "t", 3000),
        LoadChanged(4.0, "b", "t", -3000),
    ]
    assert trace.changed == {"t"}
    assert not any(trace.incidents.values())


def test_a_task_that_is_found_wakes_its_node_up_once(log: Path) -> None:
    path = written(
        log,
        ev.TaskFound(1.0, builders.task("t"), "b"),
        ev.TaskFound(2.0, builders.task("u"), "b"),
        ev.TaskFound(3.0, builders.task("v"), "b", behind="u"),
    )
    trace, rows = traced(path)
    assert rows[2:] == [
        NodeModeSet(1.0, "b", Mode.AWAKE),
        LoadChanged(1.0, "b", "t", 1000),
        LoadChanged(2.0, "b", "u", 1000),
    ]
    assert (trace.found, list(trace.arrivals)) == (3, ["t", "u", "v"])


def test_a_node_that_is_lost_takes_all_that_ran_there_along(log: Path) -> None:
    b = Backend()
    b.node("a")
    b.submit("t", idempotent=True)
    b.after(2.0).lose("a")
    b.after(1.0)
    b.node("b")
    _, rows = of(b, log)
    assert [row for row in rows if not isinstance(row, NodeAdded)] == [
        LoadChanged(0.0, "a", "t", 1000),
        NodeRemoved(2.0, "a"),
        LoadChanged(b.time, "b", "t", 1000),
    ]


def test_nodes_wake_fall_asleep_and_fail_to(log: Path) -> None:
    path = written(
        log,
        ev.Tick(1.0),
        Sleep("a"),
        ev.InstructionFailed(2.0, "sleep", node="a"),
        Wake("b"),
        ev.NodeAwake(3.0, "b"),
        ev.NodeAsleep(4.0, "b"),
        Wake("b"),
        ev.InstructionFailed(5.0, "wake", node="b"),
        ev.FrequencyChanged(6.0, "a", 0.5),
    )
    trace, rows = traced(path)
    assert rows[2:] == [
        NodeModeSet(1.0, "a", Mode.ASLEEP),
        NodeModeSet(2.0, "a", Mode.AWAKE),
        NodeModeSet(2.0, "b", Mode.WAKING),
        NodeModeSet(3.0, "b", Mode.AWAKE),
        NodeModeSet(4.0, "b", Mode.ASLEEP),
        NodeModeSet(4.0, "b", Mode.WAKING),
        NodeModeSet(5.0, "b", Mode.ASLEEP),
        NodeFrequencySet(6.0, "a", 0.5),
    ]
    assert trace.incidents == {run_trace.FELL_ASLEEP: 1, OWN_FAILURES: 0, OTHER_FAILURES: 2}


def test_what_comes_from_outside_is_handed_on_at_its_time_in_the_trace(log: Path) -> None:
    b = Backend(time=EPOCH)
    b.tell(ev.CapChanged(EPOCH, 500.0))
    b.after(5.0).tell(ev.CapChanged(b.time, 300.0))
    b.tell(ev.SignalChanged(b.time, "carbon", 200.0, ((b.time + 10.0, 100.0),)))
    b.tell(ev.PlanChanged(b.time, "0a"))
    trace, rows = of(b, log)
    assert trace.cap_w == 500.0
    assert rows == [
        CameFromOutside(5.0, ev.CapChanged(5.0, 300.0)),
        CameFromOutside(5.0, ev.SignalChanged(5.0, "carbon", 200.0, ((15.0, 100.0),))),
        CameFromOutside(5.0, ev.PlanChanged(5.0, "0a")),
    ]


def test_a_changed_node_is_a_row_and_what_runs_there_goes_on(log: Path) -> None:
    b = Backend()
    b.machine(CONCAVE).node("a", LINEAR)
    b.submit("t")
    b.after(2.0).change(builders.node("a", CONCAVE))
    b.after(2.0).finish("t", 4.0)
    trace, rows = of(b, log)
    assert [type(row) for row in rows] == [NodeAdded, LoadChanged, NodeUpdated, LoadChanged]
    assert trace.ran_as == {"t": RanAs("default", "linear")}


def test_meters_and_failures_are_counted(log: Path) -> None:
    b = Backend()
    b.node("a")
    b.submit("t", retries=1)
    b.start("t")
    b.after(1.0).fail("t")
    b.tell(ev.UsageArrived(b.time, "a", 1.0, 30.0, 20.0, 10.0))
    trace, _ = of(b, log)
    assert trace.incidents[OWN_FAILURES] == 1
    assert trace.metered_j == pytest.approx(30.0)
    assert trace.metered_as == {"estimated"}
