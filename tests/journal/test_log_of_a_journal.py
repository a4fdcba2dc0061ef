"""A run in a journal is a log like any other: the same bytes, the same answers."""

from pathlib import Path

import pytest

from wattloom import api
from wattloom.errors import LogError
from wattloom.history.log import Header, Log, split_run
from wattloom.history.stored_log import ROWS_AT_ONCE
from wattloom.journal.journal import Journal

from .conftest import Opener, Start, connection_of

TICK = b'{"event":"tick","time":1.0}\n'


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    log = tmp_path_factory.mktemp("simulated") / "run.log"
    api.simulate("heats-bursts", "least-joules", log=log)
    return log


def put_into(journal: Journal, log: Path, lines_per_commit: int = 37) -> None:
    """A log written as a program would: some lines with each commit."""
    journal.begin_run(Log(log).header, 1000.0)
    lines = log.read_bytes().splitlines(keepends=True)[1:]
    for at in range(0, len(lines), lines_per_commit):
        journal.append(b"".join(lines[at : at + lines_per_commit]))
        journal.commit()
    journal.end_run(2000.0)


def test_the_log_of_a_journal_is_the_bytes_that_were_written(path: Path, open_journal: Opener, simulated: Path) -> None:
    put_into(open_journal(run=False), simulated, lines_per_commit=5)
    assert len(simulated.read_bytes().splitlines()) > 5 * ROWS_AT_ONCE
    assert b"".join(Log(path).lines()) == simulated.read_bytes().partition(b"\n")[2]
    assert Log(path).header == Log(simulated).header
    assert list(Log(path).records()) == list(Log(simulated).records())
    assert Log(path).tasks() == Log(simulated).tasks() > 0


def test_why_and_replay_answer_as_for_the_text(path: Path, open_journal: Opener, simulated: Path) -> None:
    put_into(open_journal(run=False), simulated)
    assert api.why("t1", path).to_json() == api.why("t1", simulated).to_json()
    assert api.replay(path).to_json() == api.replay(simulated).to_json()
    assert api.replay(path, "pack").to_json() == api.replay(simulated, "pack").to_json()


def test_the_last_run_is_read_unless_another_is_named(path: Path, open_journal: Opener) -> None:
    journal = open_journal(run=False)
    for policy in ("fifo", "pack", "spread"):
        journal.begin_run(Header(2, policy, "local"), 1000.0)
        journal.append(TICK * len(policy))
        journal.end_run(1001.0)
    assert (Log(path).header.policy, Log(path).run) == ("spread", 3)
    assert (Log(path, 1).header.policy, Log(path, 1).run) == ("fifo", 1)
    named = Log(path.with_name("work.journal#2"))
    assert (named.header.policy, named.run, named.path) == ("pack", 2, path)
    assert list(named.lines()) == [TICK] * 4


def test_a_run_that_is_not_there_is_an_error_that_names_those_that_are(path: Path, open_journal: Opener) -> None:
    open_journal()
    with pytest.raises(LogError, match="has no run 7; it has 1"):
        Log(path, 7)
    with pytest.raises(LogError, match="has no run 7; it has 1"):
        Log(path.with_name("work.journal#7"))


def test_a_journal_without_runs_says_so(path: Path, open_journal: Opener) -> None:
    open_journal(run=False)
    with pytest.raises(LogError, match="has no runs yet"):
        Log(path)


def test_a_text_has_no_runs(simulated: Path) -> None:
    assert Log(simulated).run is None
    with pytest.raises(LogError, match="not a journal"):
        Log(simulated, 1)


def test_a_file_that_has_the_mark_in_its_name_is_meant_itself(tmp_path: Path, simulated: Path) -> None:
    odd = tmp_path / "run#3"
    assert split_run(odd) == (tmp_path / "run", 3)
    odd.write_bytes(simulated.read_bytes())
    assert split_run(odd) == (odd, None)
    assert Log(odd).header == Log(simulated).header


def test_reading_ends_where_the_log_stood_when_it_was_opened(path: Path, open_journal: Opener) -> None:
    journal = open_journal()
    for _ in range(ROWS_AT_ONCE + 1):
        journal.append(TICK)
        journal.commit()
    lines = Log(path).lines()
    assert next(lines) == TICK
    journal.append(TICK)
    journal.commit()
    assert len(list(lines)) == ROWS_AT_ONCE
    assert len(list(Log(path).lines())) == ROWS_AT_ONCE + 2


READER = """
import sys
from pathlib import Path
from wattloom.history.log import Log
print(len(list(Log(Path(sys.argv[1])).lines())))
"""


def test_another_program_reads_while_this_one_writes(path: Path, open_journal: Opener, start: Start) -> None:
    journal = open_journal()
    journal.append(TICK * 3)
    journal.commit()
    out, _ = start(READER, path).communicate(timeout=60)
    assert int(out) == 3
    journal.append(TICK)
    journal.commit()


CLOSER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("SELECT count(*) FROM runs").fetchone()
connection.close()
"""


def test_reading_it_in_the_program_that_writes_leaves_its_locks_in_place(
    path: Path, open_journal: Opener, start: Start
) -> None:
    """The last of all programs to close a journal removes the file beside it that holds what is new. Had reading
    dropped this program's locks, the other program would take itself for the last."""
    journal = open_journal()
    journal.append(TICK)
    journal.commit()
    assert list(Log(path).lines()) == [TICK]
    assert start(CLOSER, path).wait(timeout=60) == 0
    assert path.with_name("work.journal-wal").exists()


def test_a_run_pruned_under_the_reader_is_an_error_and_not_a_shorter_log(path: Path, open_journal: Opener) -> None:
    journal = open_journal()
    for _ in range(ROWS_AT_ONCE + 1):
        journal.append(TICK)
        journal.commit()
    lines = Log(path).lines()
    next(lines)
    connection_of(journal).execute("DELETE FROM log")
    with pytest.raises(LogError, match="pruned while it was read"):
        list(lines)
