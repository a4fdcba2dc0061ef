"""What functions cost, read from journals of programs that really run."""

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from wattloom.energy.used import Used
from wattloom.history.queries import functions
from wattloom.history.stored_log import APPLICATION
from wattloom.monitoring.journal_tail import JournalTail
from wattloom.monitoring.snapshot import TaskUse
from wattloom.scheduling.events import UsageArrived

PROGRAM = """
import sys, wattloom

def crunch(n):
    return sum(range(n))

with wattloom.Executor(1, meter="estimate") as executor:
    for _ in range(int(sys.argv[1])):
        list(executor.map(crunch, [300_000] * 20))
"""


def run(folder: Path, rounds: int) -> None:
    script = folder / "program.py"
    script.write_text(PROGRAM)
    own = os.environ | {"XDG_STATE_HOME": str(folder)}
    subprocess.run([sys.executable, script, str(rounds)], env=own, check=True, timeout=120)


def crunch_of(found: tuple[TaskUse, ...]) -> TaskUse:
    return next(each for each in found if each.function.endswith("crunch"))


def test_only_what_comes_after_the_first_look_counts_and_every_program_does(tmp_path: Path) -> None:
    run(tmp_path, 1)
    tail = JournalTail(tmp_path / "wattloom")
    assert tail(0.0) == ()
    run(tmp_path, 2)
    first = crunch_of(tail(1.0))
    assert first.calls == 40
    assert first.joules > 0.0
    assert (first.device, first.provenance) == ("cpu", "estimated")
    assert first.watts == pytest.approx(first.joules)
    idle = crunch_of(tail(2.0))
    assert (idle.joules, idle.watts) == (first.joules, 0.0)


def test_joules_are_those_the_program_itself_has_written(tmp_path: Path) -> None:
    tail = JournalTail(tmp_path / "wattloom")
    tail(0.0)
    run(tmp_path, 2)
    found = crunch_of(tail(1.0))
    own = next(
        each for each in functions(next((tmp_path / "wattloom").glob("*.journal"))) if each.function.endswith("crunch")
    )
    assert found.calls == own.calls
    assert found.joules == pytest.approx(own.joules, rel=0.02)


def test_a_program_is_followed_while_it_runs(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    own = os.environ | {"XDG_STATE_HOME": str(tmp_path)}
    tail = JournalTail(tmp_path / "wattloom")
    tail(0.0)
    program = subprocess.Popen([sys.executable, script, "100000"], env=own)
    try:
        seen: set[int] = set()
        limit = time.monotonic() + 60
        while len(seen) < 3 and time.monotonic() < limit:
            time.sleep(0.3)
            seen |= {each.calls for each in tail(time.monotonic())}
        assert len(seen) >= 3
    finally:
        program.terminate()
        program.wait(30)


def write(path: Path, *rows: bytes) -> None:
    """A journal's table of records, one row at a time."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute("CREATE TABLE IF NOT EXISTS log (id INTEGER PRIMARY KEY, records BLOB NOT NULL)")
        connection.executemany("INSERT INTO log (records) VALUES (?)", [(row,) for row in rows])


def usage(joules: float) -> bytes:
    used = Used(calls=1, seconds=0.1, joules=joules)
    return msgspec.json.encode(UsageArrived(1.0, "here", 1.0, joules, 0.0, 0.0, functions={"f": used}))


def test_a_row_that_cannot_be_read_is_not_added_up_again_at_every_look(tmp_path: Path) -> None:
    tail, path = JournalTail(tmp_path), tmp_path / "a.journal"
    tail(0.0)
    write(path, usage(2.0) + b'\n{"event":"usage-arrived", cut off')
    for second in range(1, 4):
        tail(float(second))
    write(path, usage(3.0))
    (found,) = tail(4.0)
    assert (found.joules, found.calls) == (5.0, 2)


def test_another_journal_under_the_same_name_is_read_from_its_beginning(tmp_path: Path) -> None:
    tail, path = JournalTail(tmp_path), tmp_path / "a.journal"
    tail(0.0)
    write(path, usage(2.0), usage(2.0))
    tail(1.0)
    write(tmp_path / "b", usage(3.0))
    (tmp_path / "b").replace(path)
    (found,) = tail(2.0)
    assert (found.joules, found.calls) == (7.0, 3)


def test_a_file_that_is_no_journal_is_passed_over(tmp_path: Path) -> None:
    tail = JournalTail(tmp_path)
    tail(0.0)
    (tmp_path / "broken.journal").write_bytes(b"nothing of the kind" * 100)
    (tmp_path / "empty.journal").touch()
    assert tail(1.0) == ()


def test_without_a_folder_there_is_nothing(tmp_path: Path) -> None:
    assert JournalTail(tmp_path / "none")(0.0) == ()
