"""How a plan looks in the terminal and as JSON."""

from typing import TYPE_CHECKING, Any, Final

import msgspec

from wattloom.cli.printing import cell, cleaned, console, print_json, table
from wattloom.planning.plan import Plan, Server
from wattloom.report.figures import figure, plural

if TYPE_CHECKING:
    from rich.table import Table

MOST_ROWS: Final = 40
"""Of servers; more are summed up by machine."""
UNITS: Final = {"energy": "W", "cores": "cores", "weighted": "W (with a price on cores)"}


def as_data(plan: Plan) -> dict[str, Any]:
    """For programs: all of it, with what follows from it."""
    return {**msgspec.to_builtins(plan), "gap": plan.gap, "digest": plan.digest}


def print_plan(plan: Plan, as_json: bool, *, functions: bool = False) -> None:
    if as_json:
        print_json(as_data(plan))
        return
    out = console()
    out.print(_functions(plan) if functions else _servers(plan))
    for line in lines(plan):
        out.print(cleaned(line), markup=False, highlight=False)


def lines(plan: Plan) -> list[str]:
    """The plan in sentences, the verdict first."""
    said = [f"{plan.goal}: {headline(plan)}"]
    parts = [f"{plural(len(plan.demand), 'function')}, {plural(plan.cores, 'core')} given out"]
    parts.append("active " + _watts(plan.active_w))
    parts.append("idle " + _watts(plan.idle_w))
    if plan.off:
        parts.append(f"{plural(len(plan.off), 'server')} off")
    said.append("; ".join(parts))
    said += [f"note: {note}" for note in plan.notes]
    return said


def headline(plan: Plan) -> str:
    """The objective and how far it can be from the best."""
    return f"{figure(plan.objective)} {UNITS[plan.goal]}, {distance(plan)} ({plan.policy}, {plan.seconds:.2g} s)"


def distance(plan: Plan) -> str:
    """From the best possible."""
    if plan.gap is None:
        return "nothing proven"
    if plan.gap < 1e-8:
        return "proven best"
    return f"at most {100 * plan.gap:.2g}% above the best possible"


def _watts(watts: float | None) -> str:
    return "unknown" if watts is None else f"{figure(watts)} W"


def _servers(plan: Plan) -> "Table":
    shown = table("server", "machine", "functions", "cores", "of", "active W", "idle W", numbers=NUMBERS)
    used: dict[str, list[Any]] = {}
    for each in plan.assignments:
        used.setdefault(each.server, []).append(each)
    dark = set(plan.off)
    for server in plan.servers[:MOST_ROWS]:
        shown.add_row(*_row(server, used.get(server.name, []), server.name in dark))
    if len(plan.servers) > MOST_ROWS:
        rest = plan.servers[MOST_ROWS:]
        shown.add_row(f"{len(rest):,} more", "", *_sums(rest, used), "")
    return shown


NUMBERS: Final = ("functions", "cores", "of", "active W", "idle W")


def _row(server: Server, mine: list[Any], off: bool) -> tuple[str, ...]:
    idle = "off" if off else "unknown" if server.idle_w is None else figure(server.idle_w)
    return (cell(server.name), cell(server.machine), *_sums([server], {server.name: mine}), idle)


def _sums(servers: "Any", used: dict[str, list[Any]]) -> tuple[str, str, str, str]:
    mine = [each for server in servers for each in used.get(server.name, [])]
    watts = [each.watts for each in mine]
    active = "unknown" if None in watts else figure(sum(watts))
    cores = sum(each.cores for each in mine)
    return f"{len(mine):,}", f"{cores:,}", f"{sum(server.cores for server in servers):,}", active


def _functions(plan: Plan) -> "Table":
    shown = table("function", "server", "req/s", "cores", "E", "W", numbers=("req/s", "cores", "E", "W"))
    for each in plan.assignments:
        watts = "unknown" if each.watts is None else figure(each.watts)
        name = f"{each.function} ({each.variant})" if each.variant else each.function
        shown.add_row(
            cell(name), cell(each.server), figure(each.rate), f"{each.cores:,}", figure(each.per_core_s), watts
        )
    return shown
