"""The power curve of a machine nobody has measured: the one answer, for `machines curve`, this machine and nodes.

Owns what of the given can be true, what is taken from the processor where idle or full draw is not given, and the curve
with its spread. Shapes are `curve_model`'s, and with points between idle and full load `curve_points`'; the watts of
processors are `processors`'. Watts are at the plug.
"""

from collections.abc import Mapping, Sequence
from math import exp
from typing import Final

import msgspec

from wattloom.errors import InputError
from wattloom.machines.curve_model import (
    FLOOR,
    LOADS,
    WITHIN_90,
    CurveModel,
    Situation,
    nearness,
    shape,
    shipped,
    situation,
    sureness,
)
from wattloom.machines.processors import Match, maker_of, named, published, relations

YEARS: Final = (1990, 2100)
WATTS: Final = (0.001, 1e9)
"""Of one machine: beyond, it is another unit, and the logarithms of the model would not hold it."""

Ends = tuple[float, float]
"""Watts, idle and at full load."""


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


def curve(
    idle_w: float | None = None,
    full_w: float | None = None,
    *,
    cpu: str | None = None,
    cores: float | None = None,
    package: int | None = None,
    year: float | None = None,
    maker: str | None = None,
    points: Mapping[float, float] | None = None,
    model: CurveModel | None = None,
) -> Curve:
    """Watts at 0, 10 ... 100% load. `points`: watts known at other loads (percent), which the curve goes through.

    What is missing of idle and full draw is the processor's: of so many `cores`, else of one package. `package`: how
    many cores one has; with it, processors that no published result has are told from their relations.
    """
    model, given = model or shipped(), dict(points or {})
    _refuse_fractions(given)
    idle, full = _end("idle", idle_w, 0.0, given), _end("max", full_w, 100.0, given)
    ends, assumed, scale = _completed(idle, full, cpu, cores, package)
    _check(ends, given, year)
    logs, sure = _shape(model, situation(model, ends, cpu, year, maker), sureness(model, cpu, year), ends, given)
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


def _shape(
    model: CurveModel, asked: Situation, sure: str, ends: Ends, points: Mapping[float, float]
) -> tuple[list[float], list[float]]:
    if not points:
        return shape(model, asked, sure)
    from wattloom.machines.curve_points import shape_with_points  # only here: numpy takes time to load

    shares = {load: (watts - ends[0]) / (ends[1] - ends[0]) for load, watts in points.items()}
    return shape_with_points(model, asked, sure, shares)


# -- what is given -----------------------------------------------------------------------------------------------------


def _check(ends: Ends, points: Mapping[float, float], year: float | None) -> None:
    """InputError if it contradicts itself."""
    idle, full = ends
    for field, watts in (("idle", idle), ("max", full)):
        if not WATTS[0] <= watts <= WATTS[1]:
            raise InputError(field, f"must be watts above 0, from {WATTS[0]:g} to {WATTS[1]:g}, not {watts:g}")
    if idle >= full:
        raise InputError("idle", f"must be below max: {idle:g} W is not below {full:g} W")
    if year is not None and not YEARS[0] <= year <= YEARS[1]:
        raise InputError("year", f"must be a year such as 2024, not {year:g}")
    _check_points(ends, points)


def _check_points(ends: Ends, points: Mapping[float, float]) -> None:
    before_load, before = 0.0, ends[0]
    for load, watts in sorted(points.items()):
        if not 0.0 <= load <= 100.0:
            raise InputError(f"point {load:g}", "the load must be percent, from 0 to 100")
        if not before <= watts <= ends[1]:
            raise InputError(
                f"point {load:g}",
                f"{watts:g} W is not between the {before:g} W at {before_load:g}% and the {ends[1]:g} W at 100%",
            )
        before_load, before = load, watts


def _refuse_fractions(points: Mapping[float, float]) -> None:
    """Nobody knows a machine's draw below 1% load and nowhere else: such loads are fractions of one."""
    loaded = {load: watts for load, watts in points.items() if load != 0.0}
    if loaded and all(0.0 < load <= 1.0 for load in loaded) and min(loaded) < 1.0:
        meant = ", ".join(f"{100.0 * load:g}={watts:g}" for load, watts in sorted(loaded.items()))
        raise InputError(f"point {min(loaded):g}", f"loads are percent: did you mean {meant}?")


def _end(field: str, watts: float | None, load: float, points: dict[float, float]) -> float | None:
    """An end of the curve, given by name or as a point at 0 or 100%."""
    point = points.pop(load, None)
    if watts is not None and point is not None and watts != point:
        raise InputError(f"point {load:g}", f"says {point:g} W where {field} says {watts:g} W: leave one out")
    return watts if watts is not None else point


# -- what is not given -------------------------------------------------------------------------------------------------


def _completed(
    idle: float | None, full: float | None, cpu: str | None, cores: float | None, package: int | None
) -> tuple[Ends, list[str], float]:
    """Idle and full draw, what was assumed, and how far that may be off: what is missing comes from machines with the
    same processor or with those related to it."""
    if idle is not None and full is not None:
        return (idle, full), [], 0.0
    missing = [name for name, value in (("idle", idle), ("max", full)) if value is None]
    known = _one_package(missing, cpu, package)
    times = 1.0 if cores is None else cores / known.cores
    if full is None:
        full = times * known.full_w if idle is None else idle * known.full_w / known.idle_w
    ends = (full * known.idle_w / known.full_w if idle is None else idle, full)
    return ends, [_assumption(name, known) for name in missing], known.ends_spread


def _one_package(missing: list[str], cpu: str | None, package: int | None) -> Match:
    known = published(cpu) or (relations(cpu or "", package) if package else None)
    if known is None:
        who = "no processor is named" if not cpu else f"no published result has the processor {cpu!r}"
        needed = "is needed" if len(missing) == 1 else "both are needed"
        raise InputError(" and ".join(missing), f"{needed}, since {who}: give watts at the plug")
    return known


def _assumption(name: str, known: Match) -> str:
    if known.by == "processor":
        return f"{name} of one package as the median of {known.results} published results with this processor"
    return f"{name} as the {known.who}"


# -- in watts ----------------------------------------------------------------------------------------------------------


def _in_watts(
    ends: Ends, logs: Sequence[float], sure: Sequence[float], points: Mapping[float, float], scale: float
) -> tuple[list[float], list[float], list[float], list[float]]:
    idle, full = ends
    pinned = {0.0: idle, 100.0: full, **points}
    floor = FLOOR * idle
    rough = [idle, *(floor + (full - floor) * exp(each) for each in logs), full]
    watts = _rising([pinned.get(float(load), value) for load, value in zip(LOADS, rough, strict=True)], pinned)
    relative = [0.0 if float(load) in pinned else sd for load, sd in zip(LOADS, (0.0, *sure, 0.0), strict=True)]
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
