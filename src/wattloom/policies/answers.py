"""What a policy answers: a node, or why there is none now.

Owns the two answers. They are values: the engine decides what comes of them.
"""

from typing import Final

from wattloom.cluster.reasons import Reason


class Proposal:
    """A node for a task. The engine checks it before anything happens."""

    __slots__ = ("cost", "node")

    def __init__(self, node: str, cost: float) -> None:
        self.node: Final = node
        self.cost: Final = cost


class Refusal:
    """No node for now, and why; `until` asks to be asked again then at the latest."""

    __slots__ = ("reason", "until")

    def __init__(self, reason: Reason, until: float | None = None) -> None:
        self.reason: Final = reason
        self.until: Final = until
