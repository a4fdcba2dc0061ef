"""Two machines side by side."""

import pytest
from tests.profiling.made import cpu_profile, disturbed

from wattloom.errors import InputError
from wattloom.profiling.comparing import Conversion, cheaper, compare, points, same_tool


def test_each_level_has_watts_added_and_joules_per_unit_of_work() -> None:
    found = points(
        cpu_profile(watts=lambda level: 20.0 + 10.0 * level, work=lambda level: 100.0 * level), "integer", ""
    )
    assert [point.level for point in found] == list(range(9))
    assert found[0].watts == 20.0
    assert found[2].watts_added == pytest.approx(10.0)
    assert found[2].joules_per_op == pytest.approx(40.0 / 200.0)
    assert found[2].marginal_joules_per_op == pytest.approx(20.0 / 200.0)


def test_two_machines_that_cross_are_each_cheaper_where_they_are() -> None:
    frugal = cpu_profile(name="frugal", watts=lambda level: 5.0 + 20.0 * level, work=lambda level: 100.0 * level)
    large = cpu_profile(name="large", watts=lambda level: 45.0 + 10.0 * level, work=lambda level: 100.0 * level)
    found = compare(frugal, large).stressors[0]
    assert [part.cheaper for part in found.ranges] == ["a", "b"]
    assert found.ranges[0].to_ops == pytest.approx(400.0, abs=4.0), "both draw 85 W there"
    assert found.ranges[1].to_ops == pytest.approx(800.0)
    assert found.speed == pytest.approx(1.0)


def test_only_loads_that_both_can_carry_are_compared() -> None:
    small = cpu_profile(work=lambda level: 10.0 * level)
    ranges = cheaper(points(small, "integer", ""), points(cpu_profile(), "integer", ""))
    assert ranges[-1].to_ops == pytest.approx(80.0)


def test_plug_and_package_are_not_mixed_silently() -> None:
    package, wall = cpu_profile(name="p"), cpu_profile(name="w", quantity="wall", watts=lambda level: 50.0 + level)
    with pytest.raises(InputError, match=r"p is in watts of the processor package, w of the plug.*--package-to-wall"):
        compare(package, wall)
    found = compare(package, wall, Conversion(1.2, 30.0))
    assert found.quantity == "wall"
    assert found.idle_w[0] == pytest.approx(54.0)
    assert found.idle_w[1] == 50.0
    assert "p: 1.2 x package + 30 W" in found.converted
    assert found.stressors[0].a[1].watts == pytest.approx(66.0)


def test_a_conversion_that_converts_nothing_is_refused() -> None:
    wall = cpu_profile(quantity="wall")
    with pytest.raises(InputError, match="nothing to convert"):
        compare(wall, wall, Conversion(1.2, 30.0))


def test_two_of_the_package_can_be_shown_at_the_plug() -> None:
    found = compare(cpu_profile(), cpu_profile(), Conversion(2.0, 0.0))
    assert (found.quantity, found.idle_w) == ("wall", (40.0, 40.0))


def test_work_of_different_versions_is_not_compared_but_watts_are() -> None:
    newer = cpu_profile(tool="stress-ng 0.17.01; Python 3.11.7, numpy 2.4.6")
    found = compare(cpu_profile(), newer).stressors[0]
    assert not found.same_work
    assert found.ranges == []
    assert found.speed is None
    assert found.b[3].watts == 50.0


def test_k_means_is_ours_and_depends_on_our_versions() -> None:
    a, b = "stress-ng 0.15.06; Python 3.11.7, numpy 2", "stress-ng 0.17.01; Python 3.11.7, numpy 2"
    assert same_tool(a, b, "kmeans")
    assert not same_tool(a, b, "matrix")
    assert same_tool("Python 3.11.7, numpy 2", "Python 3.11.7, numpy 2", "matrix")
    assert not same_tool(a, "Python 3.11.7, numpy 2", "matrix")


def test_nothing_in_common_is_said() -> None:
    with pytest.raises(InputError, match="no stressor is in both: integer; matrix"):
        compare(cpu_profile(), cpu_profile(stressors=("matrix",)))


def test_nothing_is_concluded_from_a_disturbed_level() -> None:
    calm, other = cpu_profile(), cpu_profile(watts=lambda level: 15.0 + 9.0 * level)
    found = compare(disturbed(calm, 3, 5), other).stressors[0]
    assert [point.level for point in found.a if point.disturbed] == [3, 5]
    assert found.a[3].watts == pytest.approx(150.0), "it is shown"
    assert found.a[4].watts_added == pytest.approx(10.0), "since level 2"
    assert found.enough
    assert [part.cheaper for part in found.ranges] == ["b"]
    backwards = compare(disturbed(other, 3, 5), calm).stressors[0]
    assert [part.cheaper for part in backwards.ranges] == ["a"], "its 126 W at level 3 would say otherwise"


def test_the_same_machine_twice_is_not_two_because_others_were_at_work() -> None:
    found = compare(cpu_profile(), disturbed(cpu_profile(), 1, 2, 3, 4, 5, 6)).stressors[0]
    assert not found.enough
    assert found.ranges == []
    assert found.speed is None


@pytest.mark.parametrize(("levels", "enough"), [((5, 6, 7, 8), True), ((4, 5, 6, 7, 8), False)])
def test_half_of_the_levels_must_be_undisturbed(levels: tuple[int, ...], enough: bool) -> None:
    found = compare(disturbed(cpu_profile(), *levels), cpu_profile()).stressors[0]
    assert found.enough is enough
    assert bool(found.ranges) is enough
    assert found.speed == pytest.approx(1.0), "level 1 was undisturbed"


def test_a_disturbed_idle_is_used_only_if_the_other_one_is_calm() -> None:
    one = points(disturbed(cpu_profile(), idle=("first",)), "integer", "")
    assert not one[0].disturbed
    both = disturbed(cpu_profile(), idle=("first", "last"))
    found = points(both, "integer", "")
    assert found[0].disturbed
    assert (found[1].watts_added, found[1].marginal_joules_per_op) == (None, None)
    assert found[2].watts_added == pytest.approx(10.0)
    assert not compare(both, cpu_profile()).stressors[0].enough


def test_a_comparison_says_whether_watts_were_measured_and_what_the_two_are_called() -> None:
    found = compare(cpu_profile(), cpu_profile(provenance="estimated"), names=("x", "y"))
    assert found.provenance == ("measured", "estimated")
    assert (found.a, found.b) == ("x", "y")
    same = compare(cpu_profile(name="m"), cpu_profile(name="m"))
    assert (same.a, same.b) == ("m", "m (2)")
