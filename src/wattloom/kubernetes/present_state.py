"""What an engine knows now, as events that tell another engine the same.

Owns which events these are and their order. Holds for what there is on Kubernetes: no sleeping nodes, no tasks that
come after others, no readings. What is not told: back-offs, figures of fewer runs than count, and what has ended.
"""

from collections.abc import Iterator

from wattloom.scheduling import events as ev
from wattloom.scheduling.engine import Engine
from wattloom.scheduling.state import TaskRecord


def present_state(engine: Engine, now: float) -> list[ev.AnyEvent]:
    """In the order of time: who waits has waited since then, all else is told at the time of the first of them."""
    records = engine.ledger.tasks.values()
    waiting = sorted((each for each in records if not each.on_a_node), key=lambda each: (each.submitted, each.order))
    begin = min((each.submitted for each in waiting), default=now)
    placed = [each for each in records if each.on_a_node]
    return [
        *_definitions(engine, begin),
        *(ev.NodeJoined(begin, node) for node in engine.ledger.nodes.values()),
        *_found(placed, begin),
        *(ev.TaskSubmitted(each.submitted, each.task) for each in waiting),
    ]


def _definitions(engine: Engine, time: float) -> Iterator[ev.AnyEvent]:
    """Functions that nobody calls any more are left out, unless something was learned of them."""
    ledger = engine.ledger
    measured = ledger.runtimes.measured()
    called = {record.task.function for record in ledger.tasks.values()} | {function for function, _, _ in measured}
    for machine in ledger.machines.values():
        yield ev.MachineDefined(time, machine.profile)
    for name, function in ledger.functions.items():
        if name in called:
            yield ev.FunctionDefined(time, function)
    for (name, variant, machine_name), used in measured.items():
        yield ev.FunctionLearned(time, name, machine_name, used, variant)


def _found(placed: list[TaskRecord], time: float) -> Iterator[ev.AnyEvent]:
    for record in placed:
        yield ev.TaskFound(time, record.task, record.node, record.attempt, record.started)
        if record.leaving:
            yield ev.TaskLeaving(time, record.name)
