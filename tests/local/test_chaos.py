"""kill -9 of the program, of workers, of both, at random moments: nothing is forgotten, nothing silently doubled."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.local.chaos import notes
from tests.local.chaos.checker import check
from tests.local.chaos.controller import Controller

KILLS = 12
SEED = 4
STATEMENTS = [60, *range(10, 90, 4)]
"""The first life is to leave something behind."""


def test_nothing_is_forgotten_or_doubled_by_kills_at_random_moments(tmp_path: Path) -> None:
    done = Controller(tmp_path, SEED).run(KILLS)
    assert done.violations == [], (tmp_path / "stderr").read_text()
    assert done.kills.total() == KILLS
    found = check(tmp_path)
    assert found.violations == []
    assert found.ends["finished"] > 100  # it came far enough for this to mean something
    assert found.recovered > 100
    assert found.ends["failed"] + found.ends["unknown"] < KILLS * 4, "a kill costs no more than what was running"


def test_nothing_is_forgotten_or_doubled_by_a_kill_at_any_statement_to_the_journal(tmp_path: Path) -> None:
    """Among them are all those by which a life takes over what the one before has left."""
    controller = Controller(tmp_path, SEED)
    died = [controller.live_until_statement(number) for number in STATEMENTS]
    assert sum(died) > len(died) // 2
    assert controller.live_to_the_end("--last").violations == [], (tmp_path / "stderr").read_text()
    found = check(tmp_path, replay=False)
    assert found.violations == []
    assert found.recovered > 50


# -- a checker that cannot find anything proves nothing ----------------------------------------------------------------


@pytest.fixture(scope="module")
def over(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A life without kills and with nothing wrong."""
    folder = tmp_path_factory.mktemp("calm")
    assert Controller(folder, SEED).live_to_the_end("--calm").violations == [], (folder / "stderr").read_text()
    assert check(folder, replay=False).violations == []
    return folder


@pytest.fixture
def copy(over: Path, tmp_path: Path) -> Path:
    return shutil.copytree(over, tmp_path / "copy")


def first_result(folder: Path, kind: str) -> notes.Note:
    return next(
        note for note in notes.read(folder / notes.NOTES) if note.what == "result" and note.words[1].startswith(kind)
    )


def test_the_checker_sees_an_effect_that_happened_twice(copy: Path) -> None:
    notes.append(copy / notes.EFFECTS, f"effect {first_result(copy, 'n').words[1]}")
    found = " ".join(check(copy, replay=False).violations)
    assert "not idempotent and done more than once" in found
    assert "run again after its result was seen" in found


def test_the_checker_sees_a_task_that_finished_without_effect(copy: Path) -> None:
    path = copy / notes.EFFECTS
    gone = first_result(copy, "i").words[1]
    path.write_text("".join(line for line in path.read_text().splitlines(True) if line.split()[2] != gone))
    assert "finished without effect" in " ".join(check(copy, replay=False).violations)


def test_the_checker_sees_a_task_that_the_journal_has_forgotten(copy: Path) -> None:
    notes.append(copy / notes.NOTES, "accepted 1-999999")
    assert "accepted and not in the journal" in " ".join(check(copy, replay=False).violations)


def test_the_checker_sees_ends_that_are_lost_or_doubled(copy: Path) -> None:
    last = "SELECT max(id) FROM log"
    with closing(sqlite3.connect(copy / "work.journal", isolation_level=None)) as connection:
        task = first_result(copy, "i").words[0]
        line = b'{"event":"task-finished","time":9999.0,"task":"%s","attempt":1}\n' % task.encode()
        new = b'{"event":"task-submitted","time":9999.0,"task":{"id":"9-9","function":"f"}}\n'
        connection.execute(f"UPDATE log SET records = CAST(records || ? AS BLOB) WHERE id = ({last})", (line + new,))
    found = " ".join(check(copy, replay=False).violations)
    assert "more than one end" in found
    assert "no end" in found


def test_the_checker_sees_a_future_that_says_something_else_than_the_journal(copy: Path) -> None:
    notes.append(copy / notes.NOTES, f"end {first_result(copy, 'n').words[0]} OutcomeUnknown because")
    found = " ".join(check(copy, replay=False).violations)
    assert "an end that the journal does not have" in found
    assert "futures with more than one end" in found
