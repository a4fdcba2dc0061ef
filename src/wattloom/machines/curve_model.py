"""What was learned of the shapes of power curves, and what it tells of a machine of which idle and full draw are known.

Owns the learned model (`curve_model.json`), how alike it takes two machines to be, and its spread. It was learned from
745 published SPECpower_ssj2008 results to 2021 (SPEC's and their owners', collected in
green-coding-solutions/spec-power-raw-data, MIT); the file has the model's weights, from which the curves nearly follow.
`benchmarks/train_curves.py` makes it. Works without numpy, as every program on a machine without a meter asks; points
between idle and full load take `curve_points`, which needs it. Knows no watts but as ratios and logarithms.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from importlib.resources import files
from math import exp, log, sqrt
from operator import mul
from struct import unpack
from typing import Any, Final, Literal, NamedTuple

import msgspec

from wattloom.machines.processors import maker_of, named

LOADS: Final = tuple(range(0, 101, 10))
INNER: Final = 9
"""Levels between idle and full load."""
FLOOR: Final = 0.7
"""Shapes are compared as logarithms of what is drawn above this share of idle, over the same at full load. Machines of
one processor differ most in how deep they sleep. Of 0, 0.3, 0.5 and 0.7 the best from idle and max on most splits."""
WITHIN_90: Final = 1.645
"""Standard deviations around the mean that hold 90% of a normal distribution."""
RECENT: Final = 2.0
"""Years. A processor this close to the last that were learned from is still sold: without a year, its machine may be
newer than all of them."""

Nearness = Literal["same processor", "same family", "newer than all", "no processor"]


# -- how alike two machines are expected to be -------------------------------------------------------------------------


class Kernel(msgspec.Struct, frozen=True):
    """The covariance of a Gaussian process over machines: variances (`_v`) and lengths (`_l`) of terms that add up."""

    idle_l: float
    all_v: float
    line_v: float
    line_l: float
    across_lines: float
    year_v: float
    year_l: float
    slope_v: float
    family_v: float
    family_idle_l: float
    size_v: float
    size_l: float
    size_year_l: float
    model_v: float
    model_idle_l: float
    model_full_l: float
    model_year_l: float
    near_v: float
    near_idle_l: float
    near_full_l: float
    near_year_l: float
    maker_line_v: float
    maker_family_v: float
    maker_model_v: float
    maker_line_l: float
    maker_idle_l: float
    noise_v: float
    outlier: float
    """In training: residuals beyond so many medians count less."""
    points_trend: float
    """With points given, the same terms hold what is left around a spline: trends count so much,"""
    points_trend_l: float
    points_kin: float
    """and what is close by so much,"""
    points_kin_l: float
    """and both fade with how far apart two machines are at the points, in shares of the way from idle to full."""
    points_noise_v: float

    def without_maker(self) -> "Kernel":
        """For machines whose makers are not told: everything else has to explain what there is."""
        return msgspec.structs.replace(self, maker_line_v=0.0, maker_family_v=0.0, maker_model_v=0.0)


class Situation(msgspec.Struct, frozen=True):
    """A machine as the kernel sees it; a code below 0 is like no other. In `curve_points`, arrays of many machines."""

    idle: Any
    """Logarithm of idle over full draw."""
    full: Any
    """Logarithm of the watts at full load."""
    year: Any
    generation: Any
    line: Any
    family: Any
    model: Any
    maker: Any

    def of(self, rows: Any) -> "Situation":
        """Some of many."""
        return Situation(*(getattr(self, name)[rows] for name in self.__struct_fields__))


class Alike(NamedTuple):
    """Of two machines; as arrays, between every machine of one lot and every one of another."""

    trend: Any
    """What slowly changes with idle ratio, generation and year."""
    kin: Any
    """What machines close to each other share: model, family, maker."""


def alike(a: Situation, b: Situation, kernel: Kernel, exp: Callable[[Any], Any] = exp) -> Alike:
    """The same terms for numbers and, with numpy's `exp`, for arrays."""
    idle, full, years = abs(a.idle - b.idle), abs(a.full - b.full), abs(a.year - b.year)
    generations, line = abs(a.generation - b.generation), _same(a.line, b.line)
    family, model = _same(a.family, b.family), _same(a.model, b.model)
    smooth = exp(-0.5 * (idle / kernel.idle_l) ** 2)
    lines = (line + kernel.across_lines) / (1.0 + kernel.across_lines)
    trend = kernel.all_v * smooth + kernel.slope_v * ((a.idle + 1.6) * (b.idle + 1.6))
    trend = trend + kernel.line_v * smooth * exp(-generations / kernel.line_l) * lines
    trend = trend + kernel.year_v * smooth * exp(-years / kernel.year_l)
    kin = kernel.near_v * exp(-idle / kernel.near_idle_l - full / kernel.near_full_l - years / kernel.near_year_l)
    kin = kin + kernel.family_v * family * exp(-idle / kernel.family_idle_l)
    kin = kin + kernel.size_v * family * exp(-(idle + full) / kernel.size_l - years / kernel.size_year_l)
    close = exp(-idle / kernel.model_idle_l - full / kernel.model_full_l - years / kernel.model_year_l)
    kin = kin + kernel.model_v * model * close
    if kernel.maker_line_v or kernel.maker_family_v or kernel.maker_model_v:
        shared = kernel.maker_line_v * line * exp(-generations / kernel.maker_line_l) + kernel.maker_family_v * family
        near = exp(-idle / kernel.maker_idle_l)
        kin = kin + _same(a.maker, b.maker) * (near * shared + kernel.maker_model_v * model)
    return Alike(trend, kin)


def _same(a: Any, b: Any) -> Any:
    return (a == b) & (a >= 0)


# -- what was learned --------------------------------------------------------------------------------------------------


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


@cache
def shipped() -> CurveModel:
    text = files("wattloom.machines").joinpath("curve_model.json").read_bytes()
    return msgspec.json.decode(text, type=CurveModel)


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


def situation(
    model: CurveModel, ends: tuple[float, float], cpu: str | None, year: float | None, maker: str | None
) -> Situation:
    """The machine as the kernel sees it. Later years than the model has seen count as the year after its last."""
    who = named(cpu)
    when = min(year or who.year or model.latest - 2.0, model.latest + 1.0)
    born = min(who.year or when, model.latest + 1.0)
    codes = (_code(model.lines, who.line), _code(model.families, who.family), _code(model.models, who.model))
    return Situation(log(ends[0] / ends[1]), log(ends[1]), when, born, *codes, _code(model.makers, maker_of(maker)))


def _code(names: list[str], name: str) -> float:
    return float(names.index(name)) if name and name in names else -1.0


# -- what it tells -----------------------------------------------------------------------------------------------------


def shape(model: CurveModel, asked: Situation, sure: str) -> tuple[list[float], list[float]]:
    """Logarithms, as in `FLOOR`, at 10 ... 90%, and their standard deviations, no point between being known."""
    told = bool(asked.maker >= 0)
    kernel = model.kernel if told else model.kernel.without_maker()
    near = [trend + kin for trend, kin in (alike(asked, one, kernel) for one in _seen(model))]
    by_level = zip(model.mean, _weights(model, told), strict=True)
    held = spread_of(model, sure, told)
    deviations = [held.alone * sqrt(row[level]) for level, row in enumerate(held.covariance)]
    return [mean + sum(map(mul, near, weights)) for mean, weights in by_level], deviations


def spread_of(model: CurveModel, sure: str, told: bool) -> Spread:
    """`told`: who made the machine."""
    return model.spreads[sure if told else f"{sure}, maker unknown"]


@lru_cache(maxsize=8)
def _seen(model: CurveModel) -> list[Situation]:
    columns = (model.situations[name] for name in Situation.__struct_fields__)
    return [Situation(*row) for row in zip(*columns, strict=True)]


@lru_cache(maxsize=8)
def _weights(model: CurveModel, told: bool) -> list[tuple[float, ...]]:
    """By level."""
    packed = model.weights if told else model.weights_without_maker
    flat = unpack(f"<{len(packed) // 4}f", packed)
    return [flat[level::INNER] for level in range(INNER)]
