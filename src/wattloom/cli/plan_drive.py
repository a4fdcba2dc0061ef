"""`wattloom plan drive`: a plan's rates asked for, open loop, and what was reached beside what was planned.

Owns the command, its options and how the result looks.
"""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wattloom.cli.options import LOG_FILE, Finite, Whole, as_json, meter_names
from wattloom.cli.printing import say

if TYPE_CHECKING:
    from rich.table import Table

    from wattloom.load_testing.report import Driven, FunctionDriven
    from wattloom.planning.plan import Plan
    from wattloom.workload.function_profile import FunctionProfiles


@click.command(short_help="Ask for a plan's rates, and say what was reached.")
@click.argument("file", type=LOG_FILE)
@click.option("--seconds", type=Finite(min=0.1, max=604_800), default=10.0, show_default=True, metavar="S",
              help="How long calls come.")  # fmt: skip
@click.option("--arrivals", type=click.Choice(["poisson", "even"]), default="poisson", show_default=True,
              help="By chance, or one every so often.")  # fmt: skip
@click.option("--seed", type=Whole(0, 1_000_000_000), default=0, show_default=True, metavar="N",
              help="Another seed, other times.")  # fmt: skip
@click.option("--rates", type=LOG_FILE, metavar="RATES", help="Ask for these rates instead of what was planned for.")
@click.option("--call", "calls", multiple=True, metavar="NAME=WORDS",
              help="How a function is called: NAME=module:function, or ...=[1] with arguments.")  # fmt: skip
@click.option("--simulate", is_flag=True, help="On the simulator instead of this machine.")
@click.option("--replan", is_flag=True, help="Where rates, E or W leave their spread, plan anew with few moves.")
@click.option("--move-price", type=Finite(min=0, max=1e9), default=1.0, show_default=True, metavar="W",
              help="With --replan: watts that a move of a function must save.")  # fmt: skip
@click.option("--check", type=Finite(min=0.1, max=86_400), default=5.0, show_default=True, metavar="S",
              help="How often it is looked for drift.")  # fmt: skip
@click.option("--profiles", type=LOG_FILE, metavar="FILE", help="Function profiles: spreads, and E and W elsewhere.")
@click.option(
    "--server", "servers", multiple=True, metavar="NAME", help="Only this server of the plan; may be repeated."
)
@click.option("--scale", type=Finite(min=1e-6, max=1e6), metavar="F",
              help="All rates times this. Left out: 1, or less if there are too few cores here.")  # fmt: skip
@click.option("--wait", type=Finite(min=0, max=1e9), default=10.0, show_default=True, metavar="N",
              help="Executions for which a call waits for its function's cores before it goes elsewhere.")  # fmt: skip
@click.option("--most-open", type=Whole(1, 1_000_000), default=10_000, show_default=True, metavar="N",
              help="No more calls are open at a time; what is due beyond is refused, and counted.")  # fmt: skip
@click.option("--meter", default="auto", metavar="NAME", shell_complete=meter_names,
              help="Where joules come from, if the plan's server is this machine.")  # fmt: skip
@click.option(
    "--journal", type=LOG_FILE, metavar="F", help="Keep the run in this journal, for `wattloom why` and `tasks`."
)
@as_json
def drive(file: Path, as_json: bool, **how: Any) -> None:
    """Ask for a plan's rates, open loop, and say what was reached: requests per second, latency and joules of each
    function, beside what the plan says.

    FILE is a plan, or a RATES.toml that a plan is made of first. Calls come whether or not those before have ended; how
    many were submitted late or refused is said. Functions are found by their names: those of the workload suite,
    `module:function`, or as --call says. A function whose rate, E or W is not as planned is named. Ctrl-C ends it with
    what was counted so far.

    \b
    Examples:
      wattloom plan drive rates.toml --seconds 30
      wattloom plan drive plan.json --arrivals even --json
      wattloom plan drive plan.json --call thumbnail=shop.images:thumbnail
      wattloom plan drive plan.json --rates tonight.toml --replan
      wattloom plan drive plan.json --simulate
    """
    from wattloom.cli.printing import print_json

    plan, profiles = _plan(file, how.pop("profiles"))
    result = _driven(plan, profiles, **how)
    if as_json:
        print_json(result.to_json())
        return
    print_driven(result)


def _plan(file: Path, profiles: Path | None) -> "tuple[Plan, FunctionProfiles]":
    """The plan in the file, or for the rates in it, and the profiles that say how sure its figures are."""
    from wattloom import api
    from wattloom.planning.plan_file import read_plan
    from wattloom.planning.rates_file import asked_in
    from wattloom.workload.function_profile import FunctionProfiles, read_function_profiles

    rates = file.suffix == ".toml"
    known = asked_in(file)[1] if rates and profiles is None else profiles
    plan = api.plan(file, profiles=profiles) if rates else read_plan(file)
    return plan, FunctionProfiles() if known is None else read_function_profiles(known)


def _driven(
    plan: "Plan",
    profiles: "FunctionProfiles",
    *,
    rates: Path | None,
    calls: tuple[str, ...],
    simulate: bool,
    servers: tuple[str, ...],
    scale: float | None,
    check: float,
    **how: Any,
) -> "Driven":
    from wattloom.cli.progress import progress_bar
    from wattloom.load_testing.calls import calls_of
    from wattloom.load_testing.carried import carried_out
    from wattloom.load_testing.drive import Wishes, drive_here
    from wattloom.load_testing.simulated import drive_simulated

    wishes = Wishes(rates=_rates(rates), check_s=check, **how)
    carried = carried_out(plan, servers=servers, scale=scale)
    if simulate:
        if calls:
            raise click.UsageError("--call means nothing on the simulator.")
        return drive_simulated(carried, wishes, profiles)
    named = calls_of((each.function for each in carried.plan.assignments), calls)
    shown = progress_bar("driving", "s") if wishes.seconds > 2.0 else nullcontext(None)
    with shown as progress:
        whole = round(wishes.seconds)
        beat = (lambda now: progress(round(now), whole)) if progress is not None else (lambda now: None)
        return drive_here(carried, named, wishes, profiles, beat)


def _rates(file: Path | None) -> dict[str, float]:
    """What a file of rates asks for; its servers do not matter here."""
    from wattloom.planning.rates_file import asked_in

    return {} if file is None else asked_in(file)[0]


# -- how it looks ------------------------------------------------------------------------------------------------------


def print_driven(result: "Driven") -> None:
    from wattloom.cli.printing import console

    out = console()
    out.print(_table(result))
    for line in _lines(result):
        say(line)


def _table(result: "Driven") -> "Table":
    from wattloom.cli.printing import cell, table

    heads = (
        "function",
        "server",
        "planned/s",
        "asked/s",
        "reached/s",
        "p50 ms",
        "p99 ms",
        "E",
        "plan E",
        "J",
        "plan J",
    )
    shown = table(*heads, numbers=heads[2:])
    for each in result.functions:
        shown.add_row(*(cell(text) for text in _cells(each)))
    return shown


def _cells(each: "FunctionDriven") -> list[str]:
    from wattloom.report.figures import figure

    def shown(value: float | None, factor: float = 1.0) -> str:
        return "" if value is None else figure(value * factor)

    where = ", ".join(f"{name} {count:,}" for name, count in each.servers.items())
    rates = [shown(rate) for rate in (each.planned_per_s, each.asked_per_s, each.reached_per_s)]
    latency = [shown(seconds, 1000.0) for seconds in (each.p50_s, each.p99_s)]
    figures = (each.per_core_s, each.planned_per_core_s, each.joules, each.planned_joules)
    return [each.function, where, *rates, *latency, *(shown(value) for value in figures)]


def _lines(result: "Driven") -> list[str]:
    where = "on this machine" if result.backend == "local" else "on the simulator"
    ended = ", interrupted" if result.interrupted else ""
    said = [f"Plan {result.plan[:12]}, {result.seconds:.1f} s of {result.arrivals} arrivals {where}{ended}"]
    for what, name in (("late", "submitted late"), ("refused", "refused"), ("failed", "failed")):
        counts = {each.function: getattr(each, what) for each in result.functions if getattr(each, what)}
        if counts:
            said.append(f"{name}: " + ", ".join(f"{function} {count:,}" for function, count in counts.items()))
    kinds = sorted({each.provenance for each in result.functions if each.provenance})
    said += [f"J is of one call, {' and '.join(kinds)}; E is executions per second and core"] if kinds else []
    said += [f"note: {note}" for note in result.notes]
    said += [f"drift: {each}" for each in result.drift]
    return [*said, *(f"replanned {words}" for words in result.replanning)]
