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
from wattloom.journal.lock import Holder, holder_of
from wattloom.journal.size import RunRow, rows_of_runs, sizes
from wattloom.scheduling.stored_log import is_journal, read_only

RunState = Literal["running", "ended", "cut off", "taken over"]


class _Policy(msgspec.Struct):
    """Of a log's first line."""

    policy: str = ""


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
        size = sizes(connection)
        return [_run(row, size.get(row.run, 0), holder) for row in rows_of_runs(connection)]


def _run(row: RunRow, size: int, holder: Holder | None) -> Run:
    state = _state(holder is not None and row.run == holder.run, row.unfinished, row.taken_over)
    policy = msgspec.json.decode(row.header, type=_Policy).policy
    return Run(row.run, row.began, row.ended, state, row.unfinished, row.program, row.pid, policy, size)


def output_of(path: Path, task: str, run: int | None = None) -> bytes | None:
    """What a task wrote, the end of it if it was much; of the last run that has some. None: nothing is kept."""
    with _reading(path) as connection:
        row = connection.execute(
            "SELECT text FROM output WHERE task = ? AND run = coalesce(?, run) ORDER BY run DESC LIMIT 1", (task, run)
        ).fetchone()
    if row is not None and not isinstance(row[0], bytes):
        raise LogError(str(path), f"is damaged: the output of {task} is {type(row[0]).__name__}, not bytes")
    return None if row is None else row[0]


def learned_in(path: Path) -> dict[tuple[str, str], Any]:
    """What was learned, by function and machine."""
    with _reading(path) as connection:
        rows = connection.execute(
            "SELECT function, machine, figures FROM learned ORDER BY function, machine"
        ).fetchall()
        return {(str(function), str(machine)): msgspec.json.decode(figures) for function, machine, figures in rows}


def _state(under_way: bool, unfinished: int | None, taken_over: int | None) -> RunState:
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
        except (msgspec.MsgspecError, ValueError, TypeError) as problem:
            raise LogError(str(path), f"is damaged: {problem}") from problem
