"""`wattloom compare`: several policies on the very same work, as a table, as JSON and as a report."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wattloom.cli.options import NamedPath, Whole, as_json, policy_names, scenario_argument, sleep_option
from wattloom.cli.printing import say

if TYPE_CHECKING:
    pass


@click.command(short_help="Run several policies on the very same work.")
@scenario_argument
@click.option(
    "--policies",
    shell_complete=policy_names,
    metavar="A,B,C",
    help="Policies with commas in between; options too, as in pack,marginal-energy:tdp=true,guarantee=0.8,fifo. "
    "Left out: all built-in ones, each with idle nodes that sleep and without.",
)
@click.option(
    "--seeds",
    type=Whole(1, 10_000),
    default=1,
    show_default=True,
    metavar="K",
    help="Run each policy with the seeds 0 to K-1; figures are means.",
)
@click.option(
    "--reference",
    shell_complete=policy_names,
    metavar="P",
    help="The policy that savings are given against. Left out: spread if it is among them, else the first.",
)
@click.option(
    "--report",
    type=NamedPath(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write DIR/index.html, one page that can be sent alone, and its pictures beside it.",
)
@sleep_option
@as_json
def compare(
    scenario: str,
    policies: str | None,
    seeds: int,
    reference: str | None,
    report: Path | None,
    sleep: bool | None,
    as_json: bool,
) -> None:
    """Run several policies on the very same tasks and cluster.

    The table is sorted by energy, the best marked with a star. A saving is a true reduction: (reference - policy) /
    reference. A policy that finishes fewer tasks than another is not compared with it.

    \b
    Examples:
      wattloom compare hsc-cpu
      wattloom compare hsc-cpu --policies spread,pack,least-joules --seeds 5
      wattloom compare my.toml --policies mine.py:MyPolicy,fifo --report out --json
    """
    from wattloom import api
    from wattloom.cli.printing import print_json, stdout_kept_for_json
    from wattloom.cli.progress import progress_bar
    from wattloom.report import ready, write

    if report is not None:
        ready(report)
    with progress_bar(f"policies on {Path(scenario).name}") as progress, stdout_kept_for_json(as_json):
        comparison = api.compare(scenario, policies, seeds, progress, reference=reference, sleep=sleep)
    command = _command(scenario, policies, seeds, reference, report, sleep)
    page = None if report is None else write(comparison, report, command)
    if as_json:
        print_json(comparison.to_json() | ({} if page is None else {"report": str(page)}))
        return
    from wattloom.cli.results import print_comparison

    print_comparison(comparison)
    if page is not None:
        say(f"Report: {page}")


def _command(
    scenario: str, policies: str | None, seeds: int, reference: str | None, report: Path | None, sleep: bool | None
) -> str:
    """The command that does the same again."""
    words = ["wattloom", "compare", scenario]
    words += [] if policies is None else ["--policies", policies]
    words += [] if seeds == 1 else ["--seeds", str(seeds)]
    words += [] if reference is None else ["--reference", reference]
    words += [] if sleep is None else ["--sleep" if sleep else "--no-sleep"]
    return shlex.join([*words, "--report", str(report)])
