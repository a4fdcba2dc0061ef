"""The stages of a task's life: one table, checked in the one place where a stage changes."""

import ast
from itertools import product
from pathlib import Path

import pytest

import wattloom.scheduling
from wattloom.cluster.node_class import DeviceShare
from wattloom.errors import InvariantBroken
from wattloom.scheduling.state import CHANGES, STAGES, Stage, TaskRecord
from wattloom.testing import builders
from wattloom.testing.harness import Harness
from wattloom.workload.shape import Shape

PLACES = list(product(range(len(STAGES)), repeat=2))


def record_at(stage: int) -> TaskRecord:
    function = builders.function()
    record = TaskRecord(builders.task("t"), Shape(0, function, function.requirements, 0.5, False, 0), 0.0, 1)
    record.stage = stage
    return record


@pytest.mark.parametrize(("before", "after"), PLACES, ids=STAGES.__getitem__)
def test_a_stage_changes_as_the_table_says_or_not_at_all(before: int, after: int) -> None:
    record = record_at(before)
    if after in CHANGES[before]:
        record.enter(after)
        assert record.stage == after
    else:
        with pytest.raises(InvariantBroken, match=f"from {STAGES[before]} to {STAGES[after]}"):
            record.enter(after)
        assert record.stage == before


def test_every_stage_but_the_last_leads_on_and_each_can_be_reached() -> None:
    assert [stage for stage in range(len(STAGES)) if not CHANGES[stage]] == [Stage.ENDED]
    assert {after for changes in CHANGES.values() for after in changes} == set(range(len(STAGES))) - {Stage.NEW}
    assert all(Stage.ENDED in changes for stage, changes in CHANGES.items() if stage != Stage.ENDED)


def test_no_other_place_changes_a_stage() -> None:
    """`enter` does, and the record is born with one."""
    assigned = []
    for file in sorted(Path(wattloom.scheduling.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            targets = node.targets if isinstance(node, ast.Assign) else []
            targets += [node.target] if isinstance(node, ast.AnnAssign) else []
            assigned += [file.name for each in targets if isinstance(each, ast.Attribute) and each.attr == "stage"]
    assert assigned == ["state.py", "state.py"]


def test_a_task_that_waits_has_no_allocation_and_one_that_was_lost_gets_a_new_one() -> None:
    h = Harness()
    h.submit("t", idempotent=True)
    assert h.record("t").allocation is None
    h.node("a")
    first = h.record("t").holding
    assert (first.node.name, first.attempt, first.number, first.started) == ("a", 1, 1, False)
    h.start("t")
    assert first.started
    h.fail_infrastructure("t")
    again = h.record("t").holding
    assert again is not first
    assert (again.attempt, again.number, again.started) == (2, 2, False)


def test_an_allocation_names_each_device_it_has_a_share_of() -> None:
    h = Harness().node("a", devices={"fpga": 1, "gpu": 3})
    h.submit("t", needs=builders.requirements(devices={"gpu": 2.0}))
    assert h.record("t").holding.devices == (DeviceShare("gpu", 0, 1000), DeviceShare("gpu", 1, 1000))
