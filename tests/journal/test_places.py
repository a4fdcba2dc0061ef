"""Without a setting each program has a journal of its own, and one that is left behind is taken up again."""

from pathlib import Path

from wattloom.journal.journal import Journal
from wattloom.journal.places import open_first_free, something_left
from wattloom.scheduling.log import VERSION, Header

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
