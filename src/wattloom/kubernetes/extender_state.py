"""The cluster as the extender needs it: what nodes may draw, and what pods load them with.

Owns the three listeners (profiles, nodes, pods on nodes) and the stripped form of a node: whether a pod may go there
is kube-scheduler's question, so taints, labels and amounts stay with it.
"""

from collections.abc import Callable, Coroutine, Set
from typing import Any, Final

from wattloom.cluster.node import Node as EngineNode
from wattloom.kubernetes import kinds
from wattloom.kubernetes.api import Api
from wattloom.kubernetes.deciding import Deciding
from wattloom.kubernetes.extender_load import Loads
from wattloom.kubernetes.listening import Kept, Soon, read_once, slim_node, slim_pod
from wattloom.kubernetes.node_roll import NodeRoll
from wattloom.kubernetes.nodes import node_of
from wattloom.kubernetes.objects import MachineProfile, Node, Pod
from wattloom.kubernetes.reflector import Reflector

ON_NODES: Final = f"spec.nodeName!=,{kinds.UNENDED}"
"""Pods that wait come with kube-scheduler's questions: they need not be watched."""


class ExtenderState:
    """`start` returns once everything was read for the first time."""

    def __init__(
        self,
        api: Api,
        deciding: Deciding,
        *,
        assume_s: float,
        changed: Callable[[str], None],
        freed: Callable[[str], None],
    ) -> None:
        """`changed` is told of nodes that may be of another machine now, `freed` of those that load has left."""
        self.loads: Final = Loads(deciding, lambda name: self.nodes.counts(name), assume_s=assume_s, freed=freed)
        self.nodes: Final = NodeRoll(
            deciding, here=self.loads.node_here, left=self.loads.node_left, busy=lambda name: False, form=bare_node
        )
        self.synced = False
        self._changed = changed
        self._profiles_soon: Final = Soon(self._profiles_changed)
        self.reflectors: Final[list[Reflector[Any]]] = [
            Reflector(api, kinds.PROFILES, Kept(self._profile)),
            Reflector(api, kinds.NODES, Kept(self._node), slim=slim_node),
            Reflector(api, kinds.PODS, Kept(self._pod), fields=ON_NODES, slim=slim_pod),
        ]

    async def start(self, spawn: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        """Read everything, in order. Raises what the API server does not allow."""
        for reflector in self.reflectors:
            spawn(reflector.run())
            await read_once(reflector)
            self._profiles_soon.now()
        self.synced = True

    def _pod(self, pod: Pod, there: bool) -> None:
        (self.loads.changed if there else self.loads.deleted)(pod)

    def _node(self, node: Node, there: bool) -> None:
        name = node.metadata.name
        if there:
            self.nodes.changed(node)
            self._changed(name)
        else:
            self.nodes.deleted(name)

    def _profile(self, profile: MachineProfile, there: bool) -> None:
        if there:
            self.nodes.profile_changed(profile)
        else:
            self.nodes.profile_deleted(profile.metadata.name)
        self._profiles_soon.later()

    def _profiles_changed(self) -> None:
        self.nodes.refresh()
        for name in self.nodes.objects:
            self._changed(name)


def bare_node(node: Node, machine: str, own: Set[str], cap_w: float | None) -> EngineNode:
    """What is left of a node if only its power counts."""
    whole = node_of(node, machine, own, cap_w)
    return EngineNode(name=whole.name, machine=machine, cpu=whole.cpu, memory=0, cap_w=cap_w)
