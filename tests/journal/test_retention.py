"""Journals do not grow for ever, and what was not taken care of is not pruned."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from wattloom.history.log import VERSION, Header, Log
from wattloom.history.runs import runs
from wattloom.journal.errors import JournalBusy
from wattloom.journal.journal import Journal
from wattloom.journal.payloads import Call
from wattloom.journal.retention import DAY_S, Retention, prune_file

NOW = time.time()
SUBMITTED = b'{"event":"task-submitted","time":1.0,"task":{"id":"t%d","function":"f"}}\n'
HEADER = Header(VERSION, "fifo", "local")
KEEP_ALL = Retention(days=1e6, megabytes=1e6)


def a_run(path: Path, days_ago: float, *, megabytes: float = 0.0, left: int | None = 0) -> None:
    """One run of a program; left: how many tasks it leaves when it ends, None: it is cut off with a task."""
    journal = Journal.open(path, retention=KEEP_ALL)
    ended = NOW - days_ago * DAY_S
    run = journal.begin_run(HEADER, ended - 1.0)
    journal.append(SUBMITTED % run)
    journal.keep_function(f"d{run}", "f", b"blob")
    journal.keep([Call(f"t{run}", f"d{run}", b"args")])
    journal.keep_output(f"t{run}", b"text")
    for _ in range(round(megabytes * 10)):
        journal.append(b'{"event":"tick","time":1.0}\n' * (100_000 // 28))
        journal.commit()
    if left is not None:
        journal.end_run(ended, unfinished=left)
    journal.close()


def rows(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as connection:
        tables = ("runs", "payloads", "functions", "output")
        return [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables]


def numbers(path: Path) -> list[int]:
    return [run.run for run in runs(path)]


def test_runs_that_ended_too_long_ago_go_with_all_they_had(path: Path) -> None:
    for days in (30.0, 15.0, 13.0, 1.0):
        a_run(path, days)
    assert prune_file(path, Retention()).runs == (1, 2)
    assert numbers(path) == [3, 4]
    assert rows(path) == [2] * 4


def test_opening_a_journal_prunes_it(path: Path) -> None:
    for days in (30.0, 1.0):
        a_run(path, days)
    Journal.open(path).close()
    assert numbers(path) == [2]


def test_the_oldest_go_when_the_journal_is_too_large_and_the_file_becomes_smaller(path: Path) -> None:
    for days in (4.0, 3.0, 2.0, 1.0):
        a_run(path, days, megabytes=2.0)
    size = path.stat().st_size
    assert size > 8e6
    pruned = prune_file(path, Retention(megabytes=5.0))
    assert pruned.runs == (1, 2)
    assert path.stat().st_size < 5e6
    assert pruned.bytes == size - path.stat().st_size


@pytest.mark.parametrize("what", ["function", "payload", "output"])
def test_what_is_kept_beside_the_log_counts(path: Path, what: str) -> None:
    large = b"x" * 60_000  # the most that is kept of an output is a little more
    journal = Journal.open(path, retention=KEEP_ALL)
    for _ in range(3):
        run = journal.begin_run(HEADER, NOW)
        for number in range(20):
            name = f"{run}-{number}"
            if what == "function":
                journal.keep_function(name, "f", large)
            elif what == "payload":
                journal.keep([Call(name, "d", large)])
            else:
                journal.keep_output(name, large)
        journal.end_run(NOW)
    journal.close()
    assert all(1_200_000 <= run.bytes < 1_300_000 for run in runs(path))
    size = path.stat().st_size
    assert prune_file(path, Retention(megabytes=2.0)).runs == (1, 2)
    assert path.stat().st_size < size / 2


def test_a_run_that_was_cut_off_counts_whole(path: Path) -> None:
    journal = Journal.open(path, retention=KEEP_ALL)
    journal.begin_run(HEADER, NOW)
    journal.append(SUBMITTED % 1)
    journal.keep_output("t1", b"x" * 60_000)
    journal.keep_function("d", "f", b"x" * 80_000)
    journal.close()
    before = runs(path)[0].bytes
    assert 140_000 < before < 141_000
    journal = Journal.open(path, retention=KEEP_ALL)
    assert len(journal.unfinished()) == 1
    journal.close()
    assert runs(path)[0].bytes == before


def test_a_function_counts_once_for_the_last_run_that_used_it(path: Path) -> None:
    journal = Journal.open(path, retention=KEEP_ALL)
    grown = []
    for _ in range(3):
        journal.begin_run(HEADER, NOW)
        journal.keep_function("d", "f", b"x" * 1_000_000)
        journal.commit()
        grown.append(journal.run_bytes)
        journal.end_run(NOW)
    journal.close()
    assert [run.bytes for run in runs(path)] == [0, 0, 1_000_000]
    assert grown == [1_000_000, 0, 0]  # a program that calls a large function does not begin a run after each call
    assert prune_file(path, Retention(megabytes=1.5)).runs == ()


def test_opening_lets_runs_go_at_once_and_clears_their_rows_away_bit_by_bit(path: Path) -> None:
    for days in (30.0, 29.0, 1.0):
        a_run(path, days, megabytes=2.0)
    size = path.stat().st_size
    journal = Journal.open(path)
    assert numbers(path) == [3]
    while journal.tidy(0.0):
        pass
    assert not journal.tidy(0.0)
    journal.close()
    assert path.stat().st_size < size / 2
    assert rows(path)[1] == 1
    assert len(list(Log(path).lines())) == 1 + 20 * (100_000 // 28)


def test_unfinished_tasks_keep_their_run_unless_forced(path: Path) -> None:
    a_run(path, 30.0, left=2)
    a_run(path, 29.0, left=None)
    a_run(path, 28.0)
    assert prune_file(path, Retention()).runs == (3,)
    assert prune_file(path, Retention(megabytes=0.001)).runs == ()
    assert numbers(path) == [1, 2]
    assert prune_file(path, Retention(force=True)).runs == (1, 2)
    assert rows(path) == [0] * 4


def test_once_taken_over_a_run_goes_like_any_other(path: Path) -> None:
    a_run(path, 30.0, left=None)
    journal = Journal.open(path)
    assert [left.run for left in journal.unfinished()] == [1]
    journal.begin_run(HEADER, NOW)
    journal.taken_over(1)
    journal.end_run(NOW)
    journal.close()
    assert prune_file(path, Retention()).runs == (1,)
    assert numbers(path) == [2]


def test_a_run_cut_off_with_nothing_left_goes_once_it_was_looked_at(path: Path) -> None:
    journal = Journal.open(path)
    journal.begin_run(HEADER, NOW - 30 * DAY_S)
    journal.close()
    assert prune_file(path, Retention()).runs == ()
    journal = Journal.open(path)
    assert journal.unfinished() == []
    journal.close()
    assert prune_file(path, Retention()).runs == (1,)


def test_a_function_that_a_later_run_used_stays(path: Path) -> None:
    for days in (30.0, 1.0):
        journal = Journal.open(path, retention=KEEP_ALL)
        journal.begin_run(HEADER, NOW - days * DAY_S)
        journal.keep_function("d", "f", b"blob")
        journal.end_run(NOW - days * DAY_S)
        journal.close()
    assert prune_file(path, Retention()).runs == (1,)
    journal = Journal.open(path)
    assert journal.function("d") is not None
    journal.close()


def test_numbers_of_runs_are_not_given_twice(path: Path) -> None:
    a_run(path, 30.0)
    prune_file(path, Retention())
    a_run(path, 1.0)
    assert numbers(path) == [2]


def test_a_journal_in_use_is_not_pruned_by_others(path: Path) -> None:
    journal = Journal.open(path)
    with pytest.raises(JournalBusy):
        prune_file(path, Retention())
    journal.close()


def test_pruning_a_journal_that_is_not_there_makes_none(path: Path) -> None:
    assert prune_file(path, Retention()).runs == ()
    assert not path.exists()
