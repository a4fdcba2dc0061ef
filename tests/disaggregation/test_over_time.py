"""Figures over time: no joule is lost in any window, only the past is known, changes are followed, gaps are unknown."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.beds.power_machines import Machine
from tests.beds.power_traces import MeterFaults
from tests.disaggregation.traces import WEIGHTS, files, linear, recorded, some_work

import wattloom
from wattloom.cli.main import cli
from wattloom.disaggregation.activity import Calls
from wattloom.disaggregation.online import PowerFilter
from wattloom.disaggregation.over_time import Recording, over_time
from wattloom.disaggregation.power_window import PowerWindow
from wattloom.disaggregation.readings import Readings, readings
from wattloom.disaggregation.response import Response
from wattloom.disaggregation.result import PowerAttribution
from wattloom.errors import InputError

SECONDS = 900.0
PROMPT = Response(0.0, 1.0)


def charged(window: PowerWindow) -> float:
    return sum(each.joules for each in window.functions)


def calls_of(*calls: tuple[float, float, int]) -> Calls:
    start, end, function = (np.array(each) for each in zip(*calls, strict=True))
    return Calls(start.astype(float), end.astype(float), function.astype(np.intp), np.ones(len(calls)))


def check_sums(windows: list[PowerWindow], found: Readings) -> None:
    for each in windows:
        assert charged(each) + each.idle_j + each.unattributed_j == pytest.approx(each.meter_j, rel=1e-9, abs=1e-6)
        assert each.idle_j >= 0.0
        assert each.unattributed_j >= 0.0
        assert all(one.joules >= 0.0 <= one.seconds for one in each.functions)
    assert sum(each.meter_j for each in windows) == pytest.approx(found.joules, rel=1e-6, abs=1e-6)
    assert sum(each.metered_s for each in windows) == pytest.approx(found.stands_for.sum(), rel=1e-6, abs=1e-5)


distances = st.one_of(st.floats(0.05, 3.0), st.just(1.0), st.floats(15.0, 200.0))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(distances, st.integers(0, 300)), min_size=12, max_size=60),
    st.lists(st.tuples(st.floats(-10.0, 200.0), st.floats(0.0, 60.0), st.integers(0, 2)), min_size=1, max_size=12),
    st.floats(1.0, 90.0),
    st.floats(-3.0, 6.0),
)
def test_windows_lose_no_joule_whatever_the_readings_and_their_gaps(
    shown: list[tuple[float, int]], ran: list[tuple[float, float, int]], every_s: float, lag: float
) -> None:
    found = readings(np.cumsum([each[0] for each in shown]), np.array([float(each[1]) for each in shown]))
    calls = calls_of(*((start, start + length, function) for start, length, function in ran))
    check_sums(over_time(Recording(found, calls, ["a", "b", "c"], Response(lag, 1.0)), every_s), found)


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 9), st.floats(3.0, 50.0))
def test_nor_where_a_meter_says_the_same_until_its_next_figure(held: int, every_s: float) -> None:
    figures = np.random.default_rng(held).uniform(60.0, 90.0, 40)
    found = readings(np.arange(40.0 * held), np.repeat(figures, held))
    check_sums(over_time(Recording(found, calls_of((0.0, 25.0, 0), (70.0, 75.0, 0)), ["f"], PROMPT), every_s), found)


# -- made runs ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    trace = recorded(linear(), some_work(seconds=SECONDS), MeterFaults(lag_s=1.4, white_w=0.5), SECONDS)
    return files(trace, tmp_path_factory.mktemp("recording"))


@pytest.fixture(scope="module")
def found(recording: tuple[Path, Path]) -> PowerAttribution:
    return wattloom.attribute(*recording, every_s=60.0)


def windows_of(found: PowerAttribution) -> list[PowerWindow]:
    assert found.over_time is not None
    return found.over_time


def test_windows_add_up_to_the_recording(found: PowerAttribution) -> None:
    windows = windows_of(found)
    assert [each.end_s for each in windows[:-1]] == [each.start_s for each in windows[1:]]
    assert windows[-1].end_s - windows[0].start_s == pytest.approx(found.seconds)
    assert sum(each.meter_j for each in windows) == pytest.approx(found.meter_j)
    for each in found.functions:
        mine = [window.of(each.function) for window in windows]
        assert sum(one.begun for one in mine if one) == pytest.approx(each.calls, abs=3)
        assert sum(one.seconds for one in mine if one) == pytest.approx(each.calls * each.seconds_per_call, rel=0.02)


def test_after_three_minutes_watts_are_near_the_truth(found: PowerAttribution) -> None:
    for window in windows_of(found)[3:]:
        assert window.idle_w == pytest.approx(60.0, abs=4.0)
        for each, truth in zip(window.functions, WEIGHTS, strict=True):
            assert each.watts == pytest.approx(truth, rel=0.15, abs=0.3)
            assert each.joules == pytest.approx(truth * each.seconds, rel=0.2)


def test_a_function_that_doubles_half_way_is_followed_and_the_others_stay(tmp_path: Path) -> None:
    def draw(calls: np.ndarray) -> np.ndarray:
        later = np.arange(len(calls)) >= len(calls) // 2
        return np.asarray(calls @ WEIGHTS + np.where(later, calls[:, 0] * WEIGHTS[0], 0.0))

    trace = recorded(Machine(4, 60.0, 210.0, draw), some_work(seconds=1200.0), MeterFaults(white_w=0.5), 1200.0)
    windows = windows_of(wattloom.attribute(*files(trace, tmp_path), every_s=60.0))
    for at, wanted in ((9, WEIGHTS), (14, WEIGHTS * [2, 1, 1, 1]), (19, WEIGHTS * [2, 1, 1, 1])):
        watts = [each.watts for each in windows[at].functions]
        assert watts == pytest.approx(wanted, rel=0.2, abs=0.5)


# -- what is known when ------------------------------------------------------------------------------------------------


def made_readings(seconds: int, seed: int = 4) -> tuple[Readings, Calls]:
    """Two functions of 12 and 30 W that come and go, the second one from the hundredth second on."""
    short = [(at, at + 3.0, 0) for at in range(4, seconds, 7)]
    long = [(at, at + 9.0, 1) for at in range(100, seconds, 23)]
    noise = np.random.default_rng(seed).normal(0.0, 0.3, seconds)
    drawn = [
        60.0 + sum((12.0, 30.0)[which] * (begin < at <= end) for begin, end, which in short + long)
        for at in range(seconds)
    ]
    return readings(np.arange(float(seconds)), np.array(drawn) + noise), calls_of(*short, *long)


def test_a_window_does_not_hang_on_what_comes_after_it() -> None:
    whole, calls = made_readings(400)
    past = readings(whole.time[:302], whole.watts[:302])
    told = [over_time(Recording(each, calls, ["a", "b"], PROMPT), 30.0)[:10] for each in (whole, past)]
    assert len(told[0]) == 10
    assert told[0] == told[1]


def test_a_function_that_has_not_run_yet_is_not_in_a_window() -> None:
    found, calls = made_readings(240)
    windows = over_time(Recording(found, calls, ["a", "b"], PROMPT), 40.0)
    assert [window.of("b") is None for window in windows] == [True, True, False, False, False, False]
    last = windows[-1].of("b")
    assert last is not None
    assert last.watts == pytest.approx(30.0, abs=2.0)
    assert last.begun == 2


def test_a_gap_is_unknown_and_in_no_window() -> None:
    whole, calls = made_readings(400)
    kept = (whole.time <= 150) | (whole.time >= 290)
    found = readings(whole.time[kept], whole.watts[kept])
    windows = over_time(Recording(found, calls, ["a", "b"], PROMPT), 40.0)
    check_sums(windows, found)
    assert [(each.start_s, each.metered_s) for each in windows[3:6]] == [(120, 30.0), (280, 30.0), (320, 40.0)]
    before, after = windows[3].of("a"), windows[4].of("a")
    assert before is not None
    assert after is not None
    assert before.begun == len([at for at in range(4, 400, 7) if 120 <= at + 0.5 <= 150])
    assert before.seconds < 30.0
    assert after.watts == pytest.approx(12.0, abs=1.5)


def test_calls_count_by_their_cpu_time_where_it_is_known_and_watts_are_still_of_one_call() -> None:
    found, calls = made_readings(300)
    halved = Calls(calls.start, calls.end, calls.function, np.where(calls.function == 0, 0.5, 2.0))
    last = over_time(Recording(found, halved, ["a", "b"], PROMPT), 60.0)[-1]
    plain = over_time(Recording(found, calls, ["a", "b"], PROMPT), 60.0)[-1]
    for each, same, truth in zip(last.functions, plain.functions, (12.0, 30.0), strict=True):
        assert each.watts == pytest.approx(truth, rel=0.1)
        assert each.seconds == same.seconds


def test_a_pause_makes_the_filter_doubt_and_nothing_else() -> None:
    power = PowerFilter()
    for second in range(100):
        power.feed(1.0, 60.0 + 10.0 * (second % 2), {"f": float(second % 2)})
    before = power.of("f")
    power.pause(0.0)
    assert power.of("f") == before
    power.pause(300.0)
    after = power.of("f")
    assert before is not None
    assert after is not None
    assert after.watts == before.watts
    assert after.spread > 2 * before.spread


# -- the command -------------------------------------------------------------------------------------------------------


def run(*words: str | Path) -> Any:
    return CliRunner().invoke(cli, ["attribute", *map(str, words)], prog_name="wattloom")


def test_json_has_the_windows_and_without_every_none(recording: tuple[Path, Path], found: PowerAttribution) -> None:
    done = run("--power", recording[0], "--runs", recording[1], "--every", "60", "--json")
    assert done.exit_code == 0, done.output
    windows = json.loads(done.stdout)["over_time"]
    assert windows == [each.to_json() for each in windows_of(found)]
    assert set(windows[-1]["functions"]) == {"f0", "f1", "f2", "f3"}
    assert set(windows[-1]["functions"]["f0"]) == {"begun", "seconds", "joules", "watts", "spread"}
    assert wattloom.attribute(*recording).over_time is None


def test_the_table_has_a_row_for_each_window_and_says_what_it_knows(recording: tuple[Path, Path]) -> None:
    done = run("--power", recording[0], "--runs", recording[1], "--every", "300")
    assert done.exit_code == 0, done.output
    for words in ("Over time", "0-300", "300-600", "600-900", "f2", "only what the meter had said", "not marginal"):
        assert words in done.stdout
    assert "without readings" not in done.stdout


def test_time_without_readings_is_said_to_be_in_no_row(recording: tuple[Path, Path], tmp_path: Path) -> None:
    lines = recording[0].read_text().splitlines(keepends=True)
    (tmp_path / "P.csv").write_text("".join(lines[:250] + lines[700:]))
    done = run("--power", tmp_path / "P.csv", "--runs", recording[1], "--every", "100")
    assert done.exit_code == 0, done.output
    assert "Time without readings is in no row" in done.stdout
    assert "200-300" in done.stdout
    assert "400-500" not in done.stdout


def test_with_a_package_meter_windows_add_up_to_the_wall(recording: tuple[Path, Path], tmp_path: Path) -> None:
    wall = [line.split(",") for line in recording[0].read_text().splitlines()[1:]]
    package = tmp_path / "package.csv"
    shown = "".join(f"{float(time) - 1.4:.3f},{0.6 * (float(watts) - 60.0) + 15.0:.3f}\n" for time, watts in wall)
    package.write_text("time_s,watts\n" + shown)
    found = wattloom.attribute(*recording, package=package, every_s=120.0)
    assert sum(each.meter_j for each in windows_of(found)) == pytest.approx(found.meter_j)


def test_where_there_are_many_functions_the_smaller_ones_are_summed_up(recording: tuple[Path, Path]) -> None:
    done = CliRunner(env={"COLUMNS": "90"}).invoke(
        cli, ["attribute", "--power", str(recording[0]), "--runs", str(recording[1]), "--every", "300"]
    )
    assert "2 others" in done.stdout
    assert max(map(len, done.stdout.partition("Over time")[2].partition("Each row")[0].splitlines())) <= 90


@pytest.mark.parametrize(
    ("every", "said"),
    [
        ("0", "must be seconds above 0"),
        ("-5", "not in the range"),
        ("nan", "must be a finite number"),
        ("inf", "not in the range"),
        ("0.5", "less than the 1 s between readings"),
    ],
)
def test_windows_that_cannot_be_are_refused_by_name(recording: tuple[Path, Path], every: str, said: str) -> None:
    done = run("--power", recording[0], "--runs", recording[1], "--every", every)
    assert done.exit_code == 2
    assert "every_s: " in done.stderr or "'--every': " in done.stderr
    assert said in done.stderr
    with pytest.raises(InputError, match="every_s"):
        wattloom.attribute(*recording, every_s=float(every))


def test_more_windows_than_anyone_could_read_are_refused_with_a_length_that_will_do() -> None:
    power = [(float(second), 60.0) for second in range(2000)]
    runs = [(float(at), at + 1.0, f"f{at}") for at in range(600)]
    with pytest.raises(InputError, match=r"every_s: 1 s would make 1,999 windows of 600 functions; take 3 s"):
        wattloom.attribute(power, runs, every_s=1.0)
