"""kill -9 at random moments: what was acknowledged is there, nothing is there by half, and it goes on from there."""

import os
import random
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from wattloom.history.log import Log
from wattloom.journal.journal import Journal
from wattloom.scheduling.events import TaskFinished

from .conftest import Start

KILLS = 12
BATCH = 8

WRITER = """
import os, sys
from itertools import count
from pathlib import Path
from wattloom.journal.payloads import Call
from wattloom.journal.journal import Journal
from wattloom.history.log import VERSION, Header

path, batch = Path(sys.argv[1]), int(sys.argv[2])
journal = Journal.open(path, program="writer")
left = journal.unfinished()
run = journal.begin_run(Header(VERSION, "fifo", "local"), 1000.0)

def submitted(task):
    return b'{"event":"task-submitted","time":0.0,"task":{"id":"%s","function":"f"}}\\n' % task.encode()

for each in left:
    journal.append(submitted(each.task.id))
if left:
    journal.keep([each.call for each in left])
for earlier in {each.run for each in left}:
    journal.taken_over(earlier)
journal.keep_function("digest", "f", b"pickled" * 1000)
journal.commit()
os.write(1, b"+" + " ".join(each.task.id for each in left).encode() + b"\\n")

chunks = []
for number in count():
    tasks = [f"r{run}b{number}t{each}" for each in range(batch)]
    for task in tasks:
        journal.append(submitted(task))
    chunks.append((journal.keep([Call(task, "digest", task.encode() * 200) for task in tasks]), tasks))
    journal.commit()
    os.write(1, b"+" + " ".join(tasks).encode() + b"\\n")
    if len(chunks) > 3:
        chunk, ended = chunks.pop(0)
        for task in ended:
            journal.append(b'{"event":"task-finished","time":1.0,"task":"%s","attempt":1}\\n' % task.encode())
        journal.forget(chunk)
        journal.commit()
        os.write(1, b"-" + " ".join(ended).encode() + b"\\n")
"""


def acknowledged(out: bytes) -> tuple[set[str], set[str]]:
    """Tasks that the writer said were accepted, and those it said had ended. A torn last line was not said."""
    accepted: set[str] = set()
    ended: set[str] = set()
    for line in out.decode().splitlines(keepends=True):
        if line.endswith("\n"):
            (accepted if line[0] == "+" else ended).update(line[1:].split())
    return accepted, ended


def test_nothing_acknowledged_is_lost_when_the_program_is_killed_at_any_moment(path: Path, start: Start) -> None:
    chance = random.Random(4)
    accepted: set[str] = set()
    ended: set[str] = set()
    for _ in range(KILLS):
        writer = start(WRITER, path, BATCH)
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.06))
        writer.send_signal(signal.SIGKILL)
        rest, _ = writer.communicate()
        now_accepted, now_ended = acknowledged(first + rest)
        accepted |= now_accepted
        ended |= now_ended
        ended |= ended_in_the_last_run(path)
        check(path, accepted, ended)
    assert len(ended) > KILLS * BATCH  # it came far enough for this to mean something


def check(path: Path, accepted: set[str], ended: set[str]) -> None:
    journal = Journal.open(path)
    try:
        left = {each.task.id: each for each in journal.unfinished()}
        assert accepted - ended <= left.keys(), "accepted tasks are forgotten"
        assert not left.keys() & ended, "ended tasks are run again"
        for name, each in left.items():
            assert each.call is not None, "arguments are lost"
            assert each.call.args == name.encode() * 200
            assert each.function is not None
            assert each.function.blob == b"pickled" * 1000
        assert len(left) % BATCH == 0, "a commit is there by half"
    finally:
        journal.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def ended_in_the_last_run(path: Path) -> set[str]:
    """Tasks whose end was committed, whether or not there was time to say so."""
    return {event.task for event in Log(path).events() if isinstance(event, TaskFinished)}


DYING = """
import os, sys, time
from pathlib import Path
from wattloom.journal.payloads import Call
from wattloom.journal.journal import Journal
from wattloom.history.log import VERSION, Header

journal = Journal.open(Path(sys.argv[1]))
journal.begin_run(Header(VERSION, "fifo", "local"), 1.0)
chunk = journal.keep([Call("t1", "d", b"")])
journal.append(b'{"event":"tick","time":1.0}\\n')
journal.commit()
journal.append(b'{"event":"tick","time":2.0}\\n')
journal.keep([Call("t2", "d", b"")])
journal.keep([Call("t3", "d", b"")])
journal.forget(chunk)
journal.keep_function("d", "f", b"blob")
journal.keep_output("t1", b"text")
journal.learn("f", "m", 1)
left = int(sys.argv[2])

def statement(text):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), 9)

journal.store.connection().set_trace_callback(statement)
journal.commit()
os.kill(os.getpid(), 9)
"""
STATEMENTS = 10
"""Of that commit, from BEGIN to COMMIT."""


@pytest.mark.parametrize("statements", range(STATEMENTS + 1))
def test_a_program_killed_at_any_statement_of_a_commit_leaves_all_of_it_or_nothing(
    path: Path, start: Start, statements: int
) -> None:
    assert start(DYING, path, statements).wait(timeout=60) == -signal.SIGKILL
    with closing(sqlite3.connect(path)) as connection:
        tables = ("log", "payloads", "functions", "output", "learned")
        found = [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables]
    whole = statements == STATEMENTS
    assert found == ([2, 2, 1, 1, 1] if whole else [1, 1, 0, 0, 0])


HOLDER = """
import os, signal, sys, time
from pathlib import Path
from wattloom.journal.journal import Journal

journal = Journal.open(Path(sys.argv[1]), program="parent")
if os.fork() == 0:
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(60)
    os._exit(0)
time.sleep(60)
"""


def test_a_worker_that_outlives_its_killed_parent_does_not_keep_the_journal(path: Path, start: Start) -> None:
    parent = start(HOLDER, path)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    try:
        parent.send_signal(signal.SIGKILL)
        parent.wait(timeout=60)
        Path(f"/proc/{child}").stat()  # it is there still
        Journal.open(path).close()
    finally:
        os.kill(child, signal.SIGKILL)


FORKER = """
import os, sys
from pathlib import Path
from wattloom.journal.journal import Journal
from wattloom.history.log import VERSION, Header

journal = Journal.open(Path(sys.argv[1]))
journal.begin_run(Header(VERSION, "fifo", "local"), 1.0)
journal.append(b'{"event":"tick","time":1.0}\\n')
child = os.fork()
if child == 0:
    journal.close()
    del journal
    sys.exit(0)
os.waitpid(child, 0)
journal.append(b'{"event":"tick","time":2.0}\\n')
journal.end_run(2.0)
journal.close()
"""


def test_a_forked_child_neither_writes_nor_closes_its_parents_journal(path: Path, start: Start) -> None:
    assert start(FORKER, path).wait(timeout=60) == 0
    assert [event.time for event in Log(path).events()] == [1.0, 2.0]


@pytest.mark.parametrize("durability", ["process", "machine"])
def test_both_durabilities_survive_the_end_of_the_process(path: Path, start: Start, durability: str) -> None:
    text = f"""
import os, sys
from pathlib import Path
from wattloom.journal.journal import Journal
from wattloom.history.log import VERSION, Header

journal = Journal.open(Path(sys.argv[1]), durability="{durability}")
assert journal.store.connection().execute("PRAGMA synchronous").fetchone()[0] == {2 if durability == "machine" else 1}
journal.begin_run(Header(VERSION, "fifo", "local"), 1.0)
journal.append(b'{{"event":"tick","time":1.0}}\\n')
journal.commit()
os.kill(os.getpid(), 9)
"""
    assert start(text, path).wait(timeout=60) == -signal.SIGKILL
    assert [event.time for event in Log(path).events()] == [1.0]
