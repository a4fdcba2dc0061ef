"""The cluster as the extender needs it: what nodes may draw, and what pods load them with.

Owns the three listeners (profiles, nodes, pods on nodes) and the stripped form of a node: whether a pod may go there
is kube-scheduler's question, so taints, labels and amounts stay with it.
"""

from collections.abc import Callable, Coroutine, Set
from typing import Any, Final

from wattloom.cluster.node import Node as EngineNode
from wattloom.kubernetes.client.api import Api
from wattloom.kubernetes.client.reflector import Reflector
from wattloom.kubernetes.extender.load import Loads
from wattloom.kubernetes.model import kinds
from wattloom.kubernetes.model.nodes import node_of
from wattloom.kubernetes.model.objects import MachineProfile, Node, Pod
from wattloom.kubernetes.state.driver import TimedDriver
from wattloom.kubernetes.state.informers import Debounced, Informer, read_once, slim_node, slim_pod
from wattloom.kubernetes.state.node_cache import NodeCache


class ExtenderState:
    """`start` returns once everything was read for the first time."""

    def __init__(
        self,
        api: Api,
        driver: TimedDriver,
        *,
        assume_s: float,
        changed: Callable[[str], None],
        freed: Callable[[str], None],
    ) -> None:
        """`changed` is told of nodes that may be of another machine now, `freed` of those on which, or because of
        which, there may be room that was not there before."""
        self.loads: Final = Loads(
            driver, lambda name: self.nodes.counts(name), assume_s=assume_s, freed=freed, heard=lambda: watch.heard
        )
        pods = self.loads.pods
        self.nodes: Final = NodeCache(driver, here=pods.node_here, left=pods.node_left, busy=pods.busy, form=bare_node)
        self.synced = False
        self._changed, self._freed = changed, freed
        self._told: Final = driver.engine.ledger.nodes
        """Nodes as the engine knows them."""
        self._profiles_soon: Final = Debounced(self._profiles_changed)
        watch = Reflector(api, kinds.PODS, Informer(self._pod), fields=kinds.ON_NODES, slim=slim_pod)
        self.reflectors: Final[list[Reflector[Any]]] = [
            Reflector(api, kinds.PROFILES, Informer(self._profile)),
            Reflector(api, kinds.NODES, Informer(self._node), slim=slim_node),
            watch,
        ]

    async def start(self, spawn: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        """Read everything, in order. Raises what the API server does not allow."""
        for reflector in self.reflectors:
            spawn(reflector.run())
            await read_once(reflector)
            self._profiles_soon.now()
        self.synced = True

    @property
    def failing_s(self) -> float:
        """For how long something could not be heard of."""
        return max(each.failing_s for each in self.reflectors)

    def _pod(self, pod: Pod, there: bool) -> None:
        (self.loads.changed if there else self.loads.deleted)(pod)

    def _node(self, node: Node, there: bool) -> None:
        name = node.metadata.name
        before = self._told.get(name)
        if there:
            self.nodes.changed(node)
            self._changed(name)
            if self._told.get(name) != before:
                self._freed(name)
        else:
            self.nodes.deleted(name)
            if self._told:  # what it drew is left to the others
                self._freed(next(iter(self._told)))

    def _profile(self, profile: MachineProfile, there: bool) -> None:
        if there:
            self.nodes.profile_changed(profile)
        else:
            self.nodes.profile_deleted(profile.metadata.name)
        self._profiles_soon.later()

    def _profiles_changed(self) -> None:
        before = dict(self._told)
        self.nodes.refresh()
        for name in self.nodes.objects:
            self._changed(name)
        different = next((name for name, node in self._told.items() if node != before.get(name)), None)
        if different is not None:
            self._freed(different)


def bare_node(node: Node, machine: str, own: Set[str], cap_w: float | None) -> EngineNode:
    """What is left of a node if only its power counts."""
    whole = node_of(node, machine, own, cap_w)
    return EngineNode(name=whole.name, machine=machine, cpu=whole.cpu, memory=0, cap_w=cap_w)
