"""Results of runs as tables and sentences for people.

Owns the wording around figures: what they are, where they come from, what was assumed.
"""

from typing import TYPE_CHECKING

from wattloom.cli.printing import console, fullest, literal, table
from wattloom.report.figures import figure, percent, plural, short, spread
from wattloom.simulation.comparison import Comparison, Row
from wattloom.simulation.result import Result
from wattloom.simulation.scenario import builtin_names
from wattloom.units import MEGA

if TYPE_CHECKING:
    from rich.table import Table

PARTS = ("active", "idle", "sleep", "wake", "scheduler")


def print_result(result: Result) -> None:
    """One run as a list of figures."""
    out = console()
    seed = "" if result.seed is None else f", seed {result.seed}"
    shown = table("", "", title=literal(f"{result.policy} on {result.scenario}{seed}"))
    shown.show_header = False
    for name, value in _lines(result).items():
        shown.add_row(name, literal(value))
    out.print(shown)
    _print_warnings(result.warnings)
    out.print(_provenance(result.provenance), style="dim")
    out.print(assumed(len(result.assumptions), result.scenario), style="dim")


def _lines(result: Result) -> dict[str, str]:
    energy = result.energy.watt_hours()
    tasks = result.tasks
    return {
        "energy": f"{figure(energy['total'])} Wh",
        "  of it": ", ".join(f"{part} {figure(energy[part])}" for part in PARTS)
        + (", devices not counted" if result.devices else ""),
        "makespan": f"{figure(result.makespan_s)} s",
        "energy x delay": f"{figure(result.energy_delay_js / MEGA)} MJ·s",
        "peak power": f"{figure(result.peak_w)} W",
        "tasks": f"{tasks.finished:,} of {tasks.submitted:,} finished",
        "  others": f"{tasks.failed:,} failed, {tasks.waiting:,} still waiting",
        "wait p50, p95, p99": _quantiles(result.wait_s.p50, result.wait_s.p95, result.wait_s.p99, " s"),
        "slowdown p50, p95, p99": _quantiles(result.slowdown.p50, result.slowdown.p95, result.slowdown.p99, ""),
        **_deadlines(result),
        "utilisation": f"{result.utilisation:.1%} of the hardware threads",
        "decisions": f"{result.decisions:,}, digest {result.digest}",
    }


def _deadlines(result: Result) -> dict[str, str]:
    """A line only where tasks had one."""
    met, missed = result.deadlines.met, result.deadlines.missed
    return {"deadlines": f"{met:,} met, {missed:,} missed"} if met or missed else {}


def _print_warnings(warnings: list[str]) -> None:
    for warning in warnings:
        console().print(f"Warning: {literal(warning)}.", style="yellow")


def _quantiles(p50: float, p95: float, p99: float, unit: str) -> str:
    return ", ".join(figure(value) for value in (p50, p95, p99)) + unit


def print_comparison(comparison: Comparison) -> None:
    """Best first, then what the figures are."""
    out = console()
    narrower = ((PARTS, True, True), ((), True, True), ((), False, True), ((), False, False))
    widths = [_comparison_table(comparison, *columns) for columns in narrower]
    out.print(widths[fullest(widths, out)])
    undone = [row.policy for row in comparison.rows if not comparison.comparable(row)]
    if undone:
        out.print(f"Finished fewer tasks, so no saving is given: {literal(', '.join(undone))}.", style="yellow")
    _print_warnings(comparison.warnings)
    for held in comparison.held_against:
        out.print(
            literal(f"{held.sentence[0].upper()}{held.sentence[1:]}."), style="yellow" if held.contradicts else "dim"
        )
    sources = plural(len(comparison.machines), "machine type")
    out.print(_provenance(comparison.provenance, f" of {sources}"), style="dim")
    out.print(assumed(len(comparison.assumptions), comparison.scenario), style="dim")
    out.print()
    out.print(literal(comparison.sentence), style="bold")


def _comparison_table(comparison: Comparison, parts: tuple[str, ...], waits: bool, finished: bool) -> "Table":
    """Best first; with the parts of the energy, what users feel and how many tasks ended, as far as there is room.
    Who finished fewer is named below in any case."""
    seeds = len(comparison.seeds)
    names = ["energy\nWh", *parts, f"saving vs.\n{literal(short(comparison.reference))}", "makespan\ns"]
    names += ["energy x\ndelay MJ·s", "peak\nW"]
    names += [*(("wait\np95 s", "slowdown\np95") if waits else ()), *(("finished",) if finished else ())]
    title = f"{comparison.title or comparison.scenario}, {plural(seeds, 'seed')}"
    made = table("  policy", *names, title=literal(title), numbers=tuple(names))
    best = comparison.best
    for row in comparison.by_energy:
        cells = [literal(short(row.policy)), *_cells(comparison, row, parts, waits, finished)]
        won = row is best and comparison.has_a_winner
        cells[0] = f"{'★' if won else ' '} {cells[0]}"
        made.add_row(*cells, style="bold green" if won else None)
    return made


def _cells(comparison: Comparison, row: Row, parts: tuple[str, ...], waits: bool, finished: bool) -> list[str]:
    seeds = len(comparison.seeds)
    energy = row.energy.watt_hours()
    return [
        spread(energy["total"], row.energy_wh_spread, seeds),
        *(figure(energy[part]) for part in parts),
        _saving(comparison, row),
        spread(row.makespan_s, row.makespan_s_spread, seeds),
        figure(row.energy_delay_js / MEGA),
        figure(row.peak_w),
        *((figure(row.wait_s.p95), figure(row.slowdown.p95)) if waits else ()),
        *((f"{row.finished:,}/{row.submitted:,}",) if finished else ()),
    ]


def _saving(comparison: Comparison, row: Row) -> str:
    if row.policy == comparison.reference:
        return "reference"
    saving = comparison.saving_of(row)
    return "-" if saving is None else percent(saving)


def _provenance(provenance: str, of_what: str = "") -> str:
    return (
        f"Every figure is {provenance} by the simulator from the power curves{of_what} and the scenario's run times; "
        "nothing was measured. Energy counts the whole cluster until the last task ends."
    )


def assumed(count: int, scenario: str) -> str:
    """How much the scenario assumes, and how to see it."""
    if count == 0:
        return "The scenario states no assumptions."
    shown = f"`wattloom scenarios show {scenario}` or --json shows" if scenario in builtin_names() else "--json shows"
    return f"The scenario makes {plural(count, 'assumption')}: {shown} {'it' if count == 1 else 'them'}."
