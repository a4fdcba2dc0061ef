"""Why a task has no place now, as an engine stands between two events.

Owns the one answer: `why`, the events on pods, the scheduler's page and a simulation's warnings all give it.
"""

import msgspec

from wattloom.cluster.reasons import Reason
from wattloom.scheduling.engine import Engine
from wattloom.scheduling.state import Stage, TaskRecord


class Waiting(msgspec.Struct, frozen=True):
    """How a task stands that has no place where the log ends."""

    reason: Reason
    """Why it waits, or the first task of its kind if others are ahead of it."""
    ahead: int = 0
    """Tasks of its kind that stand before it: the policy is asked for the first of them only."""
    after: list[str] = []
    """Tasks that have to finish first."""


def waiting_now(engine: Engine, task: str) -> Waiting | None:
    """How a task stands; None: it has a place, or is not known any more."""
    record = engine.ledger.tasks.get(task)
    if record is None or record.on_a_node:
        return None
    if record.stage == Stage.HELD_BACK:
        return Waiting(Reason.DEPENDENCIES, after=sorted(record.after))
    if record.stage == Stage.BACKING_OFF:
        return Waiting(record.reason or Reason.BACKING_OFF)
    ahead = 0 if record.by_choice else sum(_stands_before(other, record) for other in engine.ledger.tasks.values())
    reason = reason_now(engine, record, None if ahead else record.reason)
    assert reason is not None  # between events every queued task is in a blocked lane
    return Waiting(reason, ahead)


def reason_now(engine: Engine, record: TaskRecord, own: Reason | None) -> Reason | None:
    """Its own reason, or that of the first of its kind, which answers for all behind it."""
    lane = engine.queue.lanes.get(record.shape.index)
    reason = own or (lane.blocked_by if lane is not None else None)
    # Those that came since do not suit it: the engine need not ask again.
    return Reason.NEVER_FITS if reason is Reason.NO_NODES and engine.ledger.nodes else reason


def _stands_before(one: TaskRecord, other: TaskRecord) -> bool:
    return one.stage == Stage.QUEUED and one.shape is other.shape and one.order < other.order
