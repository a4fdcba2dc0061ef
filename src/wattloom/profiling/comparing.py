"""Two machines side by side: watts, work and joules per unit of work at each level, and who is cheaper at which load.

Owns the arithmetic. Watts at the plug and of the package are not compared unless a conversion is named.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import msgspec

from wattloom.cluster.profile_curve import usual_setting
from wattloom.cluster.profile_file import CpuProfile
from wattloom.errors import InputError
from wattloom.profiling.stressors import ALL

STEPS: Final = 400
"""Loads at which two curves are compared."""


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
    """Per core added since the level below that was measured."""
    ops_per_s: float | None
    joules_per_op: float | None
    """Of the whole machine."""
    marginal_joules_per_op: float | None
    """Above idle."""


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
    """Work of one core of b over that of one of a."""


class Comparison(msgspec.Struct, frozen=True):
    """Both machines."""

    a: str
    b: str
    quantity: str
    converted: str
    """Which conversion was used, on which. Empty: none."""
    idle_w: tuple[float | None, float | None]
    stressors: list[Compared]


def compare(a: CpuProfile, b: CpuProfile, conversion: Conversion | None = None) -> Comparison:
    """Side by side, each under its usual setting. InputError if they are of different quantities or have nothing in
    common."""
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
    names = [f"{p.name}: {conversion}" for p, c in ((a, by_a), (b, by_b)) if c is not None]
    return Comparison(
        a.name,
        b.name if b.name != a.name else f"{b.name} (2)",
        "wall" if conversion is not None else kinds[0],
        "; ".join(names),
        (_idle(a, by_a), _idle(b, by_b)),
        [_compared(a, b, name, by_a, by_b) for name in common],
    )


def points(profile: CpuProfile, stressor: str, setting: str, conversion: Conversion | None = None) -> list[Point]:
    """Every level that was measured, with what follows from it. Idle is level 0."""
    quiet = profile.quietest_idle(setting)
    idle = _idle(profile, conversion, setting)
    found = [Point(0, idle, quiet.spread_w if quiet else None, None, 0.0, None, None)]
    below: tuple[int, float] | None = None if idle is None else (0, idle)
    for each in profile.at(setting, stressor):
        watts = None if each.power is None else _converted(each.power.watts, conversion)
        added = None if watts is None or below is None else (watts - below[1]) / (each.level - below[0])
        below = below if watts is None else (each.level, watts)
        work = each.ops_per_s
        found.append(
            Point(
                each.level,
                watts,
                None if each.power is None else each.power.spread_w * (conversion.slope if conversion else 1.0),
                added,
                work,
                watts / work if watts is not None and work else None,
                (watts - idle) / work if watts is not None and idle is not None and work else None,
            )
        )
    return found


def _compared(
    a: CpuProfile, b: CpuProfile, stressor: str, by_a: Conversion | None, by_b: Conversion | None
) -> Compared:
    of_a, of_b = points(a, stressor, usual_setting(a), by_a), points(b, stressor, usual_setting(b), by_b)
    same = same_tool(a.method.tool, b.method.tool, stressor)
    one_a, one_b = (next((p.ops_per_s for p in each if p.level == 1), None) for each in (of_a, of_b))
    speed = one_b / one_a if same and one_a and one_b else None
    return Compared(stressor, of_a, of_b, same, cheaper(of_a, of_b) if same else [], speed)


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
    known = sorted((p.ops_per_s, p.watts) for p in points if p.ops_per_s is not None and p.watts is not None)
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


def _idle(profile: CpuProfile, conversion: Conversion | None, setting: str | None = None) -> float | None:
    found = profile.quietest_idle(usual_setting(profile) if setting is None else setting)
    return None if found is None else _converted(found.watts, conversion)


def _converted(watts: float, conversion: Conversion | None) -> float:
    return watts if conversion is None else conversion(watts)


def _of(quantity: str) -> str:
    return {"wall": "plug", "package": "processor package"}[quantity]
