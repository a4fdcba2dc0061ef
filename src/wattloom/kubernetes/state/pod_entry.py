"""One pod as the cache keeps it, from its creation to its end.

Owns the stages of that and what is remembered in each. Tells nobody anything.
"""

from enum import IntEnum
from typing import Final, Self

from wattloom.cluster.reasons import Reason
from wattloom.kubernetes.client.event_aggregator import Pod as Reference
from wattloom.kubernetes.model.objects import Pod
from wattloom.workload.task import Task


class At(IntEnum):
    """Where a pod is in its life."""

    OTHERS = -1
    """Without a node, and not ours to place."""
    ASIDE = 0
    """Without a node, and the engine does not know it: gated, not followed, or nobody decides yet."""
    QUEUED = 1
    """The engine has it and has no place for it."""
    BINDING = 2
    """The engine has a place for it; the API server does not know yet, or has not said so."""
    ON_NODE = 3
    STRANDED = 4
    """On a node that does not exist."""


class PodEntry:
    """`task` is as the engine was told last; a pod that changes in what it asks for is another task to the engine."""

    __slots__ = (
        "at",
        "attempt",
        "condition",
        "created",
        "generation",
        "leaving",
        "node",
        "note",
        "parked",
        "pod",
        "priority",
        "reference",
        "running_since",
        "runtime",
        "task",
        "told",
        "unwanted",
        "waited",
        "waits",
    )

    def __init__(self, pod: Pod) -> None:
        meta = pod.metadata
        self.reference: Final = Reference(meta.namespace, meta.name, meta.uid)
        self.created: Final = meta.creation_timestamp or ""
        self.priority = pod.spec.priority or 0
        self.pod: Pod | None = pod
        """As long as it may have to be read again."""
        self.at = At.ASIDE
        self.task: Task | None = None
        self.generation = 1
        self.attempt = 0
        self.condition = ""
        """What its condition says, or will: why it waits."""
        self.node = ""
        self.note = ""
        """Words for its event, once the engine has placed it."""
        self.told = ""
        """The reason its owner was last told why it waits."""
        self.parked: Task | None = None
        """What it was to the engine while its node existed."""
        self.leaving = False
        """Being removed from its node; told to the engine, unless parked."""
        self.unwanted = False
        """Deleted while its binding was under way."""
        self.waits: tuple[Reason, str] | None = None
        """Why, as the engine said."""
        self.waited = False
        """Whether it was seen before it ran: else nobody knows since when it does."""
        self.running_since: float | None = None
        self.runtime = ""
        """How long it runs, as its owner declared when the engine was told."""

    @classmethod
    def of_others(cls, pod: Pod) -> Self:
        """That it is there is enough."""
        entry = cls(pod)
        entry.at, entry.pod = At.OTHERS, None
        return entry

    @property
    def order(self) -> tuple[int, str, str, str]:
        """Who goes first: higher priority, then the older."""
        return -self.priority, self.created, self.reference.namespace, self.reference.name
