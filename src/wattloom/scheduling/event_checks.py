"""What an event may say: the checks that its handler makes before anything changes.

Owns the words of these refusals, and how a node, a task or an attempt is found by the name that an event gives it.
"""

from typing import Final

from wattloom.bounds import LATEST_S, MOST_JOULES, out_of_bounds
from wattloom.cluster.site import NodeState
from wattloom.errors import EventRefused
from wattloom.scheduling import events as ev
from wattloom.scheduling.ledger import Ledger
from wattloom.scheduling.state import Stage, TaskRecord

LONGEST_DIGEST: Final = 128

# -- numbers and names -------------------------------------------------------------------------------------------------


def refuse(problem: tuple[str, str] | None, prefix: str) -> None:
    if problem is not None:
        raise EventRefused(f"{prefix}.{problem[0]}", problem[1])


def require(field: str, value: float, most: float, of: str = "") -> None:
    wrong = out_of_bounds(value, most)
    if wrong:
        raise EventRefused(field, f"of {of} {wrong}" if of else wrong)


def require_times(event: ev.TaskFinished | ev.TaskFailed) -> None:
    if event.seconds is not None:
        require("seconds", event.seconds, LATEST_S)
    if event.cpu_s is not None:
        require("cpu_s", event.cpu_s, LATEST_S)
    if isinstance(event, ev.TaskFinished) and event.setup_s is not None:
        require("setup_s", event.setup_s, LATEST_S)


def require_prices(event: ev.UsageArrived) -> None:
    """What the engine only keeps for those who read the log: they get numbers."""
    require("running_j", abs(event.running_j), MOST_JOULES)
    for task, joules in event.tasks.items():
        for each in joules:
            require("tasks", abs(each), MOST_JOULES, task)
    for each in event.cpu_second:
        require("cpu_second", abs(each), MOST_JOULES)
    for function, price in event.cpu_second_of.items():
        for each in price:
            require("cpu_second_of", abs(each), MOST_JOULES, function)


def digest(said: str) -> str:
    """A name by which whoever has the bytes finds them; empty: there are none."""
    if len(said) > LONGEST_DIGEST or not all(each in "0123456789abcdef" for each in said):
        raise EventRefused(
            "digest", f"must be at most {LONGEST_DIGEST} hexadecimal digits, not {said[:LONGEST_DIGEST]!r}"
        )
    return said


# -- what an event names -----------------------------------------------------------------------------------------------


def node_named(ledger: Ledger, name: str) -> NodeState:
    node = ledger.index.nodes.get(name)
    if node is None:
        raise EventRefused("node", f"{name} is not here")
    return node


def task_named(ledger: Ledger, task: str, field: str) -> TaskRecord:
    """The record of a task that is here."""
    record = ledger.tasks.get(task)
    if record is None:
        ended = task in ledger.ended
        raise EventRefused(field, f"{task} {'has ended' if ended else 'is not known'}")
    return record


def attempt_named(ledger: Ledger, task: str, attempt: int) -> TaskRecord:
    """The record of a task that is on a node with this attempt."""
    record = ledger.tasks.get(task)
    if record is None:
        record = task_named(ledger, task, "task")
    if record.stage < Stage.PLACED:
        raise EventRefused("task", f"{task} is not on a node")
    if record.attempt != attempt:
        raise EventRefused("attempt", f"{task} is at attempt {record.attempt}, not {attempt}")
    return record


def resizing_named(ledger: Ledger, task: str, attempt: int) -> TaskRecord:
    """The record of a task that was asked to have other cores and bytes."""
    record = attempt_named(ledger, task, attempt)
    if record.holding.resizing is None:
        raise EventRefused("task", f"{task} was not asked to have other cores and bytes")
    return record
