"""What a pod asks of its node, as kube-scheduler 1.37 counts it.

Owns the arithmetic over containers, init containers, sidecars, overhead, pod-level resources and resizing in place.
Amounts are kept in billionths until the end, because Kubernetes rounds once, up. Limits count for nothing: where they
stand for requests, the API server has written the requests.
"""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from wattloom.errors import InputError
from wattloom.kubernetes.model.objects import Amounts, Container, ContainerStatus, Pod
from wattloom.kubernetes.model.quantity import MOST, milli, nanos, value

Nanos = dict[str, int]
Share = Callable[[Container], Amounts | None]
"""Which of its figures a container is counted with."""


class Asked(msgspec.Struct, frozen=True, gc=False):
    """Whole numbers, as the scheduler compares them."""

    cpu: int
    """Millicores."""
    memory: int
    resources: tuple[tuple[str, int], ...]
    """Everything else that is counted, `pods` among it, by name; without zeros."""


def asked_by(pod: Pod) -> Asked:
    """What a pod without a node asks for. InputError: more than can be counted, which the API server takes."""
    amounts = _containers(pod, lambda container: container.resources.requests)
    _pod_level(amounts, _spec_requests(pod))
    _add(amounts, pod.spec.overhead)
    return _asked(amounts)


def held_by(pod: Pod) -> Asked:
    """What a pod on a node takes there: while it is resized, the most of what is wanted, granted and in force.

    InputError as with `asked_by`."""
    if not _tells_resources(pod):
        return asked_by(pod)
    refused = _resize_refused(pod)
    amounts = Nanos() if refused else _containers(pod, lambda container: container.resources.requests)
    for other in _granted(pod, refused):
        _most(amounts, other)
    status, requests = pod.status, _spec_requests(pod)
    if requests is not None and status.resources is not None:
        level = Nanos() if refused else _read(requests)
        _most(level, _read(status.resources.requests))
        _most(level, _read(status.allocated_resources))
        _override(amounts, level)
    else:
        _pod_level(amounts, requests)
    _add(amounts, pod.spec.overhead)
    return _asked(amounts)


def counted(name: str) -> bool:
    """Whether the scheduler counts a resource beside CPU, memory and the number of pods."""
    if name == "ephemeral-storage" or name.startswith(("hugepages-", "attachable-volumes-")):
        return True
    return "/" in name and (not name.startswith("requests.") or "kubernetes.io/" in name)


def in_pod_level(name: str) -> bool:
    """Whether a resource may be asked for by the pod as a whole."""
    return name in ("cpu", "memory") or name.startswith("hugepages-")


# -- containers ------------------------------------------------------------------------------------------------------


def _containers(pod: Pod, share: Share) -> Nanos:
    """All together: what runs at once is added up, and the largest moment of starting counts if it is more."""
    total = Nanos()
    for container in pod.spec.containers:
        _add(total, share(container))
    sidecars, starting = Nanos(), Nanos()
    for container in pod.spec.init_containers:
        if container.restart_policy == "Always":
            _add(total, share(container))
            _add(sidecars, share(container))
            _most(starting, sidecars)
        else:
            moment = dict(sidecars)
            _add(moment, share(container))
            _most(starting, moment)
    _most(total, starting)
    return total


def _granted(pod: Pod, refused: bool) -> Iterable[Nanos]:
    """What the node has granted, and what is in force there."""
    status = pod.status
    in_force = status.resources.requests if status.resources is not None else None
    if status.allocated_resources is not None and in_force is not None:
        return _read(status.allocated_resources), _read(in_force)
    told = {each.name: each for each in (*status.init_container_statuses, *status.container_statuses)}
    granted = _containers(pod, lambda container: _allocated(container, told, refused))
    return granted, _containers(pod, lambda container: _in_force(container, told, refused))


def _allocated(container: Container, told: Mapping[str, ContainerStatus], refused: bool) -> Amounts | None:
    status = told.get(container.name)
    if status is not None and status.allocated_resources is not None:
        return status.allocated_resources
    return None if refused else container.resources.requests


def _in_force(container: Container, told: Mapping[str, ContainerStatus], refused: bool) -> Amounts | None:
    status = told.get(container.name)
    if status is not None and status.resources is not None and status.resources.requests is not None:
        return status.resources.requests
    return _allocated(container, told, refused)


def _tells_resources(pod: Pod) -> bool:
    status = pod.status
    if status.resources is not None or status.allocated_resources is not None or _resize_refused(pod):
        return True
    statuses = (*status.container_statuses, *status.init_container_statuses)
    return any(each.resources is not None or each.allocated_resources is not None for each in statuses)


def _resize_refused(pod: Pod) -> bool:
    pending = next((each for each in pod.status.conditions if each.type == "PodResizePending"), None)
    return pending is not None and pending.reason == "Infeasible"


# -- sums ------------------------------------------------------------------------------------------------------------


def _spec_requests(pod: Pod) -> Amounts | None:
    """Of the pod as a whole; None: it does not ask as a whole."""
    requests = pod.spec.resources.requests if pod.spec.resources is not None else None
    return requests if requests and any(map(in_pod_level, requests)) else None


def _pod_level(amounts: Nanos, requests: Amounts | None) -> None:
    if requests is not None:
        _override(amounts, _read(requests))


def _override(amounts: Nanos, level: Nanos) -> None:
    amounts.update({name: amount for name, amount in level.items() if in_pod_level(name)})


def _read(amounts: Amounts | None) -> Nanos:
    return {name: nanos(text) for name, text in amounts.items()} if amounts else {}


def _add(total: Nanos, amounts: Amounts | None) -> None:
    if amounts:
        for name, text in amounts.items():
            total[name] = total.get(name, 0) + nanos(text)


def _most(total: Nanos, other: Nanos) -> None:
    for name, amount in other.items():
        if amount > total.get(name, -1):
            total[name] = amount


def _asked(amounts: Nanos) -> Asked:
    rest = [(name, value(amount)) for name, amount in amounts.items() if amount > 0 and counted(name)]
    asked = Asked(milli(amounts.get("cpu", 0)), value(amounts.get("memory", 0)), tuple(sorted([("pods", 1), *rest])))
    for name, amount in (("cpu", asked.cpu), ("memory", asked.memory), *asked.resources):
        if amount > MOST:
            raise InputError(name, f"{name} is more than can be counted")
    return asked
