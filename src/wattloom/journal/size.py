"""How much of a journal each run takes: its log, and what was kept with it.

Owns the figure that retention goes by, and what a sound row of `runs` is. What moves from run to run (functions) or
comes and goes (payloads) is counted as it stands; the rest is noted when a run ends, for logs are too long to be looked
through at every start.
"""

import sqlite3
from typing import Annotated, Any, Final

import msgspec

from wattloom.bounds import LATEST_S
from wattloom.scheduling.stored_log import ROWS_PER_RUN

Moment = Annotated[float, msgspec.Meta(ge=-LATEST_S, le=LATEST_S)]
"""Unix time, or seconds of a log: what lies beyond is damage, and no clock could show it."""
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
