"""Nodes and pods by the thousand: bodies of fake ones, and making them fast.

Fake nodes come ready, with their resources, and carry the annotation by which kwok plays them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.beds.kubernetes.client import THREADS, Api
from tests.beds.kubernetes.parts import PLAYED

CALM = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


def fake_node(
    name: str,
    *,
    cpu: str = "8",
    memory: str = "32Gi",
    pods: int = 110,
    resources: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    unschedulable: bool = False,
    arch: str = "amd64",
) -> dict[str, Any]:
    """The body of a node. `resources` are counted ones beside cpu, memory and pods."""
    amounts = {"cpu": cpu, "memory": memory, "pods": str(pods), **(resources or {})}
    own = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": arch, **(labels or {})}
    spec: dict[str, Any] = {"taints": [dict(taint) for taint in taints]} if taints else {}
    if unschedulable:
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": own, "annotations": {PLAYED[0]: PLAYED[1], **(annotations or {})}},
        "spec": spec,
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [_condition("Ready", "True"), *(_condition(kind, "False") for kind in CALM)],
            "addresses": [{"type": "Hostname", "address": name}],
            "nodeInfo": _node_info(arch),
            "phase": "Running",
        },
    }


def fake_pod(
    name: str,
    *,
    cpu: str | None = "100m",
    memory: str | None = "64Mi",
    resources: Mapping[str, str] | None = None,
    scheduler: str = "default-scheduler",
    node: str | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The body of a pod with one container. `node` binds it from the start; `spec` adds to or replaces its spec."""
    asked = {"cpu": cpu, "memory": memory, **(resources or {})}
    requests = {kind: amount for kind, amount in asked.items() if amount is not None}
    container = {"name": "main", "image": "none", "resources": {"requests": requests, "limits": dict(resources or {})}}
    whole: dict[str, Any] = {
        "containers": [container],
        "schedulerName": scheduler,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
    }
    if node is not None:
        whole["nodeName"] = node
    metadata = {"name": name, "labels": dict(labels or {}), "annotations": dict(annotations or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**whole, **(spec or {})}}


def add_nodes(api: Api, bodies: Iterable[Mapping[str, Any]], threads: int = THREADS) -> list[Any]:
    """Create the nodes, several at a time; what the API server made of them, in the same order."""
    return api.post_many((("/api/v1/nodes", body) for body in bodies), threads)


def add_pods(api: Api, namespace: str, bodies: Iterable[Mapping[str, Any]], threads: int = THREADS) -> list[Any]:
    """Create the pods, several at a time. Never give a name again while kwok plays: it deletes late, by name."""
    return api.post_many(((f"/api/v1/namespaces/{namespace}/pods", body) for body in bodies), threads)


def add_namespace(api: Api, name: str) -> str:
    """Create a namespace and return its name."""
    api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


def clear(api: Api) -> None:
    """Remove every pod and every node, at once: no grace, no controller needed."""
    for namespace in {pod["metadata"]["namespace"] for pod in api.items("/api/v1/pods")}:
        api.delete(f"/api/v1/namespaces/{namespace}/pods", gracePeriodSeconds=0)
    api.delete("/api/v1/nodes", gracePeriodSeconds=0)


def _condition(kind: str, status: str) -> dict[str, str]:
    return {"type": kind, "status": status, "reason": "Played", "message": "a fake node"}


def _node_info(arch: str) -> dict[str, str]:
    unknown = ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion")
    named = {"kubeletVersion": "fake", "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": arch}
    return {**dict.fromkeys(unknown, ""), **named}
