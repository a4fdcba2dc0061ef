"""The page of a plan: cores and watts of each server, and how far the plan can be from the best.

Owns what is drawn and said of a plan. Figures are the plan's: modelled, from the profiles it was made with.
"""

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Final

import msgspec

import wattloom
from wattloom.errors import InputError
from wattloom.planning.plan import Assignment, Plan
from wattloom.report.figures import figure, plural
from wattloom.report.palette import PARTS, THEMES, Theme
from wattloom.report.pictures import Figure, Picture, empty_figure, png
from wattloom.report.style import CSS

MOST_BARS: Final = 40
"""Servers beyond are summed up by machine."""
PAGE: Final = "index.html"


class Bar(msgspec.Struct, frozen=True):
    """A server, or all of a machine."""

    name: str
    cores: int
    room: int
    active_w: float
    idle_w: float
    off: bool


def write_plan_page(plan: Plan, folder: Path) -> Path:
    """The page and its picture, into a folder that is made if it is not there."""
    shown = picture(plan)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{shown.name}.png").write_bytes(shown.light)
        (folder / PAGE).write_text(page(plan, shown), encoding="utf-8")
    except OSError as problem:
        raise InputError("report", f"{folder} cannot be written: {problem.strerror or problem}") from problem
    return folder / PAGE


def bars(plan: Plan) -> list[Bar]:
    """One for each server; where they are many, one for each machine."""
    mine: dict[str, list[Assignment]] = {}
    for each in plan.assignments:
        mine.setdefault(each.server, []).append(each)
    dark = set(plan.off)
    single = [
        Bar(
            server.name,
            sum(each.cores for each in mine.get(server.name, ())),
            server.cores,
            sum(each.watts or 0.0 for each in mine.get(server.name, ())),
            server.off_w if server.name in dark else server.idle_w or 0.0,
            server.name in dark,
        )
        for server in plan.servers
    ]
    return single if len(single) <= MOST_BARS else _by_machine(plan, single)


def _by_machine(plan: Plan, single: Sequence[Bar]) -> list[Bar]:
    groups: dict[str, list[Bar]] = {}
    for server, bar in zip(plan.servers, single, strict=True):
        groups.setdefault(server.machine, []).append(bar)
    return [
        Bar(
            f"{len(some)} x {machine}",
            sum(bar.cores for bar in some),
            sum(bar.room for bar in some),
            sum(bar.active_w for bar in some),
            sum(bar.idle_w for bar in some),
            all(bar.off for bar in some),
        )
        for machine, some in list(groups.items())[:MOST_BARS]
    ]


def picture(plan: Plan) -> Picture:
    """Cores given out of each server, and its watts."""
    shown = bars(plan)
    light, dark = (png(lambda theme: _paint(shown, theme), theme) for theme in THEMES)
    words = "; ".join(f"{bar.name} {bar.cores} of {bar.room} cores, {figure(bar.active_w)} W active" for bar in shown)
    return Picture(
        "plan",
        "Cores and watts",
        "Left: cores given out of those there are. Right: watts of executions, on top of what servers draw idle (one "
        "whose idle draw is not known is drawn without). Modelled, from the profiles the plan was made with.",
        f"Bar charts of cores and watts per server: {words}.",
        light,
        dark,
    )


def _paint(shown: Sequence[Bar], theme: Theme) -> Figure:
    made = empty_figure(1.4 + 0.3 * len(shown))
    left, right = made.subplots(1, 2, sharey=True)
    places = list(range(len(shown)))
    left.barh(places, [bar.room for bar in shown], height=0.62, color=theme.bar, label="there are")
    left.barh(places, [bar.cores for bar in shown], height=0.62, color=theme.pick(PARTS["active"]), label="given out")
    idle = [bar.idle_w for bar in shown]
    right.barh(places, idle, height=0.62, color=theme.pick(PARTS["idle"]), label="idle")
    active = [bar.active_w for bar in shown]
    right.barh(places, active, left=idle, height=0.62, color=theme.pick(PARTS["active"]), label="active")
    left.set_yticks(places, [f"{bar.name} (off)" if bar.off else bar.name for bar in shown])
    left.set_ylim(len(shown) - 0.4, -0.6)
    left.set_xlabel("cores")
    right.set_xlabel("watts")
    for axes in (left, right):
        axes.grid(visible=False, axis="y")
        axes.legend(loc="best", fontsize=8)
    return made


def page(plan: Plan, shown: Picture) -> str:
    """The whole document; no time of day is on it."""
    tiles = [
        (plan.goal, f"{figure(plan.objective)} {'cores' if plan.goal == 'cores' else 'W'}", _distance(plan)),
        ("Active", _watts(plan.active_w), "executions"),
        ("Idle", _watts(plan.idle_w), f"{plural(len(plan.off), 'server')} off"),
        ("Cores", f"{plan.cores:,}", f"of {sum(server.cores for server in plan.servers):,}"),
    ]
    body = [
        '<header>\n<p class="eyebrow">Wattloom &middot; plan</p>\n<h1>Who runs where</h1>\n'
        f'<p class="lead">{plural(len(plan.demand), "function")} on {plural(len(plan.servers), "server")}, '
        f"policy {escape(plan.policy)}.</p>\n{_notes(plan)}</header>",
        '<dl class="tiles">\n' + "\n".join(_tile(number, *tile) for number, tile in enumerate(tiles)) + "\n</dl>",
        f"<section>\n<h2>{escape(shown.title)}</h2>\n{_figure(shown)}\n</section>",
        f"<section>\n<h2>All functions</h2>\n{_table(plan.assignments)}\n</section>",
        f"<footer>Wattloom {escape(wattloom.__version__)}. Plan {plan.digest}. Every figure is modelled.</footer>",
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Plan - Wattloom</title>\n<style>\n{CSS}\n</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def _distance(plan: Plan) -> str:
    if plan.gap is None:
        return "nothing proven"
    return "proven best" if plan.gap < 1e-8 else f"at most {100 * plan.gap:.2g}% above the best possible"


def _watts(watts: float | None) -> str:
    return "unknown" if watts is None else f"{figure(watts)} W"


def _notes(plan: Plan) -> str:
    return "".join(f'<p class="note">{escape(note)}.</p>\n' for note in plan.notes)


def _tile(number: int, name: str, value: str, more: str) -> str:
    first = ' class="first"' if number == 0 else ""
    return (
        f'<div{first}><dt>{escape(name)}</dt><dd class="value">{escape(value)}</dd>'
        f'<dd class="more">{escape(more)}</dd></div>'
    )


def _figure(shown: Picture) -> str:
    light, dark = (f"data:image/png;base64,{b64encode(each).decode()}" for each in (shown.light, shown.dark))
    return (
        f'<figure>\n<picture><source media="screen and (prefers-color-scheme: dark)" srcset="{dark}">'
        f'<img src="{light}" alt="{escape(shown.alt)}"></picture>\n'
        f"<figcaption>{escape(shown.caption)} File: <code>{shown.name}.png</code>.</figcaption>\n</figure>"
    )


def _table(assignments: Sequence[Assignment]) -> str:
    heads = "".join(f'<th scope="col" class="n">{name}</th>' for name in ("req/s", "cores", "E", "watts"))
    rows = "\n".join(_row(each) for each in assignments)
    return (
        '<div class="scroll"><table>\n<thead><tr><th scope="col">function</th><th scope="col">server</th>'
        f"{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table></div>"
    )


def _row(each: Assignment) -> str:
    watts = "unknown" if each.watts is None else figure(each.watts)
    numbers = (figure(each.rate), f"{each.cores:,}", figure(each.per_core_s), watts)
    cells = "".join(f'<td class="n">{number}</td>' for number in numbers)
    return f'<tr><th scope="row">{escape(each.function)}</th><td>{escape(each.server)}</td>{cells}</tr>'
