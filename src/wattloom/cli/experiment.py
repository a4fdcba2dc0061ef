"""`wattloom experiment`: what published studies found, run again, with theirs and ours side by side."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from click.shell_completion import CompletionItem

from wattloom.cli.options import NamedPath, Whole, as_json
from wattloom.cli.printing import say

if TYPE_CHECKING:
    from rich.console import Console

    from wattloom.experiments.outcome import Outcome, Table


class Experiments(click.Group):
    """`experiment isa` is short for `experiment run isa`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = args[0] in self.commands or args[0].startswith("-")
        return super().resolve_command(ctx, args if known else ["run", *args])


def experiment_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from wattloom.experiments.running import experiments

    return [CompletionItem(each.name, help=each.summary) for each in experiments() if each.name.startswith(incomplete)]


@click.group(cls=Experiments, short_help="Run a published study's experiment, theirs beside ours.")
def experiment() -> None:
    """Run what a published study ran, and hold ours against what it published.

    `wattloom experiment NAME` is short for `wattloom experiment run NAME`.

    \b
    Examples:
      wattloom experiment list
      wattloom experiment isa --quick
    """


@experiment.command("list", short_help="List the experiments and what they need.")
@as_json
def list_(as_json: bool) -> None:
    """List the installed experiments: what they hold against whom, their options, and the data they need.

    \b
    Example:
      wattloom experiment list
    """
    from wattloom.cli.printing import console, literal, print_json, table
    from wattloom.experiments.running import EXPERIMENTS, experiments

    found = experiments()
    if as_json:
        print_json([msgspec.to_builtins(each) for each in found])
        return
    shown = table("experiment", "what it does", "draws", "quick", "options", "needs", numbers=("draws", "quick"))
    for each in found:
        options = "\n".join(f"{name}: {meaning}" for name, meaning in each.options.items())
        needs = "\n".join(f"{need.file}: {need.what} ({need.whence})" for need in each.needs) or "nothing"
        words = (literal(each.summary), f"{each.seeds:,}", f"{each.quick_seeds:,}", literal(options), literal(needs))
        shown.add_row(each.name, *words)
    console().print(shown)
    for name, problem in EXPERIMENTS.unavailable().items():
        say(f"warning: {name}: {problem}", err=True)


@experiment.command(short_help="Run an experiment: published, ours, error, verdict.")
@click.argument("name", shell_complete=experiment_names)
@click.option("--seeds", type=Whole(1, 100_000), metavar="N", help="Draws or runs. Left out: as many as it has.")
@click.option("--quick", is_flag=True, help="Few draws: seconds, and wider spreads.")
@click.option(
    "--data", type=NamedPath(path_type=Path), metavar="DIR", help="A folder with the files that the experiment needs."
)
@click.option(
    "--report",
    type=NamedPath(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write DIR/index.html, one page that can be sent alone, and its pictures beside it.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print published figures and facts as CSV, and nothing else.")
@as_json
def run(
    name: str, seeds: int | None, quick: bool, data: Path | None, report: Path | None, as_csv: bool, as_json: bool
) -> None:
    """Run an experiment, and print what was published beside ours, with error and verdict.

    A figure agrees within 5% (a percentage: 5 points); a fact, if it holds in nine of ten draws. Options of an
    experiment follow its name. The same seeds give the same table.

    \b
    Examples:
      wattloom experiment run isa --quick --report out
      wattloom experiment run isa:threads=true --seeds 200 --csv
    """
    from wattloom.cli.printing import print_json, stdout_kept_for_json
    from wattloom.cli.progress import progress_bar
    from wattloom.experiments.running import experiment as run_experiment

    if as_csv and as_json:
        raise click.UsageError("--csv and --json are two forms of the same: name one")
    if report is not None:
        from wattloom.report import ready

        ready(report)
    with progress_bar(f"experiment {name}", "draws") as progress, stdout_kept_for_json(as_json or as_csv):
        outcome = run_experiment(name, seeds, quick=quick, data=data, progress=progress)
    page = None if report is None else _written(outcome, report, command_of(name, seeds, quick, data))
    if as_json:
        print_json(outcome.to_json() | ({} if page is None else {"report": str(page)}))
    elif as_csv:
        say(outcome.to_csv(), nl=False)
    else:
        print_outcome(outcome)
        if page is not None:
            say(f"Report: {page}")


def _written(outcome: "Outcome", report: Path, command: str) -> Path:
    from wattloom.report.experiments import write_experiment

    return write_experiment(outcome, report, f"{command} --report {shlex.quote(str(report))}")


def command_of(name: str, seeds: int | None, quick: bool, data: Path | None) -> str:
    """The command that does the same again."""
    words = ["wattloom", "experiment", "run", name]
    words += [] if seeds is None else ["--seeds", str(seeds)]
    words += ["--quick"] if quick else []
    return shlex.join(words + ([] if data is None else ["--data", str(data)]))


def print_outcome(outcome: "Outcome") -> None:
    """Tables and sentences for people."""
    from wattloom.cli.printing import cell, console, table

    out = console()
    title = f"{outcome.title}: {outcome.seeds:,} draws"
    shown = table("published", "theirs", "ours", "error", "verdict", title=title)
    for held in outcome.held:
        shown.add_row(cell(held.what), cell(held.told), cell(held.told_ours), held.off, held.verdict)
    out.print(shown)
    for each in outcome.tables:
        _print_table(each, out)
    kinds = sorted({held.provenance for held in outcome.held})
    out.print(f"{outcome.sentence}. Ours are {' and '.join(kinds)}.", markup=False)
    for line in (*outcome.assumptions, *(f"Source: {each}" for each in outcome.cite)):
        out.print(line, style="dim", markup=False)


def _print_table(made: "Table", out: "Console") -> None:
    from wattloom.cli.printing import cell, table

    shown = table("", *made.columns, title=f"{made.title}, {made.unit} ({made.provenance})", numbers=made.columns)
    for name, cells in zip(made.rows, made.cells, strict=True):
        shown.add_row(cell(name), *("unknown" if each is None else each.told() for each in cells))
    out.print(shown)
