"""What commands read from a journal, without opening it for writing: its runs, a task's output, what was learned.

Owns these questions. Works while the program is running, and changes nothing.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec

from wattloom.errors import LogError
from wattloom.journal.lock import holder_of
from wattloom.journal.size import sizes
from wattloom.scheduling.stored_log import is_journal, read_only

RunState = Literal["running", "ended", "cut off", "taken over"]


class Run(msgspec.Struct, frozen=True):
    """One run of a journal."""

    run: int
    began: float
    """Unix time at which the log's clock stands at 0."""
    ended: float | None
    state: RunState
    """`cut off`: it did not end properly, or left tasks unfinished, and no later run has taken them over."""
    unfinished: int | None
    """Tasks it left; None: not known yet."""
    program: str
    pid: int
    policy: str
    bytes: int
    """Of its log, and of what it keeps."""


def runs(path: Path) -> list[Run]:
    """All runs, oldest first."""
    holder = holder_of(path)
    with _reading(path) as connection:
        rows = connection.execute(
            "SELECT run, began, ended, unfinished, taken_over, program, pid, header FROM runs ORDER BY run"
        ).fetchall()
        size = sizes(connection)
    found = []
    for run, began, ended, unfinished, taken_over, program, pid, header in rows:
        under_way = holder is not None and run == holder.run
        state = _state(under_way, ended, unfinished, taken_over)
        policy = msgspec.json.decode(header).get("policy", "")
        found.append(Run(run, began, ended, state, unfinished, program, pid, policy, size.get(run, 0)))
    return found


def output_of(path: Path, task: str, run: int | None = None) -> bytes | None:
    """What a task wrote, the end of it if it was much; of the last run that has some. None: nothing is kept."""
    with _reading(path) as connection:
        row = connection.execute(
            "SELECT text FROM output WHERE task = ? AND run = coalesce(?, run) ORDER BY run DESC LIMIT 1", (task, run)
        ).fetchone()
    return None if row is None else bytes(row[0])


def learned_in(path: Path) -> dict[tuple[str, str], Any]:
    """What was learned, by function and machine."""
    with _reading(path) as connection:
        rows = connection.execute(
            "SELECT function, machine, figures FROM learned ORDER BY function, machine"
        ).fetchall()
    return {(function, machine): msgspec.json.decode(figures) for function, machine, figures in rows}


def _state(under_way: bool, ended: float | None, unfinished: int | None, taken_over: int | None) -> RunState:
    if taken_over is not None:
        return "taken over"
    if under_way:
        return "running"
    return "ended" if unfinished == 0 else "cut off"


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Raises LogError, in words, whatever is wrong."""
    if not path.is_file():
        raise LogError(str(path), "No such file")
    if not is_journal(path):
        raise LogError(str(path), "is not a journal")
    with closing(read_only(path)) as connection:
        try:
            yield connection
        except sqlite3.Error as problem:
            raise LogError(str(path), f"cannot be read: {problem}") from problem
