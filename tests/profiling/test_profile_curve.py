"""What the scheduler reads from a profile."""

import msgspec
import pytest
from tests.profiling.made import cpu_profile, identity, power

from wattloom.errors import InputError
from wattloom.machines.machine import Machine
from wattloom.machines.profile_curve import machine_profile, mean_watts, part_of, smt_slowdown, speed, usual_setting
from wattloom.machines.profile_file import CpuProfile


def with_level(profile: CpuProfile, number: int, **changes: object) -> CpuProfile:
    levels = list(profile.levels)
    levels[number] = msgspec.structs.replace(levels[number], **changes)
    return msgspec.structs.replace(profile, levels=tuple(levels))


def test_the_curve_goes_through_the_levels_and_names_where_it_is_from() -> None:
    found = machine_profile(cpu_profile())
    assert found.problem() is None
    assert found.watts == tuple((float(level), 20.0 + 10.0 * level) for level in range(9))
    assert (found.provenance, found.quantity) == ("measured", "package")
    assert "2026-11-16" in found.source
    assert "powercap" in found.source
    assert Machine(found).watts(2500) == pytest.approx(45.0)


def test_watts_are_the_mean_over_the_stressors() -> None:
    hot = cpu_profile(watts=lambda level: 20.0 + 20.0 * level, stressors=("matrix",))
    both = cpu_profile()
    both = msgspec.structs.replace(both, levels=(*both.levels, *hot.levels))
    assert mean_watts(both, "")[4] == pytest.approx((60.0 + 100.0) / 2)


def test_a_level_that_one_stressor_lacks_is_left_out_and_not_mixed() -> None:
    both = cpu_profile(stressors=("integer", "matrix"))
    gap = with_level(both, 2, power=None, problem="the meter was lost")
    assert 3 not in mean_watts(gap, "")
    assert Machine(machine_profile(gap)).watts(3000) == pytest.approx(50.0), "between its neighbours"


def test_a_disturbed_reading_is_not_used() -> None:
    assert 3 not in mean_watts(with_level(cpu_profile(), 2, other_cores=0.5), "")
    assert 3 in mean_watts(with_level(cpu_profile(), 2, other_cores=0.05), "")


@pytest.mark.parametrize("number", [7, None])
def test_without_idle_or_all_threads_there_is_no_curve(number: int | None) -> None:
    profile = cpu_profile()
    if number is None:
        profile = msgspec.structs.replace(profile, idle=())
    else:
        profile = with_level(profile, number, power=None, problem="x")
    with pytest.raises(InputError, match="idle" if number is None else "level 8"):
        machine_profile(profile)


def test_noise_below_idle_is_idle() -> None:
    found = machine_profile(with_level(cpu_profile(), 0, power=power(19.9)))
    assert found.problem() is None
    assert found.watts[1] == (1.0, 20.0)


def test_siblings_slow_each_other_down_as_the_work_says() -> None:
    profile = cpu_profile(work=lambda level: 100.0 * min(level, 4) + 25.0 * max(0, level - 4))
    assert smt_slowdown(profile, "") == pytest.approx(100.0 / 62.5)
    assert machine_profile(profile).smt_slowdown == pytest.approx(1.6)


def test_siblings_that_do_less_together_than_one_alone_are_held_at_the_bound() -> None:
    worse = cpu_profile(work=lambda level: 100.0 * min(level, 4) - 20.0 * max(0, level - 4))
    assert machine_profile(worse).smt_slowdown == 2.0
    assert machine_profile(worse).problem() is None


def test_without_siblings_the_slow_down_is_the_usual_one() -> None:
    plain = cpu_profile(machine=identity(cores=4, threads=4))
    assert smt_slowdown(plain, "") is None
    assert machine_profile(plain).smt_slowdown == 1.5


def test_speed_is_told_only_by_the_version_the_yardstick_is_of() -> None:
    assert speed(cpu_profile(work=lambda level: 2250.0 * level), "") == pytest.approx(0.933)
    assert speed(cpu_profile(work=lambda level: 4500.0 * level), "") == pytest.approx(1.866)
    other = cpu_profile(tool="stress-ng 0.17.01; Python 3.12.1, numpy 2.0.0")
    assert speed(other, "") is None
    assert machine_profile(other).speed == 1.0


def test_the_setting_in_force_is_used_else_the_fastest() -> None:
    slow = cpu_profile(setting="governor=powersave", work=lambda level: 100.0 * level)
    fast = cpu_profile(setting="governor=performance", work=lambda level: 300.0 * level)
    both = msgspec.structs.replace(slow, idle=(*slow.idle, *fast.idle), levels=(*slow.levels, *fast.levels))
    assert usual_setting(both) == "governor=performance"
    saver = msgspec.structs.replace(both, machine=identity(governor="powersave"))
    assert usual_setting(saver) == "governor=powersave"
    assert "governor=powersave" in machine_profile(saver).source
    with pytest.raises(InputError, match="was not measured"):
        machine_profile(both, setting="khz=5")


def test_a_part_of_a_machine_has_that_part_of_its_watts() -> None:
    whole = machine_profile(cpu_profile())
    half = part_of(whole, 2, 4)
    assert half.problem() is None
    assert Machine(half).full_watts == pytest.approx(Machine(whole).full_watts / 2)
    assert "2 of 4 cores" in half.source
