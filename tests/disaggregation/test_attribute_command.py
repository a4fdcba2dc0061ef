"""`wattloom attribute`: files in, joules out; every wrong file is told by name, line and field."""

import json
from math import sin
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.beds.power_traces import MeterFaults
from tests.disaggregation.traces import files, linear, recorded, some_work

import wattloom
from wattloom.cli.main import cli
from wattloom.errors import InputError

SECONDS = 240.0


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    trace = recorded(linear(), some_work(seconds=SECONDS), MeterFaults(lag_s=1.4, white_w=0.5), SECONDS)
    return files(trace, tmp_path_factory.mktemp("recording"))


def run(*words: str | Path) -> Any:
    return CliRunner().invoke(cli, ["attribute", *map(str, words)], prog_name="wattloom")


@pytest.mark.parametrize(("mode", "idle"), [("marginal", "node"), ("full", "pro-rata")])
def test_functions_idle_and_unattributed_are_the_meter(recording: tuple[Path, Path], mode: str, idle: str) -> None:
    done = run("--power", recording[0], "--runs", recording[1], "--mode", mode, "--idle", idle, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert set(found) >= {"functions", "idle_j", "unattributed_j", "meter_j", "lag_s", "mode"}
    assert set(found["functions"]) == {"f0", "f1", "f2", "f3"}
    charged = sum(each["calls"] * each["joules_per_call"] for each in found["functions"].values())
    assert charged + found["idle_j"] + found["unattributed_j"] == pytest.approx(found["meter_j"], rel=1e-9)
    assert all(each["spread"] > 0.0 for each in found["functions"].values())
    assert found["lag_s"] == pytest.approx(1.9, abs=0.25)


def test_the_table_says_what_a_reader_must_know(recording: tuple[Path, Path]) -> None:
    done = run("--power", recording[0], "--runs", recording[1])
    assert done.exit_code == 0
    for word in ("f0", "idle", "unattributed", "meter", "modelled", "need not add up", "behind activity"):
        assert word in done.output


def test_a_package_meter_beside_the_wall_keeps_the_sum(recording: tuple[Path, Path], tmp_path: Path) -> None:
    wall = [line.split(",") for line in recording[0].read_text().splitlines()[1:]]
    package = tmp_path / "package.csv"
    total, lines = 0.0, []
    for at, (time, watts) in enumerate(wall):
        total += 0.6 * (float(watts) - 60.0) + 15.0
        lines.append(f"{float(time) - 1.4:.3f},{total % 5000:.3f}\n" if at else f"{float(time) - 1.4:.3f},0\n")
    package.write_text("time_s,joules\n" + "".join(lines))
    found = wattloom.attribute(recording[0], recording[1], package=package)
    alone = wattloom.attribute(recording[0], recording[1])
    charged = sum(each.joules for each in found.functions)
    assert charged + found.idle_j + found.unattributed_j == pytest.approx(found.meter_j, rel=1e-9)
    assert found.package_j is not None
    assert found.package_j < found.meter_j
    for each in found.functions:
        assert each.joules == pytest.approx(alone.of(each.function).joules, rel=0.15)


def test_pairs_and_triples_will_do_and_open_calls_end_with_the_readings() -> None:
    power = [(float(second), 50.0 + (30.0 if second >= 60 else 0.0)) for second in range(120)]
    found = wattloom.attribute(power, [(59.5, float("inf"), "server")], lag_s=0.0)
    assert found.of("server").calls == 1
    assert found.of("server").joules == pytest.approx(30.0 * 60, rel=0.1)


@pytest.fixture(scope="module")
def two_seconds_late(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The pair of the how-to page: 36 J and 270 J above 60 W."""
    folder = tmp_path_factory.mktemp("late")
    resizing = [(start, start + 3.0, "resize", 12) for start in range(10, 280, 7)]
    encoding = [(start, start + 9.0, "encode", 30) for start in range(4, 280, 23)]
    calls = resizing + encoding
    shown = [60 + sum(watts for a, b, _, watts in calls if a < second - 2.0 <= b) for second in range(300)]
    lines = [f"{second},{watts + 0.5 * sin(7 * second):.1f}\n" for second, watts in enumerate(shown)]
    (folder / "P.csv").write_text(P + "".join(lines))
    (folder / "R.csv").write_text(R + "".join(f"{a},{b},{function}\n" for a, b, function, _ in calls))
    return folder / "P.csv", folder / "R.csv"


@pytest.mark.parametrize("known", [{}, {"idle_w": 60.0, "lag_s": 2.0}, {"lag_s": 2.5}, {"idle_w": 60.0}])
def test_what_is_known_and_told_makes_nothing_worse(
    two_seconds_late: tuple[Path, Path], known: dict[str, float]
) -> None:
    found = wattloom.attribute(*two_seconds_late, **known)  # type: ignore[arg-type]
    assert found.of("resize").joules_per_call == pytest.approx(36.0, rel=0.02)
    assert found.of("encode").joules_per_call == pytest.approx(270.0, rel=0.02)
    assert found.idle_w == known.get("idle_w", pytest.approx(60.0, abs=0.3))
    assert found.lag_s == pytest.approx(known.get("lag_s", 2.25), abs=0.5)
    assert found.unattributed_j >= 0.0


def test_idle_watts_the_meter_never_showed_are_refused_with_the_lowest_reading(
    two_seconds_late: tuple[Path, Path],
) -> None:
    done = run("--power", two_seconds_late[0], "--runs", two_seconds_late[1], "--idle-w", "600")
    assert done.exit_code == 2
    for words in ("600 W cannot be idle", "lowest reading", "P.csv is 59.5 W"):
        assert words in done.stderr
    with pytest.raises(InputError, match="70 W cannot be idle"):
        wattloom.attribute(*two_seconds_late, idle_w=70.0)


def test_readings_that_are_missing_are_said(two_seconds_late: tuple[Path, Path], tmp_path: Path) -> None:
    lines = two_seconds_late[0].read_text().splitlines(keepends=True)
    (tmp_path / "gap.csv").write_text("".join(lines[:100] + lines[141:]))
    (tmp_path / "holes.csv").write_text("".join(lines[:100] + lines[103:200] + lines[201:]))
    said = run("--power", tmp_path / "gap.csv", "--runs", two_seconds_late[1]).stdout
    assert "41 s" in said or "42 s" in said
    assert "without readings are left out" in said
    assert "missing in between" not in said
    assert (
        "4 readings are missing in between"
        in run("--power", tmp_path / "holes.csv", "--runs", two_seconds_late[1]).stdout
    )


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("start_s,end_s,function,host\n", ("R.csv, line 1: node", "no such column")),
        ("start_s,end_s,function,node\n", ("R.csv: node", "no call is on x", "a, b")),
    ],
)
def test_a_node_that_is_nowhere_is_told(header: str, said: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "P.csv").write_text(GOOD_P)
    (tmp_path / "R.csv").write_text(header + "1,4,f,a\n6,9,g,b\n")
    done = run("--power", tmp_path / "P.csv", "--runs", tmp_path / "R.csv", "--node", "x")
    assert done.exit_code == 2
    for words in said:
        assert words in done.stderr, done.stderr
    with pytest.raises(InputError, match="node: runs that are given as triples"):
        wattloom.attribute(tmp_path / "P.csv", [(1.0, 4.0, "f")], node="x")


P, R = "time_s,watts\n", "start_s,end_s,function\n"
GOOD_P = P + "".join(f"{second},{60 + second % 7}\n" for second in range(30))
GOOD_R = R + "1,4,f\n6,9,g\n"


@pytest.mark.parametrize(
    ("power", "runs", "said"),
    [
        ("", GOOD_R, ("P.csv", "is empty")),
        (P, GOOD_R, ("P.csv", "no readings")),
        ("time,watts\n1,2\n", GOOD_R, ("P.csv, line 1: time_s", "no such column", "has time,watts")),
        (P + "0,60\n1,sixty\n", GOOD_R, ("P.csv, line 3: watts", "'sixty' is not a number")),
        (P + "0,60\n1,nan\n", GOOD_R, ("P.csv, line 3: watts", "not a figure")),
        (P + "0,60\n1,-3\n", GOOD_R, ("P.csv, line 3: watts", "below 0")),
        (P + "5,60\n4,61\n", GOOD_R, ("P.csv, line 3: time_s", "4 comes after 5")),
        (P + "0,60\n1\n", GOOD_R, ("P.csv, line 3", "1 cell,")),
        (P + "0,60\n0,60\n", GOOD_R, ("P.csv", "has 1 reading;")),
        (P + "0,60\n0,61.5\n", GOOD_R, ("P.csv, line 3: watts", "61.5 and before it 60, both at 0 s", "keep one")),
        (P + "0,60,5\n", GOOD_R, ("P.csv, line 2", "3 cells", "decimal points")),
        ("time_s;watts\n0;60,5\n", GOOD_R, ("P.csv, line 2: watts", "decimal comma? Write 60.5")),
        ("time_s;watts\n0,5;60\n", GOOD_R, ("P.csv, line 2: time_s", "decimal comma? Write 0.5")),
        (P + "0,60\n1,61\n", GOOD_R, ("P.csv", "at least 10")),
        (P + "".join(f"{1700000000000 + 1000 * s},60\n" for s in range(30)), GOOD_R, ("P.csv: time_s", "milliseconds")),
        (P + "".join(f"{1000 * s},60\n" for s in range(30)), GOOD_R, ("P.csv: time_s", "1000 s apart")),
        (GOOD_P, "", ("R.csv", "is empty")),
        (GOOD_P, R, ("R.csv", "no calls")),
        (GOOD_P, "start_s,end_s\n1,2\n", ("R.csv, line 1: function", "no such column")),
        (GOOD_P, R + "4,1,f\n", ("R.csv, line 2: end_s", "1 is before start_s, 4")),
        (GOOD_P, R + "1,2,f\n1,2,\n", ("R.csv, line 3: function", "must not be empty")),
        (GOOD_P, R + "x,2,f\n", ("R.csv, line 2: start_s", "not a number", "write seconds")),
        (GOOD_P, R + "1000,2000,f\n", ("R.csv", "no time in common", "milliseconds")),
        (GOOD_P, R + "900000,900001,f\n", ("R.csv", "no time in common")),
        (GOOD_P, "start_s,end_s,function,node\n1,2,f,a\n1,2,f,b\n", ("R.csv: node", "a, b")),
    ],
)
def test_a_wrong_file_is_told_by_name_line_and_field(
    power: str, runs: str, said: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "P.csv").write_text(power)
    (tmp_path / "R.csv").write_text(runs)
    done = run("--power", tmp_path / "P.csv", "--runs", tmp_path / "R.csv")
    assert done.exit_code == 2
    for words in said:
        assert words in done.stderr, done.stderr


def test_a_reading_that_is_there_twice_counts_once(two_seconds_late: tuple[Path, Path], tmp_path: Path) -> None:
    lines = two_seconds_late[0].read_text().splitlines(keepends=True)
    (tmp_path / "P.csv").write_text("".join(lines[:50] + lines[49:]))
    assert wattloom.attribute(tmp_path / "P.csv", two_seconds_late[1]) == wattloom.attribute(*two_seconds_late)
    pairs = [(float(second), 60.0) for second in range(20)]
    with pytest.raises(InputError, match="power, reading 21: watts: 61 and before it 60, both at 19 s"):
        wattloom.attribute([*pairs, (19.0, 61.0)], [(1.0, 4.0, "f")])


def test_a_lag_that_makes_nonsense_of_the_readings_is_warned_of(two_seconds_late: tuple[Path, Path]) -> None:
    words = ("--power", two_seconds_late[0], "--runs", two_seconds_late[1])
    done = run(*words, "--lag", "9")
    assert done.exit_code == 0, done.output
    assert "warning: the given lag of 9 s explains " in done.stderr
    assert " s would explain 100%" in done.stderr
    wrong = json.loads(run(*words, "--lag", "9", "--json").stdout)
    assert wrong["warnings"][0].startswith("the given lag of 9 s")
    assert wrong["lag_s"] == pytest.approx(9.0, abs=0.5), "it is used as it was given"
    right = run(*words, "--lag", "2", "--json")
    assert json.loads(right.stdout)["warnings"] == []
    assert "warning" not in right.stderr


def test_a_function_that_is_not_there_is_told_with_those_that_are(two_seconds_late: tuple[Path, Path]) -> None:
    found = wattloom.attribute(*two_seconds_late)
    with pytest.raises(InputError, match="no call of 'nope' was metered; there is encode, resize"):
        found.of("nope")


def test_a_missing_file_and_an_unknown_mode_are_input_errors(recording: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        wattloom.attribute(tmp_path / "none.csv", recording[1])
    with pytest.raises(InputError, match="mode: must be marginal or full"):
        wattloom.attribute(recording[0], recording[1], "both")
    with pytest.raises(InputError, match="idle: must be node or pro-rata"):
        wattloom.attribute(recording[0], recording[1], idle="shared")


@pytest.mark.parametrize("separator", [";", "\t"])
def test_cells_may_be_separated_as_spreadsheets_do(separator: str, tmp_path: Path) -> None:
    (tmp_path / "P.csv").write_text(GOOD_P.replace(",", separator).replace("\n", "\r\n"))
    (tmp_path / "R.csv").write_text(GOOD_R)
    done = run("--power", tmp_path / "P.csv", "--runs", tmp_path / "R.csv", "--json")
    assert done.exit_code == 0, done.output
    assert set(json.loads(done.stdout)["functions"]) == {"f", "g"}


def test_what_looks_like_a_wrong_unit_is_said(tmp_path: Path) -> None:
    (tmp_path / "P.csv").write_text(P + "".join(f"{second},{60_000 + 500 * (second % 7)}\n" for second in range(30)))
    (tmp_path / "R.csv").write_text(GOOD_R + "7,7,instant\n" + "".join(f"{at},{at + 1},f\n" for at in range(900, 905)))
    done = run("--power", tmp_path / "P.csv", "--runs", tmp_path / "R.csv")
    assert done.exit_code == 0, done.output
    for words in ("5 calls lie outside of the metered time", "milliwatts", "show nothing: instant"):
        assert words in done.stdout


def test_lost_readings_comments_and_a_byte_order_mark_are_no_obstacle(tmp_path: Path) -> None:
    lines = GOOD_P.splitlines(keepends=True)
    lines[5] = "4,\n"
    (tmp_path / "P.csv").write_text(
        "\ufeff" + "".join([*lines[:3], "# rebooted\n", "\n", *lines[3:]]), encoding="utf-8"
    )
    (tmp_path / "R.csv").write_text("start_s, end_s, function, pid\n1,4,f,7\n6,,g,8\n")
    done = run("--power", tmp_path / "P.csv", "--runs", tmp_path / "R.csv", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["functions"]["g"]["calls"] == 1
