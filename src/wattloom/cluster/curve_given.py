"""What was given of a machine whose curve is asked for: its ends, what is missing of them, and whether it can be true.

Owns the checks and their words. Knows the medians of published results, and no model.
"""

from collections.abc import Mapping
from typing import Final

from wattloom.cluster.processors import Known, known_processors, named
from wattloom.errors import InputError

YEARS: Final = (1990, 2100)
WATTS: Final = (0.001, 1e9)
"""Of one machine: beyond, it is another unit, and the logarithms of the model would not hold it."""


def ends_of(
    idle: float | None, full: float | None, cpu: str | None, points: Mapping[float, float]
) -> tuple[tuple[float, float], dict[float, float], list[str], float]:
    """Idle and full draw, the points between them, what was assumed, and how far that may be off."""
    _refuse_fractions(points)
    between = dict(points)
    idle, full = _end("idle", idle, 0.0, between), _end("max", full, 100.0, between)
    ends, assumed, scale = _completed(idle, full, cpu)
    return ends, between, assumed, scale


def check(ends: tuple[float, float], points: Mapping[float, float], year: float | None) -> None:
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


def _check_points(ends: tuple[float, float], points: Mapping[float, float]) -> None:
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


def _completed(idle: float | None, full: float | None, cpu: str | None) -> tuple[tuple[float, float], list[str], float]:
    """What is missing comes from machines with the same processor."""
    if idle is not None and full is not None:
        return (idle, full), [], 0.0
    missing = [name for name, value in (("idle", idle), ("max", full)) if value is None]
    known = known_processors().get(named(cpu).model)
    if known is None:
        who = "no processor is named" if not cpu else f"no published result has the processor {cpu!r}"
        needed = "is needed" if len(missing) == 1 else "both are needed"
        raise InputError(" and ".join(missing), f"{needed}, since {who}: give watts at the plug")
    if full is None:
        full = known.full_w if idle is None else idle * known.full_w / known.idle_w
    ends = (full * known.idle_w / known.full_w if idle is None else idle, full)
    return ends, [_assumption(name, known) for name in missing], max(known.idle_spread, known.active_spread)


def _assumption(name: str, known: Known) -> str:
    return f"{name} of one package as the median of {known.results} published results with this processor"
