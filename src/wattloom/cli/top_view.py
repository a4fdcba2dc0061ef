"""What `wattloom top` shows: one snapshot as JSON, or as tables that fit the terminal.

Owns the look, and the short history that sparklines are drawn from. Works out nothing.
"""

from collections import deque
from typing import TYPE_CHECKING, Any, Final, Literal

from wattloom.cli.figures import MARKS
from wattloom.cli.printing import cell, literal
from wattloom.metering.live import level_error
from wattloom.monitoring.snapshot import Entity, Kind, Snapshot

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

Sort = Literal["watts", "joules", "cpu"]
BARS: Final = "▁▂▃▄▅▆▇█"
SEEN: Final = 12
"""Looks in a sparkline."""
SEEN_NARROW: Final = 8
NARROW: Final = 100
FIGURE: Final = 7
"""Columns of a figure."""
FIGURES: Final = {"watts": "watts", "joules": "joules", "±": "", "CPU s": "cpu"}
"""Heads, and by which word the table is sorted by them."""
ALL: Final = "(all)"


class History:
    """Watts of the last looks, of the machine and of everybody on show."""

    def __init__(self) -> None:
        self._watts: dict[str, deque[float]] = {}

    def add(self, shown: Snapshot) -> None:
        watts = {ALL: shown.watts(shown.last.meter_j) or 0.0}
        for kind in ("process", "container", "pod", "vm", "unit"):
            watts |= {f"{kind} {each.key}": each.watts for each in shown.of(kind)}
        watts |= {f"device {each.uuid}": each.watts or 0.0 for each in shown.devices}
        self._watts = {key: self._longer(key, value) for key, value in watts.items()}

    def _longer(self, key: str, value: float) -> deque[float]:
        found = self._watts.get(key) or deque(maxlen=SEEN)
        found.append(value)
        return found

    def spark(self, key: str) -> str:
        """Against its own highest: the figures beside it say how much that is."""
        values = self._watts.get(key) or ()
        most = max(values, default=0.0)
        if most <= 0.0:
            return ""
        return "".join(BARS[min(int(value / most * len(BARS)), len(BARS) - 1)] for value in values)


def rows_of(shown: Snapshot, by: Kind, sort: Sort, limit: int | None) -> list[Entity]:
    """Those that have used something, the largest first."""
    order = {"watts": "watts", "joules": "joules", "cpu": "cpu_s"}[sort]
    found = [each for each in shown.of(by) if each.watts > 0.0 or not each.ended or by != "process"]
    found.sort(key=lambda each: (-getattr(each, order), -each.joules, each.key))
    return found[:limit] if limit is not None else found


def as_object(shown: Snapshot, by: Kind, sort: Sort, limit: int | None, unix_s: float) -> dict[str, Any]:
    """One line of `--json`. What is not known is null."""
    import msgspec

    parts = ("entities", "idle", "overhead", "unattributed")
    known = not shown.problem
    return {
        "unix_s": unix_s,
        "node": shown.node,
        "meter": shown.meter,
        "quantity": shown.quantity,
        "provenance": shown.provenance,
        "idle_policy": shown.policy,
        "shared_by": shown.shared_by,
        "problem": shown.problem or None,
        "seconds": shown.last.seconds,
        "watts": shown.watts(shown.last.meter_j) if known else None,
        **{f"{part}_w": shown.watts(getattr(shown.last, f"{part}_j")) if known else None for part in parts},
        "totals": msgspec.to_builtins(shown.totals),
        "by": by,
        "rows": [msgspec.to_builtins(each) | {"joules": each.joules} for each in rows_of(shown, by, sort, limit)],
        "tasks": msgspec.to_builtins(shown.tasks),
        "devices": msgspec.to_builtins(shown.devices),
        "processes": shown.living,
        "hidden_processes": shown.hidden,
    }


def picture(shown: Snapshot, history: History, by: Kind, sort: Sort, limit: int, width: int) -> "Group":
    """All of it, in so many columns."""
    from rich.console import Group
    from rich.text import Text

    parts: list[Any] = [Text.from_markup(line) for line in _head(shown, history)]
    parts.append(_entities(shown, history, by, sort, limit, width))
    if not shown.of(by):
        parts.append(Text(f"There is no {by} here that is known of."))
    if shown.devices:
        parts.append(_devices(shown, history))
    if shown.tasks:
        parts.append(_tasks(shown))
    return Group(*parts)


def _head(shown: Snapshot, history: History) -> list[str]:
    mark = MARKS[shown.provenance]
    whole, error = shown.watts(shown.last.meter_j), level_error(shown.provenance, shown.model_error)
    spread = f" ± {error:.0%}" if error and whole is not None and not shown.problem else ""
    lines = [
        f"[bold]{literal(shown.node)}[/]  [bold]{watts_text(None if shown.problem else whole)}[/]{spread} "
        f"{mark} {shown.provenance}, {shown.quantity}, by {literal(shown.meter)}  {history.spark(ALL)}"
    ]
    if shown.problem:
        lines.append(f"[red]no reading for {shown.waiting_s:.0f} s: {literal(shown.problem)}[/]")
    else:
        parts = ("entities", "idle", "unattributed", "overhead")
        words = {"entities": "somebody's", "unattributed": "nobody's", "overhead": "ours"}
        figures = [(words.get(part, part), shown.watts(getattr(shown.last, f"{part}_j"))) for part in parts]
        lines.append("  ".join(f"{name} {watts_text(watts)}" for name, watts in figures))
    hidden = f", {shown.hidden} of them hidden" if shown.hidden else ""
    unknown = f"   unknown {shown.totals.unknown_s:.0f} s" if shown.totals.unknown_s else ""
    lines.append(f"[dim]{joules_text(shown.totals.meter_j)} so far   {shown.living} processes{hidden}{unknown}[/]")
    return lines


def _entities(shown: Snapshot, history: History, by: Kind, sort: Sort, limit: int, width: int) -> "Table":
    from rich.table import Table

    made = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold underline")
    sparks = SEEN if width >= NARROW else SEEN_NARROW
    heads = [*FIGURES, *(["pid"] if by == "process" else [])]
    for head in heads:
        shown_as = f"{head}▾" if FIGURES.get(head) == sort else head
        made.add_column(shown_as, justify="right", no_wrap=True, min_width=FIGURE)
    left = width - len(heads) * (FIGURE + 1) - sparks - 2
    rows = [(_cells(each, by), each) for each in rows_of(shown, by, sort, limit)]
    where = min(left * 2 // 5, max((len(cells[-1]) for cells, _ in rows), default=0))
    made.add_column(by, no_wrap=True, overflow="ellipsis", max_width=left - where)
    made.add_column("where" if where else "", no_wrap=True, overflow="ellipsis", max_width=where)
    made.add_column("", no_wrap=True, min_width=sparks)
    for cells, each in rows:
        spark = history.spark(f"{by} {each.key}")[-sparks:]
        made.add_row(*map(cell, cells), spark, style="dim" if each.ended else None)
    return made


def _cells(each: Entity, by: Kind) -> list[str]:
    cells = [f"{each.watts:.2f}", joules_text(each.joules), joules_text(each.spread_j), f"{each.cpu_s:.1f}"]
    if by == "process":
        cells.append(str(each.pid or ""))
    inside = each.container[:12] if by in ("process", "vm") else ""
    where = inside or (each.pod if by == "container" else "") or (each.vm if by == "process" else "") or each.unit
    return [*cells, _label(each), where if where != each.name else each.engine]


def _label(each: Entity) -> str:
    """The program without its folder, and what it was given: ten interpreters are told apart by that."""
    if each.exited:
        return f"{each.name} (came and went)"
    program, _, rest = each.command.partition(" ")
    return f"{program.rpartition('/')[2]} {rest}".strip() if program else each.name


def _devices(shown: Snapshot, history: History) -> "Table":
    from wattloom.cli.printing import table

    made = table("device", "watts", "joules", "use", "", numbers=("watts", "joules", "use"))
    for each in shown.devices:
        use = "" if each.utilisation is None else f"{each.utilisation:.0%}"
        name = f"{MARKS[each.provenance]} {each.index} {each.name}"
        cells = [literal(name), watts_text(each.watts), joules_text(each.joules), use]
        made.add_row(*cells, literal(each.problem) or history.spark(f"device {each.uuid}"))
    return made


def _tasks(shown: Snapshot) -> "Table":
    from wattloom.cli.printing import table

    made = table("function", "watts", "joules", "calls", "J/call", numbers=("watts", "joules", "calls", "J/call"))
    for each in sorted(shown.tasks, key=lambda task: -task.joules)[:10]:
        mean = joules_text(each.joules / each.calls) if each.calls else ""
        mark = MARKS.get(each.provenance, "")
        name = f"{mark} {each.function}"
        made.add_row(literal(name), f"{each.watts:.2f}", joules_text(each.joules), f"{each.calls:,}", mean)
    return made


def watts_text(watts: float | None) -> str:
    return "? W" if watts is None else f"{watts:.2f} W" if watts < 100.0 else f"{watts:.0f} W"


def joules_text(joules: float) -> str:
    for unit, scale in (("MJ", 1e6), ("kJ", 1e3), ("J", 1.0)):
        if joules >= scale:
            return f"{joules / scale:.3g} {unit}" if joules / scale < 1000 else f"{joules / scale:.0f} {unit}"
    return f"{joules * 1e3:.0f} mJ" if joules >= 5e-4 else "0 J"
