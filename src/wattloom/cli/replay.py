"""`wattloom replay`: what a log cost, and what it would have cost under another policy."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from wattloom.cli.options import LOG_FILE, as_json, policy_names, sleep_option, trust_policy
from wattloom.report.figures import figure
from wattloom.units import MEGA

if TYPE_CHECKING:
    from wattloom.simulation.replay import Replay
    from wattloom.simulation.result import Result

TOO_LITTLE = 0.0005
"""A saving that would be printed as 0.0%."""


@click.command(short_help="Say what a log cost, and what it would have cost under another policy.")
@click.argument("log", type=LOG_FILE, required=False)
@click.option(
    "--policy", shell_complete=policy_names, metavar="P", help="Also simulate the same work under this policy."
)
@sleep_option
@trust_policy
@as_json
def replay(log: Path | None, policy: str | None, sleep: bool | None, trust_policy: bool, as_json: bool) -> None:
    """Fold a log into a fresh engine, check that it decides the same again, and say what the work cost.

    LOG is a log, or a journal (its last run; `work.journal#3` is run 3). Left out: the last run on this machine.

    With --policy, the same tasks meet the same cluster under another policy. What the log does not say has to be
    assumed; every assumption is printed. Of a run that was not a simulation, the same work is simulated under its own
    policy too, and the two simulations are compared.

    A log that was decided by a file of Python (`mine.py:Mine`) is replayed with --trust-policy, which runs that file;
    with --policy alone it is costed without, and nobody looks whether it would decide the same again.

    \b
    Examples:
      wattloom replay
      wattloom replay run.log
      wattloom replay run.log --policy pack
    """
    from wattloom import api
    from wattloom.cli.printing import print_json, stdout_kept_for_json
    from wattloom.cli.progress import progress_bar

    with progress_bar(f"replaying {log.name if log else 'the last run'}") as progress, stdout_kept_for_json(as_json):
        found = api.replay(log, policy, progress, trust_policy=trust_policy, sleep=sleep)
    if as_json:
        print_json(found.to_json())
    else:
        _print(found)


def _print(found: "Replay") -> None:
    from wattloom.cli.printing import cell, console, literal, table

    out = console()
    numbers = ("energy Wh", "makespan s", "energy x delay MJ·s", "peak W", "wait p95 s", "slowdown p95", "finished")
    shown = table("", "policy", *numbers, title=literal(f"{found.recorded.scenario}, replayed"), numbers=numbers)
    shown.add_row("as it ran", *map(cell, _cells(found.recorded)))
    if found.reference is not None and not found.is_of_a_simulation:
        shown.add_row("the same, simulated", *map(cell, _cells(found.reference, comparable=found.saving is not None)))
    if found.counterfactual is not None:
        cells = _cells(found.counterfactual, comparable=found.saving is not None)
        shown.add_row("would have been", *map(cell, cells))
    out.print(shown)
    if found.same_decisions is None:
        out.print(literal(f"{found.recorded.policy} was not asked again: that takes --trust-policy."), style="yellow")
    elif found.same_decisions:
        out.print("The recorded events lead to the recorded decisions again.")
    else:
        out.print("The recorded events no longer lead to the recorded decisions.", style="yellow")
    if found.counterfactual is not None:
        out.print(literal(_sentence(found, found.counterfactual)), style="bold")
    for warning in found.recorded.warnings:
        out.print(literal(f"Warning: {warning}."), style="yellow")
    out.print("Assumed:", style="dim")
    for assumption in found.assumptions:
        out.print(f"  - {literal(assumption)}", style="dim")


def _cells(result: "Result", *, comparable: bool = True) -> list[str]:
    """The energy of other work than was done says nothing beside it."""
    return [
        result.policy,
        figure(result.energy.watt_hours()["total"]) if comparable else "-",
        figure(result.makespan_s),
        figure(result.energy_delay_js / MEGA) if comparable else "-",
        figure(result.peak_w),
        figure(result.wait_s.p95),
        figure(result.slowdown.p95),
        f"{result.tasks.finished:,}/{result.tasks.submitted:,}",
    ]


def _sentence(found: "Replay", other: "Result") -> str:
    recorded, saving = found.recorded, found.saving
    if saving is not None:
        less = "less" if saving >= 0.0 else "more"
        much = f"{abs(saving):.1%} {less} energy"
        if not found.is_of_a_simulation:
            same = abs(saving) < TOO_LITTLE
            much = f"{'as much energy as' if same else much + ' than'} under {recorded.policy}, both simulated"
        return f"Under {other.policy} the same work would have cost {much}."
    if recorded.tasks.submitted == 0:
        return "There are no tasks in the log, so no saving is given."
    if found.reference is None:
        return "What really ran is not compared with a simulation, so no saving is given."
    if recorded.tasks.finished != other.tasks.finished:
        return f"{other.policy} would not have finished the same number of tasks, so no saving is given."
    if recorded.tasks.finished != found.reference.tasks.finished:
        return f"Simulated, {recorded.policy} does not finish the same number of tasks, so no saving is given."
    return "What the recorded run drew is unknown, so no saving is given."
