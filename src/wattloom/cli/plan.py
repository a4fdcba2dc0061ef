"""`wattloom plan`: which function runs on which server, so that wanted rates are kept at the least energy.

Owns `make` and `show` and their options. How a plan looks is `plan_shown`'s; other commands have modules of their own.
"""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import click

from wattloom.cli.options import LOG_FILE, Finite, as_json
from wattloom.cli.printing import say

ELSEWHERE: Final = {
    "apply": "wattloom.cli.plan_apply",
    "drive": "wattloom.cli.plan_drive",
    "keep": "wattloom.cli.plan_keep",
}
"""Commands of this group that live in modules of their own, loaded when they are used."""
GOALS: Final = ("energy", "cores", "weighted")
POLICIES: Final = ("energy-aware", "core-aware", "weighted", "round-robin", "x86-first", "arm-first")


class Plans(click.Group):
    """The commands here, and those elsewhere."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        elsewhere = [name for name, module in ELSEWHERE.items() if find_spec(module) is not None]
        return [*super().list_commands(ctx), *elsewhere]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in ELSEWHERE and cmd_name in self.list_commands(ctx):
            command = getattr(import_module(ELSEWHERE[cmd_name]), cmd_name)
            assert isinstance(command, click.Command)
            return command
        return super().get_command(ctx, cmd_name)


@click.group(cls=Plans, short_help="Plan which function runs on which server, with a proven bound.")
def plan() -> None:
    """Plan which function runs on which server, so that wanted rates are kept and the energy is least.

    \b
    Examples:
      wattloom plan make rates.toml -o plan.json
      wattloom plan show plan.json
    """


@plan.command(short_help="Find the plan that costs least, and say how far it can be from the best.")
@click.argument("rates", type=LOG_FILE)
@click.option("--goal", type=click.Choice(GOALS), help="What is least: energy, cores given out, or both weighted.")
@click.option(
    "--policy",
    type=click.Choice(POLICIES),
    help="Instead of a goal: how functions are placed. The last three look at one function after the other and prove "
    "nothing.",
)
@click.option("--profiles", type=LOG_FILE, metavar="FILE", help="Function profiles. Left out: as RATES says, or yours.")
@click.option(
    "--core-price",
    type=Finite(min=0, max=1e9),
    default=1.0,
    show_default=True,
    metavar="W",
    help="Goal weighted: watts that a core is worth.",
)
@click.option(
    "--quantile",
    type=Finite(min=0.001, max=0.5),
    default=0.5,
    show_default=True,
    metavar="Q",
    help="Of each E: 0.05 plans for speeds that are reached nineteen times out of twenty.",
)
@click.option("--split", is_flag=True, help="A function that one server is too small for may be on several.")
@click.option(
    "--seconds",
    type=Finite(min=0.01, max=86_400),
    default=30.0,
    show_default=True,
    metavar="S",
    help="Time for finding and proving. After it: the best so far, with its bound.",
)
@click.option(
    "--gap",
    type=Finite(min=0, max=100),
    default=0.0,
    show_default=True,
    metavar="P",
    help="Stop as soon as the plan is proven to be within so many percent of the best.",
)
@click.option("--from", "old", type=LOG_FILE, metavar="PLAN", help="Change this plan, with few moves.")
@click.option(
    "--move-price",
    type=Finite(min=0, max=1e9),
    default=1.0,
    show_default=True,
    metavar="W",
    help="With --from: watts that a move of a function must save.",
)
@click.option("-o", "--output", type=LOG_FILE, metavar="FILE", help="Keep the plan in this file.")
@click.option("--report", type=LOG_FILE, metavar="DIR", help="Write a page with a picture into this folder.")
@as_json
def make(
    rates: Path,
    goal: str | None,
    policy: str | None,
    profiles: Path | None,
    core_price: float,
    quantile: float,
    split: bool,
    seconds: float,
    gap: float,
    old: Path | None,
    move_price: float,
    output: Path | None,
    report: Path | None,
    as_json: bool,
) -> None:
    """Find which function runs on which server: each on one server with whole cores of its own, enough for its rate.

    RATES is a TOML file with a rate for each function and the servers. The plan comes with a bound: no plan at all can
    be below it. Where nothing fits, it is said what is missing.

    \b
    Examples:
      wattloom plan make rates.toml
      wattloom plan make rates.toml --goal cores --json
      wattloom plan make rates.toml --policy round-robin
      wattloom plan make rates.toml --quantile 0.05 -o plan.json --report out
      wattloom plan make rates.toml --from plan.json --move-price 5
    """
    from wattloom import api
    from wattloom.cli.plan_shown import print_plan

    if goal is not None and policy is not None:
        raise click.UsageError("Give either --goal or --policy: a goal has a policy of its own.")
    made = api.plan(
        rates,
        goal=goal,
        policy=policy,
        profiles=profiles,
        core_price_w=core_price,
        quantile=quantile,
        split=split,
        seconds=seconds,
        gap=gap / 100.0,
        old=old,
        move_price_w=move_price,
    )
    if output is not None:
        from wattloom.planning.plan_file import encode_plan
        from wattloom.profiling.storing import refuse_missing_folder, store

        refuse_missing_folder(output)
        store(output, encode_plan(made))
        say(f"Kept: {output}", err=True)
    if report is not None:
        from wattloom.report.plans import write_plan_page

        say(f"Report: {write_plan_page(made, report)}", err=True)
    print_plan(made, as_json)


@plan.command(short_help="Print a plan that was kept.")
@click.argument("file", type=LOG_FILE)
@click.option("--functions", is_flag=True, help="One row for each function instead of one for each server.")
@as_json
def show(file: Path, functions: bool, as_json: bool) -> None:
    """Print a plan: what each server gives out and draws, and how far the plan can be from the best.

    \b
    Examples:
      wattloom plan show plan.json
      wattloom plan show plan.json --functions
    """
    from wattloom.cli.plan_shown import print_plan
    from wattloom.planning.plan_file import read_plan

    print_plan(read_plan(file), as_json, functions=functions)
