"""`wattloom workload`: the suite's 22 functions; list them, install what they need, run them.

Owns the commands and how their figures look. What the functions are is `wattloom.suite`'s.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem

from wattloom.cli.options import LOG_FILE, Whole, as_json, meter_names
from wattloom.cli.printing import say

if TYPE_CHECKING:
    from rich.table import Table

    from wattloom.suite.catalogue import SuiteFunction
    from wattloom.suite.installing import Done, Step
    from wattloom.suite.listing import WorkloadInfo
    from wattloom.suite.running import WorkloadRun
    from wattloom.suite.work import Work

MOST_CALLS: Final = 100_000
MOST_SEED: Final = 2**32 - 1


def workload_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from wattloom.suite.catalogue import ALL, CATEGORIES, NAMES

    return [CompletionItem(name) for name in (ALL, *CATEGORIES, *NAMES) if name.startswith(incomplete)]


@click.group(short_help="List, install and run 22 real functions in five runtimes.")
def workload() -> None:
    """The suite: 22 functions of serverless computing in five runtimes, as the ISA study has them. Their inputs are
    made by seed, and their results are checked.

    \b
    Examples:
      wattloom workload list
      wattloom workload install
      wattloom workload run zip-python
      wattloom workload run scientific --calls 50
    """


@workload.command(name="list", short_help="List the functions, and whether they can run here.")
@click.argument("what", default="all", shell_complete=workload_names)
@as_json
def list_(what: str, as_json: bool) -> None:
    """List the functions of the suite, all or those of a category or family: what each needs, whether it can run here,
    and if not what is missing.

    \b
    Examples:
      wattloom workload list
      wattloom workload list media --json
    """
    import msgspec

    from wattloom.cli.printing import print_json
    from wattloom.suite.listing import workloads

    found = workloads(what)
    if as_json:
        print_json([msgspec.to_builtins(each) for each in found])
        return
    _show_list(found)


def _show_list(found: "list[WorkloadInfo]") -> None:
    from wattloom.cli.printing import cell, console, table

    made = table("function", "category", "runtime", "what it does", "needs", "runs here")
    for each in found:
        lacks = ", ".join(need.what for need in each.missing)
        needs = ", ".join(package.rpartition("/")[2] for package in each.needs)
        works = "yes" if each.can_run else f"no: {lacks}"
        cells = (each.name, each.category, each.runtime, each.summary, needs, works)
        made.add_row(*map(cell, cells), style="green" if each.can_run else None)
    console().print(made)
    lacking = {str(need): None for each in found for need in each.missing if not need.by_install}
    for line in lacking:
        say(f"missing: {line}")
    if any(need.by_install for each in found for need in each.missing):
        say("`wattloom workload install` brings what it can.")


@workload.command(short_help="Fetch and build what functions need.")
@click.argument("names", nargs=-1, metavar="[NAME|CATEGORY]...", shell_complete=workload_names)
@click.option("--dry-run", is_flag=True, help="Say what would be fetched and built, and do nothing.")
@as_json
@click.pass_context
def install(ctx: click.Context, names: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Fetch and build what functions of the suite need; of all if none is named.

    Packages of Python go into the environment that Wattloom runs in; those of npm and Maven, and what is compiled, go
    into your cache ($XDG_CACHE_HOME/wattloom/suite), never into the working folder. What is there is not fetched again,
    and what was interrupted is taken up by the next call: nothing is ever there in part. Programs (node, java,
    compilers) are not installed; which package brings one is said.

    \b
    Examples:
      wattloom workload install --dry-run
      wattloom workload install
      wattloom workload install jwt-node el-passo-wasm
    """
    from wattloom.suite.installing import planned

    steps = planned(_asked(names))
    if not as_json:
        for step in steps:
            say(f"{'would install' if dry_run else 'to install'} {step.name}: {step.what}")
        if not steps:
            say("All that can be installed is there.")
    done = [] if dry_run else _install(steps, as_json)
    if as_json:
        _print_steps(steps, done)
    ctx.exit(1 if any(each.problem for each in done) else 0)


def _asked(names: tuple[str, ...]) -> "list[SuiteFunction]":
    from wattloom.suite import chosen

    return list({one.name: one for name in names or ("all",) for one in chosen(name)}.values())


def _install(steps: "list[Step]", quiet: bool) -> "list[Done]":
    from time import monotonic

    from wattloom.cli.figures import seconds
    from wattloom.suite.installing import install

    done: list[Done] = []
    began = monotonic()
    for each in install(steps):
        done.append(each)
        took, began = monotonic() - began, monotonic()
        if each.problem:
            say(f"error: {each.name}: {each.problem}", err=True)
        elif not quiet:
            say(f"[{len(done)}/{len(steps)}] {each.name}: installed in {seconds(took)}")
    return done


def _print_steps(steps: "list[Step]", done: "list[Done]") -> None:
    from wattloom.cli.printing import print_json

    problems = {each.name: each.problem for each in done}
    print_json(
        [
            {"name": each.name, "what": each.what, "installed": problems.get(each.name) == "", "problem": problem}
            for each in steps
            for problem in [problems.get(each.name, "")]
        ]
    )


@workload.command(short_help="Run functions of the suite here, check them, and say what they cost.")
@click.argument("what", metavar="NAME|CATEGORY|all", shell_complete=workload_names)
@click.option(
    "--calls", type=Whole(1, MOST_CALLS), default=10, show_default=True, metavar="N", help="Of each function."
)
@click.option(
    "--seed", type=Whole(0, MOST_SEED), default=1, show_default=True, metavar="S", help="What the input is made by."
)
@click.option("--journal", type=LOG_FILE, metavar="F", help="Write it down here. Left out: in the state folder.")
@click.option(
    "--meter",
    shell_complete=meter_names,
    default="auto",
    show_default=True,
    metavar="M",
    help="A meter (`wattloom meter list` shows them), auto: the best that works, or off.",
)
@as_json
@click.pass_context
def run(ctx: click.Context, what: str, calls: int, seed: int, journal: Path | None, meter: str, as_json: bool) -> None:
    """Run one function of the suite, those of a category or family, or all, through the executor, one call after the
    other.

    Every result is checked; one that is wrong is an error, and the exit code is 1. The first call loads the function
    and is told by itself. Time and energy are those of one call: the mean, and after ± the standard deviation from call
    to call. Functions that cannot run here are left out and named, unless one was asked for by its name.

    \b
    Examples:
      wattloom workload run jwt-python
      wattloom workload run web --calls 50 --seed 7
      wattloom workload run all --json
    """
    import msgspec

    from wattloom.cli.printing import print_json
    from wattloom.cli.progress import progress_bar
    from wattloom.suite.running import runs

    works = _works(what)
    with progress_bar("calls") as progress:
        found = list(runs(works, calls, seed, journal=journal, meter=meter, progress=progress))
    if as_json:
        print_json([msgspec.to_builtins(each) for each in found])
    else:
        _show_runs(found)
    problems = [each for each in found if each.problem]
    for each in problems:
        say(f"error: {each.problem}", err=True)
    ctx.exit(1 if problems else 0)


def _works(what: str) -> "list[Work]":
    """Those that can run. One that was named must."""
    from wattloom.errors import InputError
    from wattloom.suite import chosen, function, missing

    asked = chosen(what)
    lacking = {one.name: missing(one.name) for one in asked}
    able = [one.name for one in asked if not lacking[one.name]]
    if not able:
        function(asked[0].name)  # says what is missing
        raise InputError(what, "cannot run here")
    for name, lacks in lacking.items():
        if lacks:
            say(f"left out: {name} needs {', '.join(map(str, lacks))}", err=True)
    return [function(name) for name in able]


def _show_runs(found: "list[WorkloadRun]") -> None:
    from wattloom.cli.figures import legend
    from wattloom.cli.printing import console, fullest

    out = console()
    made = [_runs_table(found, full=full) for full in (True, False)]
    at = fullest(made, out)
    out.print(made[at])
    if at:
        out.print(legend(each.provenance for each in found), style="dim")


def _runs_table(found: "list[WorkloadRun]", *, full: bool) -> "Table":
    from wattloom.cli.figures import joules, marked, seconds, seconds_with
    from wattloom.cli.printing import cell, table

    names = ("calls", "first call", "time", "per second", "energy")
    made = table("function", *names, *(("joules are", "result") if full else ()), numbers=names)
    for each in found:
        per_s = "" if each.per_s is None else f"{each.per_s:,.4g}"
        energy = joules(each.mean_j, each.deviation_j)
        cells = [
            each.name,
            f"{each.calls:,}",
            seconds(each.first_s),
            seconds_with(each.mean_s, each.deviation_s),
            per_s,
        ]
        cells += [energy, each.provenance, each.state] if full else [marked(energy, each.provenance)]
        made.add_row(*map(cell, cells), style="red" if each.problem else None)
    return made
