"""One or two nodes, worked out by hand."""

from collections.abc import Callable

import pytest

from wattloom.policies.exec_capacity import ExecCapacity
from wattloom.policies.fifo import Fifo
from wattloom.policies.protocol import Policy
from wattloom.policies.spread import Spread
from wattloom.simulation.result import Result

Run = Callable[..., Result]


def at_once(machine: str, tasks: int, cpu: float = 8, seconds: float = 10) -> str:
    return f"""
    [[nodes]]
    machine = "{machine}"
    name = "n"
    cpu = {cpu}

    [functions.f]
    work_s = {seconds}

    [[arrivals]]
    kind = "at-once"
    count = {tasks}
    functions = {{ f = 1 }}
    """


@pytest.mark.parametrize(
    ("machine", "tasks", "makespan", "watts"),
    [
        pytest.param("smt", 1, 10.0, 20.0, id="one core of two"),
        pytest.param("smt", 2, 10.0, 30.0, id="all cores, none shared"),
        pytest.param("smt", 3, 10.0 * 3 / (2 + 1 / 3), 32.0, id="one core shared by two: between alone and 1.5"),
        pytest.param("smt", 4, 15.0, 34.0, id="every core shared by two: 1.5 times as long"),
        pytest.param("smt", 8, 30.0, 34.0, id="twice the threads: twice that, at the same draw"),
        pytest.param("plain", 2, 10.0, 30.0, id="without SMT, all cores"),
        pytest.param("plain", 3, 15.0, 30.0, id="without SMT, three tasks share two cores fairly"),
        pytest.param("plain", 8, 40.0, 30.0, id="without SMT, eight tasks"),
    ],
)
def test_equal_tasks_at_once(run: Run, machine: str, tasks: int, makespan: float, watts: float) -> None:
    result = run(at_once(machine, tasks))
    assert result.makespan_s == pytest.approx(makespan)
    assert result.energy.idle == pytest.approx(10.0 * makespan)
    assert result.energy.active == pytest.approx((watts - 10.0) * makespan)
    assert result.energy.sleep == result.energy.wake == result.energy.scheduler == 0.0


def test_the_power_curve_is_interpolated_between_its_points(run: Run) -> None:
    result = run(at_once("plain", 1).replace("work_s = 10", "work_s = 10\ncpu = 1.5"))
    assert result.energy.active == pytest.approx((22 + 0.5 * 8 - 10) * 10.0)


def test_tasks_that_want_less_than_a_core_add_up(run: Run) -> None:
    result = run(at_once("plain", 4).replace("work_s = 10", "work_s = 10\ncpu = 0.25"))
    assert (result.makespan_s, result.energy.active) == pytest.approx((10.0, 120.0))


def test_tasks_that_want_no_cpu_take_their_time_all_the_same(run: Run) -> None:
    text = at_once("plain", 1).replace("work_s = 10", "work_s = 10\ncpu = 0")
    later = '\n[[arrivals]]\nkind = "at-once"\nstart_s = 4\ncount = 1\nfunctions = { f = 1 }'
    result = run(text + later)
    assert (result.makespan_s, result.energy.active, result.utilisation) == pytest.approx((14.0, 0.0, 0.0))


def test_when_short_tasks_leave_the_long_one_speeds_up(run: Run) -> None:
    """Three of 10 s and one of 20 s on two cores: half speed until 20 s, then the rest of the long one alone."""
    result = run(
        at_once("plain", 3)
        + """
        [functions.long]
        work_s = 20
        [[arrivals]]
        kind = "at-once"
        count = 1
        functions = { long = 1 }
        """
    )
    assert result.makespan_s == pytest.approx(30.0)
    assert result.energy.active == pytest.approx(20.0 * 20.0 + 12.0 * 10.0)
    assert result.utilisation == pytest.approx((2 * 20 + 1 * 10) / (2 * 30))
    assert result.slowdown.p50 == pytest.approx(2.0)


def test_a_later_task_slows_the_earlier_one_down(run: Run) -> None:
    """On one core's worth of room each: 2 + 1 tasks on two cores, the third from 5 s on."""
    result = run(
        at_once("plain", 2)
        + """
        [[arrivals]]
        kind = "at-once"
        start_s = 5
        count = 1
        functions = { f = 1 }
        """
    )
    # Two have 5 s left at 5 s, at 2/3 of the speed: 12.5 s. The third has done 5 s by then and is alone: 17.5 s.
    assert result.makespan_s == pytest.approx(17.5)
    assert result.energy.active == pytest.approx(20.0 * 12.5 + 12.0 * 5.0)


FAST = """
[machines.fast]
arch = "x86_64"
cores = 1
speed = 2.0
"""


def test_speed_divides_work_and_given_seconds_are_not_scaled(run: Run) -> None:
    assert run(FAST + at_once("fast", 1)).makespan_s == pytest.approx(5.0)
    given = at_once("fast", 1).replace("work_s = 10", "work_s = 10\nseconds = { fast = 7 }")
    assert run(FAST + given).makespan_s == pytest.approx(7.0)


# -- cold starts -------------------------------------------------------------------------------------------------------


def cold(*starts: float, keep: float = 5) -> str:
    text = f"""
    [[nodes]]
    machine = "plain"
    name = "n"

    [functions.f]
    work_s = 10
    cold_start_s = 3
    keep_alive_s = {keep}
    """
    for start in starts:
        text += f"""
        [[arrivals]]
        kind = "at-once"
        start_s = {start}
        count = 1
        functions = {{ f = 1 }}
        """
    return text


@pytest.mark.parametrize(
    ("starts", "keep", "makespan", "busy"),
    [
        pytest.param((0,), 5, 13.0, 13.0, id="the first call is cold"),
        pytest.param((0, 15), 5, 25.0, 23.0, id="a call within the keep-alive is warm"),
        pytest.param((0, 18), 5, 28.0, 23.0, id="so is one at its very end"),
        pytest.param((0, 19), 5, 32.0, 26.0, id="a later one is cold again"),
        pytest.param((0, 13), 0, 26.0, 26.0, id="without keep-alive every call is cold"),
        pytest.param((0, 15, 16), 5, 29.0, 13.0 + 10.0 + 13.0, id="one kept instance serves one call at a time"),
    ],
)
def test_cold_starts(run: Run, starts: tuple[float, ...], keep: float, makespan: float, busy: float) -> None:
    result = run(cold(*starts, keep=keep))
    assert result.makespan_s == pytest.approx(makespan)
    assert result.utilisation == pytest.approx(busy / (2 * makespan))


def test_a_cold_start_on_a_shared_core_takes_its_share_of_longer(run: Run) -> None:
    text = at_once("smt", 4).replace("work_s = 10", "work_s = 10\ncold_start_s = 2")
    assert run(text).makespan_s == pytest.approx(1.5 * 12.0)


# -- sleep -------------------------------------------------------------------------------------------------------------


def test_an_idle_node_sleeps_and_wakes_for_a_task(run: Run, sleepy: Policy) -> None:
    text = at_once("smt", 1).replace("count = 1", "count = 1\nstart_s = 20")
    result = run(text, sleepy)
    # Idle to 5 s, asleep to 20, waking to 25, at work to 35.
    assert result.makespan_s == pytest.approx(35.0)
    assert result.energy.idle == pytest.approx(10 * 5 + 10 * 10)
    assert result.energy.sleep == pytest.approx(1 * 15)
    assert result.energy.wake == pytest.approx(100)
    assert result.energy.active == pytest.approx(10 * 10)
    assert result.wait_s.p50 == pytest.approx(5.0)


def test_a_node_may_begin_asleep(run: Run) -> None:
    result = run(at_once("smt", 1).replace("cpu = 8", "cpu = 8\nasleep = true"))
    assert (result.makespan_s, result.energy.wake, result.energy.sleep) == pytest.approx((15.0, 100.0, 0.0))


QUICK = """
[machines.quick]
arch = "x86_64"
cores = 1
cores_watts = [[0, 10], [1, 20]]
sleep_w = 1
wake_j = 50
"""


def test_waking_in_no_time_still_costs_its_joules(run: Run) -> None:
    result = run(QUICK + at_once("quick", 1).replace("cpu = 8", "cpu = 8\nasleep = true"))
    assert (result.makespan_s, result.energy.wake) == pytest.approx((10.0, 50.0))
    assert integral(result) == pytest.approx(result.energy.total)


def integral(result: Result) -> float:
    """Joules under the power trace."""
    begins = [begin for begin, _ in result.power]
    ends = [*begins[1:], result.makespan_s]
    return sum(watts * (end - begin) for (begin, watts), end in zip(result.power, ends, strict=True))


def test_kept_instances_do_not_outlive_a_sleep(run: Run, sleepy: Policy) -> None:
    text = cold(0, 100, keep=1000).replace('"plain"', '"smt"')
    result = run(text, sleepy)
    assert result.makespan_s == pytest.approx(100 + 5 + 3 + 10)


# -- limits ------------------------------------------------------------------------------------------------------------


def test_a_nodes_cap_holds_tasks_back(run: Run) -> None:
    """Two tasks would draw 30 W; under 25 W they run one after the other."""
    result = run(at_once("plain", 2).replace("cpu = 8", "cpu = 8\ncap_w = 25"))
    assert result.makespan_s == pytest.approx(20.0)
    assert result.energy.active == pytest.approx(2 * 12 * 10)
    assert max(watts for _, watts in result.power) <= 25.0


def test_the_clusters_cap_counts_idle_nodes_too(run: Run) -> None:
    """Two nodes idle at 10 W each; each task adds 12 W; 44 W let two run at a time."""
    text = at_once("plain", 3).replace('name = "n"', 'name = "n"\ncount = 2')
    result = run(text, Spread(), top="power_cap_w = 44")
    assert result.makespan_s == pytest.approx(20.0)
    assert max(watts for _, watts in result.power) <= 44.0 + 1e-9


def test_a_task_that_never_fits_waits_and_the_run_ends(run: Run) -> None:
    text = (
        at_once("plain", 2)
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
    for policy in (Fifo(), Spread(), ExecCapacity()):
        result = run(text, policy)
        assert (result.tasks.finished, result.tasks.waiting) == (2, 1)
        assert result.makespan_s == pytest.approx(10.0)


def test_the_schedulers_own_energy_is_what_deciding_and_reading_cost(run: Run) -> None:
    assert run(at_once("plain", 2)).energy.scheduler == 0.0
    costly = run(at_once("plain", 2), top="scheduler = { seconds_per_proposal = 0.5, watts = 4 }")
    assert costly.energy.scheduler == pytest.approx(2 * 0.5 * 4.0)
    policy = ExecCapacity()
    policy.reading_interval_s = 4.0
    reading = run(at_once("plain", 2), policy, top="scheduler = { seconds_per_proposal = 0, seconds_per_reading = 1 }")
    assert reading.energy.scheduler == pytest.approx(2 * 10.0), "readings of the one node at 4 and 8 s"
