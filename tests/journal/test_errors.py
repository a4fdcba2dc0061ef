"""What can go wrong with a journal is said in words that help, and nothing is lost by it."""

import os
import pickle
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from wattloom.errors import WattloomError
from wattloom.history.holder import holder_of
from wattloom.history.log import Log
from wattloom.history.stored_log import JOURNAL_VERSION
from wattloom.journal.errors import (
    JournalBusy,
    JournalCorrupt,
    JournalError,
    JournalFailed,
    JournalFull,
    JournalNotOurs,
    JournalReadOnly,
    JournalTooNew,
    of_sqlite,
)
from wattloom.journal.journal import Journal
from wattloom.journal.schema import PAGE

from .conftest import Opener, Start

HOLDER = """
import sys, time
from pathlib import Path
from wattloom.journal.journal import Journal

journal = Journal.open(Path(sys.argv[1]), program="resize.py")
print("ready", flush=True)
time.sleep(60)
"""


def test_two_programs_on_one_journal(path: Path, start: Start) -> None:
    other = start(HOLDER, path)
    assert other.stdout is not None
    other.stdout.readline()
    with pytest.raises(JournalBusy, match=rf"in use by process {other.pid} \(resize.py\).*another journal"):
        Journal.open(path)
    holder = holder_of(path)
    assert holder is not None
    assert (holder.pid, holder.program) == (other.pid, "resize.py")
    other.send_signal(signal.SIGKILL)
    other.wait(timeout=60)
    assert holder_of(path) is None
    Journal.open(path).close()


def test_two_executors_of_one_program_on_one_journal(path: Path, open_journal: Opener) -> None:
    journal = open_journal()
    with pytest.raises(JournalBusy, match="this program already"):
        Journal.open(path)
    journal.append(b'{"event":"tick","time":1.0}\n')
    journal.commit()


def test_a_text_is_not_a_journal(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("once upon a time\n" * 100)
    with pytest.raises(JournalCorrupt, match=r"mv .*work.journal .*damaged"):
        Journal.open(path)
    assert path.read_text().startswith("once")
    assert holder_of(path) is None


def test_a_database_of_another_program_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(JournalCorrupt, match="another program"):
        Journal.open(path)
    assert path.read_bytes() == before


def a_large_one(open_journal: Opener) -> None:
    journal = open_journal()
    for number in range(50):
        journal.append(b'{"event":"tick","time":%d.0}\n' % number * 1000)
        journal.commit()
    journal.close()


def test_a_damaged_page_is_found_when_the_journal_is_opened_after_a_crash(path: Path, open_journal: Opener) -> None:
    a_large_one(open_journal)
    whole = path.read_bytes()
    path.write_bytes(whole[:8192] + b"\xff" * 200_000 + whole[208_192:])
    with pytest.raises(JournalCorrupt, match="damaged"):
        Journal.open(path)


def test_damage_in_the_midst_of_a_log_is_found_after_a_crash(path: Path, open_journal: Opener) -> None:
    a_large_one(open_journal)
    whole = bytearray(path.read_bytes())
    middle = len(whole) // 2 // PAGE * PAGE
    whole[middle : middle + PAGE] = b"\xff" * PAGE
    path.write_bytes(whole)
    with pytest.raises(JournalCorrupt, match="damaged"):
        Journal.open(path)


def test_a_file_cut_short_is_found(path: Path, open_journal: Opener) -> None:
    a_large_one(open_journal)
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(JournalCorrupt, match="damaged"):
        Journal.open(path)


def test_a_crash_before_the_tables_were_made_leaves_nothing_to_repair(path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    Journal.open(path).close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (JOURNAL_VERSION,)
    connection.close()


def test_a_journal_of_a_later_version_is_refused_and_left_alone(path: Path, open_journal: Opener) -> None:
    open_journal().close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {JOURNAL_VERSION + 1}")
    connection.close()
    with pytest.raises(JournalTooNew, match=f"version {JOURNAL_VERSION + 1}.*update Wattloom"):
        Journal.open(path)
    with pytest.raises(WattloomError, match=f"version {JOURNAL_VERSION + 1}"):
        Log(path)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match=r"work.journal: could not be opened or written: (File exists|Not a dir)"):
        Journal.open(tmp_path / "file" / "work.journal")


def test_a_folder_is_not_a_journal(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="it is a folder; name a file"):
        Journal.open(tmp_path)


ALL = [JournalBusy, JournalCorrupt, JournalFailed, JournalFull, JournalNotOurs, JournalReadOnly, JournalTooNew]


@pytest.mark.parametrize("kind", ALL)
def test_errors_can_be_handed_from_process_to_process(kind: type[JournalError]) -> None:
    error = pickle.loads(pickle.dumps(kind(Path("a"), "b")))
    assert type(error) is kind
    assert str(error) == "a: b"
    assert isinstance(error, WattloomError)


def test_errors_say_whether_trying_again_may_help() -> None:
    assert [kind for kind in ALL if kind.retryable] == [JournalBusy, JournalFailed, JournalFull]


def test_an_unknown_complaint_of_sqlite_is_passed_on(tmp_path: Path) -> None:
    found = of_sqlite(tmp_path / "work.journal", sqlite3.OperationalError("the moon is full"))
    assert type(found) is JournalFailed
    assert "the moon is full" in str(found)


# -- disks that are full or may not be written: file systems of our own, which nobody else sees -----------------------


def on_a_small_disk(folder: Path, text: str) -> str:
    """Run Python text, given the folder's path, where the folder is a file system of 1 MiB; what it printed."""
    folder.mkdir(exist_ok=True)
    unshare = shutil.which("unshare")
    apart = [str(unshare), "--user", "--map-root-user", "--mount"]
    mount = f"mount -t tmpfs -o size=1m tmpfs '{folder}'"
    if unshare is None or subprocess.run([*apart, "sh", "-c", mount], capture_output=True, check=False).returncode:
        pytest.skip("NOT TESTED: full and read-only disks. Mounting in a namespace of one's own is not allowed here.")
    command = [
        *apart,
        "sh",
        "-c",
        f"{mount} && exec '{sys.executable}' -c \"$1\" '{folder}'",
        "sh",
        textwrap.dedent(text),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_full_disk_is_said_to_be_full_and_what_was_buffered_is_written_when_there_is_room(tmp_path: Path) -> None:
    out = on_a_small_disk(
        tmp_path / "disk",
        r"""
        import sys
        from pathlib import Path
        from wattloom.journal.errors import JournalFull
        from wattloom.journal.journal import Journal
        from wattloom.history.log import VERSION, Header, Log

        folder = Path(sys.argv[1])
        journal = Journal.open(folder / "work.journal")
        journal.begin_run(Header(VERSION, "fifo", "local"), 1.0)
        ballast = folder / "ballast"
        ballast.write_bytes(bytes(500_000))
        given = committed = 0
        problem = None
        while problem is None:
            journal.append(b'{"event":"tick","time":%d.0}\n' % given)
            journal.keep_output("t1", bytes(20_000))
            given += 1
            try:
                journal.commit()
                committed = given
            except JournalFull as found:
                problem = found
        print(problem)
        print(len(list(Log(journal.path).lines())) == committed)
        try:
            journal.spool.write("t1", [bytes(600_000)])
        except JournalFull:
            print([entry.name for entry in journal.spool.folder.iterdir()])
        ballast.unlink()
        journal.append(b'{"event":"tick","time":%d.0}\n' % given)
        journal.commit()
        print([event.time for event in Log(journal.path).events()] == [float(n) for n in range(given + 1)])
        journal.close()
        """,
    ).splitlines()
    assert "the disk is full, nothing was written" in out[0]
    assert "wattloom tasks prune" in out[0]
    assert out[1:] == ["True", "[]", "True"]


def test_a_journal_cannot_be_begun_on_a_full_disk(tmp_path: Path) -> None:
    out = on_a_small_disk(
        tmp_path / "disk",
        r"""
        import os, sys
        from pathlib import Path
        from wattloom.journal.errors import JournalError
        from wattloom.journal.journal import Journal
        from wattloom.journal.progress import Progress

        folder = Path(sys.argv[1])
        try:
            (folder / "ballast").write_bytes(bytes(2_000_000))
        except OSError:
            pass
        for attempt in (lambda: Journal.open(folder / "work.journal"), lambda: Progress.create(folder / "progress")):
            try:
                attempt()
            except Exception as found:
                print(type(found).__name__, found)
        """,
    ).splitlines()
    assert out[0].startswith("JournalFull")
    assert out[1].startswith("JournalFull")


def test_a_read_only_disk_is_said_to_be_read_only_and_can_be_read(tmp_path: Path) -> None:
    out = on_a_small_disk(
        tmp_path / "disk",
        r"""
        import subprocess, sys
        from pathlib import Path
        from wattloom.journal.errors import JournalReadOnly
        from wattloom.journal.journal import Journal
        from wattloom.history.listing import list_tasks
        from wattloom.history.log import VERSION, Header, Log

        folder = Path(sys.argv[1])
        journal = Journal.open(folder / "work.journal")
        journal.begin_run(Header(VERSION, "fifo", "local"), 1.0)
        journal.append(b'{"event":"task-submitted","time":1.0,"task":{"id":"t1","function":"f"}}\n')
        journal.end_run(2.0, unfinished=1)
        journal.close()
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        for name in ("work.journal", "new.journal", "new/work.journal"):
            try:
                Journal.open(folder / name)
            except JournalReadOnly as found:
                print(found)
        path = folder / "work.journal"
        print(len(list(Log(path).lines())), [row.task for row in list_tasks(path)])
        """,
    ).splitlines()
    assert len(out) == 4
    assert all("may not be written: give yourself write access" in line for line in out[:3])
    assert out[3] == "1 ['t1']"
