"""Nodes that vanish and come back."""

from collections.abc import Callable

import pytest

from wattloom.policies.fifo import Fifo
from wattloom.policies.spread import Spread
from wattloom.scheduling.events import CancelRequested
from wattloom.simulation.build import trial_of
from wattloom.simulation.loop import Simulation
from wattloom.simulation.result import Result
from wattloom.simulation.scenario import parse
from wattloom.simulation.trial import Trial

Run = Callable[..., Result]


def lost(at: float, back_after: float | None, seconds: float = 10, function: str = "", node: str = "n") -> str:
    return f"""
    [[nodes]]
    machine = "plain"
    name = "n"

    [functions.f]
    work_s = {seconds}
    {function}

    [[arrivals]]
    kind = "at-once"
    count = 1
    functions = {{ f = 1 }}

    [[faults]]
    node = "{node}"
    at_s = {at}
    {"" if back_after is None else f"back_after_s = {back_after}"}
    """


def test_an_idempotent_task_starts_again_when_its_node_is_back(run: Run) -> None:
    result = run(lost(5, 10))
    assert (result.tasks.finished, result.tasks.failed) == (1, 0)
    assert result.makespan_s == pytest.approx(25.0)
    # The lost node draws nothing for ten seconds; the work it had done was in vain.
    assert result.energy.idle == pytest.approx(10 * 5 + 10 * 10)
    assert result.energy.active == pytest.approx(12 * 5 + 12 * 10)
    assert result.utilisation == pytest.approx(15 / (2 * 25))
    assert result.wait_s.p50 == 0.0


def test_a_task_that_must_not_run_twice_ends_with_an_unknown_outcome(run: Run) -> None:
    result = run(lost(5, 10, function="idempotent = false"))
    assert (result.tasks.finished, result.tasks.failed, result.tasks.waiting) == (0, 1, 0)
    assert result.makespan_s == pytest.approx(5.0)


def test_a_task_fails_when_its_retries_are_used_up(run: Run) -> None:
    text = lost(5, 1, function="infrastructure_retries = 1") + '[[faults]]\nnode = "n"\nat_s = 8\nback_after_s = 1'
    result = run(text)
    assert (result.tasks.finished, result.tasks.failed) == (0, 1)
    assert result.makespan_s == pytest.approx(8.0)


def test_without_its_node_a_task_waits(run: Run) -> None:
    result = run(lost(5, None))
    assert (result.tasks.finished, result.tasks.waiting) == (0, 1)


def test_the_task_goes_on_elsewhere(run: Run) -> None:
    text = lost(5, None, node="n-1").replace('name = "n"', 'name = "n"\ncount = 2')
    result = run(text)
    assert (result.tasks.finished, result.makespan_s) == pytest.approx((1, 15.0))


def test_an_end_announced_before_the_loss_does_not_happen_after_the_return(run: Run) -> None:
    """The first attempt would have ended at 100 s; the second begins at 6 s and ends at 106 s."""
    assert run(lost(5, 1, seconds=100)).makespan_s == pytest.approx(106.0)


def test_faults_may_overlap(run: Run) -> None:
    text = lost(5, 20) + '[[faults]]\nnode = "n"\nat_s = 7\nback_after_s = 1'
    result = run(text)
    assert (result.tasks.finished, result.makespan_s) == pytest.approx((1, 18.0))


def test_a_node_lost_while_waking_gives_its_tasks_back(run: Run) -> None:
    text = lost(2, 10).replace('"plain"', '"smt"').replace('name = "n"', 'name = "n"\nasleep = true')
    result = run(text)
    assert result.makespan_s == pytest.approx(12.0 + 10.0)
    assert result.energy.wake == pytest.approx(20.0 * 2)


def test_energy_is_counted_as_long_as_nodes_change_while_a_task_waits_in_vain(run: Run) -> None:
    """The huge task never fits; the node vanishes at 50 s and the run ends then."""
    text = (
        lost(50, None)
        + """
    [functions.huge]
    cpu = 100
    work_s = 1
    [[arrivals]]
    kind = "at-once"
    count = 1
    functions = { huge = 1 }
    """
    )
    result = run(text)
    assert (result.makespan_s, result.tasks.waiting) == pytest.approx((10.0, 1))
    assert result.energy.idle == pytest.approx(500.0)


def _trial(text: str) -> Trial:
    machine = '[machines.plain]\narch = "x86_64"\ncores = 2\ncores_watts = [[0, 10], [1, 22], [2, 30]]\n'
    return trial_of(parse('name = "test"\n' + machine + text, "test"), 0)


def test_a_cancelled_task_leaves_its_node_and_is_not_counted_as_finished() -> None:
    text = lost(1000, None).replace("count = 1", "count = 3").replace('name = "n"', 'name = "n"\ncpu = 2')
    trial = _trial(text)
    trial.happenings.insert(0, CancelRequested(4.0, "t1"))
    result = Simulation(trial, Fifo()).run()
    # The third task takes the place of the first at 4 s.
    assert (result.tasks.finished, result.tasks.failed) == (2, 1)
    assert result.makespan_s == pytest.approx(14.0)


def test_a_cancelled_task_that_waits_ends_at_once() -> None:
    text = lost(1000, None).replace("count = 1", "count = 3").replace('name = "n"', 'name = "n"\ncpu = 2')
    trial = _trial(text)
    trial.happenings.insert(0, CancelRequested(4.0, "t3"))
    result = Simulation(trial, Spread()).run()
    assert (result.tasks.finished, result.tasks.failed, result.makespan_s) == pytest.approx((2, 1, 10.0))
