"""What the rules know of one shape: where its tasks are, who counts them, and what its own rules ask.

Owns the record. `rules` fills it in.
"""

from typing import Final

from wattloom.cluster.matching import looks_at
from wattloom.cluster.task_group import DomainCount, TaskGroup
from wattloom.cluster.topology import EVERY
from wattloom.workload.constraints import Constraints
from wattloom.workload.shape import Shape

NO_CONSTRAINTS: Final = Constraints()


class ShapeConstraints:
    """One shape among the others."""

    __slots__ = (
        "affinity",
        "affinity_to_itself",
        "allowed",
        "anti_affinity",
        "asks",
        "asks_names",
        "constraints",
        "counted_by",
        "homes",
        "kept_by",
        "keys",
        "labels",
        "leaving",
        "namespace",
        "node_affinity",
        "ports",
        "refused",
        "refused_at",
        "ruled",
        "shape",
        "spread",
        "stamp",
        "unwanted",
        "volumes",
        "worked_out_at",
    )

    def __init__(self, shape: Shape) -> None:
        self.shape: Final = shape
        requirements = shape.requirements
        self.constraints: Final = requirements.constraints if requirements.constraints is not None else NO_CONSTRAINTS
        self.labels: Final = dict(requirements.task_labels)
        self.namespace: Final = requirements.namespace
        self.homes: dict[str, int] = {}
        """Nodes that its tasks are on, and how many."""
        self.leaving: dict[str, int] = {}
        """How many of them are being removed."""
        self.counted_by: list[TaskGroup] = []
        """TaskGroups that its tasks belong to."""
        self.kept_by: list[tuple[str, TaskGroup]] = []
        """TaskGroups whose tasks keep its tasks away, and by which label the domains are told apart."""
        self.unwanted: list[TaskGroup] = []
        """TaskGroups that its tasks want to be apart from."""
        constraints = self.constraints
        looks = looks_at(constraints, requirements.labels)
        self.keys: Final = looks[0]
        """Labels of nodes that its selectors and terms ask for."""
        self.asks_names: Final = looks[1]
        """Whether they ask for nodes by name."""
        self.ruled: Final = bool(
            self.asks_names
            or constraints.ports
            or constraints.spread
            or constraints.affinity
            or constraints.anti_affinity
        )
        """Whether nodes of one class may differ for it, whatever labels they have."""
        self.worked_out_at: int = -1
        """Of which revision of nodes the following are true."""
        self.asks: list[TaskGroup] = []
        """TaskGroups that its own rules ask for."""
        self.node_affinity: int = EVERY
        self.volumes: int = EVERY
        self.ports: list[DomainCount] = []
        self.spread: list[tuple[DomainCount, int, bool]] = []
        """Counts, by how much a domain may be ahead of the emptiest, and whether that counts as having none."""
        self.affinity: list[DomainCount] = []
        self.affinity_to_itself: bool = False
        """Whether its first task may go anywhere: it is one of those that it wants."""
        self.anti_affinity: list[DomainCount] = []
        self.stamp: int = -1
        """At which stamp of the rules `allowed` was worked out."""
        self.allowed: int = EVERY
        """The nodes that the rules let it go to."""
        self.refused: int = EVERY
        """The nodes that were allowed, and did not do, when its lane was last refused; less those lost since."""
        self.refused_at: int = -1
        """Of which revision of nodes that is true."""

    @property
    def outdated(self) -> bool:
        """Whether `allowed` may be another now: somebody came or went whom its rules, or those against it, count."""
        stamp = self.stamp
        if stamp < 0:
            return True
        for group in self.asks:
            if group.shifted_at > stamp:
                return True
        return any(group.shifted_at > stamp for _, group in self.kept_by)
