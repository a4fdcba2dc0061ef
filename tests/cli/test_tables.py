"""What people see."""

import json
from pathlib import Path
from time import time

import pytest
from tests.cli.conftest import Wattloom

from wattloom.cli.figures import joules, seconds_with
from wattloom.cli.why import WORDS
from wattloom.cluster.reasons import Reason
from wattloom.history.queries import TaskInfo


def test_compare_sorts_by_energy_and_marks_the_best(scenario: Path, wattloom: Wattloom) -> None:
    shown = wattloom("compare", scenario, "--policies", "spread,fifo,pack,least-joules").stdout
    energies = [float(line.split()[-13].replace(",", "")) for line in shown.splitlines() if line.endswith("60/60 ")]
    assert len(energies) == 4
    assert energies == sorted(energies)
    assert shown.count("★") == 1
    assert shown.index("★") < shown.index("reference")


def test_compare_says_what_the_figures_are_and_what_was_assumed(scenario: Path, wattloom: Wattloom) -> None:
    shown = wattloom("compare", scenario, "--policies", "spread,pack").stdout
    assert "modelled by the simulator" in shown
    assert "1 assumption" in shown
    assert shown.strip().splitlines()[-1].startswith(("pack saves", "spread saves"))


def test_compare_gives_spreads_over_several_seeds(scenario: Path, wattloom: Wattloom) -> None:
    assert "±" in wattloom("compare", scenario, "--policies", "spread,pack", "--seeds", 2).stdout


@pytest.mark.parametrize("columns", [80, 100, 140])
def test_a_narrow_terminal_gets_a_narrow_table(
    columns: int, scenario: Path, wattloom: Wattloom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    policies = "spread,marginal-energy:tdp=false,guarantee=0.8"
    compared = wattloom("compare", scenario, "--policies", policies).stdout
    listed = wattloom("machines").stdout
    assert max(map(len, [*compared.splitlines(), *listed.splitlines()])) <= columns
    assert "marginal-energy:" in compared
    assert all(word in compared for word in ("energy x", "MJ·s", "peak"))
    assert "xeon-e5-2699v4-2s" in listed


def test_why_reads_like_a_sentence(log: Path, wattloom: Wattloom) -> None:
    shown = wattloom("why", "t1", "--log", log).stdout
    assert "pack sent t1 (f) to " in shown
    assert "taken" in shown
    assert " J" in shown


def test_every_reason_has_words_for_people() -> None:
    assert set(WORDS) == set(Reason)


def test_replay_says_whether_the_decisions_are_the_same(log: Path, wattloom: Wattloom) -> None:
    shown = wattloom("replay", log, "--policy", "fifo").stdout
    assert "lead to the recorded decisions again" in shown
    assert "Assumed:" in shown


def test_simulate_prints_energy_and_its_parts(scenario: Path, wattloom: Wattloom) -> None:
    shown = wattloom("simulate", scenario).stdout
    assert "60 of 60 finished" in shown
    assert all(part in shown for part in ("active", "idle", "sleep", "wake", "scheduler"))


@pytest.mark.parametrize("command", ["policies", "scenarios", "machines"])
def test_lists_are_printed_as_tables(command: str, wattloom: Wattloom) -> None:
    result = wattloom(command)
    assert result.exit_code == 0
    assert {"policies": "least-joules", "scenarios": "hsc-cpu", "machines": "x86_64"}[command] in result.stdout


def test_scenarios_show_prints_the_file_as_it_is_behind_comments_on_where_it_contradicts_its_source(
    wattloom: Wattloom,
) -> None:
    from wattloom.simulation.scenario import text_of

    assert wattloom("scenarios", "show", "mixed-1000").stdout == text_of("mixed-1000")
    comments = wattloom("scenarios", "show", "hsc-cpu").stdout.removesuffix(text_of("hsc-cpu"))
    assert all(line.startswith("# ") for line in comments.splitlines() if line)
    assert "energy of marginal-energy: published 60.03 Wh" in comments


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str, wattloom: Wattloom) -> None:
    assert "_WATTLOOM_COMPLETE" in wattloom("completion", shell).stdout


USAGE = (
    '{"event":"usage-arrived","time":500,"node":"big-1","tasks":{"t1":[0.00137,0.000026],"t2":[0.0421,0.02]},'
    '"provenance":"estimated"}\n'
    '{"event":"usage-arrived","time":501,"node":"big-2","tasks":{"t3":[19.5,0.3]},"provenance":"measured"}\n'
)


@pytest.fixture
def metered(log: Path) -> Path:
    """A log of which some tasks have joules."""
    with log.open("a") as file:
        file.write(USAGE)
    return log


@pytest.mark.parametrize("command", ["tasks", "functions"])
@pytest.mark.parametrize("columns", [60, 70, 80, 90, 100, 120, 140, 160, 200])
def test_joules_say_what_they_are_at_every_width(
    command: str, columns: int, metered: Path, wattloom: Wattloom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    words = ("--limit", "100") if command == "tasks" else ()
    shown = wattloom(command, "--journal", metered, *words).stdout
    assert max(map(len, shown.splitlines())) <= columns
    whole = " ".join(shown.split())
    assert "estimated" in whole
    assert "measured" in whole
    if command == "tasks":
        assert "1.37 ± 0.03 mJ" in whole
        assert "19.5 ± 0.30 J" in whole
        assert "1.37 ± 0.03 mJ (estimated)" in whole or ("1.37 ± 0.03 mJ ○" in whole and "○ estimated" in whole)
        assert "19.5 ± 0.30 J (measured)" in whole or ("19.5 ± 0.30 J ●" in whole and "● measured" in whole)


def test_a_spread_has_the_unit_of_its_figure_and_is_never_shown_as_nothing() -> None:
    assert joules(0.00137, 0.000026) == "1.37 ± 0.03 mJ"
    assert joules(0.0137, 0.26) == "13.7 ± 260 mJ"
    assert joules(1.37, 1e-5) == "1.37 ± <0.01 J"
    assert joules(1.37, None) == "1.37 J"
    assert seconds_with(0.0744, 0.0762) == "74.4 ± 76.2 ms"
    assert seconds_with(1.5, 1e-5) == "1.50 s ± 10.0 µs"


def test_tasks_that_are_not_listed_are_counted(log: Path, wattloom: Wattloom) -> None:
    assert wattloom("tasks", "--journal", log).stdout.endswith("... and 40 more: --limit N lists the newest N.\n")
    assert "more" not in wattloom("tasks", "--journal", log, "--limit", 60).stdout
    assert len(json.loads(wattloom("tasks", "--journal", log, "--json").stdout)) == 20


def ran(journal: str, message: str, function: str = "first.work") -> TaskInfo:
    times = {"submitted": time(), "started": None, "ended": None, "seconds": 0.25}
    energy = {"joules": 1.25, "spread_j": 0.25, "provenance": "estimated"}
    named = {"task": "1-1", "function": function, "state": "finished", "node": "local-1"}
    return TaskInfo(run=1, attempts=1, message=message, journal=f"{journal}.journal", **named, **times, **energy)  # type: ignore[arg-type]


def columns_of(tasks: list[TaskInfo], columns: int, monkeypatch: pytest.MonkeyPatch, wattloom: Wattloom) -> str:
    """The heads of the columns, after a look at the width."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("wattloom.history.queries.tasks", lambda *_, **__: tasks)
    lines = wattloom("tasks").stdout.splitlines()
    assert max(map(len, lines)) <= columns
    return " ".join(line for line in lines[:3])


LONG = "ValueError: " + "a long message of many words " * 3


@pytest.mark.parametrize("columns", [60, 80, 100, 120, 160])
@pytest.mark.parametrize("message", ["", LONG])
def test_whose_a_task_is_stands_at_every_width(
    columns: int, message: str, wattloom: Wattloom, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [ran("first-0a1b2c", message), ran("second-0a1b2c", "")]
    assert "journ" in columns_of(tasks, columns, monkeypatch, wattloom)  # its last letters may be on the next line


@pytest.mark.parametrize(
    ("columns", "message", "shown"),
    [(160, LONG, "node submitted journal message"), (80, "", "node submitted"), (80, LONG, "message")],
)
def test_columns_of_tasks_are_left_out_only_where_they_do_not_fit(
    columns: int, message: str, shown: str, wattloom: Wattloom, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("first-0a1b2c", "second-0a1b2c") if "journal" in shown else ("first-0a1b2c",)
    head = columns_of([ran(name, message) for name in names], columns, monkeypatch, wattloom)
    assert all(name in head for name in shown.split())
