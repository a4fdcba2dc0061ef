"""A log that is long enough gives way to a new one, which begins with the cluster as it is.

Owns that step. The engine begins anew with it, told the present state: so the new log leads to the same decisions by
itself, without the old one, and what the engine remembers of ended pods does not grow for ever either. Without a log
it begins anew when it remembers too much.
"""

import logging
from time import perf_counter
from typing import Final

from wattloom.kubernetes.deciding import Deciding
from wattloom.kubernetes.decision_log import DecisionLog
from wattloom.kubernetes.present_state import present_state
from wattloom.policies.protocol import Policy
from wattloom.scheduling.log import LogWriter

LOG: Final = logging.getLogger(__name__)
MOST_REMEMBERED: Final = 200_000
"""Functions, and names of pods that have ended."""


def rotate(log: DecisionLog, deciding: Deciding, policy: Policy) -> None:
    """In one step, during which nothing else is decided. `policy` is one that no engine has."""
    begun = perf_counter()
    writer = log.begin_new()
    if writer is None:
        return
    told = _begin_anew(deciding, policy, writer)
    log.switch()
    LOG.info("the log is full: a new one begins with %d events, after %.2f s", told, perf_counter() - begun)


class Memory:
    """What the engine remembers, in bounds without a log."""

    def __init__(self, deciding: Deciding, *, most: int = MOST_REMEMBERED) -> None:
        self._deciding = deciding
        self._most = most
        self._begun_with = 0

    @property
    def is_full(self) -> bool:
        """What there is anyway may double in any case."""
        return self._remembered > max(self._most, 2 * self._begun_with)

    def begin_anew(self, policy: Policy) -> None:
        """As `rotate`, without a log."""
        begun = perf_counter()
        told = _begin_anew(self._deciding, policy, None)
        self.postpone()
        LOG.info("much is forgotten: the engine was told %d events anew, after %.2f s", told, perf_counter() - begun)

    def postpone(self) -> None:
        """It may remember twice as much as now."""
        self._begun_with = self._remembered

    @property
    def _remembered(self) -> int:
        ledger = self._deciding.engine.ledger
        return len(ledger.functions) + len(ledger.ended)


def _begin_anew(deciding: Deciding, policy: Policy, writer: LogWriter | None) -> int:
    """How many events it took."""
    state = present_state(deciding.engine, deciding.now)
    deciding.begin_anew(policy, writer)
    for event in state:
        deciding.tell(event)
    return len(state)
