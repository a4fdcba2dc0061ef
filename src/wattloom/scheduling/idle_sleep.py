"""Idle nodes and their sleep.

Owns when an idle node is sent to sleep: as long after as the policy lets it linger. One timer per node is enough; if it
comes early, it is set again.
"""

from math import inf
from typing import Final

from wattloom.bounds import LATEST_S
from wattloom.cluster.node_class import Mode
from wattloom.cluster.site import NodeState
from wattloom.policies.protocol import Policy
from wattloom.scheduling.ledger import Ledger
from wattloom.scheduling.policy_guard import linger_of
from wattloom.scheduling.timers import Timers


class IdleSleep:
    """Watches idle nodes."""

    def __init__(self, policy: Policy, ledger: Ledger, timers: Timers) -> None:
        self._policy: Final = policy
        self._ledger: Final = ledger
        self._timers: Final = timers

    def watch(self, node: NodeState, time: float, least: float = 0.0) -> None:
        """It has nothing to do from now on: it sleeps in a while, and not before `least` seconds."""
        node.sleep_at = inf
        if not node.cls.machine.can_sleep:
            return
        linger = linger_of(self._policy, node.cls, self._ledger.view)
        if linger is not None and time + max(linger, least) < LATEST_S:
            node.sleep_at = time + max(linger, least)
            self._set_timer(node)

    def falls_asleep(self, name: str, due: float, time: float) -> bool:
        """A timer is due: whether the node is still idle and sleeps now."""
        node = self._ledger.index.nodes.get(name)
        if node is None or node.timer_at != due:
            return False
        node.timer_at = inf
        if node.tasks or node.mode != Mode.AWAKE:
            return False
        if node.sleep_at > time:
            self._set_timer(node)
            return False
        self._ledger.set_mode(node, Mode.ASLEEP)
        return True

    def _set_timer(self, node: NodeState) -> None:
        if node.sleep_at < node.timer_at:
            node.timer_at = node.sleep_at
            self._timers.set(node.sleep_at, "idle", node.name)
