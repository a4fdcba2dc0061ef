"""The report of an experiment: published beside ours on one page that can be sent alone, and its pictures.

Owns what is drawn and said. Bars (of one series, dots) are medians, whiskers what nine of ten draws lie between, a
band what was published. The same outcome gives the same bytes.
"""

from html import escape
from pathlib import Path

import wattloom
from wattloom.experiments.outcome import Bars, Held, Outcome, Spread, Table
from wattloom.report import ready, write_files
from wattloom.report.page import bullets, document, section, shown_picture, table
from wattloom.report.palette import BEST, OTHERS, REFERENCE, THEMES, Theme
from wattloom.report.pictures import Axes, Figure, Picture, empty_figure, png

COLOURS = (REFERENCE, *OTHERS[:3], BEST)
"""The first is what others are held against, the last what the study is about."""


def write_experiment(outcome: Outcome, folder: str | Path, command: str = "") -> Path:
    """Write `index.html` and the pictures into the folder. `command` is what made it."""
    folder = Path(folder)
    ready(folder)
    pictures = [_picture(each) for each in outcome.pictures]
    return write_files(folder, _page(outcome, pictures, command), pictures)


# -- pictures ----------------------------------------------------------------------------------------------------------


def _picture(bars: Bars) -> Picture:
    light, dark = (png(lambda theme: _painted(bars, theme), theme) for theme in THEMES)
    return Picture(bars.name, bars.title, bars.caption, _alt(bars), light, dark)


def _alt(bars: Bars) -> str:
    groups = (
        f"{group}: " + ", ".join(f"{name} {_told(cell)}" for name, cell in zip(bars.series, cells, strict=True))
        for group, cells in zip(bars.groups, bars.cells, strict=True)
    )
    return f"Bar chart, {bars.unit}. {'; '.join(groups)}."


def _told(cell: Spread | None) -> str:
    return "unknown" if cell is None else cell.told()


def _painted(bars: Bars, theme: Theme) -> Figure:
    made = empty_figure(4.6)
    axes = made.add_subplot()
    if bars.band is not None:
        axes.axhspan(*bars.band, color=theme.pick(REFERENCE), alpha=0.18, label=bars.band_name, zorder=0)
    width = 0.8 / len(bars.series)
    for number, name in enumerate(bars.series):
        _bars(axes, bars, number, width, name, theme)
    axes.set_xticks(range(len(bars.groups)), bars.groups)
    axes.set_ylabel(bars.unit)
    axes.set_xlim(-0.5, len(bars.groups) - 0.5)
    axes.set_ylim(bottom=0.0)
    axes.grid(visible=False, axis="x")
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=6, frameon=False, handlelength=1.0)
    return made


def _bars(axes: Axes, bars: Bars, number: int, width: float, name: str, theme: Theme) -> None:
    known = [(at, row[number]) for at, row in enumerate(bars.cells)]
    places = [at + (number - (len(bars.series) - 1) / 2) * width for at, cell in known if cell is not None]
    cells = [cell for _, cell in known if cell is not None]
    medians = [cell.median for cell in cells]
    ends = [[cell.median - cell.low for cell in cells], [cell.high - cell.median for cell in cells]]
    if len(bars.series) > 1:
        axes.bar(places, medians, width=0.9 * width, color=theme.pick(COLOURS[number % len(COLOURS)]), label=name)
        axes.errorbar(places, medians, yerr=ends, fmt="none", ecolor=theme.ink, elinewidth=1.1, capsize=2.5)
        return
    colour = theme.pick(BEST)
    axes.errorbar(
        places, medians, yerr=ends, fmt="o", color=colour, elinewidth=2.0, capsize=5, markersize=8, label=name
    )
    for place, cell in zip(places, cells, strict=True):
        axes.annotate(f"{cell.median:.1f}", (place, cell.median), (10, -4), textcoords="offset points")


# -- page --------------------------------------------------------------------------------------------------------------


def _page(outcome: Outcome, pictures: list[Picture], command: str) -> str:
    kinds = ", ".join(sorted({held.provenance for held in outcome.held}))
    body = [
        f'<header>\n<p class="eyebrow">Wattloom &middot; experiment {escape(outcome.experiment)}</p>\n'
        f'<h1>{escape(outcome.title)}</h1>\n<p class="lead">{escape(outcome.sentence)}.</p>\n'
        f'<p class="note">{outcome.seeds:,} draws. Ours are {kinds}.</p>\n</header>',
        section("Published and ours", _held_table(outcome.held)),
        *(shown_picture(each) for each in pictures),
        section("All figures", *(_own_table(each) for each in outcome.tables)),
        section("What was assumed", bullets(list(outcome.assumptions))),
        section("Sources", bullets(list(outcome.cite))),
        section("How this page was made", f"<pre>{escape(command)}</pre>" if command else ""),
        f"<footer>Wattloom {escape(wattloom.__version__)}.</footer>",
    ]
    return document(outcome.title, body)


def _held_table(held: tuple[Held, ...]) -> str:
    rows = [
        f'<tr><th scope="row">{escape(each.what)}</th>'
        + "".join(
            f"<td>{escape(cell)}</td>"
            for cell in (each.told, each.told_ours, each.off, each.verdict, each.provenance, each.place)
        )
        + "</tr>"
        for each in held
    ]
    names = ["published", "theirs", "ours", "error", "verdict", "ours are", "place"]
    return table("Medians, and in brackets where nine of ten draws lie.", names, [], rows)


def _own_table(made: Table) -> str:
    rows = [
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(f'<td class="n">{escape(_told(cell))}</td>' for cell in cells)
        + "</tr>"
        for name, cells in zip(made.rows, made.cells, strict=True)
    ]
    return table(f"{made.title}, {made.unit}; {made.provenance}.", [""], list(made.columns), rows)
