"""The page: a comparison as HTML that needs nothing beside it.

Owns what is said and in which order. No time of day is on it, so the same comparison gives the same page.
"""

from base64 import b64encode
from collections.abc import Callable
from html import escape

import wattloom
from wattloom.report.figures import figure, percent, plural, spread
from wattloom.report.here import Here
from wattloom.report.pictures import Picture
from wattloom.report.style import CSS
from wattloom.simulation.comparison import Comparison, MachineUse, Row
from wattloom.simulation.published import HeldAgainst
from wattloom.units import MEGA

PARTS = ("active", "idle", "sleep", "wake", "scheduler")


def page(comparison: Comparison, pictures: list[Picture], command: str, here: Here | None = None) -> str:
    """The whole document. With `here`, the first picture is that of real calls, and stands before everything else."""
    title = comparison.title or comparison.scenario
    first = [] if here is None else [shown_picture(pictures[0], _here_table(here))]
    modelled = "Every figure on this page" if here is None else "Every figure of the comparison"
    body = [
        *first,
        _header(comparison, title),
        _tiles(comparison),
        *(shown_picture(picture) for picture in pictures[len(first) :]),
        section("All figures", _energy_table(comparison), _service_table(comparison), _undone(comparison)),
        *_published(comparison),
        section("Measured or modelled?", _provenance(comparison), _machines_table(comparison.machines)),
        section("What was assumed", *_assumptions(comparison)),
        section("How this page was made", *_making(comparison, command)),
        f"<footer>Wattloom {escape(wattloom.__version__)}. {modelled} is modelled.</footer>",
    ]
    return document(title, body)


def document(title: str, body: list[str]) -> str:
    """The whole of a page around its sections."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)} - Wattloom</title>\n<style>\n{CSS}\n</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


# -- parts of the page ------------------------------------------------------------------------------------------------


def _header(comparison: Comparison, title: str) -> str:
    nodes = sum(use.nodes for use in comparison.machines)
    runs = comparison.rows[0].runs
    tasks = plural(round(sum(run.tasks.submitted for run in runs) / len(runs)), "task")
    cluster = f"{plural(nodes, 'node')} of {plural(len(comparison.machines), 'machine type')}"
    policies = plural(len(comparison.rows), "policy", "policies")
    seeds = "one seed" if len(runs) == 1 else f"means over {len(runs)} seeds"
    return (
        f'<header>\n<p class="eyebrow">Wattloom &middot; comparison of policies</p>\n<h1>{escape(title)}</h1>\n'
        f'<p class="lead">{escape(comparison.sentence)}</p>\n'
        f'<p class="note">Scenario <code>{escape(comparison.scenario)}</code>: {tasks} on {cluster}, {policies}, '
        f"{seeds}. Modelled by the simulator.</p>\n{_warnings(comparison)}</header>"
    )


def _warnings(comparison: Comparison) -> str:
    return "".join(f'<p class="note"><strong>Warning:</strong> {escape(w)}.</p>\n' for w in comparison.warnings)


def _tiles(comparison: Comparison) -> str:
    best = comparison.best
    reference = comparison.row(comparison.reference)
    fastest = min(comparison.rows, key=lambda row: (-row.finished, row.makespan_s))
    tiles = [
        ("Energy saved", *_saved(comparison, best, reference)),
        ("Energy", f"{figure(best.energy.watt_hours()['total'])} Wh", f"with {best.policy}"),
        ("Makespan", f"{figure(best.makespan_s)} s", _against_fastest(best, fastest)),
        (
            "Waiting, 95th percentile",
            f"{figure(best.wait_s.p95)} s",
            f"{figure(reference.wait_s.p95)} s with {reference.policy}",
        ),
    ]
    return '<dl class="tiles">\n' + "\n".join(_tile(number, *tile) for number, tile in enumerate(tiles)) + "\n</dl>"


def _saved(comparison: Comparison, best: Row, reference: Row) -> tuple[str, str]:
    if not comparison.has_a_winner:
        return "-", "none can be given"
    if best is reference or best.finished != reference.finished:
        return "-", "the reference is the best" if best is reference else "the reference finished fewer tasks"
    return f"{comparison.saving(best, reference):.1%}", f"{best.policy} against {reference.policy}"


def _against_fastest(best: Row, fastest: Row) -> str:
    if best is fastest or fastest.makespan_s <= 0.0:
        return "the shortest of all"
    return f"{percent(best.makespan_s / fastest.makespan_s - 1.0)} against the fastest, {fastest.policy}"


def _tile(number: int, name: str, value: str, more: str) -> str:
    first = ' class="first"' if number == 0 else ""
    return (
        f'<div{first}><dt>{escape(name)}</dt><dd class="value">{escape(value)}</dd>'
        f'<dd class="more">{escape(more)}</dd></div>'
    )


def shown_picture(picture: Picture, *more: str) -> str:
    """A section with a picture, for light and for dark screens."""
    return section(
        picture.title,
        "<figure>\n<picture>"
        f'<source media="screen and (prefers-color-scheme: dark)" srcset="{_data_uri(picture.dark)}">'
        f'<img src="{_data_uri(picture.light)}" alt="{escape(picture.alt)}"></picture>\n'
        f"<figcaption>{escape(picture.caption)} File: <code>{picture.name}.png</code>.</figcaption>\n</figure>",
        *more,
    )


def _here_table(here: Here) -> str:
    rows = [
        f'<tr><th scope="row">{escape(each.name)}</th>'
        + _numbers(
            [
                f"{each.calls:,}",
                f"{1000 * each.seconds:.1f}",
                f"{figure(1000 * each.joules)} ± {figure(1000 * each.spread_j)}",
                figure(1000 * each.varies_j),
                figure(each.joules / each.seconds if each.seconds else 0.0),
            ]
        )
        + "</tr>"
        for each in here.functions
    ]
    numbers = ["calls", "ms per call", "mJ per call", "from call to call", "watts"]
    return table(f"Means on {here.machine}; joules are {here.provenance}.", ["function"], numbers, rows)


def _data_uri(png: bytes) -> str:
    return f"data:image/png;base64,{b64encode(png).decode()}"


def section(title: str, *blocks: str) -> str:
    """A part of a page under its heading."""
    return f"<section>\n<h2>{escape(title)}</h2>\n" + "\n".join(block for block in blocks if block) + "\n</section>"


def _energy_table(comparison: Comparison) -> str:
    numbers = ["energy, Wh", *PARTS, f"saving vs. {comparison.reference}", "makespan, s"]
    numbers += ["energy x delay, MJ·s", "peak, W", "utilisation"]
    several = len(comparison.seeds) > 1
    means = f" Means over {len(comparison.seeds)} seeds, ± one standard deviation." if several else ""
    caption = f"Energy in watt-hours, best first. Saving: (reference - policy) / reference.{means}"
    return _policies_table(comparison, caption, numbers, _energy_cells)


def _energy_cells(comparison: Comparison, row: Row) -> list[str]:
    seeds = len(comparison.seeds)
    energy = row.energy.watt_hours()
    return [
        spread(energy["total"], row.energy_wh_spread, seeds),
        *(figure(energy[part]) for part in PARTS),
        _saving(comparison, row),
        spread(row.makespan_s, row.makespan_s_spread, seeds),
        spread(row.energy_delay_js / MEGA, row.energy_delay_js_spread / MEGA, seeds),
        figure(row.peak_w),
        f"{row.utilisation:.1%}",
    ]


def _service_table(comparison: Comparison) -> str:
    numbers = ["wait p50, s", "wait p95, s", "wait p99, s", "slowdown p50", "slowdown p95", "slowdown p99"]
    numbers += ["finished", "failed", "waiting"]
    caption = (
        "What the tasks got for it. Wait: submission to start. Slowdown: submission to end, over the shortest possible "
        "run time on this cluster. Tasks of all seeds together."
    )
    return _policies_table(comparison, caption, numbers, _service_cells)


def _service_cells(comparison: Comparison, row: Row) -> list[str]:
    return [
        *(figure(value) for value in (row.wait_s.p50, row.wait_s.p95, row.wait_s.p99)),
        *(figure(value) for value in (row.slowdown.p50, row.slowdown.p95, row.slowdown.p99)),
        f"{row.finished:,}",
        f"{sum(run.tasks.failed for run in row.runs):,}",
        f"{sum(run.tasks.waiting for run in row.runs):,}",
    ]


def _policies_table(
    comparison: Comparison, caption: str, numbers: list[str], cells: Callable[[Comparison, Row], list[str]]
) -> str:
    rows: list[str] = []
    for row in comparison.by_energy:
        best = row is comparison.best and comparison.has_a_winner
        badge = "best" if best else "reference" if row.policy == comparison.reference else ""
        shown = f' <span class="badge">{badge}</span>' if badge else ""
        opening = '<tr class="best">' if best else "<tr>"
        name = f'<th scope="row">{escape(row.policy)}{shown}</th>'
        rows.append(f"{opening}{name}{_numbers(cells(comparison, row))}</tr>")
    return table(caption, ["policy"], numbers, rows)


def _numbers(cells: list[str]) -> str:
    return "".join(f'<td class="n">{escape(cell)}</td>' for cell in cells)


def _saving(comparison: Comparison, row: Row) -> str:
    saving = comparison.saving_of(row)
    return "-" if saving is None else percent(saving)


def _undone(comparison: Comparison) -> str:
    undone = [row.policy for row in comparison.rows if not comparison.comparable(row)]
    if not undone:
        return ""
    names = escape(", ".join(undone))
    return f'<p class="note">Finished fewer tasks than the best, so their energy is not comparable: {names}.</p>'


def _provenance(comparison: Comparison) -> str:
    return (
        "<p>Everything is <strong>modelled</strong>; nothing was measured for this page. The simulator runs Wattloom's "
        "engine in virtual time: run times come from the scenario, power from the curves of the machines below, by the "
        "cores in use. Energy counts the whole cluster from the first second to the end of the last task, the "
        "scheduler's own decisions included. Below, <em>measured</em> means that others measured and published the "
        "curve, <em>estimated</em> that it was put together from less.</p>"
    )


def _published(comparison: Comparison) -> list[str]:
    """What the scenario's source says, beside ours; nothing where it says nothing."""
    held = comparison.held_against
    if not held:
        return []
    wrong = sum(each.contradicts for each in held)
    told = f"The model contradicts the scenario's source in {wrong} of {plural(len(held), 'figure')}. " if wrong else ""
    recorded = "Where not all policies ran that a figure needs, or fewer seeds, ours is the one recorded with it."
    rows = [f"<tr>{_published_cells(each)}</tr>" for each in held]
    shown = table("Published and modelled.", ["figure", "published", "ours", "error", "verdict", "source"], [], rows)
    return [section("Held against its source", f'<p class="note">{told}{recorded}</p>', shown)]


def _published_cells(held: HeldAgainst) -> str:
    cells = [held.told(held.published), held.told_ours, held.off, held.verdict, held.source]
    return f'<th scope="row">{escape(held.figure)}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in cells)


def _machines_table(machines: list[MachineUse]) -> str:
    rows = [_machine_row(use) for use in machines]
    return table(
        "Machines of the cluster and the sources of their curves.",
        ["machine", "architecture"],
        ["nodes", "cores / threads", "idle, W", "full, W", "sleep, W"],
        rows,
        ["curve", "source"],
    )


def _machine_row(use: MachineUse) -> str:
    profile = use.profile
    known = bool(profile.watts)
    sizes = [f"{use.nodes:,}", f"{profile.cores} / {profile.threads}"]
    watts = [figure(profile.watts[0][1]), figure(profile.watts[-1][1])] if known else ["unknown", "unknown"]
    sleep = "cannot" if profile.sleep_w is None else figure(profile.sleep_w)
    return (
        f'<tr><th scope="row">{escape(profile.name)}</th><td>{escape(profile.arch)}</td>'
        f"{_numbers([*sizes, *watts, sleep])}"
        f"<td>{escape(profile.provenance)}, {escape(profile.quantity)}</td>"
        f'<td class="wide">{escape(profile.source or "none given")}</td></tr>'
    )


def _assumptions(comparison: Comparison) -> list[str]:
    assumed = bullets(comparison.assumptions) or "<p>The scenario states no assumptions.</p>"
    sources = bullets(comparison.sources)
    return [assumed, f"<h3>Sources of the scenario</h3>\n{sources}" if sources else ""]


def bullets(items: list[str]) -> str:
    """A list; nothing where there is nothing to list."""
    return "<ul>\n" + "\n".join(f"<li>{escape(item)}</li>" for item in items) + "\n</ul>" if items else ""


def _making(comparison: Comparison, command: str) -> list[str]:
    seeds = ", ".join(str(seed) for seed in comparison.seeds)
    made = (
        f"<p>This command makes the same page again, bit for bit:</p>\n<pre>{escape(command)}</pre>" if command else ""
    )
    version = (
        f"<p>Wattloom {escape(wattloom.__version__)}; {'seed' if len(comparison.seeds) == 1 else 'seeds'} {seeds}.</p>"
    )
    runs = [_run_row(row, number) for row in comparison.by_energy for number in range(len(row.runs))]
    shown = table(
        "A digest is a fingerprint of all placements in their order: equal digests, equal decisions.",
        ["policy"],
        ["seed", "energy, Wh", "makespan, s", "energy x delay, MJ·s", "peak, W", "decisions"],
        runs,
        ["digest"],
    )
    return [made, version, f"<details open>\n<summary>Every run and its digest</summary>\n{shown}\n</details>"]


def _run_row(row: Row, number: int) -> str:
    run = row.runs[number]
    energy = figure(run.energy.watt_hours()["total"])
    product = figure(run.energy_delay_js / MEGA)
    cells = [str(run.seed), energy, figure(run.makespan_s), product, figure(run.peak_w), f"{run.decisions:,}"]
    return f'<tr><th scope="row">{escape(row.policy)}</th>{_numbers(cells)}<td><code>{run.digest}</code></td></tr>'


def table(caption: str, names: list[str], numbers: list[str], rows: list[str], more: list[str] | None = None) -> str:
    """A table of ready rows; the columns of `numbers` stand to the right."""
    heads = [f'<th scope="col">{escape(name)}</th>' for name in names]
    heads += [f'<th scope="col" class="n">{escape(name)}</th>' for name in numbers]
    heads += [f'<th scope="col">{escape(name)}</th>' for name in more or []]
    body = "\n".join(rows)
    return (
        f'<div class="scroll"><table>\n<caption>{escape(caption)}</caption>\n'
        f"<thead><tr>{''.join(heads)}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>"
    )
