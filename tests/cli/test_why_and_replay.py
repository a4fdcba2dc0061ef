"""What `why` and `replay` say of logs that are not as one would wish."""

from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import SCENARIO, Wattloom

from wattloom.history.log import VERSION, Header, Log, LogWriter
from wattloom.policies.loading import load_policy
from wattloom.scheduling.instructions import Place
from wattloom.testing.harness import Harness


def written(path: Path, h: Harness) -> Path:
    with path.open("wb") as file:
        writer = LogWriter(file, Header(VERSION, h.policy.name, "test"))
        for event, instructions in h.recorded:
            writer.write(event, instructions)
    return path


def crowded() -> Harness:
    """One core: x has it, first and t wait for it."""
    h = Harness(load_policy("fifo")).node("a", cpu=1.0)
    for task in ("x", "first", "t"):
        h.submit(task)
    return h


def test_why_says_that_decisions_are_not_those_recorded_and_which_were(log: Path, wattloom: Wattloom) -> None:
    log.write_bytes(log.read_bytes().replace(b'"policy":"pack"', b'"policy":"random"', 1))
    placed = [record for record in Log(log).records() if isinstance(record, Place) and record.task == "t50"]
    shown = wattloom("why", "t50", "--log", log).stdout
    assert "no longer lead to the recorded decisions" in shown
    assert f"recorded: placed on {placed[0].node} at " in shown
    assert "random sent" not in shown


def test_why_tells_of_those_ahead(tmp_path: Path, wattloom: Wattloom) -> None:
    shown = wattloom("why", "t", "--log", written(tmp_path / "run.log", crowded())).stdout
    assert "t still waits where the log ends: behind 1 task of its kind; the first of them: no node has room" in shown


def test_why_tells_of_the_tasks_that_come_before(tmp_path: Path, wattloom: Wattloom) -> None:
    h = crowded()
    h.submit("last", after=("x", "t"))
    shown = wattloom("why", "last", "--log", written(tmp_path / "run.log", h)).stdout
    assert "tasks it comes after have not finished (waits-for-other-tasks): t, x." in shown


def test_why_tells_how_a_task_ended_that_was_never_decided_on(tmp_path: Path, wattloom: Wattloom) -> None:
    h = crowded()
    h.cancel("t")
    shown = wattloom("why", "t", "--log", written(tmp_path / "run.log", h)).stdout
    assert shown == "t ended as cancelled at 0.000 s: it was cancelled (cancelled).\n"


@pytest.mark.parametrize(
    ("policy", "verdict"),
    [("fifo", "costs the same; the tie rule decided"), ("random", "the policy chose otherwise than by cost")],
)
def test_why_says_of_equals_what_is_true(policy: str, verdict: str, tmp_path: Path, wattloom: Wattloom) -> None:
    h = Harness(load_policy(policy)).node("a").node("b", labels={"zone": "b"})
    h.submit("t")
    assert verdict in wattloom("why", "t", "--log", written(tmp_path / "run.log", h)).stdout


def test_why_names_the_unit_of_costs(scenario: Path, tmp_path: Path, wattloom: Wattloom) -> None:
    path = tmp_path / "run.log"
    wattloom("simulate", scenario, "--policy", "least-joules", "--log", path)
    assert "cost, J" in wattloom("why", "t1", "--log", path).stdout


def test_an_empty_log_has_no_saving_and_no_other_reason_for_it(tmp_path: Path, wattloom: Wattloom) -> None:
    path = written(tmp_path / "run.log", Harness(load_policy("fifo")))
    shown = wattloom("replay", path, "--policy", "pack").stdout
    assert "There are no tasks in the log, so no saving is given." in shown
    assert "would not have finished" not in shown


def test_the_energy_of_other_work_is_not_shown_beside_that_of_what_was_done(tmp_path: Path, wattloom: Wattloom) -> None:
    h = crowded()
    h.start("x")
    h.pass_time(10.0)
    path = written(tmp_path / "run.log", h)
    shown = wattloom("replay", path, "--policy", "pack").stdout
    assert "pack would not have finished the same number of tasks, so no saving is given." in shown
    rows = {row.split()[0]: row.split()[3:5] for row in shown.splitlines() if row.startswith((" as it", " would"))}
    assert rows == {"as": ["fifo", "<0.001"], "would": ["pack", "-"]}


def one_call(backend: Harness) -> Harness:
    """On the only node; it took five seconds to start up."""
    backend.node("a", cpu=1.0)
    backend.submit("t")
    backend.pass_time(5.0)
    backend.start("t")
    backend.pass_time(1.0)
    backend.finish("t", 1.0)
    return backend


@pytest.mark.parametrize("policy", ["fifo", "round-robin"])
def test_no_policy_is_said_to_save_on_a_call_that_has_one_place_to_go(
    policy: str, tmp_path: Path, wattloom: Wattloom
) -> None:
    path = written(tmp_path / "run.log", one_call(Harness(load_policy("fifo"))))
    shown = wattloom("replay", path, "--policy", policy).stdout
    assert f"Under {policy} the same work would have cost as much energy as under fifo, both simulated." in shown
    rows = [row.strip().split("  ")[0] for row in shown.splitlines() if " fifo " in row or f" {policy} " in row]
    assert rows[:3] == ["as it ran", "the same, simulated", "would have been"]


def test_what_really_ran_is_not_compared_where_its_policy_is_a_file_nobody_trusts(
    tmp_path: Path, wattloom: Wattloom
) -> None:
    path = written(tmp_path / "run.log", one_call(Harness(load_policy("fifo"))))
    path.write_bytes(path.read_bytes().replace(b'"policy":"fifo"', b'"policy":"mine.py:Mine"', 1))
    shown = wattloom("replay", path, "--policy", "pack").stdout
    assert "What really ran is not compared with a simulation, so no saving is given." in shown
    assert "less energy" not in shown


@pytest.mark.parametrize("words", [("replay", "run.log"), ("why", "t", "--log", "run.log")])
def test_a_log_that_names_an_unknown_node_is_refused_with_the_line(
    words: tuple[str, ...], tmp_path: Path, wattloom: Wattloom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = written(Path("run.log"), crowded())
    path.write_bytes(path.read_bytes() + b'{"instruction":"sleep","node":"ghost"}\n')
    result = wattloom(*words)
    line = path.read_bytes().count(b"\n")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: run.log:{line}: names node ghost, which is not here\n")


@pytest.mark.parametrize("words", [("replay",), ("why", "t1", "--log")])
def test_a_person_who_waits_sees_how_far_the_log_is_read(
    words: tuple[str, ...], tmp_path: Path, wattloom: Wattloom, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, path = tmp_path / "many.toml", tmp_path / "run.log"
    scenario.write_text(SCENARIO.replace("count = 60", "count = 600"))
    assert wattloom("simulate", scenario, "--policy", "pack", "--log", path).exit_code == 0
    shown: list[tuple[Any, ...]] = []
    monkeypatch.setattr("wattloom.cli.progress._Shown.__call__", lambda self, *progress: shown.append(progress))
    monkeypatch.setattr("wattloom.cli.progress.sys", _Terminal)
    assert wattloom(*words, path).exit_code == 0
    assert shown
    assert {total for _, total in shown} == {600}


class _Terminal:
    """A stderr that somebody looks at."""

    class stderr:
        @staticmethod
        def isatty() -> bool:
            return True
