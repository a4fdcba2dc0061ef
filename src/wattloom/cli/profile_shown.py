"""How a profile looks in a terminal: a table, a chart of text, and sentences about what the figures mean.

Owns the words. The figures come from `profiling.comparing` and `machines.profile_curve`.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from wattloom.cli.printing import console, fullest, literal, table
from wattloom.errors import InputError
from wattloom.machines.profile_curve import machine_profile, smt_slowdown, speed, usual_setting
from wattloom.profiling.comparing import points
from wattloom.report.figures import figure

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from wattloom.machines.profile_file import CpuProfile, Idle, Level
    from wattloom.profiling.comparing import Point

OF: Final = {"wall": "the whole machine, at the plug", "package": "the processor package"}
AGAIN: Final = "the same `wattloom profile cpu` command, with the options it was taken with,"
BAR: Final = 40
EIGHTHS: Final = " ▏▎▍▌▋▊▉"
UNITS: Final = (("J", 1.0), ("mJ", 1e-3), ("µJ", 1e-6), ("nJ", 1e-9))
SMALL: Final = 0.1
"""Least figure of a column that is still well read in its unit."""
WIDE: Final = {
    "load": "load",
    "setting": "setting",
    "CPUs": "CPUs",
    "watts": "watts",
    "added": "W per core added",
    "work": "work/s",
    "joules": "J per work",
    "above": "above idle",
    "degrees": "°C",
    "mhz": "MHz",
    "remark": "",
}
"""Columns and what they are called."""
NARROW: Final = WIDE | {"added": "W per core\nadded", "above": "above\nidle"}
WORDS: Final = ("load", "setting", "remark")
"""Columns that hold no figures."""
NEEDLESS: Final = ("mhz", "degrees", "above", "added", "work")
"""Columns that a narrow terminal goes without, the first of them first; --json has them all."""


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
    for line in (*_print_levels(profile, out), *_chart(profile), "", *_sentences(profile, path)):
        out.print(literal(line), soft_wrap=line.startswith(" "))


def _print_levels(profile: "CpuProfile", out: "Console") -> list[str]:
    """As much of the table as fits. Back come the remarks for which it had no room."""
    rows, heads = _rows(profile)
    remarks = list(dict.fromkeys(row["remark"] for row in rows if row["remark"]))
    short = [row | {"remark": f"({remarks.index(row['remark']) + 1})" if row["remark"] else ""} for row in rows]
    made = [_levels(profile, heads, rows)]
    made += [
        _levels(profile, NARROW | {"joules": heads["joules"].replace(" ", "\n", 1)}, short, NEEDLESS[:count])
        for count in range(len(NEEDLESS) + 1)
    ]
    at = fullest(made, out)
    out.print(made[at])
    return [f"({number}) {each}" for number, each in enumerate(remarks, 1)] if at else []


def _rows(profile: "CpuProfile") -> tuple[list[dict[str, str]], dict[str, str]]:
    """All cells by the names of their columns, and what these are called."""
    both = [(setting, stressor) for setting in profile.settings for stressor in profile.stressors]
    unit, size = joules_unit(p for setting, stressor in both for p in points(profile, stressor, setting))
    rows: list[dict[str, str]] = []
    for setting in profile.settings:
        rows += _idle_rows(profile, setting)
        for stressor in profile.stressors:
            found = {each.level: each for each in profile.at(setting, stressor)}
            for point in points(profile, stressor, setting)[1:]:
                cells = {"load": stressor, "setting": setting, "CPUs": str(point.level)}
                rows.append(cells | _figures(point, size) | _beside(found[point.level], profile))
    return rows, WIDE | {"joules": f"{unit} per work"}


def _levels(
    profile: "CpuProfile", heads: dict[str, str], rows: list[dict[str, str]], without: tuple[str, ...] = ()
) -> "Table":
    shown = [name for name in heads if name not in without and (name != "setting" or any(profile.settings))]
    numbers = tuple(heads[name] for name in shown if name not in WORDS)
    made = table(*(heads[name] for name in shown), title=_title(profile), numbers=numbers)
    for row in rows:
        made.add_row(*(literal(row.get(name, "")) for name in shown))
    return made


def _idle_rows(profile: "CpuProfile", setting: str) -> list[dict[str, str]]:
    made = []
    for each in profile.idle:
        if each.setting == setting:
            power = each.power
            watts = "unknown" if power is None else f"{figure(power.watts)} ± {figure(power.spread_w)}"
            cells = {"load": f"idle, {each.when}", "setting": setting, "CPUs": "0", "watts": watts}
            made.append(cells | _beside(each, profile))
    return made


def _title(profile: "CpuProfile") -> str:
    here = profile.machine
    return literal(f"{profile.name}: {here.cores} cores, {here.threads} threads; {profile.began[:16]}")


def _figures(point: "Point", size: float) -> dict[str, str]:
    watts = "unknown" if point.watts is None else f"{figure(point.watts)} ± {figure(point.spread_w or 0.0)}"
    joules = (in_unit(value, size) for value in (point.joules_per_op, point.marginal_joules_per_op))
    rest = (figure_or_nothing(value) for value in (point.watts_added, point.ops_per_s, *joules))
    return dict(zip(("watts", "added", "work", "joules", "above"), (watts, *rest), strict=True))


def in_unit(value: float | None, size: float) -> float | None:
    return None if value is None else value / size


def figure_or_nothing(value: float | None) -> str:
    return "" if value is None else figure(value)


def _beside(level: "Level | Idle", profile: "CpuProfile") -> dict[str, str]:
    degrees = "" if level.temperature_c is None else f"{level.temperature_c:.0f}"
    mhz: float | None = getattr(level, "mhz", None)  # of idle CPUs it says nothing
    return {"degrees": degrees, "mhz": "" if mhz is None else f"{mhz:.0f}", "remark": _remark(level, profile)}


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
    words = f"Idle: {figure(first.watts)} ± {figure(first.spread_w)} W"
    if last is not None:
        words += f", at the end {figure(last.watts)} W: it drifted by {last.watts - first.watts:+.2f} W"
    return [f"{words}."]
