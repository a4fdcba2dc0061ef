"""Recorded samples of CPU use and watts, as a file has them.

Owns the form `time_s,cpu_cores,watts` and its errors. Needs numpy.
"""

import csv
from io import StringIO
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wattloom.errors import InputError

COLUMNS: Final = ("time_s", "cpu_cores", "watts")


def read_samples(text: str, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Cores in use and watts, in order of time."""
    rows = csv.DictReader(StringIO(text))
    missing = [column for column in COLUMNS if column not in (rows.fieldnames or ())]
    if missing:
        raise InputError(
            name, f"the first line must name the columns {','.join(COLUMNS)}; missing: {', '.join(missing)}"
        )
    found: list[tuple[float, ...]] = []
    for row in rows:
        try:
            found.append(tuple(float(row[column] or "") for column in COLUMNS))
        except (TypeError, ValueError):
            raise InputError(f"{name}, line {rows.line_num}", "must be three numbers: time_s,cpu_cores,watts") from None
    table = np.array(sorted(found)).reshape(-1, len(COLUMNS))
    return table[:, 1], table[:, 2]
