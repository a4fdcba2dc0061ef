"""Recorded power and recorded runs, read from CSV files: every figure checked, every complaint with file and line.

Owns the two formats. Power: `time_s,watts` (or `time_s,joules`, a counter). Runs: `start_s,end_s,function`, and
optionally `cpu_s` and `node`. Cells are separated by commas, semicolons or tabs, as in the first line; figures have
decimal points; other columns are left alone. What the figures mean is not known here.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import isfinite, nan
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wattloom.errors import InputError
from wattloom.files import LONGEST_LINE, lines

Array = NDArray[np.float64]

POWER: Final = ("time_s", "watts")
COUNTER: Final = ("time_s", "joules")
RUNS: Final = ("start_s", "end_s", "function")
SEPARATORS: Final = ",;\t"
DECIMAL_COMMA: Final = re.compile(r"[+-]?\d*,\d+")
MOST_SECONDS: Final = 1e11
"""Times beyond are no seconds since 1970 in our lives, but may well be milliseconds."""
FURTHEST_APART_S: Final = 300.0
FEWEST_READINGS: Final = 10


@dataclass(frozen=True, slots=True)
class RecordedPower:
    """Times that do not fall, and watts."""

    name: str
    time: Array
    watts: Array


@dataclass(frozen=True, slots=True)
class RecordedRuns:
    """Calls; an end that is not known yet is infinite, CPU seconds that are not known are NaN."""

    name: str
    start: Array
    end: Array
    function: NDArray[np.intp]
    names: list[str]
    cpu_s: Array


Row = tuple[int, dict[str, str]]


def read_power(path: str | Path) -> RecordedPower:
    """A file of watts, or of a counter of joules. A cell without a figure is a reading that was lost."""
    rows = _rows(path, POWER, COUNTER)
    first = next(rows, None)
    if first is None:
        raise InputError(str(path), "has no readings below its header")
    column = "watts" if "watts" in first[1] else "joules"
    time, value = [], []
    for line, row in _again(first, rows):
        if not row[column]:
            continue
        time.append(_number(path, line, "time_s", row["time_s"]))
        value.append(_number(path, line, column, row[column], least=0.0))
        if len(time) > 1:
            _check_order(f"{path}, line {line}: ", column, (time[-2], value[-2]), (time[-1], value[-1]))
    return power_of(str(path), time, value, counter=column == "joules")


def power_of(name: str, time: Sequence[float], value: Sequence[float], counter: bool = False) -> RecordedPower:
    """Checked as a whole: enough readings, and seconds."""
    moments, figures = np.asarray(time, dtype=np.float64), np.asarray(value, dtype=np.float64)
    if len(moments) and not (np.isfinite(moments).all() and np.isfinite(figures).all()):
        raise InputError(name, "every time and every figure must be a number")
    if np.any(np.diff(moments) < 0):
        raise InputError(name, "times must not fall; sort the readings")
    again = np.append(False, np.diff(moments) == 0) if len(moments) else np.zeros(0, dtype=np.bool_)
    for at in np.flatnonzero(again & (figures != np.roll(figures, 1))):
        unit = "joules" if counter else "watts"
        _check_order(
            f"{name}, reading {at + 1}: ", unit, (moments[at - 1], figures[at - 1]), (moments[at], figures[at])
        )
    moments, figures = moments[~again], figures[~again]  # said twice, the same is no news
    if counter:
        moments, figures = _from_counter(moments, figures)
    if len(moments) < FEWEST_READINGS:
        count = "1 reading" if len(moments) == 1 else f"{len(moments)} readings"
        raise InputError(name, f"has {count}; at least {FEWEST_READINGS} are needed")
    _check_seconds(name, "time_s", float(moments[-1]))
    apart = float(np.median(np.diff(moments)))
    if apart > FURTHEST_APART_S:
        raise InputError(
            f"{name}: time_s", f"readings are {apart:g} s apart: too far, or milliseconds (then divide them by 1000)"
        )
    return RecordedPower(name, moments, figures)


def _check_order(where: str, column: str, before: tuple[float, float], now: tuple[float, float]) -> None:
    """Times rise. The same reading may be there twice; two figures at one time may not: which one is true?"""
    if now[0] < before[0]:
        raise InputError(f"{where}time_s", f"{now[0]:g} comes after {before[0]:g}; sort the file by time")
    if now[0] == before[0] and now[1] != before[1]:
        raise InputError(
            f"{where}{column}",
            f"{now[1]:.10g} and before it {before[1]:.10g}, both at {now[0]:.12g} s; keep one figure for each time, or "
            "write the times more exactly",
        )


def _from_counter(time: Array, joules: Array) -> tuple[Array, Array]:
    """Watts between two counts; one that went backwards has wrapped or begun anew, and says nothing."""
    apart, more = np.diff(time), np.diff(joules)
    good = (apart > 0) & (more >= 0)
    return time[1:][good], more[good] / apart[good]


def read_runs(path: str | Path, node: str | None = None) -> RecordedRuns:
    """A file of calls. A call without an end is still under way."""
    calls: list[tuple[float, float, str, float]] = []
    nodes: set[str] = set()
    for line, row in _rows(path, RUNS if node is None else (*RUNS, "node")):
        nodes.add(row.get("node", ""))
        if node is None or row["node"] == node:
            calls.append(_call(path, line, row))
    if not nodes:
        raise InputError(str(path), "has no calls below its header")
    if not calls:
        raise InputError(f"{path}: node", f"no call is on {node}; there are {', '.join(sorted(nodes))[:80]}")
    if node is None and len(nodes) > 1:
        raise InputError(f"{path}: node", f"calls are on {', '.join(sorted(nodes))}; name the one that was metered")
    return runs_of(str(path), calls)


def _call(path: str | Path, line: int, row: dict[str, str]) -> tuple[float, float, str, float]:
    start = _number(path, line, "start_s", row["start_s"])
    end = _number(path, line, "end_s", row["end_s"]) if row["end_s"] else np.inf
    if end < start:
        raise InputError(f"{path}, line {line}: end_s", f"{end:g} is before start_s, {start:g}")
    if not row["function"]:
        raise InputError(f"{path}, line {line}: function", "must not be empty")
    cpu = row.get("cpu_s", "")
    return start, end, row["function"], _number(path, line, "cpu_s", cpu, least=0.0) if cpu else np.nan


def runs_of(name: str, calls: Sequence[tuple[float, float, str, float]]) -> RecordedRuns:
    """Functions in the order of their names."""
    if not calls:
        raise InputError(name, "has no calls")
    if any(not start <= end for start, end, _, _ in calls):
        raise InputError(name, "every call must have a start, and an end that is not before it")
    names = sorted({each[2] for each in calls})
    place = {each: at for at, each in enumerate(names)}
    start = np.array([each[0] for each in calls], dtype=np.float64)
    end = np.array([each[1] for each in calls], dtype=np.float64)
    known = end[np.isfinite(end)]
    _check_seconds(name, "start_s", float(max(start.max(), known.max(initial=0.0))))
    function = np.array([place[each[2]] for each in calls], dtype=np.intp)
    return RecordedRuns(name, start, end, function, names, np.array([each[3] for each in calls], dtype=np.float64))


def _rows(path: str | Path, *layouts: tuple[str, ...]) -> Iterator[Row]:
    """Line numbers and cells by column, blank lines and comments left out."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            first = file.readline(LONGEST_LINE)
            reader = csv.reader(chain([first], lines(file)), delimiter=max(SEPARATORS, key=first.count))
            header = [cell.strip() for cell in next(reader, [])]
            _check_header(path, header, layouts)
            for cells in reader:
                if not any(cell.strip() for cell in cells) or cells[0].lstrip().startswith("#"):
                    continue
                if len(cells) < len(header) or any(cell.strip() for cell in cells[len(header) :]):
                    count = f"{len(cells)} cell{'s' * (len(cells) != 1)}"
                    hint = "; figures need decimal points, not commas" if len(cells) > len(header) else ""
                    raise InputError(
                        f"{path}, line {reader.line_num}", f"has {count}, the header has {len(header)}{hint}"
                    )
                yield reader.line_num, {name: cell.strip() for name, cell in zip(header, cells, strict=False)}
    except UnicodeDecodeError as problem:
        raise InputError(str(path), "is no text file in UTF-8") from problem
    except csv.Error as problem:
        raise InputError(str(path), f"is no CSV file: {problem}") from problem
    except OSError as problem:
        raise InputError(str(path), f"cannot be read: {problem.strerror or problem}") from problem


def _check_header(path: str | Path, header: list[str], layouts: tuple[tuple[str, ...], ...]) -> None:
    if not any(header):
        raise InputError(str(path), f"is empty; the first line must be {','.join(layouts[0])}")
    if any(set(layout) <= set(header) for layout in layouts):
        return
    missing = [name for name in layouts[0] if name not in header]
    raise InputError(
        f"{path}, line 1: {missing[0]}",
        f"no such column; the first line must have {','.join(layouts[0])}, and has {','.join(header)[:80]}",
    )


def _again(first: Row, rest: Iterator[Row]) -> Iterator[Row]:
    yield first
    yield from rest


def _number(path: str | Path, line: int, field: str, text: str, least: float = -np.inf) -> float:
    try:
        found = float(text)
    except ValueError:
        raise InputError(f"{path}, line {line}: {field}", f"{text!r} is not a number{_hint(field, text)}") from None
    if not isfinite(found):
        raise InputError(
            f"{path}, line {line}: {field}", f"{text} is not a figure; leave the cell empty if it is unknown"
        )
    if found < least:
        raise InputError(f"{path}, line {line}: {field}", f"{text} is below {least:g}")
    return found


def _hint(field: str, text: str) -> str:
    """What was meant, as far as can be told: a decimal comma, or in a column of times something else than seconds."""
    if DECIMAL_COMMA.fullmatch(text):
        return f"; is that a decimal comma? Write {text.replace(',', '.')}"
    return "; write seconds, since 1970 or any other moment" if field in ("time_s", "start_s", "end_s") else ""


def _check_seconds(name: str, field: str, latest: float) -> None:
    if latest > MOST_SECONDS:
        raise InputError(f"{name}: {field}", f"{latest:.0f} is no time in seconds; divide milliseconds by 1000")


# -- what a caller gives: a file, or figures ---------------------------------------------------------------------------


def recorded_power(given: str | Path | Sequence[tuple[float, float]]) -> RecordedPower:
    """From a file, or from pairs of seconds and watts."""
    if isinstance(given, str | Path):
        return read_power(given)
    return power_of("power", [each[0] for each in given], [each[1] for each in given])


def recorded_runs(given: str | Path | Sequence[tuple[float, float, str]], node: str | None) -> RecordedRuns:
    """From a file, or from triples of start, end and function."""
    if isinstance(given, str | Path):
        return read_runs(given, node)
    if node is not None:
        raise InputError("node", "runs that are given as triples have no node; leave it out, or give a file")
    return runs_of("runs", [(start, end, function, nan) for start, end, function in given])
