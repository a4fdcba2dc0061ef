"""A log that is long enough gives way to a new one, which begins with the cluster as it is.

Owns that step. The engine begins anew with it, told the present state: so the new log leads to the same decisions by
itself, without the old one, and what the engine remembers of ended pods does not grow for ever either. Without a log
it begins anew when it remembers too much.
"""

import logging
from time import perf_counter
from typing import Final

from wattloom.driving.snapshot import may_be_cut, snapshot
from wattloom.history.log import LogWriter
from wattloom.kubernetes.scheduler.decision_log import DecisionLog
from wattloom.kubernetes.state.driver import TimedDriver
from wattloom.policies.protocol import Policy

LOG: Final = logging.getLogger(__name__)
MOST_REMEMBERED: Final = 200_000
"""Functions, and names of pods that have ended."""


def rotate(log: DecisionLog, driver: TimedDriver, policy: Policy) -> None:
    """In one step, during which nothing else is decided. `policy` is one that no engine has."""
    if not may_be_cut(driver.engine):
        return  # soon
    begun = perf_counter()
    writer = log.begin_new()
    if writer is None:
        return
    told = _begin_anew(driver, policy, writer)
    log.switch()
    LOG.info("the log is full: a new one begins with %d events, after %.2f s", told, perf_counter() - begun)


class Memory:
    """What the engine remembers, in bounds without a log."""

    def __init__(self, driver: TimedDriver, *, most: int = MOST_REMEMBERED) -> None:
        self._driver = driver
        self._most = most
        self._begun_with = 0

    @property
    def is_full(self) -> bool:
        """What there is anyway may double in any case."""
        return self._remembered > max(self._most, 2 * self._begun_with)

    def begin_anew(self, policy: Policy) -> None:
        """As `rotate`, without a log."""
        if not may_be_cut(self._driver.engine):
            return
        begun = perf_counter()
        told = _begin_anew(self._driver, policy, None)
        self.postpone()
        LOG.info("much is forgotten: the engine was told %d events anew, after %.2f s", told, perf_counter() - begun)

    def postpone(self) -> None:
        """It may remember twice as much as now."""
        self._begun_with = self._remembered

    @property
    def _remembered(self) -> int:
        ledger = self._driver.engine.ledger
        return len(ledger.functions) + len(ledger.ended)


def _begin_anew(driver: TimedDriver, policy: Policy, writer: LogWriter | None) -> int:
    """How many events it took."""
    state = snapshot(driver.engine, driver.now, unused_functions=False, since_submitted=True)
    driver.begin_anew(policy, writer, state)
    return len(state)
