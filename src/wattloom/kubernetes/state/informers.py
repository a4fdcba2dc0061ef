"""What listens to reflectors: the object and whether it is there, in a form that is cheap to keep.

Owns these small parts, which the scheduler and the extender share. Knows no kind of object but pods and nodes, and
of those only how little of them is enough to know them again.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from wattloom.kubernetes.client.errors import Forbidden, NotFound, Unauthorized
from wattloom.kubernetes.client.reading import Unreadable
from wattloom.kubernetes.client.reflector import HasMeta, Reflector
from wattloom.kubernetes.model.objects import Meta, Node, Pod, PodSpec

LOG: Final = logging.getLogger(__name__)
SOON_S: Final = 0.2
"""Changes that cost a look at everything are gathered this long."""
OURS: Final = "wattloom.dev"
INSTALL: Final = "wattloom kubernetes manifests --what crd | kubectl apply -f -"
T = TypeVar("T", bound=HasMeta)


class Informer(Generic[T]):
    """A reflector's listener: the object, and whether it is there."""

    def __init__(self, take: Callable[[T, bool], None]) -> None:
        self._take = take

    def changed(self, object: T, old: T | None) -> None:
        self._take(object, True)

    def deleted(self, object: T) -> None:
        self._take(object, False)

    def unreadable(self, object: Unreadable) -> None:
        """The reflector has logged it."""


class Debounced:
    """Something to do once after many changes."""

    def __init__(self, do: Callable[[], None]) -> None:
        self._do = do
        self._timer: asyncio.TimerHandle | None = None

    def later(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SOON_S, self.now)

    def now(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._do()


async def read_once(reflector: Reflector[Any]) -> None:
    """Until it was read once. A kind that the API server does not have (our own, before it is installed) is empty."""
    while not reflector.synced.is_set():
        failure = reflector.failure
        if isinstance(failure, Forbidden | Unauthorized):
            raise failure
        if isinstance(failure, NotFound):
            LOG.warning("%s are not known to this cluster%s", reflector.resource, _remedy(reflector))
            return
        try:
            async with asyncio.timeout(0.1):
                await reflector.synced.wait()
        except TimeoutError:
            continue


def _remedy(reflector: Reflector[Any]) -> str:
    return f": `{INSTALL}`" if reflector.resource.group == OURS else ""


def slim_pod(pod: Pod) -> Pod:
    """Whoever listens keeps what it needs: here it is enough to know the pod again."""
    meta = pod.metadata
    known = Meta(name=meta.name, namespace=meta.namespace, uid=meta.uid, resource_version=meta.resource_version)
    return Pod(known, PodSpec(node_name=pod.spec.node_name))


def slim_node(node: Node) -> Node:
    meta = node.metadata
    return Node(Meta(name=meta.name, uid=meta.uid, resource_version=meta.resource_version))
