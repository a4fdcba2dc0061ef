"""Commands that read what was run here: tasks, functions, logs, why and replay without a log."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from tests.cli.conftest import Wattloom

import wattloom as package
from wattloom.cli.main import cli
from wattloom.cli.options import function_names, journal_names, meter_names, size, task_names
from wattloom.errors import InputError, LogError
from wattloom.history.runs import runs

PROGRAM = """
import wattloom


def work(n):
    print("working on", n)
    return n


def breaks(n):
    raise ValueError(f"broken [{n}]")


with wattloom.Executor(max_workers=1) as executor:
    for n in range(NUMBER):
        executor.submit(work, n).result()
    executor.submit(breaks, 1).exception()
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "state" / "wattloom"


def play(name: str, number: int = 3) -> None:
    """Run a program as a user does."""
    Path(f"{name}.py").write_text(PROGRAM.replace("NUMBER", str(number)))
    subprocess.run([sys.executable, "-W", "error", f"{name}.py"], timeout=60, check=True, capture_output=True)


def listed(wattloom: Wattloom, *words: object) -> Any:
    done = wattloom(*words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


# -- tasks -------------------------------------------------------------------------------------------------------------


def test_tasks_are_listed_newest_first_with_what_they_took(wattloom: Wattloom) -> None:
    play("first")
    found = listed(wattloom, "tasks")
    assert [task["task"] for task in found] == ["1-4", "1-3", "1-2", "1-1"]
    assert [task["state"] for task in found] == ["failed", "finished", "finished", "finished"]
    assert found[0]["message"] == "ValueError: broken [1]"
    assert {task["function"] for task in found[1:]} == {"first.work"}
    for task in found[1:]:
        assert task["seconds"] > 0.0
        assert task["spread_j"] >= 0.0
        assert task["provenance"] in ("measured", "modelled", "estimated")


def test_tasks_of_all_programs_stand_together_and_the_table_says_whose_they_are(wattloom: Wattloom) -> None:
    play("first", 1)
    play("second", 1)
    found = listed(wattloom, "tasks")
    assert [task["function"] for task in found] == ["second.breaks", "second.work", "first.breaks", "first.work"]
    shown = wattloom("tasks").stdout
    assert "first-" in shown
    assert "second-" in shown
    assert "broken [1]" in shown


def test_tasks_can_be_chosen_by_state_function_number_and_journal(wattloom: Wattloom) -> None:
    play("first")
    play("second", 1)
    assert {task["function"] for task in listed(wattloom, "tasks", "--state", "failed")} == {
        "first.breaks",
        "second.breaks",
    }
    assert len(listed(wattloom, "tasks", "--function", "first.work", "--limit", 2)) == 2
    assert len(listed(wattloom, "tasks", "--journal", "second")) == 2
    assert wattloom("tasks", "--state", "running").stdout == "No such tasks.\n"


def test_where_nothing_was_run_the_commands_say_what_to_do(wattloom: Wattloom) -> None:
    assert "wattloom run -- COMMAND" in wattloom("tasks").stdout
    assert listed(wattloom, "tasks") == listed(wattloom, "functions") == listed(wattloom, "logs") == []
    for words in (("replay",), ("why", "1-1"), ("logs", "1-1")):
        done = wattloom(*words)
        assert done.exit_code == 2
        assert "no journals in" in done.stderr


def test_a_damaged_journal_does_not_hide_the_others(state: Path, wattloom: Wattloom) -> None:
    play("first", 1)
    (state / "damaged.journal").write_bytes(b"not a database" * 100)
    done = wattloom("tasks", "--json")
    assert len(json.loads(done.stdout)) == 2
    assert done.stderr == f"warning: {state / 'damaged.journal'}: is damaged or is not a journal\n"


@pytest.mark.parametrize("command", ["tasks", "functions", "logs"])
def test_a_journal_that_is_not_there_is_an_error(command: str, wattloom: Wattloom) -> None:
    done = wattloom(command, "--journal", "no-such")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "no-such: there is neither such a file nor such a journal" in done.stderr


@pytest.mark.parametrize("command", ["tasks", "functions", "logs"])
def test_what_is_no_journal_is_said_to_be_none(command: str, tmp_path: Path, wattloom: Wattloom) -> None:
    assert f"{tmp_path}: is a folder: name a journal in it" in wattloom(command, "--journal", tmp_path).stderr
    Path("garbage").write_bytes(b"\x00garbage" * 100)
    done = wattloom(command, "--journal", "garbage")
    assert done.exit_code == 2
    assert "garbage: is damaged, or is not a Wattloom log or journal (" in done.stderr


def test_a_name_that_several_journals_have_has_to_be_longer(wattloom: Wattloom) -> None:
    Path("other").mkdir()
    play("first", 1)
    os.chdir("other")
    play("first", 1)
    assert "several journals begin so: first-" in wattloom("tasks", "--journal", "first").stderr


def test_a_narrow_terminal_shows_less_and_breaks_no_words(wattloom: Wattloom, monkeypatch: pytest.MonkeyPatch) -> None:
    play("first", 1)
    monkeypatch.setenv("COLUMNS", "90")
    lines = wattloom("tasks", "--state", "finished").stdout.splitlines()
    assert any("1-1" in line and "first.work" in line and "finished" in line and " ± " in line for line in lines)


# -- prune -------------------------------------------------------------------------------------------------------------


def test_prune_rehearses_then_removes(wattloom: Wattloom) -> None:
    play("first", 1)
    play("first", 1)
    assert wattloom("tasks", "prune").stdout == "Nothing was old or large enough to go.\n"
    rehearsed = wattloom("tasks", "prune", "--older-than", 0, "--dry-run").stdout
    assert "2 runs would go (1, 2)" in rehearsed
    assert len(listed(wattloom, "tasks")) == 4
    (gone,) = listed(wattloom, "tasks", "prune", "--older-than", 0)
    assert gone["runs"] == [1, 2]
    assert listed(wattloom, "tasks") == []


def test_prune_goes_by_size_oldest_first(state: Path, wattloom: Wattloom) -> None:
    play("first", 1)
    play("first", 5)
    (journal,) = state.glob("*.journal")
    words = ("tasks", "prune", "--larger-than", (runs(journal)[1].bytes + 1) / 1e6)
    (rehearsed,) = listed(wattloom, *words, "--dry-run")
    (gone,) = listed(wattloom, *words)
    assert (rehearsed["runs"], gone["runs"]) == ([1], [1])
    assert [run.run for run in runs(journal)] == [2]


def test_prune_leaves_a_journal_in_use_alone(wattloom: Wattloom) -> None:
    with package.Executor(journal="used.journal") as executor:
        executor.submit(abs, -1).result()
        for more in ((), ("--dry-run",)):
            done = wattloom("tasks", "prune", "--older-than", 0, "--journal", "used.journal", *more)
            assert "used.journal: left alone: " in done.stdout
    assert len(listed(wattloom, "tasks", "--journal", "used.journal")) == 1


# -- functions ---------------------------------------------------------------------------------------------------------


def test_functions_say_what_a_call_costs_and_where(wattloom: Wattloom) -> None:
    play("first", 25)
    found = {each["function"]: each for each in listed(wattloom, "functions")}
    work = found["first.work"]
    assert (work["calls"], work["finished"]) == (25, 25)
    assert found["first.breaks"]["finished"] == 0
    assert work["mean_s"] > 0.0
    assert work["trend_s"] is not None
    assert work["provenance"] in ("measured", "modelled", "estimated")
    assert len(work["machines"]) == 1
    assert "first.work" in wattloom("functions").stdout


# -- logs --------------------------------------------------------------------------------------------------------------


def test_logs_print_what_a_task_printed_and_its_error_on_stderr(wattloom: Wattloom) -> None:
    play("first")
    one, broken = wattloom("logs", "1-2"), wattloom("logs", "1-4")
    assert (one.stdout, one.stderr) == ("working on 1\n", "")
    assert (broken.stdout, broken.stderr) == ("", "[wattloom] 1-4 failed: ValueError: broken [1]\n")
    assert listed(wattloom, "logs", "1-2")["output"] == "working on 1\n"


def test_logs_without_a_task_list_those_that_printed(wattloom: Wattloom) -> None:
    play("first")
    assert [each["task"] for each in listed(wattloom, "logs", "--limit", 2)] == ["1-3", "1-2"]
    assert "working on 2" in wattloom("logs").stdout
    assert "1-4" not in wattloom("logs").stdout


# -- why and replay ----------------------------------------------------------------------------------------------------


def test_why_finds_the_journal_that_has_the_task(wattloom: Wattloom) -> None:
    play("first", 1)
    play("second", 3)
    found = listed(wattloom, "why", "1-3")
    assert found["same_decisions"] is True
    assert found["decisions"][-1]["function"] == "second.work"


def test_a_task_in_several_journals_has_to_be_told_apart(wattloom: Wattloom) -> None:
    play("first", 1)
    play("second", 1)
    for command in ("why", "logs"):
        done = wattloom(command, "1-1")
        assert done.exit_code == 2
        assert "2 journals have a task of this name" in done.stderr
        assert "--journal first-" in done.stderr
        assert "--journal second-" in done.stderr
    assert wattloom("logs", "1-1", "--journal", "first").exit_code == 0
    for option in ("--log", "--journal"):
        found = listed(wattloom, "why", "1-1", option, "second")
        assert found["decisions"][-1]["function"] == "second.work"


def test_why_looks_through_all_runs_of_a_journal(state: Path, wattloom: Wattloom) -> None:
    play("first", 1)
    play("first", 1)
    (journal,) = state.glob("*.journal")
    for log in (journal, f"{journal}#1"):
        found = listed(wattloom, "why", "1-1", "--log", log)
        assert found["decisions"][-1]["function"] == "first.work"


def test_a_task_that_is_nowhere_is_an_error_that_says_where_was_looked(wattloom: Wattloom) -> None:
    play("first", 1)
    done = wattloom("why", "7-7")
    assert done.exit_code == 2
    assert "there is no such task in first-" in done.stderr


def test_replay_without_a_log_takes_the_last_run_however_journals_were_read_since(wattloom: Wattloom) -> None:
    play("first", 1)
    play("second", 2)
    for name in ("second", "first"):
        wattloom("tasks", "--journal", name)
    found = listed(wattloom, "replay")
    assert found["recorded"]["tasks"]["submitted"] == 3
    assert found["same_decisions"] is True
    assert listed(wattloom, "replay", "first")["recorded"]["tasks"]["submitted"] == 2


# -- options -----------------------------------------------------------------------------------------------------------


def test_the_shell_completes_tasks_functions_and_journals(wattloom: Wattloom) -> None:
    play("first", 1)
    play("second", 2)
    ctx, param = click.Context(cli), click.Option(["--any"])
    assert [item.value for item in task_names(ctx, param, "1-")] == ["1-3", "1-2", "1-1"]
    assert [item.value for item in function_names(ctx, param, "second.")] == ["second.breaks", "second.work"]
    (journal,) = journal_names(ctx, param, "fir")
    assert journal.value.startswith("first-")
    assert [item.type for item in journal_names(ctx, param, "elsewhere/")] == ["file"]
    assert {"auto", "off", "estimate"} <= {item.value for item in meter_names(ctx, param, "")}


@pytest.mark.parametrize(
    ("text", "number"), [("17", 17), ("2K", 2048), ("1.5m", 3 << 19), ("1GiB", 1 << 30), ("3 TB", 3 << 40)]
)
def test_sizes_are_bytes_or_have_a_unit(text: str, number: int) -> None:
    assert size(text) == number


# -- the same from Python ----------------------------------------------------------------------------------------------


def test_run_gives_a_functions_value_or_its_error() -> None:
    done = package.run("math:factorial", [5], repeat=2, journal="mine.journal")
    assert (done.value, done.exit_code, len(done.calls), len(done.joules)) == (120, 0, 2, 2)
    failed = package.run("math:factorial", [-1], journal="mine.journal")
    assert isinstance(failed.error, ValueError)
    assert failed.exit_code == 1
    assert [task.state for task in package.tasks("mine.journal")] == ["failed", "finished", "finished"]


def test_run_gives_a_commands_exit_code() -> None:
    assert package.run(["sh", "-c", "exit 5"], journal="mine.journal").exit_code == 5


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: package.run("math:factorial", repeat=0), "repeat"),
        (lambda: package.run(["ls"], [1]), "args"),
        (lambda: package.run([]), "command"),
        (lambda: package.run("math:factorial", no_such_option=1), "no_such_option"),
        (lambda: package.tasks(states=["done"]), "states"),
        (lambda: package.tasks(limit=0), "limit"),
        (lambda: package.prune(older_than_days=-1.0), "older_than_days"),
    ],
)
def test_wrong_arguments_are_named(call: Any, told: str) -> None:
    with pytest.raises(InputError) as problem:
        call()
    assert problem.value.field == told


def test_a_named_journal_that_is_missing_is_a_log_error() -> None:
    with pytest.raises(LogError):
        package.logs("1-1", "no-such")
