"""`wattloom validate`: hold what is said of calls against what the meter sees."""

from typing import TYPE_CHECKING, Any, Final

import click

from wattloom.cli.options import Finite, Whole, as_json, meter_names

BUSY: Final = 0.2
"""Cores that others may use before it is said."""
SURE: Final = 2.0
"""Spreads that a difference must have to be compared with."""

if TYPE_CHECKING:
    from wattloom.local.leave_one_out import FunctionCheck, Validation


@click.group(short_help="Hold the joules of calls against the meter.")
def validate() -> None:
    """Hold what is said of calls against what the meter sees.

    \b
    Examples:
      wattloom validate attribution
    """


@validate.command(short_help="Leave one function out, and see what the meter saw less.")
@click.option(
    "--function",
    "names",
    multiple=True,
    metavar="MODULE:NAME",
    help="A function without arguments, at least twice; else four small ones of different kinds.",
)
@click.option(
    "--seconds",
    type=Finite(1.0, 1e6),
    default=60.0,
    show_default=True,
    help="About how long it may take; each part of it takes a second or more.",
)
@click.option("--rounds", type=Whole(2, 1_000), default=3, show_default=True, help="How often all is repeated.")
@click.option(
    "--meter",
    shell_complete=meter_names,
    default="auto",
    show_default=True,
    metavar="M",
    help="A meter (`wattloom meter list` shows them); auto: the best that works.",
)
@as_json
def attribution(names: tuple[str, ...], seconds: float, rounds: int, meter: str, as_json: bool) -> None:
    """Run a mix of functions with and without each of them, the same work each time, and compare what the calls left
    out were said to cost with what the meter saw less.

    The machine should have nothing else to do meanwhile. The exit code is 0 however far off the figures are.

    \b
    Examples:
      wattloom validate attribution
      wattloom validate attribution --seconds 300 --rounds 5 --json
      wattloom validate attribution --function mine:resize --function mine:train
    """
    from wattloom import api
    from wattloom.cli.printing import print_json
    from wattloom.cli.progress import progress_bar

    with progress_bar("arms") as progress:
        found = api.validate_attribution(list(names), seconds=seconds, rounds=rounds, meter=meter, progress=progress)
    if as_json:
        print_json(_json(found))
    else:
        _print(found)


def _json(found: "Validation") -> dict[str, Any]:
    import msgspec

    whole: dict[str, Any] = msgspec.to_builtins(found)
    whole["functions"] = [msgspec.to_builtins(each) | {"off": each.off} for each in found.functions]
    return whole


def _print(found: "Validation") -> None:
    from wattloom.cli.printing import console, literal, table

    of = "at the plug" if found.quantity == "wall" else "of processor and memory"
    head = ("calls", "said J", "± J", "meter saw J", "± J ", "said against seen")
    shown = table("function", *head, numbers=head)
    for each in found.functions:
        shown.add_row(literal(each.function), *_cells(each))
    out = console()
    out.print(shown)
    said = sum(each.said_j for each in found.functions)
    out.print(
        literal(
            f"{found.rounds} rounds with meter {found.meter} ({found.provenance}, {of}); {found.idle_w:.3g} W without "
            f"us. With all functions the meter saw {found.active_j:.3g} J above that; their calls were said to take "
            f"{said:.3g} J."
        )
    )
    if found.others > BUSY:
        busy = f"Others kept {found.others:.1f} cores busy: what the meter saw is theirs too, and means little."
        out.print(literal(busy), style="yellow")
    out.print(literal(found.worth), style="dim")


def _cells(each: "FunctionCheck") -> list[str]:
    unsure = each.saw_j <= SURE * each.saw_spread_j
    off = "too little was seen" if each.off is None or unsure else f"{100.0 * each.off:+.0f}%"
    figures = (each.said_j, each.said_spread_j, each.saw_j, each.saw_spread_j)
    return [str(each.calls), *(f"{value:.3g}" for value in figures), off]
