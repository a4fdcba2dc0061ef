"""What is looked after once a second: owners of pods that wait learn why, and the log stays on disk and in bounds.

Owns the pace of that and who has been told already. Finds no words itself and decides nothing.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from wattloom.cluster.reasons import Reason
from wattloom.kubernetes import wording
from wattloom.kubernetes.deciding import Deciding
from wattloom.kubernetes.decision_log import DecisionLog
from wattloom.kubernetes.log_rotation import rotate
from wattloom.kubernetes.pod_conditions import PodConditions
from wattloom.kubernetes.pod_roll import PodRoll
from wattloom.kubernetes.telling import Teller
from wattloom.policies.protocol import Policy

LOOK_EVERY_S: Final = 1.0
MOST_TOLD: Final = 500
"""Owners told in one look why their pods wait."""


async def look_after_log(log: DecisionLog, deciding: Deciding, fresh_policy: Callable[[], Policy]) -> None:
    """Until cancelled."""
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        if log.is_full:
            rotate(log, deciding, fresh_policy())
        log.flush()


async def look_after_owners(
    pods: PodRoll, deciding: Deciding, teller: Teller, conditions: PodConditions, may: Callable[[], bool]
) -> None:
    """Until cancelled; only while it `may`."""
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        if may():
            tell_why_they_wait(pods, deciding, teller, conditions, MOST_TOLD)


def tell_why_they_wait(pods: PodRoll, deciding: Deciding, teller: Teller, conditions: PodConditions, most: int) -> int:
    """Tell owners whose pods wait, once for each reason; how many were told. Equal pods wait for equal reasons."""
    engine = deciding.engine
    ledger, lanes = engine.ledger, engine.queue.lanes
    texts: dict[int, str] = {}
    told = 0
    for name, entry in pods.without_place().items():
        if told >= most:
            break
        record = ledger.tasks.get(name)
        if record is None:
            continue
        lane = lanes.get(record.shape.index)
        reason, message = entry.waits or (lane.blocked_by if lane is not None else None, "")
        if reason is None:
            continue
        if reason is Reason.NO_NODES and ledger.nodes:  # those that came do not suit it: the engine need not ask again
            reason = Reason.NEVER_FITS
        if entry.told == f"{reason.value}{message}":
            continue
        entry.told = f"{reason.value}{message}"
        text = texts.get(record.shape.index) if not message else None
        if text is None:
            text = wording.unavailable(record.shape, ledger.view, reason, message)
            if not message:
                texts[record.shape.index] = text
        teller.failed(entry.reference, text)
        conditions.waits(entry, text)
        told += 1
    return told
