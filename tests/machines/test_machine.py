"""Speed and power under load."""

from itertools import pairwise

import hypothesis.strategies as st
import pytest
from hypothesis import given

from wattloom.machines.machine import Machine, curve_from_load, throughput
from wattloom.machines.profile import MachineProfile
from wattloom.testing.builders import CONCAVE, LINEAR, SLEEPER, SMT, WITHOUT_CURVE, machine

CORES = st.integers(1, 64)


@st.composite
def profiles(draw: st.DrawFn) -> MachineProfile:
    cores = draw(CORES)
    ways = draw(st.integers(1, 4))
    at = sorted(draw(st.sets(st.floats(0.1, 200.0), max_size=6)))
    idle = draw(st.floats(0.0, 500.0))
    watts = [(0.0, idle), *((point, draw(st.floats(idle, 900.0))) for point in at)]
    slowdown = draw(st.floats(1.0, float(ways))) if ways > 1 else 1.5
    return MachineProfile("m", "x86_64", cores, cores * ways, 0, tuple(watts), smt_slowdown=slowdown)


@given(profiles(), st.lists(st.integers(0, 300_000), min_size=2, max_size=20))
def test_more_demand_never_does_less_work(profile: MachineProfile, demands: list[int]) -> None:
    assert profile.problem() is None
    there = Machine(profile)
    done = [demand * there.speed(demand) for demand in sorted(demands)]
    assert all(a <= b * (1 + 1e-12) for a, b in pairwise(done))


@given(profiles(), st.integers(0, 300_000))
def test_no_task_runs_faster_than_alone_and_none_stands_still(profile: MachineProfile, demand: int) -> None:
    assert 0.0 < Machine(profile).speed(demand) <= 1.0


@given(profiles(), st.integers(1, 10))
def test_beyond_the_hardware_threads_work_is_shared_fairly(profile: MachineProfile, times: int) -> None:
    there = Machine(profile)
    full = profile.threads * 1000
    assert there.speed(full * times) == pytest.approx(there.speed(full) / times)


@given(profiles())
def test_interpolation_is_exact_at_the_points(profile: MachineProfile) -> None:
    """Points at whole millicores: the engine knows no others."""
    points = tuple({round(at, 3): watts for at, watts in profile.watts}.items())
    there = Machine(
        MachineProfile("m", "x", profile.cores, profile.threads, 0, points, smt_slowdown=profile.smt_slowdown)
    )
    for at, watts in points:
        assert there.watts(round(at * 1000)) == pytest.approx(watts, rel=1e-9, abs=1e-9)


@given(profiles(), st.integers(0, 300_000))
def test_the_draw_lies_between_the_points_around_it(profile: MachineProfile, demand: int) -> None:
    watts = Machine(profile).watts(demand)
    figures = [point[1] for point in profile.watts]
    assert min(figures) - 1e-9 <= watts <= max(figures) + 1e-9


def test_two_tasks_on_each_core_take_one_and_a_half_times_as_long() -> None:
    """HSC, Fig. 7."""
    there = Machine(SMT)
    assert there.speed(4_000) == 1.0
    assert 1.0 / there.speed(8_000) == pytest.approx(1.5)


def test_without_smt_twice_the_tasks_take_twice_as_long() -> None:
    assert Machine(LINEAR).speed(8_000) == 0.5


def test_between_cores_and_threads_work_grows_evenly() -> None:
    there = Machine(SMT)
    done = [demand * there.speed(demand * 1000) for demand in (4, 5, 6, 7, 8)]
    steps = [b - a for a, b in pairwise(done)]
    assert steps == pytest.approx([steps[0]] * 4)
    assert done[-1] == pytest.approx(8 / 1.5)


def test_between_two_points_the_draw_is_on_the_line() -> None:
    there = Machine(CONCAVE)
    demands = (0, 500, 1_500, 3_000, 4_000, 99_000)
    assert [there.watts(demand) for demand in demands] == [20.0, 30.0, 45.0, 55.0, 60.0, 60.0]


def test_a_machine_without_a_curve_says_so_and_cannot_sleep() -> None:
    there = Machine(machine("m", watts=(), sleep_w=1.0))
    assert not there.knows_power
    assert not there.can_sleep
    assert Machine(SLEEPER).can_sleep
    assert not Machine(LINEAR).can_sleep
    assert Machine(WITHOUT_CURVE).watts(1_000) == 0.0


@st.composite
def loads(draw: st.DrawFn) -> tuple[tuple[float, ...], int, int, float]:
    cores = draw(CORES)
    ways = draw(st.sampled_from([1, 2, 4]))
    idle = draw(st.floats(1.0, 500.0))
    watts = [idle, *draw(st.lists(st.floats(idle, 1_000.0), min_size=1, max_size=11))]
    return tuple(watts), cores, cores * ways, draw(st.floats(1.0, float(ways)))


@given(loads())
def test_a_curve_from_load_gives_back_the_watts_at_each_step(
    given_load: tuple[tuple[float, ...], int, int, float],
) -> None:
    watts, cores, threads, slowdown = given_load
    curve = curve_from_load(watts, cores, threads, slowdown)
    most = throughput(threads, cores, threads, slowdown)
    assert MachineProfile("m", "x", cores, threads, 0, curve, smt_slowdown=slowdown).problem() is None
    for step, expected in enumerate(watts):
        work = most * step / (len(watts) - 1)
        assert any(
            power == expected and throughput(at, cores, threads, slowdown) == pytest.approx(work, abs=1e-9)
            for at, power in curve
        )


@given(loads())
def test_at_full_load_a_curve_from_load_is_at_all_threads(
    given_load: tuple[tuple[float, ...], int, int, float],
) -> None:
    watts, cores, threads, slowdown = given_load
    curve = curve_from_load(watts, cores, threads, slowdown)
    assert curve[0] == (0.0, watts[0])
    assert curve[-1][0] == pytest.approx(threads)
    assert curve[-1][1] == watts[-1]


def test_a_curve_from_load_bends_where_the_cores_are_full() -> None:
    """Linear in work: linear in demand up to the cores, and flatter from there to the threads."""
    curve = dict(curve_from_load((0.0, 30.0, 60.0), 4, 8, 1.5))
    assert curve[4.0] == pytest.approx(60.0 * 4 / (8 / 1.5))
