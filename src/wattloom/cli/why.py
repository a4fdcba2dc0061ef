"""`wattloom why`: every decision on a task, with all classes of candidates, their forecasts and the reasons.

Owns the wording of reasons for people. Their stable names are in `cluster.reasons`.
"""

from pathlib import Path
from typing import Any, Final

import click
import msgspec

from wattloom.cli.options import LOG_FILE, as_json
from wattloom.cluster.reasons import Reason
from wattloom.energy.forecast import Forecast, Unknown
from wattloom.report.figures import figure, plural
from wattloom.scheduling.explanation import Candidate, Explanation

MOST_SHOWN: Final = 15

WORDS: Final = {
    Reason.ARCHITECTURE: "another architecture than the task runs on",
    Reason.LABELS: "lacks a label the task asks for",
    Reason.NO_SUCH_DEVICE: "lacks a device the task asks for",
    Reason.TOO_SMALL: "too small for the task even when empty",
    Reason.CPU: "not enough cores left",
    Reason.MEMORY: "not enough memory left",
    Reason.DEVICES: "its devices are in use",
    Reason.NODE_WATTS: "would exceed the node's power cap",
    Reason.TDP: "would exceed the machine's thermal design power",
    Reason.CLUSTER_WATTS: "would exceed the cluster's power cap",
    Reason.POWER_UNKNOWN: "its power curve is unknown, so it ranks behind all known ones",
    Reason.RUNTIME_UNKNOWN: "the run time there is unknown, so it ranks behind all known ones",
    Reason.HELD: "kept free for a task that waits for a whole node",
    Reason.TOO_SLOW: "too slow for the task",
    Reason.DEARER: "fits, but costs more",
    Reason.TIE: "costs the same; the name decided",
    Reason.TAKEN: "taken",
    Reason.NO_NODES: "there are no nodes",
    Reason.NEVER_FITS: "no node is large enough, even when empty",
    Reason.NO_ROOM: "no node has room now",
    Reason.WAITING_IS_CHEAPER: "waiting is cheaper than any place that is free now",
    Reason.WAITING_IS_SOONER: "a place that is not free yet would be done sooner",
    Reason.POLICY_FAILED: "the policy failed",
    Reason.BAD_PROPOSAL: "the policy proposed a node that does not exist",
    Reason.STARVED_AHEAD: "an older task goes first",
    Reason.BACKING_OFF: "it is tried again a little later",
    Reason.DEPENDENCIES: "tasks it comes after have not finished",
    Reason.DEPENDENCY_ENDED: "a task it comes after did not finish",
    Reason.NODE_LOST: "its node was lost",
    Reason.START_REFUSED: "the node refused to start it",
    Reason.FUNCTION_FAILED: "the function failed",
    Reason.RETRIES_EXHAUSTED: "all its retries are used up",
    Reason.OUTCOME_UNKNOWN: "it may or may not have run, and must not run twice",
    Reason.CANCELLED: "it was cancelled",
}


@click.command(short_help="Say why a task went where it went.")
@click.argument("task")
@click.option("--log", type=LOG_FILE, required=True, metavar="F", help="A log that `wattloom simulate --log` wrote.")
@click.option("--all", "show_all", is_flag=True, help=f"Show every class of candidates, not the first {MOST_SHOWN}.")
@as_json
def why(task: str, log: Path, show_all: bool, as_json: bool) -> None:
    """Say why TASK went where it went, or why it had to wait.

    Equal nodes at equal load are one class of candidates. For each class: the forecast the policy saw, what it came to
    in the policy's own measure, and the reason it was taken or not.

    \b
    Examples:
      wattloom simulate hsc-cpu --log run.log
      wattloom why t1 --log run.log
    """
    from wattloom import api
    from wattloom.cli.printing import print_json

    found = api.why(task, log)
    if as_json:
        print_json({"task": task, "decisions": [msgspec.to_builtins(explanation) for explanation in found]})
        return
    if not found:
        click.echo(f"There was no decision on {task}: it ended before its turn came.")
    for explanation in found:
        _print(explanation, len(explanation.candidates) if show_all else MOST_SHOWN)


def in_words(reason: Reason) -> str:
    """What a reason means, and its stable name."""
    return WORDS[reason] if reason == Reason.TAKEN else f"{WORDS[reason]} ({reason.value})"


def _print(explanation: Explanation, most: int) -> None:
    from wattloom.cli.printing import console, literal, table

    out = console()
    out.print(literal(_headline(explanation)), style="bold")
    cost = _cost_name(explanation.policy)
    numbers = ("cores in use", cost)
    shown = table("nodes", "machine", "state", "cores in use", "forecast", cost, "verdict", numbers=numbers)
    for candidate in explanation.candidates[:most]:
        style = "green" if candidate.reason == Reason.TAKEN else None
        shown.add_row(*map(literal, _cells(candidate)), style=style)
    out.print(shown)
    left = len(explanation.candidates) - most
    if left > 0:
        out.print(f"and {plural(left, 'more class', 'more classes')} of candidates: --all shows them.\n", style="dim")


def _headline(explanation: Explanation) -> str:
    task = f"{explanation.task} ({explanation.function})"
    when = f"At {explanation.time:,.3f} s"
    if explanation.node is None:
        return f"{when} {explanation.policy} let {task} wait: {in_words(explanation.reason)}."
    again = "" if explanation.attempt == 1 else f", attempt {explanation.attempt}"
    return f"{when} {explanation.policy} sent {task} to {explanation.node}{again}."


def _cost_name(policy: str) -> str:
    """The heading of the cost column, with the policy's unit if it has one."""
    from wattloom.policies.loading import available

    unit: Any = getattr(available().get(policy), "measure", "")
    return f"cost, {unit}" if unit else "cost"


def _cells(candidate: Candidate) -> list[str]:
    return [
        candidate.first if candidate.nodes == 1 else f"{candidate.first} and {candidate.nodes - 1:,} alike",
        candidate.machine,
        candidate.mode,
        f"{candidate.cores_in_use:g} of {candidate.cores:g}",
        _forecast(candidate.forecast, candidate.variant),
        "" if candidate.cost is None else figure(candidate.cost),
        in_words(candidate.reason),
    ]


def _forecast(forecast: Forecast | Unknown | None, variant: str) -> str:
    if forecast is None:
        return ""
    if isinstance(forecast, Unknown):
        return f"unknown: {forecast.reason}"
    build = "" if variant in ("", "default") else f"{variant}: "
    return f"{build}{figure(forecast.seconds)} s, {figure(forecast.watts)} W more, {figure(forecast.joules)} J"
