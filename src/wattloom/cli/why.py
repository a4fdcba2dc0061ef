"""`wattloom why`: every decision on a task, with all classes of candidates, their forecasts and the reasons.

Owns the wording of reasons for people. Their stable names are in `cluster.reasons`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from wattloom.cli.options import LOG_FILE, as_json, journal_names, task_names, trust_policy
from wattloom.cli.printing import say
from wattloom.cluster.reasons import Reason
from wattloom.energy.forecast import Unknown
from wattloom.errors import InputError
from wattloom.history.explanation import Candidate, Explanation, PlanCited
from wattloom.report.figures import figure, plural
from wattloom.scheduling.instructions import Conclude, Place

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from wattloom.history.waiting import Waiting
    from wattloom.history.why import Told, Why

MOST_SHOWN: Final = 15
DIGITS: Final = 12
"""Of a plan's digest that are shown; --json has all."""
SENTENCES: Final = ("forecast", "verdict")
"""What of a candidate is no name and no figure."""

NOT_BY_COST: Final = "has room; the policy chose otherwise than by cost"
NO_COST_EITHER: Final = "has no known cost either; the tie rule decided"

WORDS: Final = {
    Reason.ARCHITECTURE: "another architecture than the task runs on",
    Reason.LABELS: "lacks a label the task asks for",
    Reason.NO_SUCH_DEVICE: "lacks a device the task asks for",
    Reason.TOO_SMALL: "too small for the task even when empty",
    Reason.CPU: "not enough cores left",
    Reason.MEMORY: "not enough memory left",
    Reason.DEVICES: "its devices are in use",
    Reason.NO_SUCH_RESOURCE: "lacks a resource the task asks for",
    Reason.RESOURCE: "not enough left of a resource the task asks for",
    Reason.CLOSED: "takes nothing new (cordoned)",
    Reason.TAINT: "has a taint that the task does not tolerate",
    Reason.AFFINITY: "not what the task's selector or node affinity asks for",
    Reason.VOLUME: "a volume of the task cannot be had there",
    Reason.PORT: "a port the task wants is taken",
    Reason.SPREAD: "tasks of its kind would be spread too unevenly",
    Reason.COMPANY_MISSING: "tasks it wants to be near are not there",
    Reason.COMPANY_UNWANTED: "tasks it wants to be apart from are there",
    Reason.KEPT_AWAY: "tasks there want to be apart from it",
    Reason.NODE_WATTS: "would exceed the node's power cap",
    Reason.TDP: "would exceed the machine's thermal design power",
    Reason.CLUSTER_WATTS: "would exceed the cluster's power cap",
    Reason.POWER_UNKNOWN: "its power curve is unknown, so it ranks behind all known ones",
    Reason.RUNTIME_UNKNOWN: "the run time there is unknown, so it ranks behind all known ones",
    Reason.HELD: "kept free for a task that waits for a whole node",
    Reason.NO_SUCH_BUILD: "has no build of this name that runs there",
    Reason.TOO_SLOW: "too slow for the task",
    Reason.PLANNED_ELSEWHERE: "has room; the plan says another server",
    Reason.NO_PLAN: "there is no plan",
    Reason.NOT_IN_PLAN: "the plan does not have the function",
    Reason.PLANNED_SERVER_GONE: "the server the plan names is not here",
    Reason.PLANNED_SERVER_UNFIT: "the server the plan names cannot take it, even when empty",
    Reason.PLANNED_SERVER_FULL: "the server the plan names has no room",
    Reason.PLANNED_SHARE_IN_USE: "the cores that the plan gives its function are in use",
    Reason.DEARER: "fits, but costs more",
    Reason.LATER_TIER: "fits, but is of a later tier",
    Reason.MORE_WATTS: "the run time is unknown, so watts decide: draws more",
    Reason.TIE: "costs the same; the tie rule decided",
    Reason.TAKEN: "taken",
    Reason.NO_NODES: "there are no nodes",
    Reason.NEVER_FITS: "no node that is here could take it, even when empty",
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
    Reason.REMOVED: "it was taken away",
    Reason.EVICTED: "its place was wanted for something else",
}
NAMED: Final = (Reason.TOO_SMALL, Reason.NO_SUCH_RESOURCE, Reason.RESOURCE)
"""After these it is said of what there is too little."""


@click.command(short_help="Say why a task went where it went.")
@click.argument("task", shell_complete=task_names)
@click.option(
    "--log",
    "--journal",
    "log",
    type=LOG_FILE,
    shell_complete=journal_names,
    metavar="F",
    help="A log that `wattloom simulate --log` wrote, or a journal. Left out: the journal of yours that has the task.",
)
@click.option(
    "--scheduler",
    metavar="URL",
    help="For a pod: the scheduler to ask. Left out: http://127.0.0.1:10262, as kubectl port-forward has it.",
)
@click.option("--all", "show_all", is_flag=True, help=f"Show every class of candidates, not the first {MOST_SHOWN}.")
@trust_policy
@as_json
def why(task: str, log: Path | None, scheduler: str | None, show_all: bool, trust_policy: bool, as_json: bool) -> None:
    """Say why TASK went where it went, or why it had to wait.

    Equal nodes at equal load are one class of candidates. For each class: the forecast the policy saw, what it came to
    in the policy's own measure, and the reason it was taken or not.

    A TASK written NAMESPACE/POD is a pod of Kubernetes: the running scheduler is asked, or its log is read.

    \b
    Examples:
      wattloom why 12-7
      wattloom why 12-7 --journal pictures
      wattloom why t1 --log run.log
      wattloom why default/web-0
      wattloom why default/web-0 --log decisions.log
    """
    from wattloom import api
    from wattloom.cli.printing import print_json, stdout_kept_for_json
    from wattloom.cli.progress import progress_bar
    from wattloom.cli.why_asked import ask_scheduler, is_pod

    asked = is_pod(task, log, scheduler)
    if asked:
        found = ask_scheduler(task, scheduler)
    else:
        with progress_bar(f"reading {log.name if log else 'the journal'}") as progress, stdout_kept_for_json(as_json):
            try:
                found = api.why(task, log, progress, trust_policy=trust_policy)
            except InputError as problem:
                if log is None and problem.field == task and "no such task" in problem.problem:
                    raise _or_a_pod(problem) from None
                raise
    if as_json:
        print_json(found.to_json())
        return
    for explanation in found.explanations:
        _print(explanation, len(explanation.candidates) if show_all else MOST_SHOWN, found.since)
    for sentence in _closing(found, "" if asked else " where the log ends"):
        say(sentence)


def _or_a_pod(problem: InputError) -> InputError:
    """No journal has such a task: a pod's namespace may have been forgotten."""
    task = problem.field
    return InputError(task, f"{problem.problem}; a pod is named NAMESPACE/POD, as in `wattloom why default/{task}`")


def in_words(reason: Reason | None) -> str:
    """What a reason means, and its stable name."""
    if reason is None:
        return NOT_BY_COST
    return WORDS[reason] if reason == Reason.TAKEN else f"{WORDS[reason]} ({reason.value})"


def _closing(found: "Why", then: str) -> list[str]:
    """What the tables do not say: how it ended, why it still waits, or that the log contradicts its policy. `then` is
    when it waits, if not now."""
    if not found.same_decisions:
        more = "further " if found.explanations else ""
        return [
            "The recorded events no longer lead to the recorded decisions: the policy (or its file), or the log, has "
            f"changed since. So there is no {more}explanation, only what was recorded:",
            *(f"  recorded: {_told(told, found.since)}" for told in found.recorded),
            *([] if found.recorded else [f"  no decision on {found.task}"]),
        ]
    if found.aside:
        return [f"{found.task} is not being scheduled: {found.aside}."]
    if found.waiting is not None:
        return [f"{found.task} still waits{then}: {_waits(found.waiting)}."]
    last = found.recorded[-1] if found.recorded else None
    if last is not None and isinstance(last.instruction, Conclude):
        return [f"{found.task} {_told(last, found.since)}."]
    if found.found_on:
        return [
            f"{found.task} was found on {found.found_on}: it was decided before the log began, or by another scheduler "
            "or replica."
        ]
    if last is not None and isinstance(last.instruction, Place) and last.instruction.behind:
        holder = last.instruction.behind
        return [
            f"{found.task} was {_told(last, found.since)}. It is short and of the same shape, so it had no decision of "
            f"its own: ask why {holder} went there, or why the one did that {holder} stood behind."
        ]
    if last is not None and not found.explanations:
        return [f"{found.task} was {_told(last, found.since)}. More is known to a scheduler that runs with --log."]
    return [] if found.explanations else [f"No decision on {found.task} is recorded."]


def _waits(waiting: "Waiting") -> str:
    if waiting.after:
        names = ", ".join(waiting.after[:MOST_SHOWN]) + (", ..." if len(waiting.after) > MOST_SHOWN else "")
        return f"{in_words(waiting.reason)}: {names}"
    if waiting.ahead:
        return f"behind {plural(waiting.ahead, 'task')} of its kind; the first of them: {in_words(waiting.reason)}"
    return in_words(waiting.reason)


def _at(time: float, since: str) -> str:
    return f"{time:,.3f} s after {since}" if since else f"at {time:,.3f} s"


def _told(told: "Told", since: str) -> str:
    instruction = told.instruction
    when = _at(told.time, since)
    if isinstance(instruction, Place):
        again = "" if instruction.attempt == 1 else f", attempt {instruction.attempt}"
        behind = f" behind {instruction.behind}" if instruction.behind else ""
        return f"placed on {instruction.node}{behind} {when}{again}"
    message = f": {instruction.message}" if instruction.message else ""
    if isinstance(instruction, Conclude):
        return f"ended as {instruction.outcome} {when}: {in_words(instruction.reason)}{message}"
    return f"had to wait {when}: {in_words(instruction.reason)}{message}"


def _print(explanation: Explanation, most: int, since: str) -> None:
    from wattloom.cli.printing import console, fits, literal

    out = console()
    out.print(literal(_headline(explanation, since)), style="bold")
    cost = f"cost, {explanation.measure}" if explanation.measure else "cost"
    rows = [_cells(candidate, cost) for candidate in explanation.candidates[:most]]
    longest = max((word for row in rows for head in SENTENCES for word in row[head].split()), key=len, default="")
    broken = [row | dict.fromkeys(SENTENCES, longest) for row in rows]
    if not rows or fits(_table(broken, cost), out):
        out.print(_table(rows, cost))
    else:
        _list(rows, cost, out)
    left = len(explanation.candidates) - most
    if left > 0:
        out.print(f"and {plural(left, 'more class', 'more classes')} of candidates: --all shows them.\n", style="dim")
    if explanation.plan is not None:
        out.print(literal(_cited(explanation.plan, explanation.node)))
    for note in explanation.notes:
        out.print(literal(f"{note}."), style="dim")


def _cited(plan: PlanCited, node: str | None) -> str:
    """What the plan says of it, and why that was not done if it was not."""
    if not plan.digest:
        return "No plan holds: by least joules."
    name = f"Plan {plan.digest[:DIGITS]}"
    build = "" if plan.variant in ("", "default") else f" as {plan.variant}"
    share = f"{plan.server}{build}, {plural(plan.cores, 'core')} for {figure(plan.rate)} requests/s"
    says = f"{name} says {share} ({plan.in_use:g} in use)" if plan.server else f"{name} says nothing"
    if plan.followed:
        return f"{says}: followed."
    instead = "it waits" if node is None else "instead, by least joules"
    return f"{says}: {instead}, {in_words(plan.reason)}."


def _table(rows: list[dict[str, str]], cost: str) -> "Table":
    """Only sentences are broken over lines, and if there is room for their longest word, no word is."""
    from wattloom.cli.printing import cell, table

    heads = ("nodes", "machine", "state", "cores in use", "forecast", cost, "verdict")
    made = table(*heads, numbers=("cores in use", cost))
    for head, column in zip(heads, made.columns, strict=True):
        column.no_wrap = head not in SENTENCES
    for row in rows:
        made.add_row(*(cell(row[head]) for head in heads), style=_style(row))
    return made


def _list(rows: list[dict[str, str]], cost: str, out: "Console") -> None:
    """The same where a table would have to break words."""
    from rich.padding import Padding

    from wattloom.cli.printing import cell

    out.print()
    for row in rows:
        figures = (row["forecast"], f"{cost}: {row[cost]}" if row[cost] else "", row["verdict"])
        where = f"{row['nodes']}: {row['machine']}, {row['state']}, {row['cores in use']} cores in use"
        out.print(cell(where), style=_style(row))
        for line in filter(None, figures):
            out.print(Padding(cell(line), (0, 0, 0, 4)), style=_style(row))
    out.print()


def _style(row: dict[str, str]) -> str | None:
    return "green" if row["verdict"] == WORDS[Reason.TAKEN] else None


def _headline(explanation: Explanation, since: str) -> str:
    task = f"{explanation.task} ({explanation.function})"
    when = f"{_at(explanation.time, since)}," if since else f"At {explanation.time:,.3f} s"
    if explanation.node is None:
        return f"{when} {explanation.policy} let {task} wait: {in_words(explanation.reason)}."
    again = "" if explanation.attempt == 1 else f", attempt {explanation.attempt}"
    return f"{when} {explanation.policy} sent {task} to {explanation.node}{again}."


def _cells(candidate: Candidate, cost: str) -> dict[str, str]:
    return {
        "nodes": candidate.first if candidate.nodes == 1 else f"{candidate.first} and {candidate.nodes - 1:,} alike",
        "machine": candidate.machine,
        "state": candidate.mode,
        "cores in use": f"{candidate.cores_in_use:g} of {candidate.cores:g}",
        "forecast": _forecast(candidate),
        cost: "" if candidate.cost is None else figure(candidate.cost),
        "verdict": _verdict(candidate),
    }


def _verdict(candidate: Candidate) -> str:
    reason = candidate.reason
    if reason == Reason.TIE and candidate.cost is None:
        return f"{NO_COST_EITHER} ({reason.value})"
    if reason in NAMED:
        return (
            f"{WORDS[reason]}: {', '.join(candidate.lacks)} ({reason.value})" if candidate.lacks else in_words(reason)
        )
    return in_words(reason)


def _forecast(candidate: Candidate) -> str:
    """What is known of it, also if that is not all."""
    forecast, variant = candidate.forecast, candidate.variant
    if forecast is None:
        return ""
    build = "" if variant in ("", "default") else f"{variant}: "
    if isinstance(forecast, Unknown):
        known = "" if candidate.watts is None else f"{figure(candidate.watts)} W more; "
        return f"{build if known else ''}{known}unknown: {forecast.reason}"
    return f"{build}{figure(forecast.seconds)} s, {figure(forecast.watts)} W more, {figure(forecast.joules)} J"
