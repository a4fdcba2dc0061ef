"""What our engine finds feasible on the same objects: each node is proposed for the pod, and the engine says yes or no.

Goes the way a real decision goes (a policy proposes, the engine checks and commits), so that what is compared is what
would happen. Placements are taken back at once.
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import msgspec

from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import Site
from wattloom.energy.forecast import Unknown
from wattloom.kubernetes.model.nodes import node_of, own_labels
from wattloom.kubernetes.model.objects import Namespace, Node, Pod
from wattloom.kubernetes.model.pods import ended, found_of, task_of
from wattloom.kubernetes.model.profiles import Profiles
from wattloom.kubernetes.model.storage_cache import StorageCache
from wattloom.kubernetes.model.storage_objects import PersistentVolume, PersistentVolumeClaim
from wattloom.kubernetes.model.unsupported import Unsupported
from wattloom.policies.answers import Proposal, Refusal
from wattloom.policies.protocol import Policy
from wattloom.policies.view import Ask, View
from wattloom.prediction.placement_estimate import PlacementEstimate
from wattloom.scheduling import events as ev
from wattloom.scheduling.engine import Engine
from wattloom.scheduling.instructions import Place
from wattloom.scheduling.invariants import check
from wattloom.workload.function import Function
from wattloom.workload.task import Task


class Stubborn(Policy):
    """Proposes the one node it is told, whatever it sees there."""

    name: ClassVar[str] = "stubborn"
    summary: ClassVar[str] = "one node, for comparing filters"

    def __init__(self) -> None:
        self.node = ""

    def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
        return Proposal(self.node, 0.0) if self.node else Refusal(Reason.NO_ROOM)

    def judge(self, ask: Ask, site: Site, estimate: PlacementEstimate, view: View) -> float | Unknown | Reason:
        return 0.0


class OwnAnswer:
    """An engine with the nodes and the placed pods of a cluster."""

    def __init__(
        self, nodes: Iterable[Mapping[str, Any]], pods: Iterable[Mapping[str, Any]], storage: StorageCache
    ) -> None:
        self._policy = Stubborn()
        self._engine = Engine(self._policy)
        self._storage = storage
        self._functions: set[str] = set()
        self._asked = 0
        self._nodes = [msgspec.convert(body, Node) for body in nodes]
        own, profiles = own_labels(self._nodes), Profiles()
        for node in self._nodes:
            machine = profiles.of(node).machine
            self._tell(ev.MachineDefined(0.0, machine))
            self._tell(ev.NodeJoined(0.0, node_of(node, machine.name, own)))
        for body in pods:
            self._find(msgspec.convert(body, Pod))
        check(self._engine)

    def feasible(self, body: Mapping[str, Any]) -> frozenset[str] | Unsupported:
        """The nodes the engine would take for this pod now."""
        task = task_of(msgspec.convert(body, Pod), self._storage)
        if isinstance(task, Unsupported):
            return task
        self._know(task)
        names = (node.metadata.name for node in self._nodes)
        return frozenset(name for name in names if self._fits(task, name))

    def _fits(self, task: Task, node: str) -> bool:
        self._asked += 1
        one = msgspec.structs.replace(task, id=f"{task.id}@{self._asked}")
        self._policy.node = node
        placed = [each for each in self._tell(ev.TaskSubmitted(0.0, one)) if isinstance(each, Place)]
        self._policy.node = ""
        for place in placed:
            self._tell(ev.InstructionFailed(0.0, "place", place.task, place.attempt, place.node))
        self._tell(ev.CancelRequested(0.0, one.id))
        return bool(placed)

    def _find(self, pod: Pod) -> None:
        if ended(pod) or not pod.spec.node_name:
            return
        task = found_of(pod, self._storage)
        self._know(task)
        self._tell(ev.TaskFound(0.0, task, pod.spec.node_name))
        if pod.metadata.deletion_timestamp is not None:
            self._tell(ev.TaskLeaving(0.0, task.id))

    def _know(self, task: Task) -> None:
        if task.function not in self._functions:
            self._functions.add(task.function)
            self._tell(ev.FunctionDefined(0.0, Function(task.function)))

    def _tell(self, event: ev.AnyEvent) -> list[Any]:
        return list(self._engine.handle(event))


def world_of(
    namespaces: Iterable[Mapping[str, Any]], claims: Iterable[Mapping[str, Any]], volumes: Iterable[Mapping[str, Any]]
) -> StorageCache:
    """What pods refer to, from the bodies of objects."""
    storage = StorageCache()
    for namespace in (msgspec.convert(body, Namespace) for body in namespaces):
        storage.namespaces[namespace.metadata.name] = namespace
    for claim in (msgspec.convert(body, PersistentVolumeClaim) for body in claims):
        storage.claims[claim.metadata.namespace, claim.metadata.name] = claim
    for volume in (msgspec.convert(body, PersistentVolume) for body in volumes):
        storage.volumes[volume.metadata.name] = volume
    return storage
