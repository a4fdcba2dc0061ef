import os
from pathlib import Path

import pytest
from tests.metering.trees import machine

from wattloom.energy.forecast import Unknown
from wattloom.metering.choosing import choose_meter, meters
from wattloom.metering.protocol import Sample
from wattloom.metering.recording import Recording


def tape(folder: Path, *rows: str, head: str = "time_s,watts") -> Recording:
    path = folder / "power.csv"
    path.write_text("\n".join([head, *rows, ""]))
    return Recording(path)


def joules(meter: Recording, now: float) -> float:
    sample = meter.read(now)
    assert isinstance(sample, Sample), sample
    return sample.joules


def test_its_first_row_is_at_the_first_reading(tmp_path: Path) -> None:
    meter = tape(tmp_path, "1000,10", "1001,10", "1002,30", "1003,30")
    assert [joules(meter, 50.0 + second) for second in (0, 1, 2, 3)] == pytest.approx([0.0, 10.0, 30.0, 60.0])


def test_between_two_rows_joules_rise_evenly(tmp_path: Path) -> None:
    meter = tape(tmp_path, "0,10", "1,10", "2,10")
    joules(meter, 0.0)
    assert joules(meter, 1.5) == pytest.approx(15.0)


def test_joules_are_taken_as_a_count(tmp_path: Path) -> None:
    meter = tape(tmp_path, "0,500", "1,520", "2,560", head="time_s,joules")
    joules(meter, 0.0)
    assert joules(meter, 2.0) == pytest.approx(60.0)


def test_after_its_end_nothing_is_known(tmp_path: Path) -> None:
    meter = tape(tmp_path, "0,10", "1,10")
    joules(meter, 0.0)
    joules(meter, 1.0)
    answer = meter.read(1.1)
    assert isinstance(answer, Unknown)
    assert "over after 1 s" in answer.reason


@pytest.mark.parametrize(
    "rows",
    [
        ("0,10", "1,10", "60,10", "61,10"),
        ("0,10", "1,10", "2,", "60,10", "61,10"),
        ("0,10", "1,10", "30,-5", "60,10", "61,10"),
        ("0,10", "1,10", "30,1e9", "60,10", "61,10"),
    ],
    ids=["no rows", "a value nobody knows", "below nothing", "beyond what a machine draws"],
)
def test_a_gap_in_it_is_unknown_and_a_new_epoch(tmp_path: Path, rows: tuple[str, ...]) -> None:
    meter = tape(tmp_path, *rows)
    before = meter.read(0.0)
    joules(meter, 1.0)
    answer = meter.read(30.5)
    after = meter.read(60.0)
    assert isinstance(before, Sample)
    assert isinstance(answer, Unknown)
    assert "a gap from" in answer.reason
    assert isinstance(after, Sample)
    assert after.epoch > before.epoch
    assert after.joules == pytest.approx(10.0)


def test_a_count_that_falls_in_it_is_a_gap(tmp_path: Path) -> None:
    meter = tape(tmp_path, "0,100", "1,110", "2,5", "3,15", head="time_s,joules")
    joules(meter, 0.0)
    assert isinstance(meter.read(1.5), Unknown)
    assert joules(meter, 3.0) == pytest.approx(20.0)


def test_a_file_that_grows_is_read_on(tmp_path: Path) -> None:
    meter = tape(tmp_path, "0,10", "1,10")
    joules(meter, 0.0)
    with (tmp_path / "power.csv").open("a") as file:
        file.write("2,10\n3,10\n")
    os.utime(tmp_path / "power.csv", ns=(1, 1))
    assert joules(meter, 3.0) == pytest.approx(30.0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("time,power\n1,2\n", "must begin with time_s,watts or time_s,joules, not 'time,power'"),
        ("time_s,watts\n1,2\n", "needs two rows at least"),
        ("time_s,watts\n1,2\n1,3\n", "row 3: times must rise"),
        ("time_s,watts\n1,2\n2,x\n", "row 3: two numbers are wanted, not '2,x'"),
        ("time_s,watts\n1,2\nnan,3\n", "row 3: nan is no time"),
        ("", "must begin with"),
    ],
)
def test_a_file_of_another_form_says_what_is_wrong_and_where(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "power.csv").write_text(text)
    meter = Recording(tmp_path / "power.csv")
    assert says in (meter.available() or "")
    assert isinstance(meter.read(0.0), Unknown)


def test_it_is_used_only_where_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "power.csv").write_text("time_s,watts\n0,10\n1,10\n")
    monkeypatch.setenv("WATTLOOM_RECORDING__PATH", str(tmp_path / "power.csv"))
    monkeypatch.setenv("WATTLOOM_RECORDING__QUANTITY", "package")
    (info,) = [info for info in meters(machine()) if info.name == "recording"]
    assert (info.problem, info.quantity, info.only_named) == ("", "package", True)
    assert choose_meter(machine()).name != "recording"
    assert choose_meter(machine(), "recording").name == "recording"


def test_without_a_file_it_says_which_settings_to_fill_in() -> None:
    problem = Recording(None).available() or ""
    assert "no recording is named" in problem
    assert "[recording]" in problem
    assert "WATTLOOM_RECORDING__PATH=" in problem
