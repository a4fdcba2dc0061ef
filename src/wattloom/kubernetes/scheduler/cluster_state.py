"""The cluster as the API server tells it, turned into the engine's events.

Owns the listeners of all kinds of objects and the order in which they are first read: what nodes and pods refer to,
then nodes, then pods. Decides and binds nothing.
"""

from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from wattloom.kubernetes.client.api import Api
from wattloom.kubernetes.client.reflector import HasMeta, Reflector
from wattloom.kubernetes.model import kinds
from wattloom.kubernetes.model.objects import MachineProfile, Node, Pod
from wattloom.kubernetes.model.storage_cache import StorageCache
from wattloom.kubernetes.model.templates import Templates
from wattloom.kubernetes.model.unsupported import Unsupported
from wattloom.kubernetes.state.driver import TimedDriver
from wattloom.kubernetes.state.informers import Debounced, Informer, read_once, slim_node, slim_pod
from wattloom.kubernetes.state.node_cache import NodeCache
from wattloom.kubernetes.state.pod_cache import PodCache
from wattloom.kubernetes.state.pod_entry import PodEntry

T = TypeVar("T", bound=HasMeta)


class ClusterState:
    """All reflectors, and what they keep in step. `start` returns once everything was read for the first time."""

    def __init__(
        self,
        api: Api,
        scheduler: str,
        driver: TimedDriver,
        *,
        ready: Callable[[PodEntry], None],
        not_followed: Callable[[PodEntry, Unsupported], None],
        node_changed: Callable[[str], None] = lambda name: None,
    ) -> None:
        """`node_changed` is told of nodes that are, or may be of a machine that is, different now."""
        self.storage: Final = StorageCache()
        self.pods: Final = PodCache(
            driver,
            Templates(self.storage),
            ours=lambda pod: pod.spec.scheduler_name == scheduler,
            node_counts=lambda name: self.nodes.counts(name),
            settled=lambda name: self.nodes.settled(name),
            ready=ready,
            not_followed=not_followed,
        )
        self.nodes: Final = NodeCache(driver, here=self.pods.node_here, left=self.pods.node_left, busy=self.pods.busy)
        self._world_soon: Final = Debounced(self.pods.world_changed)
        self._profiles_soon: Final = Debounced(self._profiles_changed)
        self._node_changed = node_changed
        self._stages: Final = self._reflectors(api)
        self.synced = False

    @property
    def reflectors(self) -> list[Reflector[Any]]:
        return [each for stage in self._stages for each in stage]

    async def start(self, spawn: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        """Read everything, in order. Raises what the API server does not allow."""
        for stage in self._stages:
            for reflector in stage:
                spawn(reflector.run())
            for reflector in stage:
                await read_once(reflector)
            self._profiles_soon.now()
            self._world_soon.now()
        self.synced = True

    def _reflectors(self, api: Api) -> tuple[tuple[Reflector[Any], ...], ...]:
        storage = self.storage
        around: tuple[Reflector[Any], ...] = (
            Reflector(api, kinds.NAMESPACES, self._informer(storage.namespaces)),
            Reflector(api, kinds.VOLUMES, self._informer(storage.volumes)),
            Reflector(api, kinds.CLASSES, self._informer(storage.classes)),
            Reflector(api, kinds.CSI_NODES, self._informer(storage.csi_nodes)),
            Reflector(api, kinds.CSI_DRIVERS, self._informer(storage.csi_drivers)),
            Reflector(api, kinds.CLAIMS, Informer(self._claim)),
            Reflector(api, kinds.PROFILES, Informer(self._profile)),
        )
        nodes = Reflector(api, kinds.NODES, Informer(self._node), slim=slim_node)
        pods = Reflector(api, kinds.PODS, Informer(self._pod), fields=kinds.UNENDED, slim=slim_pod)
        return around, (nodes,), (pods,)

    def _informer(self, where: dict[str, T]) -> Informer[T]:
        """A listener that keeps what pods refer to."""

        def keep(one: T, there: bool) -> None:
            name = one.metadata.name
            if there:
                where[name] = one
            else:
                where.pop(name, None)
            self._world_soon.later()

        return Informer(keep)

    def _pod(self, pod: Pod, there: bool) -> None:
        (self.pods.changed if there else self.pods.deleted)(pod)

    def _node(self, node: Node, there: bool) -> None:
        if there:
            self.nodes.changed(node)
            self._node_changed(node.metadata.name)
        else:
            self.nodes.deleted(node.metadata.name)

    def _profile(self, profile: MachineProfile, there: bool) -> None:
        if there:
            self.nodes.profile_changed(profile)
        else:
            self.nodes.profile_deleted(profile.metadata.name)
        self._profiles_soon.later()

    def _profiles_changed(self) -> None:
        self.nodes.refresh()
        for name in self.nodes.objects:
            self._node_changed(name)

    def _claim(self, claim: Any, there: bool) -> None:
        key = claim.metadata.namespace, claim.metadata.name
        if there:
            self.storage.claims[key] = claim
        else:
            self.storage.claims.pop(key, None)
        self._world_soon.later()
