"""A plan as it is carried out here: which nodes, which scale, what is said of it."""

from pathlib import Path

import msgspec
import pytest

from wattloom.errors import InputError
from wattloom.load_testing.carried import HERE, carried_out
from wattloom.local.nodes import nodes_from
from wattloom.machines.this_machine import this_machine
from wattloom.planning.plan import Assignment, Plan, Server

CORES = 2


def test_a_plan_that_fits_is_carried_out_as_it_is(plan: Plan) -> None:
    carried = carried_out(plan, cores=CORES)
    assert carried.scale == 1.0
    assert carried.plan.assignments == plan.assignments
    assert [node.name for node in carried.nodes] == ["x86", "arm"]
    assert any("virtual nodes of 1 core each" in note for note in carried.notes)


def test_a_plan_of_large_servers_is_scaled_and_says_so(plan: Plan) -> None:
    large = msgspec.structs.replace(
        plan,
        assignments=(Assignment("f", "arm", 600.0, 60, 120.0, 10.0), Assignment("g", "arm", 400.0, 40, 80.0, 10.0)),
        servers=tuple(msgspec.structs.replace(each, cores=128) for each in plan.servers),
        demand=(),
    )
    carried = carried_out(large, cores=CORES)
    assert carried.scale == pytest.approx(1 / 100)
    assert [(each.rate, each.cores) for each in carried.plan.assignments] == [(pytest.approx(6.0), 1), (4.0, 1)]
    assert any("0.01 of the plan's" in note for note in carried.notes)
    assert any("share cores" in note for note in carried.notes)


def test_joules_of_an_execution_stay_as_planned_whatever_the_scale(plan: Plan) -> None:
    for scale in (1.0, 0.1):
        part = carried_out(plan, cores=CORES, scale=scale).plan.assignments[0]
        assert part.watts is not None
        assert part.watts / part.rate == pytest.approx(1.2 / 6.0)


def test_a_plan_for_this_machine_has_all_of_it(plan: Plan) -> None:
    here = this_machine()
    own = msgspec.structs.replace(
        plan,
        assignments=(Assignment("f", "mine", 1.0, 1, None, 10.0),),
        servers=(Server(name="mine", machine=here.name, cores=here.cores),),
        demand=(),
    )
    carried = carried_out(own, cores=CORES)
    assert carried.nodes == ()
    assert carried.plan.assignments[0].server == HERE


def test_more_servers_than_cores_are_refused_until_some_are_named(plan: Plan) -> None:
    with pytest.raises(InputError, match="--server"):
        carried_out(plan, cores=1)
    carried = carried_out(plan, cores=1, servers=["arm"])
    assert [each.function for each in carried.plan.assignments] == [plan.assignments[0].function]
    assert any("x86 are left out" in note for note in carried.notes)
    with pytest.raises(InputError, match="is not in the plan"):
        carried_out(plan, cores=1, servers=["nowhere"])


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_that_is_none_is_refused(scale: float, plan: Plan) -> None:
    with pytest.raises(InputError, match="scale"):
        carried_out(plan, cores=CORES, scale=scale)


def test_a_plan_without_functions_is_nothing_to_carry_out(plan: Plan) -> None:
    with pytest.raises(InputError, match="nothing to carry out"):
        carried_out(msgspec.structs.replace(plan, assignments=()), cores=CORES)


def test_the_nodes_can_be_written_to_a_file_and_read_again(plan: Plan, tmp_path: Path) -> None:
    from wattloom.cli.plan_apply import nodes_toml

    carried = carried_out(plan, cores=CORES)
    (tmp_path / "nodes.toml").write_text(nodes_toml(carried))
    again = nodes_from(tmp_path / "nodes.toml")
    assert [(node.name, node.cpu) for node in again] == [("x86", 1.0), ("arm", 1.0)]
    profiles = [node.machine for node in again]
    assert [getattr(each, "watts", None) for each in profiles] == [carried.machines[node.name].watts for node in again]
