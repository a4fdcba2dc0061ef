"""Two machines side by side: watts, work and joules per unit of work at each level, and who is cheaper at which load.

Owns the arithmetic. Watts at the plug and of the package are not compared unless a conversion is named. Readings that
others disturbed are among the points, and nothing is concluded from them.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import msgspec

from wattloom.errors import InputError
from wattloom.machines.profile_curve import usual_setting
from wattloom.machines.profile_file import CpuProfile, Idle
from wattloom.profiling.stressors import ALL

STEPS: Final = 400
"""Loads at which two curves are compared."""
LEAST_LEVELS: Final = 2
"""Undisturbed levels beside idle from which anything is concluded, where so many were measured."""


class Conversion(msgspec.Struct, frozen=True):
    """From the package's watts to those at the plug: `slope` times as many and `offset_w` more."""

    slope: float
    offset_w: float

    def __call__(self, watts: float) -> float:
        return self.slope * watts + self.offset_w

    def __str__(self) -> str:
        return f"{self.slope:g} x package + {self.offset_w:g} W"


class Point(msgspec.Struct, frozen=True):
    """One level of one machine; what is not known is None."""

    level: int
    watts: float | None
    spread_w: float | None
    watts_added: float | None
    """Per core added since the undisturbed level below."""
    ops_per_s: float | None
    joules_per_op: float | None
    """Of the whole machine."""
    marginal_joules_per_op: float | None
    """Above idle."""
    disturbed: bool = False
    """Others were at work meanwhile: to be shown, not used."""


class Range(msgspec.Struct, frozen=True):
    """Between two loads, in work per second, one machine is cheaper."""

    from_ops: float
    to_ops: float
    cheaper: str
    """`a`, `b`, or `equal`."""


class Compared(msgspec.Struct, frozen=True):
    """One stressor on both."""

    stressor: str
    a: list[Point]
    b: list[Point]
    same_work: bool
    """Whether work was counted by the same tool: only then can it be compared."""
    ranges: list[Range]
    speed: float | None
    """Work of one core of b over that of one of a. None: one of them is not known, or was disturbed."""
    enough: bool = True
    """Whether so many readings of both are undisturbed that it can be told who draws less."""


class Comparison(msgspec.Struct, frozen=True):
    """Both machines."""

    a: str
    b: str
    quantity: str
    converted: str
    """Which conversion was used, on which. Empty: none."""
    idle_w: tuple[float | None, float | None]
    stressors: list[Compared]
    provenance: tuple[str, str] = ("measured", "measured")
    """Of each one's watts: `measured`, `modelled` or `estimated`."""


def compare(
    a: CpuProfile, b: CpuProfile, conversion: Conversion | None = None, names: tuple[str, str] | None = None
) -> Comparison:
    """Side by side, each under its usual setting. InputError if they are of different quantities or have nothing in
    common. `names`: what the two are called; left out: as their machines are."""
    kinds = (a.meter.quantity, b.meter.quantity)
    if kinds[0] != kinds[1] and conversion is None:
        raise InputError(
            "profile diff",
            f"{a.name} is in watts of the {_of(kinds[0])}, {b.name} of the {_of(kinds[1])}: they are not comparable. "
            "Measure both alike, or name a conversion: --package-to-wall SLOPE,WATTS",
        )
    if conversion is not None and "package" not in kinds:
        raise InputError("package-to-wall", "both are of the plug already: there is nothing to convert")
    common = [name for name in a.stressors if name in b.stressors]
    if not common:
        raise InputError("profile diff", f"no stressor is in both: {', '.join(a.stressors)}; {', '.join(b.stressors)}")
    by_a, by_b = (conversion if kind == "package" else None for kind in kinds)
    name_a, name_b = names or (a.name, b.name)
    name_b = name_b if name_b != name_a else f"{name_b} (2)"
    return Comparison(
        name_a,
        name_b,
        "wall" if conversion is not None else kinds[0],
        "; ".join(f"{name}: {by}" for name, by in ((name_a, by_a), (name_b, by_b)) if by is not None),
        (_idle(a, by_a), _idle(b, by_b)),
        [_compared(a, b, name, by_a, by_b) for name in common],
        (a.meter.provenance, b.meter.provenance),
    )


def points(profile: CpuProfile, stressor: str, setting: str, conversion: Conversion | None = None) -> list[Point]:
    """Every level that was measured, with what follows from it. Idle is level 0. Nothing follows from a disturbed
    reading but figures of the same level."""
    found = [_resting(profile, setting, conversion)]
    idle = None if found[0].disturbed else found[0].watts
    below: tuple[int, float] | None = None if idle is None else (0, idle)
    for each in profile.at(setting, stressor):
        disturbed = profile.disturbed(each)
        watts = None if each.power is None else _converted(each.power.watts, conversion)
        added = None if watts is None or below is None else (watts - below[1]) / (each.level - below[0])
        below = below if watts is None or disturbed else (each.level, watts)
        work = each.ops_per_s
        found.append(
            Point(
                each.level,
                watts,
                None if each.power is None else _scaled(each.power.spread_w, conversion),
                added,
                work,
                watts / work if watts is not None and work else None,
                (watts - idle) / work if watts is not None and idle is not None and work else None,
                disturbed,
            )
        )
    return found


def _resting(profile: CpuProfile, setting: str, conversion: Conversion | None) -> Point:
    quiet = _quietest(profile, setting)
    if quiet is None or quiet.power is None:
        return Point(0, None, None, None, 0.0, None, None)
    watts, spread_w = _converted(quiet.power.watts, conversion), _scaled(quiet.power.spread_w, conversion)
    return Point(0, watts, spread_w, None, 0.0, None, None, profile.disturbed(quiet))


def _compared(
    a: CpuProfile, b: CpuProfile, stressor: str, by_a: Conversion | None, by_b: Conversion | None
) -> Compared:
    of_a, of_b = points(a, stressor, usual_setting(a), by_a), points(b, stressor, usual_setting(b), by_b)
    same = same_tool(a.method.tool, b.method.tool, stressor)
    one_a, one_b = (
        next((p.ops_per_s for p in each if p.level == 1 and not p.disturbed), None) for each in (of_a, of_b)
    )
    speed = one_b / one_a if same and one_a and one_b else None
    enough = _enough(of_a) and _enough(of_b)
    return Compared(stressor, of_a, of_b, same, cheaper(of_a, of_b) if same and enough else [], speed, enough)


def _enough(points: Sequence[Point]) -> bool:
    """Idle and half of the levels: a straight line over what was lost would conclude from nothing."""
    idle, levels = points[0], points[1:]
    good = sum(1 for p in levels if p.watts is not None and not p.disturbed)
    least = max(min(LEAST_LEVELS, len(levels)), (len(levels) + 1) // 2, 1)
    return idle.watts is not None and not idle.disturbed and good >= least


def same_tool(a: str, b: str, stressor: str) -> bool:
    """Whether both tools count this stressor's work alike: the same version of what ran it."""
    own = not (stressor in ALL and ALL[stressor].words)
    part_a, part_b = (_tool_part(tool, own) for tool in (a, b))
    return part_a == part_b


def _tool_part(tool: str, own: bool) -> str:
    first, _, second = tool.partition("; ")
    if not second:  # our own loops alone
        return first
    return second if own else first


def cheaper(a: Sequence[Point], b: Sequence[Point]) -> list[Range]:
    """Who draws less for the same work per second, over all loads that both can carry."""
    curve_a, curve_b = _by_work(a), _by_work(b)
    if len(curve_a) < 2 or len(curve_b) < 2:
        return []
    most = min(curve_a[-1][0], curve_b[-1][0])
    found: list[Range] = []
    for begin, end in pairwise(most * step / STEPS for step in range(STEPS + 1)):
        middle = (begin + end) / 2.0
        gap = _at(curve_a, middle) - _at(curve_b, middle)
        who = "equal" if gap == 0.0 else "b" if gap > 0.0 else "a"
        if found and found[-1].cheaper == who:
            found[-1] = Range(found[-1].from_ops, end, who)
        else:
            found.append(Range(begin, end, who))
    return found


def _by_work(points: Sequence[Point]) -> list[tuple[float, float]]:
    """(Work, watts), rising in work: a level that does no more than a lower one for more power is no way to do it."""
    sound = [p for p in points if not p.disturbed]
    known = sorted((p.ops_per_s, p.watts) for p in sound if p.ops_per_s is not None and p.watts is not None)
    if not known or known[0][0] != 0.0:
        return []
    rising: list[tuple[float, float]] = []
    for work, watts in known:
        if not rising or work > rising[-1][0]:
            rising.append((work, watts))
    return rising


def _at(curve: Sequence[tuple[float, float]], work: float) -> float:
    for (x0, y0), (x1, y1) in pairwise(curve):
        if work <= x1:
            return y0 + (y1 - y0) * (work - x0) / (x1 - x0)
    return curve[-1][1]


def _idle(profile: CpuProfile, conversion: Conversion | None) -> float | None:
    return _resting(profile, usual_setting(profile), conversion).watts


def _quietest(profile: CpuProfile, setting: str) -> Idle | None:
    """Of the first and the last one, that which others disturbed least."""
    known = [each for each in profile.idle if each.setting == setting and each.power is not None]
    return min(known, key=lambda each: each.other_cores, default=None)


def _converted(watts: float, conversion: Conversion | None) -> float:
    return watts if conversion is None else conversion(watts)


def _scaled(spread_w: float, conversion: Conversion | None) -> float:
    return spread_w if conversion is None else conversion.slope * spread_w


def _of(quantity: str) -> str:
    return {"wall": "plug", "package": "processor package"}[quantity]
