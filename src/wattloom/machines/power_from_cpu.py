"""Power from CPU time, learned from a recorded run of one machine.

Owns two answers from the same samples: watts now, from the nearest recorded situations (CPU time now and in the
interval before), and the machine's curve over cores in use. CPU time does not see frequencies: both say how far off
they were on parts of the run they had not seen. Owns too the form of a file of samples (`time_s,cpu_cores,watts`) and
its errors. Needs numpy; knows no meter.
"""

import csv
from collections.abc import Iterator
from io import StringIO
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from wattloom.errors import InputError

Row = NDArray[np.float64]

NEAREST: Final = 9
BEFORE: Final = 0.5
"""Weight of the interval before against the present one: machines and their meters lag."""
PARTS: Final = 5
APART: Final = 10
"""Samples on both sides of a tested part that are not learned from, being nearly the same."""
FEWEST: Final = 5 * NEAREST
LEVELS: Final = 11
COLUMNS: Final = ("time_s", "cpu_cores", "watts")
BOUNDS: Final = ((-1e12, 1e12), (0.0, 1e6), (1e-6, 1e9))


class FittedCurve(msgspec.Struct, frozen=True):
    """Watts over cores in use, and how far single samples were off in parts not learned from."""

    cores: list[float]
    watts: list[float]
    spread: list[float]
    mean_error_w: float
    """Mean absolute error of the curve on unseen parts of the run."""
    nearest_error_w: float
    """The same of the nearest recorded situations."""
    samples: int
    provenance: str = "modelled"


class PowerFromCpu:
    """Nearest recorded situations: the median of their watts."""

    def __init__(self, cpu: Row, watts: Row, nearest: int = NEAREST, learned: NDArray[np.bool_] | None = None) -> None:
        """`cpu`: CPU time per interval in any unit, in order of time. `learned`: which to learn from (all)."""
        self._floor = _floor(cpu)
        which = np.ones(len(cpu), dtype=bool) if learned is None else learned
        self._seen = self._situations(cpu)[which]
        self._watts = watts[which]
        self._nearest = min(nearest, len(self._watts))

    def watts(self, cpu: Row) -> Row:
        """For intervals in order of time; the first has nothing before it."""
        return np.array([self._one(row) for row in self._situations(cpu)])

    def _one(self, situation: Row) -> float:
        apart = ((self._seen - situation) ** 2).sum(axis=1)
        near = np.argpartition(apart, self._nearest - 1)[: self._nearest]
        return float(np.median(self._watts[near]))

    def _situations(self, cpu: Row) -> Row:
        logs = np.log(cpu + self._floor)
        before = np.concatenate([logs[:1], logs[:-1]])
        return np.column_stack([logs, BEFORE * before])


def fit_curve(cpu_cores: Row, watts: Row) -> FittedCurve:
    """A curve that never falls, from samples of cores in use and watts in order of time."""
    _check(cpu_cores, watts)
    at = np.linspace(0.0, float(cpu_cores.max()), LEVELS)
    off, near = np.zeros(len(watts)), np.zeros(len(watts))
    for part in range(PARTS):
        test, learned = blocks(len(watts), part)
        curve = _rising(cpu_cores[learned], watts[learned], at)
        off[test] = watts[test] - np.interp(cpu_cores[test], at, curve)
        model = PowerFromCpu(cpu_cores, watts, learned=learned)
        near[test] = (watts - model.watts(cpu_cores))[test]
    spread = [float(np.sqrt(np.average(off**2, weights=_near(cpu_cores, level, at[1])))) for level in at]
    return FittedCurve(
        cores=[round(float(value), 4) for value in at],
        watts=[round(float(value), 3) for value in _rising(cpu_cores, watts, at)],
        spread=[round(value, 3) for value in spread],
        mean_error_w=float(np.abs(off).mean()),
        nearest_error_w=float(np.abs(near).mean()),
        samples=len(watts),
    )


def blocks(count: int, part: int, parts: int = PARTS) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """A stretch of time to test on, and the rest without its neighbours to learn from."""
    where = np.arange(count)
    first, last = count * part // parts, count * (part + 1) // parts
    test = (where >= first) & (where < last)
    return test, (where < first - APART) | (where >= last + APART)


def _rising(cpu: Row, watts: Row, at: Row) -> Row:
    """Medians around each level, pooled where they would fall."""
    step = at[1]
    levels: list[tuple[float, float]] = []
    for level in at:
        weight = _near(cpu, level, step)
        levels.append((_median(watts, weight), float(weight.sum())))
    return _pooled(levels)


def _near(cpu: Row, level: float, step: float) -> Row:
    """Weights of the samples for a level: falling to nothing one and a half steps away, never all zero."""
    weight: Row = np.maximum(0.0, 1.0 - np.abs(cpu - level) / (1.5 * step)) + 1e-6 / (1e-3 + np.abs(cpu - level))
    return weight


def _median(values: Row, weights: Row) -> float:
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, total[-1] / 2.0)])


def _pooled(levels: list[tuple[float, float]]) -> Row:
    """The nearest sequence that never falls (pool adjacent violators)."""
    pools: list[tuple[float, float, int]] = []
    for value, weight in levels:
        pools.append((value, weight, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (a, wa, na), (b, wb, nb) = pools[-2:]
            pools[-2:] = [((a * wa + b * wb) / (wa + wb), wa + wb, na + nb)]
    return np.concatenate([np.full(count, value) for value, _, count in pools])


def _floor(cpu: Row) -> float:
    """Keeps logarithms finite: a thousandth of the most."""
    return float(cpu.max()) * 1e-4 + 1e-12


def _check(cpu: Row, watts: Row) -> None:
    if len(cpu) < FEWEST:
        raise InputError("samples", f"{len(cpu)} are too few to learn from: record at least {FEWEST}")
    if not (np.isfinite(cpu).all() and np.isfinite(watts).all() and (cpu >= 0).all() and (watts > 0).all()):
        raise InputError("samples", "CPU use must not be negative and watts must be above 0, all of them numbers")
    if cpu.max() <= 0.0:
        raise InputError("samples", "the machine was never busy: there is no curve to learn")


# -- recorded samples --------------------------------------------------------------------------------------------------


def read_samples(text: str, name: str) -> tuple[Row, Row]:
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
