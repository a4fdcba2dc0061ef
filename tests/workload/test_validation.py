"""What is wrong with a task, a function or its requirements is named by its field."""

import msgspec
import pytest

from wattloom.testing.builders import function, requirements, task, variant
from wattloom.workload.requirements import Requirements
from wattloom.workload.shape import Shape
from wattloom.workload.task_problem import task_problem

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("needs", "field"),
    [
        (Requirements(cpu=-0.1), "cpu"),
        (Requirements(cpu=NAN), "cpu"),
        (Requirements(cpu=INF), "cpu"),
        (Requirements(memory=-1), "memory"),
        (Requirements(memory=2**63), "memory"),
        (Requirements(devices=(("gpu", 0.0),)), "devices.gpu"),
        (Requirements(devices=(("gpu", 1.5),)), "devices.gpu"),
        (Requirements(devices=(("gpu", INF),)), "devices.gpu"),
        (Requirements(devices=(("gpu", NAN),)), "devices.gpu"),
        (Requirements(devices=(("gpu", 0.0004),)), "devices.gpu"),
        (Requirements(devices=(("gpu", 1.0), ("gpu", 0.5))), "devices"),
    ],
)
def test_wrong_requirements_are_refused_by_field_alone_in_a_task_and_in_a_function(
    needs: Requirements, field: str
) -> None:
    for problem, prefix in (
        (needs.problem(), ""),
        (task_problem(task("t", needs=needs)), "requirements."),
        (function(needs=needs).problem(), "requirements."),
    ):
        assert problem is not None
        assert problem[0] == prefix + field


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"id": ""}, "id"),
        ({"energy_weight": -0.1}, "energy_weight"),
        ({"energy_weight": NAN}, "energy_weight"),
        ({"deadline_s": -1.0}, "deadline_s"),
        ({"deadline_s": NAN}, "deadline_s"),
        ({"deadline_s": INF}, "deadline_s"),
        ({"defer_s": NAN}, "defer_s"),
        ({"defer_s": INF}, "defer_s"),
        ({"retries": -1}, "retries"),
        ({"infrastructure_retries": -1}, "infrastructure_retries"),
        ({"priority": 10**10}, "priority"),
        ({"after": ("t",)}, "after"),
    ],
)
def test_a_wrong_task_is_refused_by_field(changes: dict[str, object], field: str) -> None:
    problem = task_problem(msgspec.structs.replace(task("t"), **changes))
    assert problem is not None
    assert problem[0] == field


def test_a_wrong_function_is_refused_by_field() -> None:
    assert function("").problem() == ("name", "must not be empty")
    twice = function(variants=(variant("a"), variant("a"))).problem()
    assert twice is not None
    assert twice[0] == "variants"
    for wrong, field in (
        (variant("a", seconds={"m": NAN}), "variants.a.seconds.m"),
        (variant("a", devices={"gpu": NAN}), "variants.a.devices.gpu"),
    ):
        problem = function(variants=(wrong,)).problem()
        assert problem is not None
        assert problem[0] == field


def test_a_shape_counts_in_whole_units() -> None:
    shape = Shape(0, function(variants=(variant("a", devices={"gpu": 0.3333}),)), requirements(0.1 + 0.2), 0.5, False)
    assert shape.cpu == 300
    assert shape.devices == {"a": {"gpu": 333}}


def test_a_build_that_needs_more_of_a_device_than_the_task_gets_more() -> None:
    needs = requirements(1.0, devices={"gpu": 0.25})
    shape = Shape(0, function(variants=(variant("a", devices={"gpu": 1.0}), variant("b"))), needs, 0.5, False)
    assert shape.devices == {"a": {"gpu": 1000}, "b": {"gpu": 250}}
