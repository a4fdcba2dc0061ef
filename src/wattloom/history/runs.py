"""The runs of a journal, read without opening it for writing: how each stands and how much it takes, what a task
printed, what was learned.

Owns these questions, what a sound row of `runs` is, and the figure that retention goes by. What moves from run to run
(functions) or comes and goes (payloads) is counted as it stands; the rest is noted when a run ends, for logs are too
long to be looked through at every start. Works while the program is running, and changes nothing.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from wattloom.errors import LogError
from wattloom.history.holder import Holder, holder_of
from wattloom.history.records import Moment
from wattloom.history.stored_log import ROWS_PER_RUN, is_journal, read_only

Count = Annotated[int, msgspec.Meta(ge=0)]
RUNS: Final = "SELECT run, began, ended, unfinished, taken_over, program, pid, header FROM runs ORDER BY run"

WRITTEN: Final = f"""(
    (SELECT coalesce(sum(length(records)), 0) FROM log
        WHERE id BETWEEN run * {ROWS_PER_RUN} AND (run + 1) * {ROWS_PER_RUN} - 1)
    + (SELECT coalesce(sum(length(text)), 0) FROM output WHERE output.run = runs.run)
    + (SELECT coalesce(sum(length(body)), 0) FROM results WHERE results.run = runs.run)
)"""
"""Of a row of `runs`: the bytes of its log, output and results."""
NOTED: Final = f"SELECT run, coalesce(bytes, {WRITTEN}) FROM runs"
FUNCTIONS: Final = "SELECT run, sum(length(blob)) FROM functions GROUP BY run"
PAYLOADS: Final = f"SELECT id / {ROWS_PER_RUN} AS run, sum(length(body)) FROM payloads GROUP BY 1"

RunState = Literal["running", "ended", "cut off", "taken over"]


class RunRow(msgspec.Struct, frozen=True, array_like=True):
    """As RUNS asks for it."""

    run: int
    began: Moment
    ended: Moment | None
    unfinished: Count | None
    taken_over: int | None
    program: str
    pid: int
    header: bytes

    @property
    def cut_off(self) -> bool:
        """Whether it has tasks that nobody has taken over, or was cut off and not looked at since."""
        return self.taken_over is None and (bool(self.unfinished) or (self.unfinished is None and self.ended is None))


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


# -- rows --------------------------------------------------------------------------------------------------------------


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


def rows_of_runs(connection: sqlite3.Connection) -> list[RunRow]:
    """All runs, oldest first. Raises ValueError at a row that cannot have been written so."""
    found = []
    for row in connection.execute(RUNS).fetchall():
        try:
            found.append(msgspec.convert(row, RunRow))
        except msgspec.ValidationError as problem:
            field = RunRow.__struct_fields__[_position(str(problem))]
            raise ValueError(f"row {row[0]} of runs is damaged: {field}: {problem}") from problem
    return found


def _position(problem: str) -> int:
    """Which column msgspec complains of: it ends with `at `$[3]``."""
    number = problem.rpartition("$[")[2].rstrip("]`")
    return int(number) if number.isdecimal() else 0


def sizes(connection: sqlite3.Connection) -> dict[int, int]:
    """Bytes by run. Raises ValueError if a figure is none."""
    found: dict[int, Any] = dict(connection.execute(NOTED).fetchall())
    for run, size in found.items():
        if type(size) is not int or size < 0:  # whatever stands in the column
            raise ValueError(f"row {run} of runs is damaged: bytes: {size!r} is no size")
    for kept in (FUNCTIONS, PAYLOADS):
        for run, size in connection.execute(kept):
            if run in found:  # rows of runs that were let go may still be there
                found[run] += size
    return found
