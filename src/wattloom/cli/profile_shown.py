"""How profiles look in a terminal: tables, a chart of text, and sentences about what the figures mean.

Owns the words. The figures come from `profiling.comparing` and `cluster.profile_curve`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from wattloom.cli.printing import console, literal, table
from wattloom.cluster.profile_curve import machine_profile, smt_slowdown, speed, usual_setting
from wattloom.errors import InputError
from wattloom.profiling.comparing import points
from wattloom.report.figures import figure

if TYPE_CHECKING:
    from rich.table import Table

    from wattloom.cluster.profile_file import CpuProfile, Level
    from wattloom.profiling.comparing import Compared, Comparison, Point

OF: Final = {"wall": "the whole machine, at the plug", "package": "the processor package"}
BAR: Final = 40
EIGHTHS: Final = " ▏▎▍▌▋▊▉"


def as_data(profile: "CpuProfile", path: Path) -> dict[str, Any]:
    """For programs: the file, and what the scheduler reads from it."""
    try:
        read: Any = msgspec.to_builtins(machine_profile(profile))
    except InputError as problem:
        read = {"problem": str(problem)}
    return {"path": str(path), "profile": msgspec.to_builtins(profile), "machine_profile": read}


def print_profile(profile: "CpuProfile", path: Path) -> None:
    """Table, chart and sentences."""
    out = console()
    out.print(_levels(profile))
    for line in (*_chart(profile), "", *_sentences(profile, path)):
        out.print(literal(line), soft_wrap=line.startswith(" "))


def _levels(profile: "CpuProfile") -> "Table":
    names = ["load", *(["setting"] if any(profile.settings) else []), "CPUs", "watts", "W per core added"]
    more = ["work/s", "J per work", "above idle", "°C", "MHz"]
    made = table(*names, *more, "", title=_title(profile), numbers=(*names[-3:], *more))
    for setting in profile.settings:
        for stressor in profile.stressors:
            found = {each.level: each for each in profile.at(setting, stressor)}
            for point in points(profile, stressor, setting)[1:]:
                cells = [stressor, *([setting] if any(profile.settings) else []), str(point.level)]
                made.add_row(*cells, *_figures(point), *_beside(found[point.level], profile))
    return made


def _title(profile: "CpuProfile") -> str:
    here = profile.machine
    return literal(f"{profile.name}: {here.cores} cores, {here.threads} threads; {profile.began[:16]}")


def _figures(point: "Point") -> list[str]:
    watts = "unknown" if point.watts is None else f"{figure(point.watts)} ±{figure(point.spread_w or 0.0)}"
    joules = (point.joules_per_op, point.marginal_joules_per_op)
    return [watts, *(_or_nothing(value) for value in (point.watts_added, point.ops_per_s, *joules))]


def _or_nothing(value: float | None) -> str:
    return "" if value is None else figure(value)


def _beside(level: "Level", profile: "CpuProfile") -> list[str]:
    degrees = "" if level.temperature_c is None else f"{level.temperature_c:.0f}"
    return [degrees, "" if level.mhz is None else f"{level.mhz:.0f}", literal(_remark(level, profile))]


def _remark(level: "Level", profile: "CpuProfile") -> str:
    words = [level.problem] if level.problem else []
    if profile.disturbed(level):
        words.append(f"disturbed: {level.other_cores:.2f} cores busy by others")
    if not level.settled:
        words.append("had not settled")
    return "; ".join(words)


def _chart(profile: "CpuProfile") -> list[str]:
    """Watts as bars of text, for the usual setting."""
    setting = usual_setting(profile)
    found = {stressor: points(profile, stressor, setting) for stressor in profile.stressors}
    most = max((p.watts or 0.0 for each in found.values() for p in each), default=0.0)
    lines: list[str] = []
    for stressor, each in found.items():
        lines += ["", f"{stressor}: watts over CPUs under load{_siblings(profile)}"]
        lines += [f"  {p.level:>4} {_bar(p.watts / most)} {figure(p.watts)}" for p in each if p.watts and most]
    return lines


def _siblings(profile: "CpuProfile") -> str:
    here = profile.machine
    return f" (siblings from {here.cores + 1} on)" if here.threads > here.cores else ""


def _bar(share: float) -> str:
    whole, rest = divmod(round(share * BAR * 8), 8)
    return ("█" * whole + EIGHTHS[rest].strip()).ljust(BAR)


def _sentences(profile: "CpuProfile", path: Path) -> list[str]:
    setting = usual_setting(profile)
    meter, found = profile.meter, [f"File: {path}"]
    found.append(
        f"Watts are of {OF[meter.quantity]}, {meter.provenance}, by meter {meter.name}; ± is one standard "
        "deviation from reading to reading."
    )
    if meter.provenance != "measured":
        found.append("They were not measured: they say what the estimate believed before, and are not used. Work is.")
    found += _idle(profile, setting)
    found += _unusable(profile)
    slowdown, fast = smt_slowdown(profile, setting), speed(profile, setting)
    if slowdown is not None:
        found.append(f"Two tasks on one core run {slowdown:.2f} times as long as one alone.")
    if fast is not None:
        found.append(f"Speed of one core against the catalogue's reference: {fast:.2f} (estimated).")
    disturbed = sum(map(profile.disturbed, profile.levels)) + sum(map(profile.disturbed, profile.idle))
    if disturbed:
        found.append(
            f"{disturbed} readings were disturbed by other work and are not used; `wattloom profile cpu` tries again."
        )
    if not profile.finished:
        found.append("It is not complete: `wattloom profile cpu` goes on with it.")
    return found


def _unusable(profile: "CpuProfile") -> list[str]:
    """Why the scheduler cannot use its watts, if so."""
    if profile.meter.provenance != "measured":
        return []
    try:
        machine_profile(profile)
    except InputError as problem:
        return [f"Its watts cannot be used yet: {problem.problem}."]
    return []


def _idle(profile: "CpuProfile", setting: str) -> list[str]:
    first, last = (profile.idle_power(setting, when) for when in ("first", "last"))
    if first is None:
        return ["Idle power is not known."]
    words = f"Idle: {figure(first.watts)} W ±{figure(first.spread_w)}"
    if last is not None:
        words += f", at the end {figure(last.watts)} W: it drifted by {last.watts - first.watts:+.2f} W"
    return [f"{words}."]


# -- two machines ------------------------------------------------------------------------------------------------------


def print_comparison(found: "Comparison") -> None:
    """One table for each stressor, then who is cheaper."""
    out = console()
    for each in found.stressors:
        out.print(_side_by_side(found, each))
        for line in _cheaper(found, each):
            out.print(literal(line))
    idle = [f"{name} {'unknown' if watts is None else figure(watts) + ' W'}" for name, watts in _idles(found)]
    converted = f"; converted: {found.converted}" if found.converted else ""
    out.print(literal(f"\nWatts are of {OF[found.quantity]}{converted}. Idle: {', '.join(idle)}."))


def _idles(found: "Comparison") -> list[tuple[str, float | None]]:
    return [(found.a, found.idle_w[0]), (found.b, found.idle_w[1])]


def _side_by_side(found: "Comparison", each: "Compared") -> "Table":
    figures = ("watts", "W per core added", "work/s", "J per work")
    columns = [f"{what} {letter}" for what in figures for letter in "AB"]
    title = literal(f"{each.stressor}: A is {found.a}, B is {found.b}")
    made = table("CPUs", *columns, title=title, numbers=("CPUs", *columns))
    of_a, of_b = ({point.level: point for point in side} for side in (each.a, each.b))
    for level in sorted(of_a.keys() | of_b.keys()):
        pairs = zip(_four(of_a.get(level)), _four(of_b.get(level)), strict=True)
        made.add_row(str(level), *(cell for pair in pairs for cell in pair))
    return made


def _four(point: "Point | None") -> list[str]:
    if point is None:
        return [""] * 4
    return [_or_nothing(value) for value in (point.watts, point.watts_added, point.ops_per_s, point.joules_per_op)]


def _cheaper(found: "Comparison", each: "Compared") -> list[str]:
    if not each.same_work:
        return ["Work was counted by different tools or versions: it cannot be compared, watts can."]
    names = {"a": found.a, "b": found.b, "equal": "neither"}
    lines = [
        f"From {figure(part.from_ops)} to {figure(part.to_ops)} work/s: {names[part.cheaper]} draws less."
        for part in each.ranges
    ]
    speeds = [f"One core of B does {each.speed:.2f} times the work of one of A."] if each.speed is not None else []
    return [*lines, *speeds]
