"""Everything an engine knows, as plain values that can be compared.

Owns the list of what matters. Two engines with equal fingerprints give equal answers from now on; memos of what can be
worked out again are left out.
"""

from wattloom.policies.view import View
from wattloom.prediction.protocol import Predictor
from wattloom.prediction.readings import Readings
from wattloom.prediction.table import Table
from wattloom.scheduling.allocation import Allocation
from wattloom.scheduling.engine import Engine
from wattloom.scheduling.queue import Lane
from wattloom.scheduling.state import Stage, TaskRecord

Fingerprint = dict[str, object]


def fingerprint(engine: Engine) -> Fingerprint:
    """All that matters of an engine, by topic, so that a difference says where it is."""
    ledger, queue, timers = engine.ledger, engine.queue, engine.timers
    reservations = engine.reservations
    first = reservations.first
    return {
        "time": engine.time,
        "proposals": engine.proposals,
        "nodes": nodes_fingerprint(engine),
        "timers of nodes": {name: (node.sleep_at, node.timer_at) for name, node in ledger.index.nodes.items()},
        "specs": dict(ledger.nodes),
        "machines": {name: machine.profile for name, machine in ledger.machines.items()},
        "functions": dict(ledger.functions),
        "tasks": {name: _task(record) for name, record in ledger.tasks.items()},
        "ended": list(ledger.ended.items()),
        "arrivals": ledger.arrivals,
        "shapes": {index: shape.live for index, shape in ledger.shapes.items()},
        "view": _view(ledger.view),
        "lanes": {index: _lane(lane) for index, lane in queue.lanes.items()},
        "blocked": list(queue.blocked),
        "ready": sorted(queue.ready),
        "timers": sorted(timers._heap),
        "held": {name: record.task.id for name, record in reservations.held.items()},
        "first": None if first is None else first.task.id,
        "youngest": reservations.youngest,
        "unwatched": list(reservations.unwatched),
        "dependents": {name: [record.task.id for record in there] for name, there in engine.graph.dependents.items()},
        "learned": _learned(ledger.predictor),
        "readings": _readings(ledger.readings),
        "moves": (dict(engine.moves.frequencies), engine.reconsideration.unwatched),
        "leases": {
            index: [(lease.holder.name, lease.node.name, lease.until, list(lease.behind)) for lease in held]
            for index, held in engine.leases.by_shape.items()
            if held
        },
    }


def nodes_fingerprint(engine: Engine) -> Fingerprint:
    """What is taken of each node, by whom, and what the cluster draws."""
    index = engine.ledger.index
    nodes: Fingerprint = {
        name: (
            node.cls.key, node.mode, node.demand, node.allocated, node.memory, node.devices, node.resources,
            node.frequency, sorted(node.tasks),
        )
        for name, node in index.nodes.items()
    }  # fmt: skip
    return {"nodes": nodes, "microwatts": index.microwatts, "unknown": index.unknown_power, "names": list(index.names)}


def _task(record: TaskRecord) -> tuple[object, ...]:
    return (
        record.task, record.shape.index, record.submitted, record.attempt, record.order, record.stage, record.epoch,
        sorted(record.after), record.failures, record.losses, record.refusals, record.ask_at, record.by_choice,
        record.waiting_since, record.reason, record.checkpoint,
        None if record.allocation is None else _allocation(record.allocation),
    )  # fmt: skip


def _allocation(has: Allocation) -> tuple[object, ...]:
    estimate = has.estimate
    return (
        has.node.name, has.attempt, has.started, has.taken, has.guaranteed, has.devices, has.cost, has.number,
        has.leaving, has.memory, has.progress, has.resizing, None if has.target is None else _allocation(has.target),
        estimate.variant.name, estimate.seconds, estimate.watts,
    )  # fmt: skip


def _lane(lane: Lane) -> tuple[object, ...]:
    standing = sorted(
        (entry[0], entry[1], entry[3].task.id)
        for entry in lane.entries
        if entry[3].stage == Stage.QUEUED and entry[3].epoch == entry[2]
    )
    unasked = [entry[3].task.id for entry in lane.unasked]
    return (lane.blocked_by, lane.watched, lane.look_at, lane.listed, standing, unasked)


def _view(view: View) -> tuple[object, ...]:
    instances = view.instances
    return (
        view.time, view.cap_microwatts, view.last_node, view.queued, dict(view.signals), view.plan, view.model,
        dict(instances.ready), dict(instances.coming), dict(instances.going),
    )  # fmt: skip


def _learned(predictor: Predictor) -> Fingerprint:
    """Of a predictor that is not ours only what it says itself."""
    if not isinstance(predictor, Table):  # a subclass from outside is guarded, and no Table here
        return {"/".join(key): used for key, used in predictor.measured().items()}
    runtimes = predictor.runtimes
    return {
        "run times": {
            "/".join(key): (learned.count, learned.mean, learned.squares, learned.published, learned.measured)
            for key, learned in runtimes._learned.items()
        },
        "by size": {
            "/".join(key): (by_size.explains, {size: list(each) for size, each in by_size._classes.items()})
            for key, by_size in runtimes._by_size.items()
        },
        "intensities": {
            "/".join(key): (factor.used, factor.modelled, factor.seconds, factor.published)
            for key, factor in predictor.intensities._factors.items()
        },
    }


def _readings(readings: Readings) -> tuple[object, ...]:
    unmeasured = {node: dict(tasks) for node, tasks in readings._unmeasured.items()}
    return dict(readings._watts), dict(readings._average), unmeasured
