"""The cluster and the pods of the Kubernetes benchmark: what a mixed cluster has, the same list for every scheduler.

Owns the mix. Every pod of it fits: what is measured is scheduling, not waiting.
"""

from collections.abc import Callable
from typing import Any

from tests.beds.kubernetes import fake_node, fake_pod

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
PROCESSORS = ("Intel Xeon Gold 6430", "AMD EPYC 9454", "AMD EPYC 7763", "Intel Xeon E5-2680 v4")
SIZES = (("16", "64Gi"), ("32", "128Gi"), ("16", "64Gi"), ("8", "32Gi"))
GPU = "nvidia.com/gpu"
GROUP = 20
"""Pods of one group that keep apart, or that want one port: fewer than the nodes they may go to."""
TOKEN = [
    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
]
BATCH = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}


def nodes(count: int) -> list[dict[str, Any]]:
    """Three zones, four kinds of machines, half with fast disks, a tenth for batch only, a tenth with GPUs."""
    return [_node(number) for number in range(count)]


def _node(number: int) -> dict[str, Any]:
    kind = number % len(PROCESSORS)
    cpu, memory = SIZES[kind]
    batch, gpu = number % 10 == 3, number % 10 == 7
    labels = {ZONE: f"zone-{number % 3}", "disk": "fast" if number // 2 % 2 else "plain", "rank": str(number % 5)}
    return fake_node(
        f"node-{number}",
        cpu=cpu,
        memory=memory,
        resources={GPU: "8"} if gpu else None,
        labels=labels | ({"dedicated": "batch"} if batch else {}),
        annotations={"wattloom.dev/cpu-model": PROCESSORS[kind]},
        taints=[BATCH] if batch else (),
    )


def pods(count: int, run: str, scheduler: str) -> list[dict[str, Any]]:
    """The list: of each hundred pods, so many of each kind. `run` makes the names fresh."""
    kinds = [kind for kind, share in MIX for _ in range(share)]
    # Kinds take turns (37 has no divisor in common with 100), as deployments of many teams do.
    return [_pod(number, kinds[number * 37 % len(kinds)], run, scheduler) for number in range(count)]


def bound(count: int, nodes: int) -> list[dict[str, Any]]:
    """Pods that somebody put on nodes before, spread evenly."""
    return [
        _described(fake_pod(f"bound-{number}", cpu="100m", node=f"node-{number % nodes}"), f"old-{number // 50}")
        for number in range(count)
    ]


def _pod(number: int, kind: Callable[[int], dict[str, Any]], run: str, scheduler: str) -> dict[str, Any]:
    made = kind(number)
    name, app = f"{run}-{number}", made.pop("app")
    return _described(fake_pod(name, scheduler=scheduler, **made), app)


def _described(pod: dict[str, Any], app: str) -> dict[str, Any]:
    """As pods of a deployment are: labels, an owner, an environment, the volume with the account's token."""
    pod["metadata"]["labels"] = {"app": app, "team": f"team-{len(app) % 7}", "pod-template-hash": "6d4cf56db6"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{app}-6d4cf56db6", "uid": app, "controller": True}
    pod["metadata"]["ownerReferences"] = [owner]
    container = pod["spec"]["containers"][0]
    container["env"] = [{"name": f"SETTING_{each}", "value": "some value"} for each in range(5)]
    access = f"kube-api-access-{pod['metadata']['name'][-5:]}"
    container["volumeMounts"] = [{"name": access, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]
    pod["spec"]["serviceAccountName"] = "default"
    pod["spec"]["volumes"] = [{"name": access, "projected": {"sources": TOKEN}}]
    return pod


# -- the kinds ---------------------------------------------------------------------------------------------------------


def _plain(number: int) -> dict[str, Any]:
    size = number % 12
    return {"app": f"plain-{size}", "cpu": f"{50 + 25 * size}m", "memory": f"{64 * (1 + size % 4)}Mi"}


def _selecting(number: int) -> dict[str, Any]:
    return {"app": f"disk-{number % 4}", "spec": {"nodeSelector": {"disk": "fast"}}}


def _affine(number: int) -> dict[str, Any]:
    some = [
        {"key": ZONE, "operator": "In", "values": ["zone-0", "zone-1"]},
        {"key": "rank", "operator": "Gt", "values": ["1"]},
    ]
    terms = [
        {"matchExpressions": some},
        {"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["plain"]}]},
    ]
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"app": f"affine-{number % 4}", "spec": {"affinity": {"nodeAffinity": rule}}}


def _tolerating(number: int) -> dict[str, Any]:
    toleration = {"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}
    return {"app": f"batch-{number % 4}", "spec": {"tolerations": [toleration]}}


def _dedicated(number: int) -> dict[str, Any]:
    spec = {"nodeSelector": {"dedicated": "batch"}, "tolerations": [{"key": "dedicated", "operator": "Exists"}]}
    return {"app": f"only-batch-{number % 2}", "cpu": "50m", "spec": spec}


def _spread(number: int) -> dict[str, Any]:
    app = f"spread-{number % 8}"
    rule = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
    }
    return {"app": app, "spec": {"topologySpreadConstraints": [rule]}}


def _apart(number: int) -> dict[str, Any]:
    """Groups of some twenty: a hundred pods have five of this kind."""
    app = f"apart-{number // (20 * GROUP)}"
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": app}}}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"app": app, "spec": {"affinity": {"podAntiAffinity": rule}}}


def _near(number: int) -> dict[str, Any]:
    app = f"near-{number % 6}"
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": app}}}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"app": app, "spec": {"affinity": {"podAffinity": rule}}}


def _port(number: int) -> dict[str, Any]:
    """Groups of some twenty: a hundred pods have three of this kind."""
    group = number // (33 * GROUP)
    container = {
        "name": "main",
        "image": "none",
        "ports": [{"containerPort": 80, "hostPort": 8000 + group}],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
    return {"app": f"port-{group}", "spec": {"containers": [container]}}


def _gpu(number: int) -> dict[str, Any]:
    return {"app": f"gpu-{number % 3}", "cpu": "200m", "resources": {GPU: "1"}}


MIX: tuple[tuple[Callable[[int], dict[str, Any]], int], ...] = (
    (_plain, 44),
    (_selecting, 12),
    (_affine, 10),
    (_tolerating, 8),
    (_dedicated, 2),
    (_spread, 10),
    (_apart, 5),
    (_near, 3),
    (_port, 3),
    (_gpu, 3),
)
"""Kinds of pods, and how many of each hundred."""
