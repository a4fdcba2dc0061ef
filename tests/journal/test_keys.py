"""The file of keys: what is kept how long, by which clock, and whose it is."""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from wattloom.journal.errors import JournalCorrupt, JournalTooNew
from wattloom.journal.journal import Journal
from wattloom.journal.keys import DAY_S, KeyStore, keys_path

NOW = 1_800_000_000.0
Open = Callable[..., KeyStore]


@pytest.fixture
def reopen(tmp_path: Path) -> Iterator[Open]:
    opened: list[KeyStore] = []

    def opener(now: float = NOW, journal: str = "a.journal", boot: str = "one") -> KeyStore:
        opened.append(KeyStore(tmp_path / "x.keys", tmp_path / journal, boot, "process", 7.0))
        opened[-1].open(now, list)
        return opened[-1]

    yield opener
    for store in opened:
        store.close()


def finished(store: KeyStore, key: str, now: float) -> None:
    store.finish(key, "1-1", b"", b"result", now)
    store.save(now)


def known(store: KeyStore, *keys: str) -> set[str]:
    return {key for key in keys or ("old", "new", "claimed") if store.glance(key) is not None}


def test_a_result_is_kept_for_its_days_and_goes_when_it_was_found_too_old_twice(reopen: Open) -> None:
    store = reopen()
    finished(store, "old", NOW)
    finished(store, "new", NOW + 5 * DAY_S)
    store.claim("claimed", "1-2", b"", NOW)
    store.save(NOW)
    for day, left in ((6.9, {"old", "new", "claimed"}), (7.1, {"old", "new", "claimed"}), (8.2, {"new", "claimed"})):
        assert known(reopen(NOW + day * DAY_S)) == left


def test_a_clock_that_was_ahead_for_hours_takes_nothing(reopen: Open) -> None:
    finished(reopen(), "old", NOW)
    for now in (NOW + 400 * DAY_S, NOW + 400.5 * DAY_S, NOW + 1.0, NOW + 6.9 * DAY_S, NOW + 7.1 * DAY_S):
        assert known(reopen(now)) == {"old"}
    assert known(reopen(NOW + 8.2 * DAY_S)) == set()


def test_a_clock_that_was_behind_for_hours_takes_nothing(reopen: Open) -> None:
    """As of a machine that has none of its own, until the network has told it the time."""
    finished(reopen(), "old", NOW)
    for now in (0.0, 0.5 * DAY_S, NOW + 1.0, NOW + 1.2 * DAY_S, NOW + 6.9 * DAY_S, NOW + 7.1 * DAY_S):
        assert known(reopen(now)) == {"old"}
    assert known(reopen(NOW + 8.2 * DAY_S)) == set()


def test_what_was_written_by_a_clock_that_was_ahead_is_not_kept_for_ever(reopen: Open) -> None:
    finished(reopen(NOW + 400 * DAY_S), "old", NOW + 400 * DAY_S)
    for day in (0.0, 7.1):
        assert known(reopen(NOW + day * DAY_S)) == {"old"}
    assert known(reopen(NOW + 8.2 * DAY_S)) == set()


def test_what_was_not_saved_did_not_happen(reopen: Open) -> None:
    store = reopen()
    store.claim("new", "1-1", b"", NOW)
    store.close()
    assert known(reopen()) == set()


def test_only_the_journal_that_claimed_a_key_lets_go_of_it(reopen: Open) -> None:
    store = reopen()
    store.claim("claimed", "1-1", b"", NOW)
    store.save(NOW)
    other = reopen(journal="b.journal")
    other.release("claimed", "1-1")
    other.save(NOW)
    found = other.glance("claimed")
    assert found is not None
    assert not other.is_ours(found)
    assert [each.key for each in store.left_under_way()] == ["claimed"]
    store.save(NOW)


def test_a_claim_is_forsaken_when_nobody_has_its_journal(reopen: Open, tmp_path: Path) -> None:
    mine, other = reopen(), reopen(journal="b.journal")
    with closing(Journal.open(tmp_path / "a.journal")):
        mine.claim("claimed", "1-1", b"", NOW)
        mine.save(NOW)
        found = other.glance("claimed")
        assert found is not None
        assert not other.is_forsaken(found)
    assert other.is_forsaken(found)
    assert not mine.is_forsaken(found)


def test_a_file_of_something_else_or_of_a_later_version_is_refused(tmp_path: Path) -> None:
    path = keys_path(tmp_path / "x.journal")
    for pragma, problem in (("application_id = 7", JournalCorrupt), ("user_version = 99", JournalTooNew)):
        store = KeyStore(path, tmp_path / "x.journal", "", "process", 7.0)
        path.unlink(missing_ok=True)
        store.open(NOW, list)
        store.close()
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA {pragma}")
        with pytest.raises(problem, match=r"x\.journal\.keys"):
            store.open(NOW, list)


def forked(act: Callable[[], None]) -> int:
    """Do it in a child; its number."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            act()
            code = 0
        finally:
            os._exit(code)
    return child


def test_what_a_forked_child_writes_stays_when_the_parent_closes_the_file(reopen: Open) -> None:
    store = reopen()
    finished(store, "parent", NOW)
    begun, closed = os.pipe(), os.pipe()

    def in_the_child() -> None:
        own = reopen(journal="b.journal")
        finished(own, "early", NOW)
        os.write(begun[1], b"!")
        os.read(closed[0], 1)
        finished(own, "late", NOW)

    child = forked(in_the_child)
    os.read(begun[0], 1)
    store.close()
    os.write(closed[1], b"!")
    assert os.waitpid(child, 0)[1] == 0
    assert known(reopen(), "parent", "early", "late") == {"parent", "early", "late"}


def test_a_fork_waits_till_a_turn_is_saved_and_the_parent_goes_on_afterwards(reopen: Open) -> None:
    """In the midst of one the child would find the file locked by nobody, for ever."""
    under_way, over = threading.Event(), threading.Event()

    def turns() -> None:
        store = reopen()
        store.claim("parent", "1-1", b"", NOW)
        under_way.set()
        time.sleep(0.5)
        over.set()
        store.save(NOW)
        finished(store, "after", NOW)

    thread = threading.Thread(target=turns)
    thread.start()
    under_way.wait()
    child = forked(lambda: finished(reopen(journal="b.journal"), "child", NOW))
    assert over.is_set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    assert known(reopen(), "parent", "after", "child") == {"parent", "after", "child"}
