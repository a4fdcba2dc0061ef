"""Without a setting each program has a journal of its own, and one that is left behind is taken up again."""

import os
from pathlib import Path

import pytest

from wattloom.history.log import VERSION, Header
from wattloom.journal import default_path, lock
from wattloom.journal.default_path import open_first_free, something_left
from wattloom.journal.errors import JournalBusy
from wattloom.journal.journal import Journal
from wattloom.journal.keys import keys_path
from wattloom.journal.lock import Lock

HEADER = Header(VERSION, "fifo", "local")
SUBMITTED = b'{"event":"task-submitted","time":1.0,"task":{"id":"t1","function":"f"}}\n'


def test_the_second_of_a_program_gets_the_second_journal(path: Path) -> None:
    first, second, third = (open_first_free(path) for _ in range(3))
    assert [each.path.name for each in (first, second, third)] == ["work.journal", "work-2.journal", "work-3.journal"]
    second.close()
    again = open_first_free(path)
    assert again.path.name == "work-2.journal"
    for each in (first, third, again):
        each.close()


def test_one_with_unfinished_tasks_goes_first(path: Path) -> None:
    first, second = open_first_free(path), open_first_free(path)
    for journal, left in ((first, 0), (second, 1)):
        journal.begin_run(HEADER, 1.0)
        journal.append(SUBMITTED)
        journal.end_run(2.0, unfinished=left)
        assert not something_left(journal.path)  # while it is in use
        journal.close()
    assert [something_left(path), something_left(path.with_name("work-2.journal"))] == [False, True]
    found = open_first_free(path)
    assert found.path.name == "work-2.journal"
    assert [left.task.id for left in found.unfinished()] == ["t1"]
    other = open_first_free(path)
    assert other.path.name == "work.journal"
    found.close()
    other.close()


def test_what_is_no_journal_has_nothing_left(tmp_path: Path) -> None:
    assert not something_left(tmp_path / "nothing")
    (tmp_path / "file").write_text("hello\n")
    assert not something_left(tmp_path / "file")
    Journal.open(tmp_path / "new").close()
    assert not something_left(tmp_path / "new")


def used(path: Path, unfinished: int = 0) -> Path:
    """A journal after a run, with a file in its spool."""
    with_run = Journal.open(path)
    with_run.begin_run(HEADER, 1.0)
    with_run.append(SUBMITTED)
    with_run.spool.write("args-1-1", [b"large"])
    with_run.end_run(2.0, unfinished=unfinished)
    with_run.close()
    return path


def test_with_a_journal_goes_all_that_belongs_to_it(path: Path) -> None:
    other = used(path.with_name("work-2.journal"))
    before = set(path.parent.iterdir())
    assert default_path.remove(used(path))
    assert set(path.parent.iterdir()) == before
    assert something_left(other) is False


def test_a_journal_that_may_be_wanted_is_not_removed(path: Path, tmp_path: Path) -> None:
    assert not default_path.remove(used(path, unfinished=1))
    with_keys = used(path.with_name("keys.journal"))
    keys_path(with_keys).touch()
    assert not default_path.remove(with_keys)
    in_use = Journal.open(path.with_name("open.journal"))
    assert not default_path.remove(in_use.path)
    in_use.close()
    (tmp_path / "file.journal").write_text("hello\n")
    assert not default_path.remove(tmp_path / "file.journal")
    assert all(each.exists() for each in (path, with_keys, in_use.path, tmp_path / "file.journal"))
    assert something_left(path)


def test_a_lock_whose_file_is_removed_in_the_last_moment_is_taken_anew(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else two programs would have locked two files of the same name."""
    opened = lock._opened
    removed: list[Path] = []

    def opened_and_removed(of: Path) -> int:
        descriptor = opened(of)
        if not removed:
            removed.append(of)
            os.unlink(of)
        return descriptor

    path.parent.mkdir(exist_ok=True)
    monkeypatch.setattr(lock, "_opened", opened_and_removed)
    held = Lock.take(path)
    assert removed
    with pytest.raises(JournalBusy):
        Lock.take(path)
    held.release()
