"""The power curve of a machine of which little is known: idle and full draw, perhaps its processor and a few points.

Owns the learned model (`curve_model.json`), how it is asked, and its spread. It was learned from 745 published
SPECpower_ssj2008 results to 2021 (SPEC's and their owners', collected in green-coding-solutions/spec-power-raw-data,
MIT); the file has the model's weights, from which the curves nearly follow. `benchmarks/train_curves.py` makes it.
Watts are at the plug.
"""

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from math import log
from typing import Final, Literal

import msgspec
import numpy as np

from wattloom.cluster.curve_given import check, ends_of
from wattloom.cluster.curve_kernel import Kernel, Matrix, Situations, alike
from wattloom.cluster.curve_shape import FLOOR, INNER, LOADS, Learned, Points, readings, with_points
from wattloom.cluster.processors import maker_of, named

WITHIN_90: Final = 1.645
"""Standard deviations around the mean that hold 90% of a normal distribution."""
POINT_ERROR: Final = 1e-7
"""Variance of the logarithm that a given point may have."""

Nearness = Literal["same processor", "same family", "newer than all", "no processor"]
RECENT: Final = 2.0
"""Years. A processor this close to the last that were learned from is still sold: without a year, its machine may be
newer than all of them."""


class Spread(msgspec.Struct, frozen=True):
    """How far the model was off for machines it had not seen, in logarithms as in `FLOOR`."""

    covariance: list[list[float]]
    alone: float
    """Factor on the standard deviation that makes 90% intervals hold 90%, with no points given."""
    with_points: float
    machines: int
    """How many it was measured on."""


class CurveModel(msgspec.Struct, frozen=True, eq=False):
    """What was learned. Known by identity, so that what follows from it is worked out once."""

    about: str
    kernel: Kernel
    lines: list[str]
    families: list[str]
    models: list[str]
    makers: list[str]
    situations: dict[str, list[float]]
    mean: list[float]
    weights: bytes
    """One row of nine for each situation, as little-endian 32-bit floats: they nearly cancel, so digits matter."""
    weights_without_maker: bytes
    spreads: dict[str, Spread]
    latest: float
    """The year up to which it has seen machines."""


class Curve(msgspec.Struct, frozen=True):
    """Watts at eleven loads, with what they rest on."""

    loads: list[int]
    """Percent of the machine's throughput."""
    watts: list[float]
    spread: list[float]
    """One standard deviation; 0 where the watts were given."""
    low: list[float]
    """With `high`: 90% of machines are expected in between."""
    high: list[float]
    by_load: dict[str, float]
    nearness: str
    """What the model knew that is like this machine."""
    processor: str
    family: str
    quantity: str
    provenance: str
    source: str
    assumed: list[str]
    """What was not given and had to be taken from other machines."""
    unused: list[str] = []
    """What was given and is not known, so that nothing follows from it."""


@cache
def shipped() -> CurveModel:
    text = files("wattloom.cluster").joinpath("curve_model.json").read_bytes()
    return msgspec.json.decode(text, type=CurveModel)


def curve(
    idle_w: float | None = None,
    full_w: float | None = None,
    *,
    cpu: str | None = None,
    year: float | None = None,
    maker: str | None = None,
    points: Mapping[float, float] | None = None,
    model: CurveModel | None = None,
) -> Curve:
    """Watts at 0, 10 ... 100% load. `points`: watts known at other loads (percent), which the curve goes through."""
    model = model or shipped()
    ends, given, assumed, scale = ends_of(idle_w, full_w, cpu, points or {})
    check(ends, given, year)
    logs, sure = shape(model, situation(model, ends, cpu, year, maker), sureness(model, cpu, year), ends, given)
    watts, low, high, spread = _in_watts(ends, logs, sure, given, scale)
    who = named(cpu)
    return Curve(
        loads=list(LOADS),
        watts=watts,
        spread=spread,
        low=low,
        high=high,
        by_load={str(load): value for load, value in zip(LOADS, watts, strict=True)},
        nearness=nearness(model, cpu),
        processor=who.model,
        family=who.family,
        quantity="wall",
        provenance="modelled" if not assumed else "estimated",
        source=model.about,
        assumed=assumed,
        unused=_unused(model, cpu, maker),
    )


def nearness(model: CurveModel, cpu: str | None) -> Nearness:
    """What the model has seen of this processor."""
    who = named(cpu)
    if who.model and who.model in model.models:
        return "same processor"
    if who.family and who.family in model.families:
        return "same family"
    return "newer than all" if who.line and who.line in model.lines else "no processor"


def sureness(model: CurveModel, cpu: str | None, year: float | None) -> str:
    """Which of the model's spreads the machine has.

    One that came after all that were learned from has newer firmware, even if its processor is known. Where nothing
    tells its age it may be such a one, so it has their spread.
    """
    near = nearness(model, cpu)
    newer = model.latest < (year if year is not None else (named(cpu).year or model.latest) + RECENT)
    if near == "no processor":
        return "newer, no processor" if newer else near
    return "newer than all" if newer else near


def shape(
    model: CurveModel,
    asked: Situations,
    sure: str,
    ends: tuple[float, float],
    points: Mapping[float, float],
) -> tuple[Matrix, Matrix]:
    """Logarithms, as in `FLOOR`, at 10 ... 90%, and their standard deviations."""
    told = bool(asked.maker[0] >= 0)
    kernel = model.kernel if told else model.kernel.without_maker()
    between = alike(asked, _seen(model), kernel)
    loads = sorted(points)
    if loads:
        shares = np.array([[(points[load] - ends[0]) / (ends[1] - ends[0]) for load in loads]])
        logs = with_points(_learned(model, told), between, Points(loads, shares, np.exp(asked.idle[:, None])), kernel)
    else:
        weights = _unpacked(model.weights if told else model.weights_without_maker)
        logs = np.array(model.mean) + (between.trend + between.kin) @ weights
    held = model.spreads[sure if told else f"{sure}, maker unknown"]
    return logs[0], left_over(held, loads)


def situation(
    model: CurveModel, ends: tuple[float, float], cpu: str | None, year: float | None, maker: str | None
) -> Situations:
    """The machine as the kernel sees it. Later years than the model has seen count as the year after its last."""
    who = named(cpu)
    when = min(year or who.year or model.latest - 2.0, model.latest + 1.0)
    born = min(who.year or when, model.latest + 1.0)
    codes = (_code(model.lines, who.line), _code(model.families, who.family), _code(model.models, who.model))
    row = (log(ends[0] / ends[1]), log(ends[1]), when, born, *codes, _code(model.makers, maker_of(maker)))
    return Situations(*(np.array([value]) for value in row))


def left_over(held: Spread, loads: Sequence[float]) -> Matrix:
    """Standard deviations at 10 ... 90% once the watts at `loads` are known."""
    spread = np.array(held.covariance)
    if not loads:
        return held.alone * np.sqrt(np.diag(spread))
    reads = readings(loads)[:, 1:-1]
    gain = spread @ reads.T @ np.linalg.inv(reads @ spread @ reads.T + POINT_ERROR * np.eye(len(reads)))
    left = np.diag(spread - gain @ reads @ spread)
    return held.with_points * np.sqrt(np.maximum(left, 0.0))


@lru_cache(maxsize=8)
def _learned(model: CurveModel, told: bool) -> Learned:
    seen = _seen(model)
    if not told:
        return _learned(model, True)._replace(among=alike(seen, seen, model.kernel.without_maker()))
    among = alike(seen, seen, model.kernel)
    logs = np.array(model.mean) + (among.trend + among.kin) @ _unpacked(model.weights)
    return Learned(among, logs, np.exp(seen.idle[:, None]))


@lru_cache(maxsize=8)
def _seen(model: CurveModel) -> Situations:
    return Situations(*(np.array(model.situations[name]) for name in Situations.__struct_fields__))


def _unpacked(rows: bytes) -> Matrix:
    return np.frombuffer(rows, dtype="<f4").astype(np.float64).reshape(-1, INNER)


def _in_watts(
    ends: tuple[float, float], logs: Matrix, sure: Matrix, points: Mapping[float, float], scale: float
) -> tuple[list[float], list[float], list[float], list[float]]:
    idle, full = ends
    pinned = {0.0: idle, 100.0: full, **points}
    floor = FLOOR * idle
    rough = [idle, *(floor + (full - floor) * np.exp(logs)), full]
    watts = _rising([pinned.get(float(load), float(value)) for load, value in zip(LOADS, rough, strict=True)], pinned)
    relative = [0.0 if float(load) in pinned else float(sd) for load, sd in zip(LOADS, (0.0, *sure, 0.0), strict=True)]
    own = [(w - floor) * sd for w, sd in zip(watts, relative, strict=True)]
    spread = [((w * scale) ** 2 + sd * sd) ** 0.5 for w, sd in zip(watts, own, strict=True)]
    bound = (0.0, float("inf")) if scale else ends
    low = [max(bound[0], w - WITHIN_90 * s) for w, s in zip(watts, spread, strict=True)]
    high = [min(bound[1], w + WITHIN_90 * s) for w, s in zip(watts, spread, strict=True)]
    return tuple([round(value, 3) for value in column] for column in (watts, low, high, spread))  # type: ignore[return-value]


def _rising(watts: list[float], pinned: Mapping[float, float]) -> list[float]:
    """Never falling, and never beyond the known points on either side."""
    least = 0.0
    found: list[float] = []
    for load, value in zip(LOADS, watts, strict=True):
        below = max(w for at, w in pinned.items() if at <= load)
        above = min(w for at, w in pinned.items() if at >= load)
        least = max(least, min(max(value, below), above))
        found.append(least)
    return found


def _unused(model: CurveModel, cpu: str | None, maker: str | None) -> list[str]:
    found = []
    if cpu and nearness(model, cpu) == "no processor":
        found.append(f"cpu: the processor {cpu!r} is not known and is not used")
    if maker and maker_of(maker) not in model.makers:
        found.append(f"maker: {maker!r} is not known and is not used; known are {', '.join(model.makers)}")
    return found


def _code(names: list[str], name: str) -> float:
    return float(names.index(name)) if name and name in names else -1.0
