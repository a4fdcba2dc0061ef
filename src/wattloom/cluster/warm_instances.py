"""Warm instances: functions that are loaded on a node and wait for a call.

Owns how many there are by node, function and build, and how many are on their way to be or not to be there. Who asks
for them is a policy, who makes them a backend.
"""

from typing import Final

InstanceKey = tuple[str, str, str]
"""Node, function, build."""


class WarmInstances:
    """Counts; whatever is not in them is 0."""

    def __init__(self) -> None:
        self.ready: Final[dict[InstanceKey, int]] = {}
        self.coming: Final[dict[InstanceKey, int]] = {}
        """Asked for and not reported yet."""
        self.going: Final[dict[InstanceKey, int]] = {}
        """Asked to go and not gone yet."""

    def count(self, node: str, function: str, variant: str = "default") -> int:
        """How many are ready."""
        return self.ready.get((node, function, variant), 0)

    def expected(self, node: str, function: str, variant: str = "default") -> int:
        """How many there will be when all that was asked for is done."""
        key = (node, function, variant)
        return self.ready.get(key, 0) + self.coming.get(key, 0) - self.going.get(key, 0)

    def node_lost(self, node: str) -> None:
        """Nothing is loaded there any more."""
        for counts in (self.ready, self.coming, self.going):
            for key in [key for key in counts if key[0] == node]:
                del counts[key]


def add(counts: dict[InstanceKey, int], key: InstanceKey, by: int) -> None:
    """One more or one less; not less than none."""
    count = counts.get(key, 0) + by
    if count > 0:
        counts[key] = count
    else:
        counts.pop(key, None)
