"""An engine's state as events: told to a fresh engine of the same policy, they lead to the same state.

Owns which events these are and their order, so that a log can be cut while work is open: another log begins with them,
and leads to its decisions by itself. Knows no backend; what one has to add about a task's past it gives itself.

Not told, because no event says so, and so different afterwards:

- what has ended: its name may come again, and nobody can come after it any more;
- back-offs and waits by choice: who waits is asked at once. Starts refused in a row count anew;
- who was overtaken, nodes kept free for him, how long a node has been idle: patience and lingering begin anew;
- leases that nobody stands behind; and nobody else follows on those that have somebody;
- where `round-robin` was, what tasks that may wait usually cost, sizes of arguments that explain run times;
- how far a learned figure had moved since it was last believed: it is believed as it is now;
- watts expected of a task that no meter has covered yet, and of functions that nobody calls now;
- cores and bytes that are kept for a task beside what it asked for, the checkpoint of one that waits, the frequency of
  a node that sleeps, and since when a signal has its value;
- the order of arrival between tasks that have a place and those that wait: the former count as earlier.
"""

from collections.abc import Callable, Iterator

import msgspec

from wattloom.cluster.node import Node
from wattloom.cluster.node_class import Mode, use_of
from wattloom.cluster.site import FULL, MICRO
from wattloom.energy.used import Used
from wattloom.scheduling import events as ev
from wattloom.scheduling.engine import Engine
from wattloom.scheduling.state import Stage, TaskRecord
from wattloom.workload.function import Function
from wattloom.workload.task import Task

PastOf = Callable[[TaskRecord, ev.Past], ev.Past]
"""What a backend knows beyond what the engine does."""


def may_be_cut(engine: Engine) -> bool:
    """Whether a snapshot can be taken now. A node that is waking up for a task cannot be told, nor what is being moved,
    resized, evicted, prepared or released: soon it is done."""
    if any(node.mode == Mode.WAKING for node in engine.ledger.index.nodes.values()):
        return False
    instances = engine.ledger.view.instances
    return not (engine.moves.frequencies or instances.coming or instances.going or _any_changes(engine))


def _any_changes(engine: Engine) -> bool:
    records = engine.ledger.tasks.values()
    held = (each.allocation for each in records)
    moving = any(has is not None and (has.target is not None or has.resizing is not None) for has in held)
    return moving or any(each.stage == Stage.EVICTING for each in records)


def snapshot(
    engine: Engine,
    now: float,
    *,
    past_of: PastOf = lambda record, past: past,
    unused_functions: bool = True,
    since_submitted: bool = False,
) -> list[ev.AnyEvent]:
    """In the order of time. The other engine is to count placements from `engine.placed` on.

    `unused_functions`: also those that no task calls and of which nothing was learned. `since_submitted`: who waits is
    told at the time of submission, and everybody else at the first of these times, so that patience goes on; else all
    is told now."""
    assert may_be_cut(engine)
    records = sorted(engine.ledger.tasks.values(), key=lambda each: each.order[1])
    waiting = [each for each in records if not each.on_a_node]
    times = [max(0.0, each.submitted) if since_submitted else now for each in waiting]
    begin = min(times, default=now)
    placed = [each for each in records if each.on_a_node]
    told = sorted(zip(times, waiting, strict=True), key=lambda each: (each[0], each[1].order[1]))
    tasks = [
        *_found(placed, begin, past_of),
        *_readings(engine, placed, begin),
        *(ev.TaskSubmitted(time, _as_it_waits(each), past_of(each, _past(each, time))) for time, each in told),
    ]
    return [
        *_definitions(engine, begin, unused_functions),
        *_cluster(engine, begin),
        *_each_with_its_function(engine, tasks),
    ]


def _definitions(engine: Engine, time: float, unused: bool) -> Iterator[ev.AnyEvent]:
    ledger = engine.ledger
    learned = list(_learned(engine, time))
    used = {record.task.function for record in ledger.tasks.values()} | {each.function for each in learned}
    for machine in ledger.machines.values():
        yield ev.MachineDefined(time, machine.profile)
    for name, function in ledger.functions.items():
        if unused or name in used:
            yield ev.FunctionDefined(time, function)
    yield from learned


def _learned(engine: Engine, time: float) -> Iterator[ev.FunctionLearned]:
    """Run times by build, then joules, which all builds share."""
    ledger = engine.ledger
    for (name, variant, machine), used in ledger.predictor.measured().items():
        yield ev.FunctionLearned(time, name, machine, used, variant)
    for (name, machine), (joules, core_s) in ledger.predictor.measured_joules(ledger.machines).items():
        function = ledger.functions.get(name)
        if function is not None:
            used = Used(calls=1, joules=joules, joules_squared=joules * joules, metered=1, core_s=core_s)
            yield ev.FunctionLearned(time, name, machine, used, function.variants[0].name)


def _cluster(engine: Engine, time: float) -> Iterator[ev.AnyEvent]:
    cap = engine.ledger.view.cap_microwatts
    if cap is not None:
        yield ev.CapChanged(time, cap / MICRO)
    for node in engine.ledger.nodes.values():
        yield ev.NodeJoined(time, _as_it_is(engine, node))
    yield from _frequencies(engine, time)
    view = engine.ledger.view
    for (name, function, variant), count in view.instances.ready.items():
        yield from [ev.InstanceReady(time, name, function, variant)] * count
    for name, signal in view.signals.items():
        yield ev.SignalChanged(time, name, signal.value, signal.forecast)
    if view.plan:
        yield ev.PlanChanged(time, view.plan)
    if view.model:
        yield ev.ModelChanged(time, view.model)


def _frequencies(engine: Engine, time: float) -> Iterator[ev.AnyEvent]:
    for name, node in engine.ledger.index.nodes.items():
        if node.frequency != FULL and node.mode.is_awake:
            yield ev.FrequencyChanged(time, name, node.frequency / FULL)


def _as_it_is(engine: Engine, node: Node) -> Node:
    asleep = engine.ledger.index.nodes[node.name].mode == Mode.ASLEEP
    return node if node.asleep == asleep else msgspec.structs.replace(node, asleep=asleep)


def _found(placed: list[TaskRecord], time: float, past_of: PastOf) -> Iterator[ev.AnyEvent]:
    """Each share with all that stand behind it, and what is to become of them."""
    for record in placed:
        has = record.holding
        if has.taken:
            yield _on_its_node(record, time, past_of)
            if has.progress or record.checkpoint is not None:
                checkpoint, size = record.checkpoint or ("", 0)
                yield ev.TaskProgressed(time, record.name, has.attempt, has.progress, checkpoint, size)
            if has.leaving:
                yield ev.TaskLeaving(time, record.name)
            for behind in has.lease.behind.values() if has.lease is not None else ():
                yield _on_its_node(behind, time, past_of, record.name)
    for record in placed:
        if record.stage == Stage.CANCELLING:
            yield ev.CancelRequested(time, record.name)


def _each_with_its_function(engine: Engine, events: list[ev.AnyEvent]) -> Iterator[ev.AnyEvent]:
    """A task keeps its function as it was when it came, though others may have come to another since."""
    latest, tasks = engine.ledger.functions, engine.ledger.tasks
    told: dict[str, Function] = {}
    time = engine.time
    for event in events:
        time = event.time
        if isinstance(event, ev.TaskFound | ev.TaskSubmitted):
            function = tasks[event.task.id].shape.function
            if told.get(function.name, latest[function.name]) != function:
                told[function.name] = function
                yield ev.FunctionDefined(time, function)
        yield event
    for name, function in told.items():
        if function != latest[name]:
            yield ev.FunctionDefined(time, latest[name])
            yield from (each for each in _learned(engine, time) if each.function == name)


def _on_its_node(record: TaskRecord, time: float, past_of: PastOf, behind: str = "") -> ev.TaskFound:
    has = record.holding
    return ev.TaskFound(
        time,
        record.task,
        has.node.name,
        has.attempt,
        has.started,
        past_of(record, _past(record, time)),
        behind,
        has.estimate.variant.name,
        () if behind else use_of(has.node.cls, has.devices),
    )


def _readings(engine: Engine, placed: list[TaskRecord], time: float) -> Iterator[ev.AnyEvent]:
    """What each node's meter said last, with the usual draw of the tasks that it had covered."""
    if engine.policy.reading_interval_s is None:
        return
    readings = engine.ledger.readings
    for node, watts in readings.measured().items():
        covered = [each for each in placed if each.node == node and readings.covers(node, each.name)]
        usual = {each.name: readings.usual(each.task.function) for each in covered}
        yield ev.ReadingArrived(time, node, watts, {name: draw for name, draw in usual.items() if draw is not None})


def _as_it_waits(record: TaskRecord) -> Task:
    """What it came after and has finished is not known any more."""
    after = tuple(name for name in record.task.after if name in record.after)
    return record.task if after == record.task.after else msgspec.structs.replace(record.task, after=after)


def _past(record: TaskRecord, time: float) -> ev.Past:
    """Told at that time: nobody was submitted later."""
    has = record.allocation
    return ev.Past(
        attempts=record.attempt,
        failures=record.failures,
        losses=record.losses,
        submitted=min(record.submitted, time),
        place=0 if has is None else has.number,
    )
