"""How a profile looks in a terminal: a table, a chart of text, and sentences about what the figures mean.

Owns the words. The figures come from `profiling.comparing` and `cluster.profile_curve`.
"""

from collections.abc import Iterable
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

    from wattloom.cluster.profile_file import CpuProfile, Idle, Level
    from wattloom.profiling.comparing import Point

OF: Final = {"wall": "the whole machine, at the plug", "package": "the processor package"}
AGAIN: Final = "the same `wattloom profile cpu` command, with the options it was taken with,"
BAR: Final = 40
EIGHTHS: Final = " ▏▎▍▌▋▊▉"
UNITS: Final = (("J", 1.0), ("mJ", 1e-3), ("µJ", 1e-6), ("nJ", 1e-9))
SMALL: Final = 0.1
"""Least figure of a column that is still well read in its unit."""


def joules_unit(found: "Iterable[Point]") -> tuple[str, float]:
    """The unit that joules per unit of work are shown in, and how many joules it is: none of them becomes nothing."""
    least = min((p.joules_per_op for p in found if p.joules_per_op), default=1.0)
    return next((each for each in UNITS if least >= SMALL * each[1]), UNITS[-1])


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
    both = [(setting, stressor) for setting in profile.settings for stressor in profile.stressors]
    unit, size = joules_unit(p for setting, stressor in both for p in points(profile, stressor, setting))
    names = ["load", *(["setting"] if any(profile.settings) else []), "CPUs", "watts", "W per core added"]
    more = ["work/s", f"{unit} per work", "above idle", "°C", "MHz"]
    made = table(*names, *more, "", title=_title(profile), numbers=(*names[-3:], *more))
    for setting in profile.settings:
        _idle_rows(made, profile, setting)
        for stressor in profile.stressors:
            found = {each.level: each for each in profile.at(setting, stressor)}
            for point in points(profile, stressor, setting)[1:]:
                cells = [stressor, *([setting] if any(profile.settings) else []), str(point.level)]
                made.add_row(*cells, *_figures(point, size), *_beside(found[point.level], profile))
    return made


def _idle_rows(made: "Table", profile: "CpuProfile", setting: str) -> None:
    for each in profile.idle:
        if each.setting == setting:
            cells = [f"idle, {each.when}", *([setting] if any(profile.settings) else []), "0"]
            power = each.power
            watts = "unknown" if power is None else f"{figure(power.watts)} ±{figure(power.spread_w)}"
            made.add_row(*cells, watts, *[""] * 4, *_beside(each, profile))


def _title(profile: "CpuProfile") -> str:
    here = profile.machine
    return literal(f"{profile.name}: {here.cores} cores, {here.threads} threads; {profile.began[:16]}")


def _figures(point: "Point", size: float) -> list[str]:
    watts = "unknown" if point.watts is None else f"{figure(point.watts)} ±{figure(point.spread_w or 0.0)}"
    joules = (in_unit(value, size) for value in (point.joules_per_op, point.marginal_joules_per_op))
    return [watts, *(figure_or_nothing(value) for value in (point.watts_added, point.ops_per_s, *joules))]


def in_unit(value: float | None, size: float) -> float | None:
    return None if value is None else value / size


def figure_or_nothing(value: float | None) -> str:
    return "" if value is None else figure(value)


def _beside(level: "Level | Idle", profile: "CpuProfile") -> list[str]:
    degrees = "" if level.temperature_c is None else f"{level.temperature_c:.0f}"
    mhz: float | None = getattr(level, "mhz", None)  # of idle CPUs it says nothing
    return [degrees, "" if mhz is None else f"{mhz:.0f}", literal(_remark(level, profile))]


def _remark(level: "Level | Idle", profile: "CpuProfile") -> str:
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
        lines += [
            f"  {p.level:>4} {_bar(p.watts / most)} {figure(p.watts)}{' disturbed' if p.disturbed else ''}"
            for p in each
            if p.watts and most
        ]
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
        were = "reading was" if disturbed == 1 else "readings were"
        found.append(
            f"{disturbed} {were} disturbed by other work and {'is' if disturbed == 1 else 'are'} not used; "
            f"{AGAIN} tries again."
        )
    if not profile.finished:
        found.append(f"It is not complete: {AGAIN} goes on with it.")
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
