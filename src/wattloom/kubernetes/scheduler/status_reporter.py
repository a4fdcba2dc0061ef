"""What is looked after once a second: owners of pods that wait learn why, and log and memory stay in bounds.

Owns the pace of that and who has been told already. Finds no words itself and decides nothing.
"""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic
from typing import Final

from wattloom.cluster.reasons import Reason
from wattloom.history.waiting import reason_now
from wattloom.kubernetes.client.event_recorder import EventRecorder
from wattloom.kubernetes.model import event_messages
from wattloom.kubernetes.scheduler.decision_log import DecisionLog
from wattloom.kubernetes.scheduler.log_rotation import Memory, rotate
from wattloom.kubernetes.scheduler.pod_conditions import PodConditions
from wattloom.kubernetes.state.driver import TimedDriver
from wattloom.kubernetes.state.pod_cache import PodCache
from wattloom.kubernetes.state.pod_entry import At, PodEntry
from wattloom.policies.protocol import Policy

LOG: Final = logging.getLogger(__name__)
LOOK_EVERY_S: Final = 1.0
MOST_TOLD: Final = 500
"""Owners told in one look why their pods wait."""
AT_ONCE_S: Final = 0.05
"""How long owners are told before others have a turn: in a large cluster the words for one pod take milliseconds."""


async def look_after_log(log: DecisionLog, driver: TimedDriver, fresh_policy: Callable[[], Policy]) -> None:
    """Until cancelled."""
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        if log.is_full:
            policy = _loaded(fresh_policy)
            if policy is None:
                log.postpone()
            else:
                rotate(log, driver, policy)
        log.flush()


async def look_after_memory(driver: TimedDriver, fresh_policy: Callable[[], Policy]) -> None:
    """Until cancelled; where there is no log, whose rotation does the same."""
    memory = Memory(driver)
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        if memory.is_full:
            policy = _loaded(fresh_policy)
            if policy is None:
                memory.postpone()
            else:
                memory.begin_anew(policy)


def _loaded(fresh_policy: Callable[[], Policy]) -> Policy | None:
    """Its file may be gone or broken since the start: deciding goes on with the one there is."""
    try:
        return fresh_policy()
    except Exception as problem:
        LOG.error("the policy cannot be loaded again, so that the engine does not begin anew: %s", problem)
        return None


async def look_after_owners(
    pods: PodCache, driver: TimedDriver, recorder: EventRecorder, conditions: PodConditions, may: Callable[[], bool]
) -> None:
    """Until cancelled; only while it `may`."""
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        if may():
            await tell_why_they_wait(pods, driver, recorder, conditions, MOST_TOLD, may)


async def tell_why_they_wait(
    pods: PodCache,
    driver: TimedDriver,
    recorder: EventRecorder,
    conditions: PodConditions,
    most: int,
    may: Callable[[], bool] = lambda: True,
) -> int:
    """Tell owners whose pods wait, once for each reason, while it `may`; how many were told."""
    look = _Look(driver)
    told = 0
    until = monotonic() + AT_ONCE_S
    for name, entry in tuple(pods.without_place().items()):
        if monotonic() >= until:
            await asyncio.sleep(0)
            look = _Look(driver)
            until = monotonic() + AT_ONCE_S
        if told >= most or not may():
            break
        if entry.at is not At.QUEUED or pods.by_task.get(name) is not entry:
            continue
        text = look.news(name, entry)
        if text is not None:
            recorder.failed(entry.reference, text)
            conditions.waits(entry, text)
            told += 1
    return told


class _Look:
    """Between two turns of others, equal pods wait for equal reasons."""

    def __init__(self, driver: TimedDriver) -> None:
        engine = driver.engine
        self._engine, self._ledger = engine, engine.ledger
        self._terms = engine.policy.terms
        self._texts: dict[tuple[int, Reason], str] = {}

    def news(self, name: str, entry: PodEntry) -> str | None:
        """Why it waits, if its owner does not know yet."""
        ledger = self._ledger
        record = ledger.tasks.get(name)
        if record is None:
            return None
        own, message = entry.waits or (None, "")
        reason = reason_now(self._engine, record, own)
        if reason is None:
            return None
        if entry.told == f"{reason.value}{message}":
            return None
        entry.told = f"{reason.value}{message}"
        if message:
            return event_messages.unavailable(record.shape, ledger.view, reason, message, self._terms)
        words = record.shape.index, reason
        if words not in self._texts:
            self._texts[words] = event_messages.unavailable(record.shape, ledger.view, reason, terms=self._terms)
        return self._texts[words]
