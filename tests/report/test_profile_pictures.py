"""What is drawn in pictures of profiles."""

from pathlib import Path

import pytest
from tests.profiling.made import cpu_profile, disturbed

pytest.importorskip("matplotlib", reason="NOT TRIED: pictures. pip install 'wattloom[report]'")

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from wattloom.machines.profile_file import CpuProfile
from wattloom.profiling.comparing import compare
from wattloom.report import profiles
from wattloom.report.palette import THEMES


def one(profile: CpuProfile) -> Figure:
    made = profiles._profile(profile, THEMES[0])
    made.draw_without_rendering()
    return made


def two(a: CpuProfile, b: CpuProfile) -> Figure:
    made = profiles._comparison(compare(a, b, names=("a.json", "b.json")), THEMES[0])
    made.draw_without_rendering()
    return made


def legend(axes: Axes) -> list[str]:
    found = axes.get_legend()
    assert found is not None
    return [text.get_text() for text in found.get_texts()]


def places(line: Line2D) -> list[float]:
    return [float(x) for x in np.asarray(line.get_xdata(), dtype=float)]


def hollow(axes: Axes) -> list[float]:
    lines = [line for line in axes.get_lines() if line.get_markerfacecolor() == "none"]
    return [x for line in lines for x in places(line)]


def joined(axes: Axes) -> list[float]:
    return places(axes.get_lines()[0])


def test_disturbed_levels_are_hollow_beside_the_line_and_in_the_legend() -> None:
    for axes in one(disturbed(cpu_profile(), 3, 5)).axes:
        assert hollow(axes) == [3.0, 5.0]
        assert joined(axes) == [0.0, 1.0, 2.0, 4.0, 6.0, 7.0, 8.0]
    assert legend(one(disturbed(cpu_profile(), 3)).axes[0]) == ["integer", profiles.DISTURBED]


def test_without_disturbance_nothing_is_hollow() -> None:
    made = one(cpu_profile())
    assert [hollow(axes) for axes in made.axes] == [[], []]
    assert legend(made.axes[0]) == ["integer"]


def test_work_has_no_measure_if_one_cpu_was_disturbed_and_that_is_said() -> None:
    right = one(disturbed(cpu_profile(), 1)).axes[1]
    assert list(right.get_lines()) == []
    assert len(right.get_yticks()) == 0
    assert "not drawn: integer" in " ".join(text.get_text() for text in right.texts)


def test_two_profiles_are_named_and_their_provenance_is_said() -> None:
    made = two(cpu_profile(provenance="estimated"), disturbed(cpu_profile(provenance="estimated"), 4))
    assert legend(made.axes[0]) == ["a.json", "b.json", profiles.DISTURBED]
    assert "estimated" in made.get_suptitle()
    assert [len(hollow(axes)) for axes in made.axes] == [1, 1, 1]
    assert "measured and estimated" in two(cpu_profile(), cpu_profile(provenance="estimated")).get_suptitle()


@pytest.mark.parametrize("least", [100.0, 1000.0])
def test_no_marker_is_cut_and_the_axis_has_labels_however_near_the_figures_are(least: float) -> None:
    """Work of 1,000 to 1,010: margins of the data alone would be too small."""
    made = two(*[cpu_profile(work=lambda level: least + (1010.0 - least) * (level - 1) / 7.0)] * 2)
    axes = made.axes[2]
    left, right = axes.get_xlim()
    assert right > 1.02 * 1010.0
    assert left < 0.0
    low, high = axes.get_ylim()
    assert high > 1.02 * max(float(y) for line in axes.get_lines() for y in np.asarray(line.get_ydata(), dtype=float))
    shown = [tick.label1.get_text() for tick in axes.yaxis.get_major_ticks() if low <= tick.get_loc() <= high]
    assert len([text for text in shown if text]) >= 3


def test_where_nothing_is_known_that_is_said_instead_of_an_empty_axis() -> None:
    noisy = disturbed(cpu_profile(), *range(1, 9), idle=("first", "last"))
    added = two(noisy, noisy).axes[1]
    assert len(added.get_xticks()) == 0
    assert "not known" in added.texts[0].get_text()


def test_figures_that_differ_by_powers_of_ten_are_on_a_logarithmic_axis() -> None:
    made = two(*[cpu_profile(work=lambda level: 10.0 ** (level / 2.0))] * 2)
    assert made.axes[2].get_yscale() == "log"
    assert two(cpu_profile(), cpu_profile()).axes[2].get_yscale() == "linear"


def test_the_picture_in_a_file_is_that_of_the_figures(tmp_path: Path) -> None:
    calm, noisy = (
        profiles.profile_picture(each, tmp_path / f"{number}.svg").read_bytes()
        for number, each in enumerate((cpu_profile(), disturbed(cpu_profile(), 3)))
    )
    assert calm != noisy
