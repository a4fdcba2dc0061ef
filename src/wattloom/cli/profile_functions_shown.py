"""How function profiles look in a terminal: a table, and sentences about what the figures mean.

Owns the words. The figures come from the table itself.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from wattloom.cli.figures import legend, marked, seconds
from wattloom.cli.printing import cell, console, fullest, literal, print_json, table
from wattloom.energy.measured import in_words
from wattloom.machines.profile_file import most_others
from wattloom.report.figures import figure, plural

if TYPE_CHECKING:
    from rich.table import Table

    from wattloom.affinity.seen import Bags
    from wattloom.workload.function_profile import Figure, FunctionProfile, FunctionProfiles

FIGURES: Final = ("E /s/core", "E 90%", "W", "W 90%", "Wh", "cold", "memory", "n", "bags")
NEEDLESS: Final = ("source", "Wh", "memory", "cold", "n", "bags")
"""Columns that a narrow terminal goes without, the first of them first; --json has them all."""
NO_SPREAD: Final = "not known"


def show_functions(profiles: "FunctionProfiles", path: Path | None, as_json: bool, reference: str = "") -> None:
    """Table and sentences, or JSON."""
    if as_json:
        print_json({"path": None if path is None else str(path), **as_data(profiles)})
        return
    out = console()
    made = [_table(profiles, NEEDLESS[:count]) for count in range(len(NEEDLESS) + 1)]
    out.print(made[fullest(made, out)])
    out.print(legend(row.provenance for row in profiles.rows if row.joules is not None), style="dim")
    for line in _sentences(profiles, path, reference):
        out.print(literal(line))


def as_data(profiles: "FunctionProfiles") -> dict[str, Any]:
    """For programs: the rows, with W as the ISA study has it beside them."""
    return {"rows": [msgspec.to_builtins(row) | {"watt_hours": row.watt_hours} for row in profiles.rows]}


def _table(profiles: "FunctionProfiles", without: tuple[str, ...] = ()) -> "Table":
    names = tuple(name for name in FIGURES if name not in without)
    words = ("source",) if "source" not in without else ()
    made = table("function", "machine", *names, *words, numbers=names)
    for row in profiles.rows:
        cells = _cells(row)
        name = f"{row.function} ({row.variant})" if row.variant else row.function
        made.add_row(*map(cell, (name, row.machine, *(cells[each] for each in (*names, *words)))))
    return made


def _cells(row: "FunctionProfile") -> dict[str, str]:
    joules = row.joules
    return {
        "E /s/core": figure(row.per_core_s.value),
        "E 90%": _within(row.per_core_s),
        "W": "unknown" if joules is None else marked(in_words(joules.value), row.provenance),
        "W 90%": "" if joules is None else _within(joules),
        "Wh": "" if row.watt_hours is None else f"{row.watt_hours:.3g}",
        "cold": seconds(row.cold_start_s),
        "memory": f"{row.memory / (1 << 20):.0f} MB" if row.memory else "",
        "n": f"{row.executions:,}" if row.executions else "",
        "bags": f"{row.bags:,}" if row.bags else "-",
        "source": row.source,
    }


def _within(value: "Figure") -> str:
    """How far below and above, in percent."""
    if value.low == value.high:
        return NO_SPREAD
    return f"-{_percent(1.0 - value.low / value.value)} +{_percent(value.high / value.value - 1.0)}"


def _percent(share: float) -> str:
    return f"{100.0 * share:.1f}%" if share < 0.1 else f"{100.0 * share:.0f}%"


def _sentences(profiles: "FunctionProfiles", path: Path | None, reference: str) -> list[str]:
    found = [] if path is None else [f"File: {path}"]
    found.append(
        "E: executions per second on a core of its own, all other cores busy. W: energy of one execution without what "
        "the machine draws idle. 90%: so far below and above the truth lies nine times out of ten."
    )
    if any(not row.bags for row in profiles.rows):
        found.append("Rows without bags come from ordinary calls.")
    return found + _against(profiles, reference)


def _against(profiles: "FunctionProfiles", reference: str) -> list[str]:
    """With several machines: how many functions are better where."""
    machines = profiles.machines
    if len(machines) < 2:
        return []
    base = reference if reference in machines else machines[0]
    return [_compared(profiles, machine, base) for machine in machines if machine != base]


def _compared(profiles: "FunctionProfiles", machine: str, base: str) -> str:
    pairs = [
        (profiles.by_pair[name, machine], profiles.by_pair[name, base])
        for name in profiles.functions
        if (name, machine) in profiles.by_pair and (name, base) in profiles.by_pair
    ]
    faster = sum(one.per_core_s.value > other.per_core_s.value for one, other in pairs)
    metered = [(one.joules, other.joules) for one, other in pairs if one.joules and other.joules]
    cheaper = sum(one.value < other.value for one, other in metered)
    verb = "is" if faster == 1 else "are"
    return (
        f"Of {plural(len(pairs), 'function')} that both have, {faster} {verb} faster on {machine} than on {base}, and "
        f"{cheaper} of {len(metered)} cost less."
    )


def disturbed(bags: "Bags") -> str:
    """What is to be said of other work; empty: nothing."""
    most = most_others(bags.setting.cores)
    others = [each.other_cores for each in bags.bags if each.other_cores > most]
    if not others:
        return ""
    return (
        f"others were at work during {plural(len(others), 'bag')} of {len(bags.bags)} (up to {max(others):.1f} cores): "
        "seconds for which functions waited for a core were taken out, where the kernel tells, but caches were shared"
    )
