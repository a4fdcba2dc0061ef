"""`wattloom demo`: real functions on this machine and their joules, then all policies on a mixed cluster.

Owns what the demo runs and says. The work is in `demo_functions`, the picture in the report.
"""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from wattloom.cli.options import NamedPath, Whole, policy_names, scenario_names, sleep_option
from wattloom.cli.printing import say

if TYPE_CHECKING:
    from wattloom.report.here import Here

SCENARIO: Final = "mixed-1000"
MEANING: Final = (
    "The first ± is how far a figure may be off (one standard deviation): all calls of a function share that error, so "
    "it cancels when you compare a function with itself. The second is how much its calls differ from each other."
)


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    short_help="Run some functions here, then compare the policies.",
)
@click.option(
    "--calls",
    type=Whole(2, 1_000_000),
    default=60,
    show_default=True,
    metavar="N",
    help="Calls of each function.",
)
@click.option(
    "--scenario",
    default=SCENARIO,
    show_default=True,
    shell_complete=scenario_names,
    help="Where policies are compared.",
)
@click.option(
    "--policies", shell_complete=policy_names, metavar="A,B,C", help="As in `wattloom compare`. Left out: all."
)
@sleep_option
@click.option(
    "--report",
    type=NamedPath(file_okay=False, path_type=Path),
    default=Path("demo-report"),
    show_default=True,
    metavar="DIR",
    help="Write DIR/index.html and its pictures.",
)
def demo(calls: int, scenario: str, policies: str | None, sleep: bool | None, report: Path) -> None:
    """Show what Wattloom does, in two parts.

    First it runs some functions for real, in worker processes of this machine, and says what a call of each costs in
    joules. Then it compares the policies on the very same work in a simulated cluster. Both are in the report.

    \b
    Examples:
      wattloom demo
      wattloom demo --calls 20 --scenario hsc-cpu --report out
    """
    from wattloom import api
    from wattloom.cli.progress import progress_bar
    from wattloom.cli.results import print_comparison
    from wattloom.report import ready, write

    ready(report)
    from wattloom.cli.demo_run import run_here

    say("1. Real functions, in worker processes of this machine\n")
    with progress_bar("calls") as progress:
        here = run_here(calls, progress)
    print_here(here)
    say(f"2. All policies on the same work, simulated: {scenario}\n")
    with progress_bar(f"policies on {Path(scenario).name}") as progress:
        comparison = api.compare(scenario, policies, 1, progress, sleep=sleep)
    print_comparison(comparison)
    say(f"Report: {write(comparison, report, _command(calls, scenario, policies, sleep, report), here)}")


def _command(calls: int, scenario: str, policies: str | None, sleep: bool | None, report: Path) -> str:
    words = ["wattloom", "demo", "--calls", str(calls), "--scenario", scenario]
    words += [] if policies is None else ["--policies", policies]
    words += [] if sleep is None else ["--sleep" if sleep else "--no-sleep"]
    return shlex.join([*words, "--report", str(report)])


# -- words -------------------------------------------------------------------------------------------------------------


def print_here(here: "Here") -> None:
    """The table, what the spread means, and where the joules come from."""
    from wattloom.cli.printing import console, literal, table
    from wattloom.report.figures import figure

    numbers = ("calls", "ms", f"mJ per call ({here.provenance})", "varies by", "watts")
    made = table("function", *numbers, numbers=numbers)
    for each in here.functions:
        per_second = each.joules / each.seconds if each.seconds else 0.0
        made.add_row(
            each.name,
            f"{each.calls:,}",
            f"{1000 * each.seconds:.1f}",
            f"{figure(1000 * each.joules)} ± {figure(1000 * each.spread_j)}",
            f"± {figure(1000 * each.varies_j)}",
            figure(per_second),
        )
    out = console()
    out.print(made)
    out.print(literal(f"Joules on {here.machine} are {here.provenance}: {here.source}."))
    out.print(literal(MEANING + "\n"))


if __name__ == "__main__":
    demo(prog_name="wattloom demo")
