"""Pods made from one template are read once.

Owns what was read, by what pods of one template have in common. Equal pods get the very same requirements, which the
engine recognises at once. What depends on more than the pod itself (claims, labels of namespaces) is read each time.
"""

from typing import Final

import msgspec

from wattloom.kubernetes.model.objects import Affinity, Pod, PodSpec, Volume
from wattloom.kubernetes.model.pods import found_of, function_of, task_id, task_of
from wattloom.kubernetes.model.storage_cache import StorageCache
from wattloom.kubernetes.model.unsupported import Unsupported
from wattloom.workload.task import Task

MOST: Final = 4096


class Templates:
    """Tasks of pods, waiting and on nodes."""

    def __init__(self, storage: StorageCache) -> None:
        self._storage = storage
        self._known: dict[bytes, Task | Unsupported] = {}
        self._encode: Final = msgspec.json.Encoder().encode

    def waiting(self, pod: Pod) -> Task | Unsupported:
        """`pods.task_of`, cheaper."""
        spec, meta = pod.spec, pod.metadata
        if depends_on_world(pod) or any(map(Volume.in_tree, spec.volumes)):
            return task_of(pod, self._storage)
        key = b"w" + self._encode((meta.namespace, _without_volumes(spec), meta.labels, meta.annotations))
        known = self._known.get(key)
        if known is None:
            known = self._keep(key, task_of(pod, self._storage))
        return known if isinstance(known, Unsupported) else _of(known, pod)

    def found(self, pod: Pod) -> Task:
        """`pods.found_of`, cheaper."""
        spec, meta, status = pod.spec, pod.metadata, pod.status
        if looks_at_namespaces(spec.affinity):
            return found_of(pod, self._storage)
        asks = (spec.containers, spec.init_containers, spec.overhead, spec.resources, spec.priority, spec.affinity)
        containers = [
            (each.name, each.allocated_resources, each.resources)
            for each in (*status.container_statuses, *status.init_container_statuses)
        ]
        has = (containers, status.allocated_resources, status.resources)
        key = b"f" + self._encode((meta.namespace, asks, has, status.conditions, meta.labels, meta.annotations))
        known = self._known.get(key)
        if known is None:
            known = self._keep(key, found_of(pod, self._storage))
        assert isinstance(known, Task)
        return _of(known, pod)

    def _keep(self, key: bytes, task: Task | Unsupported) -> Task | Unsupported:
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[key] = task
        return task


def depends_on_world(pod: Pod) -> bool:
    """Whether what a pod that waits means depends on claims and volumes, or on namespaces.

    Most volumes do not matter: nearly every pod has one with the token of its service account."""
    spec = pod.spec
    claims = any(each.persistent_volume_claim is not None or each.ephemeral is not None for each in spec.volumes)
    return claims or looks_at_namespaces(spec.affinity)


def _without_volumes(spec: PodSpec) -> PodSpec:
    """Their names differ from pod to pod."""
    return msgspec.structs.replace(spec, volumes=()) if spec.volumes else spec


def looks_at_namespaces(affinity: Affinity | None) -> bool:
    """Whether what it means depends on the labels of namespaces."""
    if affinity is None:
        return False
    kinds = (affinity.pod_affinity, affinity.pod_anti_affinity)
    return any(term.namespace_selector is not None for kind in kinds if kind is not None for term in kind.required)


def _of(template: Task, pod: Pod) -> Task:
    return msgspec.structs.replace(template, id=task_id(pod), function=function_of(pod))
