"""What a journal is given is on disk after a commit, as one whole."""

import sqlite3
from pathlib import Path

import pytest

from wattloom.history.log import Log
from wattloom.history.runs import learned_in, output_of, runs
from wattloom.journal.errors import JournalBusy
from wattloom.journal.journal import Journal
from wattloom.journal.payloads import Call, KeptFunction
from wattloom.journal.pending import MOST_OUTPUT

from .conftest import Opener, connection_of

TICK = b'{"event":"tick","time":1.0}\n'


def count(path: Path, table: str) -> int:
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        found: int = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    connection.close()
    return found


def test_nothing_is_on_disk_before_the_commit_and_everything_after(path: Path, open_journal: Opener) -> None:
    journal = open_journal()
    journal.append(TICK)
    journal.keep([Call("t1", "d", b"args")])
    journal.keep_function("d", "f", b"blob")
    journal.keep_output("t1", b"hello\n")
    journal.learn("f", "m", {"calls": 3})
    tables = ("log", "payloads", "functions", "output", "learned")
    assert [count(path, table) for table in tables] == [0] * 5
    journal.commit()
    assert [count(path, table) for table in tables] == [1] * 5


def test_one_commit_is_one_row_of_the_log(path: Path, open_journal: Opener) -> None:
    journal = open_journal()
    for _ in range(3):
        journal.append(TICK)
        journal.append(TICK + TICK)
        journal.commit()
    journal.commit()
    assert count(path, "log") == 3
    assert list(Log(path).lines()) == [TICK] * 9
    assert journal.run_bytes == 9 * len(TICK)


def test_a_forgotten_chunk_is_deleted_with_the_next_commit(path: Path, open_journal: Opener) -> None:
    journal = open_journal()
    chunks = [journal.keep([Call(f"t{number}", "d", b"")]) for number in range(3)]
    journal.commit()
    journal.forget(chunks[1])
    assert count(path, "payloads") == 3
    journal.commit()
    assert count(path, "payloads") == 2


def test_a_chunk_that_came_and_went_between_two_commits_is_never_written(path: Path, open_journal: Opener) -> None:
    journal = open_journal()
    journal.forget(journal.keep([Call("t1", "d", b"")]))
    kept = journal.keep([Call("t2", "d", b"")])
    journal.commit()
    assert count(path, "payloads") == 1
    journal.forget(kept)
    journal.commit()
    assert count(path, "payloads") == 0


def test_a_function_is_stored_once_also_over_runs(path: Path, open_journal: Opener) -> None:
    for _ in range(2):
        journal = open_journal()
        for _ in range(3):
            journal.keep_function("d", "f", b"blob")
            journal.commit()
        journal.end_run(1001.0)
        assert journal.function("d") == KeptFunction("d", "f", b"blob")
        assert journal.function("e") is None
        journal.close()
    assert count(path, "functions") == 1


def test_what_was_learned_is_replaced_and_read_back(path: Path, open_journal: Opener) -> None:
    journal = open_journal()
    assert journal.learned("f", "m") is None
    journal.learn("f", "m", {"calls": 1})
    assert journal.learned("f", "m") == {"calls": 1}
    journal.commit()
    journal.learn("f", "m", {"calls": 2})
    journal.commit()
    assert journal.learned("f", "m") == {"calls": 2}
    assert learned_in(path) == {("f", "m"): {"calls": 2}}


def test_of_much_output_the_end_is_kept(path: Path, open_journal: Opener) -> None:
    journal = open_journal()
    journal.keep_output("t1", b"first\x00\xff\n")
    journal.commit()
    journal.keep_output("t1", b"second\n")
    journal.keep_output("loud", b"x" * MOST_OUTPUT + b"end")
    journal.commit()
    assert output_of(path, "t1") == b"first\x00\xff\nsecond\n"
    loud = output_of(path, "loud")
    assert loud is not None
    assert len(loud) == MOST_OUTPUT
    assert loud.endswith(b"xend")
    journal.keep_output("loud", b"more")
    journal.commit()
    assert output_of(path, "loud") == (loud + b"more")[-MOST_OUTPUT:]
    assert output_of(path, "quiet") is None


def test_a_failed_commit_writes_nothing_and_a_later_one_everything(path: Path, open_journal: Opener) -> None:
    journal = open_journal()
    connection_of(journal).execute("PRAGMA busy_timeout = 10")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    journal.append(TICK)
    journal.keep([Call("t1", "d", b"")])
    with pytest.raises(JournalBusy, match="close that program"):
        journal.commit()
    assert (count(path, "log"), count(path, "payloads")) == (0, 0)
    other.execute("ROLLBACK")
    other.close()
    journal.append(TICK)
    journal.commit()
    assert list(Log(path).lines()) == [TICK] * 2
    assert count(path, "payloads") == 1


def test_runs_are_numbered_on_and_say_how_they_ended(path: Path, open_journal: Opener) -> None:
    journal = open_journal(began=1000.0)
    assert [(run.run, run.state) for run in runs(path)] == [(1, "running")]
    journal.end_run(1010.0)
    assert journal.begin_run(Log(path).header, 1020.0) == 2
    journal.end_run(1030.0, unfinished=3)
    journal.begin_run(Log(path).header, 1040.0)
    journal.close()
    found = runs(path)
    assert [(run.run, run.began, run.ended) for run in found] == [
        (1, 1000.0, 1010.0),
        (2, 1020.0, 1030.0),
        (3, 1040.0, None),
    ]
    assert [run.state for run in found] == ["ended", "cut off", "cut off"]
    assert {run.policy for run in found} == {"fifo"}


def test_what_is_given_out_of_turn_is_refused(open_journal: Opener) -> None:
    journal = open_journal()
    with pytest.raises(ValueError, match="has not ended"):
        open_run(journal)
    journal.end_run(1001.0)
    for out_of_turn in (
        lambda: journal.append(TICK),
        lambda: journal.keep([]),
        lambda: journal.end_run(1.0),
        lambda: journal.taken_over(1),
    ):
        with pytest.raises(ValueError, match="no run was begun"):
            out_of_turn()


def open_run(journal: Journal) -> None:
    journal.begin_run(Log(journal.path).header, 1.0)


def test_the_files_are_for_their_owner_only(path: Path, open_journal: Opener) -> None:
    journal = open_journal()
    journal.spool.write("t1", [b"secret"])
    journal.append(TICK)
    journal.commit()
    assert path.parent.stat().st_mode & 0o777 == 0o700
    files = [entry for entry in path.parent.iterdir() if entry.is_file()]
    assert len(files) == 4  # the journal, its two companions and the lock
    assert {entry.stat().st_mode & 0o777 for entry in files} == {0o600}
    assert journal.spool.folder.stat().st_mode & 0o777 == 0o700


def test_a_closed_journal_is_one_file_and_its_lock(path: Path, open_journal: Opener) -> None:
    journal = open_journal()
    journal.append(TICK)
    journal.close()
    journal.close()
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["work.journal", "work.journal.lock"]
    with pytest.raises(ValueError, match="is closed"):
        journal.function("d")
