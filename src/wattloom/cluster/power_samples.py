"""Recorded samples of CPU use and watts, as a file has them.

Owns the form `time_s,cpu_cores,watts` and its errors. Needs numpy.
"""

import csv
from collections.abc import Iterator
from io import StringIO
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wattloom.errors import InputError

COLUMNS: Final = ("time_s", "cpu_cores", "watts")
BOUNDS: Final = ((-1e12, 1e12), (0.0, 1e6), (1e-6, 1e9))


def read_samples(text: str, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Cores in use and watts, in order of time."""
    rows = csv.DictReader(StringIO(text, newline=None))  # line ends of every system
    try:
        found = list(_samples(rows, name))
    except csv.Error as problem:
        raise InputError(f"{name}, line {rows.line_num + 1}", f"is no CSV: {problem}") from problem
    table = np.array(sorted(found)).reshape(-1, len(COLUMNS))
    return table[:, 1], table[:, 2]


def _samples(rows: "csv.DictReader[str]", name: str) -> Iterator[tuple[float, ...]]:
    missing = [column for column in COLUMNS if column not in (rows.fieldnames or ())]
    if missing:
        raise InputError(
            name, f"the first line must name the columns {','.join(COLUMNS)}; missing: {', '.join(missing)}"
        )
    for row in rows:
        try:
            found = tuple(float(row[column] or "") for column in COLUMNS)
        except (TypeError, ValueError):
            raise InputError(f"{name}, line {rows.line_num}", "must be three numbers: time_s,cpu_cores,watts") from None
        _refuse(found, f"{name}, line {rows.line_num}")
        yield found


def _refuse(row: tuple[float, ...], where: str) -> None:
    """Figures that no machine has: squares of them would not be numbers any more."""
    for column, value, (least, most) in zip(COLUMNS, row, BOUNDS, strict=True):
        if not least <= value <= most:
            raise InputError(f"{where}: {column}", f"must be from {least:g} to {most:g}, not {value:g}")
