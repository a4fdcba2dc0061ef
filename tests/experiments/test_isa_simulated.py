"""Plans of the typical draw, carried out in the simulator: what is planned is what comes of it."""

from pathlib import Path

import pytest
from tests.experiments.documented import PAGE

import wattloom
from wattloom.experiments.isa_runs import POLICIES, in_tasks, plan_of
from wattloom.experiments.isa_scenario import DURATION_S, TASK_S, WORKLOAD, typical_draw
from wattloom.planning.plan import Plan
from wattloom.planning.plan_file import encode_plan
from wattloom.simulation.result import Result
from wattloom.units import JOULES_PER_WATT_HOUR

pytestmark = pytest.mark.slow
DRAW = in_tasks(typical_draw(), TASK_S)


@pytest.fixture(scope="module")
def carried_out(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Plan, Result]]:
    """Each policy's plan, and the run of `isa-mixed` that keeps to it."""
    folder: Path = tmp_path_factory.mktemp("plans")
    found = {}
    for policy in POLICIES:
        plan = plan_of(DRAW, WORKLOAD, policy)
        file = folder / f"{policy}.json"
        file.write_bytes(encode_plan(plan))
        found[policy] = plan, wattloom.simulate("isa-mixed", f"planned:plan={file},wait=inf,sleep=false")
    return found


def test_the_simulator_keeps_every_rate(carried_out: dict[str, tuple[Plan, Result]]) -> None:
    for policy, (_, result) in carried_out.items():
        tasks = result.tasks
        assert (tasks.finished, tasks.failed, tasks.waiting) == (tasks.submitted, 0, 0), policy
        assert result.makespan_s < 1.25 * DURATION_S, policy


def test_what_is_planned_is_what_comes_of_it(carried_out: dict[str, tuple[Plan, Result]]) -> None:
    """Energy of the executions, that is: how long the last ones take is chance."""
    for policy, (plan, result) in carried_out.items():
        assert plan.active_w is not None
        planned_wh = plan.active_w * DURATION_S / JOULES_PER_WATT_HOUR
        assert result.energy.watt_hours()["active"] == pytest.approx(planned_wh, rel=0.04), policy


def test_round_robin_needs_the_most_and_energy_aware_the_least(carried_out: dict[str, tuple[Plan, Result]]) -> None:
    energies = {policy: result.energy.watt_hours()["active"] for policy, (_, result) in carried_out.items()}
    assert max(energies, key=lambda policy: energies[policy]) == "round-robin"
    assert min(energies, key=lambda policy: energies[policy]) == "energy-aware"


def test_the_page_has_both(carried_out: dict[str, tuple[Plan, Result]]) -> None:
    page = PAGE.read_text()
    for policy, (plan, result) in carried_out.items():
        assert plan.active_w is not None
        planned_wh = plan.active_w * DURATION_S / JOULES_PER_WATT_HOUR
        cells = f"{planned_wh:.1f} | {result.energy.watt_hours()['active']:.1f} | {result.makespan_s:.0f} |"
        assert f"| {policy} | {cells}" in page, f"{policy}: {cells}"
