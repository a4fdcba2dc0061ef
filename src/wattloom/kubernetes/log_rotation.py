"""A log that is long enough gives way to a new one, which begins with the cluster as it is.

Owns that step. The engine begins anew with it, told the present state: so the new log leads to the same decisions by
itself, without the old one, and what the engine remembers of ended pods does not grow for ever either.
"""

import logging
from time import perf_counter
from typing import Final

from wattloom.kubernetes.deciding import Deciding
from wattloom.kubernetes.decision_log import DecisionLog
from wattloom.kubernetes.present_state import present_state
from wattloom.policies.protocol import Policy

LOG: Final = logging.getLogger(__name__)


def rotate(log: DecisionLog, deciding: Deciding, policy: Policy) -> None:
    """In one step, during which nothing else is decided. `policy` is one that no engine has."""
    begun = perf_counter()
    writer = log.begin_new()
    if writer is None:
        return
    state = present_state(deciding.engine, deciding.now)
    deciding.begin_anew(policy, writer)
    for event in state:
        deciding.tell(event)
    log.switch()
    LOG.info("the log is full: a new one begins with %d events, after %.2f s", len(state), perf_counter() - begun)
