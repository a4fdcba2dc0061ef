"""What `why` says: of tasks that fit nowhere, of unknown run times, and of pods."""

from pathlib import Path

import pytest
from tests.cli.conftest import Wattloom

from wattloom.history.log import VERSION, Header, LogWriter
from wattloom.policies.loading import load_policy
from wattloom.scheduling import events as ev
from wattloom.testing import builders
from wattloom.testing.builders import CONVEX, LINEAR, requirements
from wattloom.testing.harness import Harness


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch, wattloom: Wattloom) -> None:
    """As wide as the table, so that no word is broken."""
    monkeypatch.setenv("COLUMNS", "220")


def written(path: Path, h: Harness, backend: str = "kubernetes") -> Path:
    with path.open("wb") as file:
        writer = LogWriter(file, Header(VERSION, h.policy.name, backend))
        for event, instructions in h.recorded:
            writer.write(event, instructions)
    return path


def least_joules() -> Harness:
    return Harness(load_policy("least-joules")).function("f")


def test_a_task_that_no_node_may_take_is_not_said_to_be_too_large(tmp_path: Path, wattloom: Wattloom) -> None:
    h = least_joules().node("a").node("b")
    h.submit("n/t#1", needs=requirements(labels={"arch": "none"}))
    shown = wattloom("why", "n/t", "--log", written(tmp_path / "run.log", h)).stdout
    assert "let n/t#1 (f) wait: no node that is here could take it, even when empty" in shown
    assert "n/t#1 still waits where the log ends: no node that is here could take it, even when empty" in shown
    assert "large enough," not in shown
    assert "lacks a label the task asks for (labels-differ)" in shown


def test_a_task_that_is_too_large_says_for_what(tmp_path: Path, wattloom: Wattloom) -> None:
    h = least_joules().node("a")
    h.submit("n/t#1", needs=requirements(64.0))
    shown = wattloom("why", "n/t", "--log", written(tmp_path / "run.log", h)).stdout
    assert "too small for the task even when empty: cpu (node-too-small)" in shown


def test_one_that_waited_for_nodes_is_not_said_to_be_without_them_when_there_are(
    tmp_path: Path, wattloom: Wattloom
) -> None:
    h = least_joules()
    h.submit("n/t#1", needs=requirements(64.0))
    h.node("a")
    shown = wattloom("why", "n/t", "--log", written(tmp_path / "run.log", h)).stdout
    assert "n/t#1 still waits where the log ends: no node that is here could take it, even when empty" in shown


def test_without_a_run_time_watts_are_compared(tmp_path: Path, wattloom: Wattloom) -> None:
    h = least_joules().node("a", LINEAR).node("b", CONVEX)
    h.submit("n/t#1")
    shown = wattloom("why", "n/t", "--log", written(tmp_path / "run.log", h)).stdout
    rows = {row.split()[0]: row for row in shown.splitlines() if row.startswith((" a ", " b "))}
    assert "5.00 W more; unknown: run-time-unknown" in rows["b"]
    assert rows["b"].rstrip().endswith("taken")
    assert "10.00 W more; unknown: run-time-unknown" in rows["a"]
    assert "watts decide: draws more (draws-more)" in rows["a"]
    assert "ranks behind all known ones" not in shown


def test_a_pod_decided_before_the_log_says_where_it_is(tmp_path: Path, wattloom: Wattloom) -> None:
    h = least_joules().node("a")
    h.tell(ev.TaskFound(h.time, builders.task("n/p#1"), "a", 1))
    log = written(tmp_path / "run.log", h)
    said = "n/p#1 was found on a: it was decided before the log began, or by another scheduler or replica.\n"
    assert wattloom("why", "n/p", "--log", log).stdout == said
    assert '"found_on": "a"' in wattloom("why", "n/p", "--log", log, "--json").stdout


def test_a_pod_that_waited_until_somebody_else_had_a_place_for_it_says_so(tmp_path: Path, wattloom: Wattloom) -> None:
    h = least_joules().node("a")
    h.submit("n/p#1", needs=requirements(64.0))
    h.tell(ev.TaskFound(h.time, builders.task("n/p#1", needs=requirements(64.0)), "a", 1))
    shown = wattloom("why", "n/p", "--log", written(tmp_path / "run.log", h)).stdout
    assert "let n/p#1 (f) wait" in shown
    assert shown.splitlines()[-1].startswith("n/p#1 was found on a:")


def test_a_pod_whose_binding_came_through_after_all_was_decided_here(tmp_path: Path, wattloom: Wattloom) -> None:
    h = least_joules().node("a")
    h.submit("n/p#1")
    h.tell(ev.InstructionFailed(h.time, "place", "n/p#1", 1, message="no answer"))
    h.tell(ev.TaskFound(h.time, builders.task("n/p#1"), "a"))
    shown = wattloom("why", "n/p", "--log", written(tmp_path / "run.log", h)).stdout
    assert "least-joules sent n/p#1 (f) to a" in shown
    assert "was found on" not in shown


@pytest.mark.parametrize(
    ("backend", "words"),
    [("kubernetes", "19.000 s after the scheduler's start, least-joules sent"), ("test", "At 19.000 s least-joules")],
)
def test_a_pods_times_say_since_when(backend: str, words: str, tmp_path: Path, wattloom: Wattloom) -> None:
    h = least_joules().node("a")
    h.time = 19.0
    h.submit("n/p#1")
    assert words in wattloom("why", "n/p#1", "--log", written(tmp_path / "run.log", h, backend)).stdout


def test_a_pod_without_its_namespace_gets_a_hint(
    tmp_path: Path, wattloom: Wattloom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    result = wattloom("why", "web-0")
    assert result.exit_code == 2
    assert "a pod is named NAMESPACE/POD, as in `wattloom why default/web-0`" in result.stderr


@pytest.mark.parametrize("columns", [60, 80, 100, 120, 160, 220])
def test_no_word_is_broken_at_any_width(
    columns: int, tmp_path: Path, wattloom: Wattloom, monkeypatch: pytest.MonkeyPatch
) -> None:
    h = Harness(load_policy("least-joules")).node("a").node("b", labels={"zone": "b"})
    h.submit("n/t#1")
    path = written(tmp_path / "run.log", h)
    whole = wattloom("why", "n/t", "--log", path).stdout
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = wattloom("why", "n/t", "--log", path).stdout
    assert max(map(len, shown.splitlines())) <= columns
    assert "run-time-unknown" in whole, whole
    assert {word for word in whole.split() if "-" in word.strip("-\u2500")} <= set(shown.split())
