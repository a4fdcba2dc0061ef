"""How much of a journal each run takes: its log, and what was kept with it.

Owns the figure that retention goes by. What moves from run to run (functions) or comes and goes (payloads) is counted
as it stands; the rest is noted when a run ends, for logs are too long to be looked through at every start.
"""

import sqlite3
from typing import Final

from wattloom.scheduling.stored_log import ROWS_PER_RUN

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


def sizes(connection: sqlite3.Connection) -> dict[int, int]:
    """Bytes by run."""
    found: dict[int, int] = dict(connection.execute(NOTED).fetchall())
    for kept in (FUNCTIONS, PAYLOADS):
        for run, size in connection.execute(kept):
            if run in found:  # rows of runs that were let go may still be there
                found[run] += size
    return found
