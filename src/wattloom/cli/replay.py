"""`wattloom replay`: what a log cost, and what it would have cost under another policy."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wattloom.cli.options import LOG_FILE, as_json, policy_names
from wattloom.report.figures import figure

if TYPE_CHECKING:
    from wattloom.simulation.replay import Replay
    from wattloom.simulation.result import Result


@click.command(short_help="Say what a log cost, and what it would have cost under another policy.")
@click.argument("log", type=LOG_FILE)
@click.option(
    "--policy", shell_complete=policy_names, metavar="P", help="Also simulate the same work under this policy."
)
@as_json
def replay(log: Path, policy: str | None, as_json: bool) -> None:
    """Fold a log into a fresh engine, check that it decides the same again, and say what the work cost.

    With --policy, the same tasks meet the same cluster under another policy. What the log does not say has to be
    assumed; every assumption is printed.

    \b
    Examples:
      wattloom replay run.log
      wattloom replay run.log --policy pack
    """
    from wattloom import api
    from wattloom.cli.printing import print_json
    from wattloom.cli.progress import progress_bar

    with progress_bar(f"replaying {log.name}") as progress:
        found = api.replay(log, policy, progress)
    if as_json:
        print_json(to_json(found))
    else:
        _print(found)


def to_json(found: "Replay") -> dict[str, Any]:
    """As `--json` prints it."""
    other = found.counterfactual
    return {
        "recorded": found.recorded.to_json(),
        "counterfactual": None if other is None else other.to_json(),
        "same_decisions": found.same_decisions,
        "saving": None if other is None else _saving(found.recorded, other),
        "assumptions": found.assumptions,
    }


def _saving(recorded: "Result", other: "Result") -> float | None:
    """Only where the same number of tasks was finished."""
    before, after = recorded.energy.total, other.energy.total
    comparable = before > 0.0 and recorded.tasks.finished == other.tasks.finished
    return (before - after) / before if comparable else None


def _print(found: "Replay") -> None:
    from wattloom.cli.printing import console, literal, table

    out = console()
    numbers = ("energy Wh", "makespan s", "wait p95 s", "slowdown p95", "finished")
    shown = table("", "policy", *numbers, title=literal(f"{found.recorded.scenario}, replayed"), numbers=numbers)
    shown.add_row("as it ran", *map(literal, _cells(found.recorded)))
    if found.counterfactual is not None:
        shown.add_row("would have been", *map(literal, _cells(found.counterfactual)))
    out.print(shown)
    if found.same_decisions:
        out.print("The recorded events lead to the recorded decisions again.")
    else:
        out.print("The recorded events no longer lead to the recorded decisions.", style="yellow")
    if found.counterfactual is not None:
        out.print(_sentence(found.recorded, found.counterfactual), style="bold")
    out.print("Assumed:", style="dim")
    for assumption in found.assumptions:
        out.print(f"  - {literal(assumption)}", style="dim")


def _cells(result: "Result") -> list[str]:
    return [
        result.policy,
        figure(result.energy.watt_hours()["total"]),
        figure(result.makespan_s),
        figure(result.wait_s.p95),
        figure(result.slowdown.p95),
        f"{result.tasks.finished:,}/{result.tasks.submitted:,}",
    ]


def _sentence(recorded: "Result", other: "Result") -> str:
    saving = _saving(recorded, other)
    if saving is None:
        return f"{other.policy} would not have finished the same number of tasks, so no saving is given."
    less = "less" if saving >= 0.0 else "more"
    return f"Under {other.policy} the same work would have cost {abs(saving):.1%} {less} energy."
