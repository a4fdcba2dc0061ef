"""`wattloom measure`: joules of any command and its children, as `perf stat` tells cycles."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wattloom.cli.options import LOG_FILE, Whole, meter_names
from wattloom.cli.printing import safe_json, say
from wattloom.cli.run import COMMAND, CommandBehind

if TYPE_CHECKING:
    from wattloom.monitoring.measuring import MeasuredCommand
    from wattloom.monitoring.repeated import Repeated


@click.command(cls=CommandBehind, short_help="Say how many joules a command takes, with its children.")
@click.option("--repeat", "-r", type=Whole(1, 1_000_000), default=1, metavar="N", help="Run it N times, one by one.")
@click.option(
    "--meter",
    shell_complete=meter_names,
    default="auto",
    show_default=True,
    metavar="M",
    help="A meter (`wattloom meter list` shows them); auto: the best that works.",
)
@click.option("--output", "-o", type=LOG_FILE, metavar="F", help="Write the figures here instead of to stderr.")
@click.option(
    "--json", "as_json", is_flag=True, help="Figures as JSON on stdout; what the command prints goes to stderr."
)
@click.argument("command", nargs=-1, metavar="-- COMMAND...")
@click.pass_context
def measure(
    ctx: click.Context, repeat: int, meter: str, output: Path | None, as_json: bool, command: tuple[str, ...]
) -> None:
    """Run a command and say on stderr how many joules it took, with all its children.

    The joules are those above idle, shared by CPU time with whatever else ran on the machine meanwhile; the spread is
    one standard deviation. Nothing is written down: `wattloom run` keeps a journal. The exit code is the command's (128
    and the signal's number if it was killed); it is not repeated once it fails. What it leaves running in the
    background is not counted.

    \b
    Examples:
      wattloom measure -- make -j2
      wattloom measure --repeat 5 --json -- python3 train.py
    """
    wanted = [*command, *ctx.meta.get(COMMAND, [])]
    if not wanted:
        raise click.UsageError("There is no command: wattloom measure -- COMMAND ...")
    if output is not None:
        output.open("a").close()  # better now than when the command has run and its figures cannot be kept
    found = _run(ctx, wanted, repeat, meter, as_json)
    _tell(found, output, as_json)
    ctx.exit(found.exit_code)


def _run(ctx: click.Context, command: list[str], repeat: int, meter: str, as_json: bool) -> "Repeated":
    from wattloom.monitoring.measuring import CommandCannotRun
    from wattloom.monitoring.repeated import measure_repeatedly

    def said(done: "MeasuredCommand") -> None:
        if repeat > 1 and sys.stderr.isatty():
            say(f"[wattloom] {_cost(done)}", err=True)

    try:
        return measure_repeatedly(command, repeat, meter=meter, stdout=sys.stderr if as_json else None, after=said)
    except CommandCannotRun as problem:
        say(f"error: {problem.problem}", err=True)
        ctx.exit(problem.code)


def _tell(found: "Repeated", output: Path | None, as_json: bool) -> None:
    import msgspec

    text = (
        safe_json(msgspec.json.format(msgspec.json.encode(found.to_json()), indent=2).decode())
        if as_json
        else "\n".join(_lines(found))
    )
    if output is not None:
        output.write_text(text + "\n")
    else:
        say(text, err=not as_json)


def _lines(found: "Repeated") -> list[str]:
    from wattloom.cli.figures import joules, seconds

    last = found.runs[-1].measured
    lines = ["", f" Joules of '{' '.join(found.command)}'" + (f", {len(found.runs)} runs:" if found.many else ":"), ""]
    if found.many:
        lines += [f"   run {number}: {_cost(each)}" for number, each in enumerate(found.runs, 1)]
        if found.mean_j is not None:
            mean_s, kinds = seconds(found.mean_s), _provenances(found)
            of = "" if len(found.whole) == len(found.runs) else f" (of {len(found.whole)} that did not fail)"
            lines += [
                "",
                f"   {joules(found.mean_j, found.deviation_j, kinds)} from run to run, {mean_s} on average{of}",
            ]
        return [*lines, *_about(found), ""]
    lines += [f"   {_cost(found.runs[0])}", "", *_machine(last)]
    return [*lines, *_about(found), ""]


def _provenances(found: "Repeated") -> str:
    from wattloom.energy.measured import Energy

    known = (each.measured.energy for each in found.whole)
    return ", ".join(sorted({energy.provenance for energy in known if isinstance(energy, Energy)}))


def _cost(done: "MeasuredCommand") -> str:
    from wattloom.cli.figures import seconds
    from wattloom.energy.measured import Energy

    what: Any = done.measured
    known = str(what.energy) if isinstance(what.energy, Energy) else f"unknown ({what.energy.reason})"
    mean = "" if what.watts is None else f", {what.watts:.2f} W"
    short = "; too short for this meter to tell" if what.too_short else ""
    return f"{known} above idle, {seconds(what.seconds)}, {seconds(what.cpu_s)} of CPU time{mean}{short}"


def _machine(measured: Any) -> list[str]:
    from wattloom.energy.measured import Energy

    if not isinstance(measured.energy, Energy) or measured.too_short:
        return []
    of = "at the plug" if measured.quantity == "wall" else "of processor and memory"
    own = measured.machine_j - measured.idle_j - measured.others_j
    parts = f"{own:.3g} command + {measured.idle_j:.3g} idle + {measured.others_j:.3g} others"
    return [f"   the whole machine meanwhile: {measured.machine_j:.3g} J {of} = {parts}"]


def _about(found: "Repeated") -> list[str]:
    from wattloom.energy.measured import Energy

    last = found.runs[-1].measured
    known = isinstance(last.energy, Energy)
    kind = last.energy.provenance if isinstance(last.energy, Energy) else ""
    lines = [f"   meter {last.meter}" + (f", {kind}" if known else "")]
    if found.exit_code:
        lines.append(f"   the command ended with {found.exit_code}")
    return lines
