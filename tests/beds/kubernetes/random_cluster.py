"""Random nodes, and what pods refer to beside them: namespaces, storage, a runtime class.

Owns the bodies of these. Storage and namespaces are the same for every seed: a kube-scheduler has to learn them once.
"""

from random import Random
from typing import Any, Final

from tests.beds.kubernetes.client import Api
from tests.beds.kubernetes.fleet import fake_node
from tests.beds.kubernetes.random_pods import GPU, HOSTNAME, HUGE, NAMESPACES, OVERHEAD, TAINTS, ZONE

FORMER_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
_LABELS: Final = {"team-a": {"env": "prod"}, "team-b": {"env": "test"}, "team-c": {}}
_TERMS: Final[dict[str, list[dict[str, Any]]]] = {
    "data-label": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}],
    "data-host": [
        {"matchExpressions": [{"key": HOSTNAME, "operator": "NotIn", "values": ["n01", "n02", "n03"]}]},
        {"matchExpressions": [{"key": "rack", "operator": "Exists"}]},
    ],
}
_ZONES: Final = {
    "data-zone-a": {ZONE: "a"},
    "data-zone-b": {ZONE: "b", REGION: "here"},
    "data-two-zones": {ZONE: "a__c"},
    "data-former": {FORMER_ZONE: "b"},
}
CLAIMED: Final = ("data-zone-a", "data-zone-b", "data-two-zones", "data-former", "data-label", "data-host", "data-free")


def random_nodes(random: Random, count: int) -> list[dict[str, Any]]:
    """Bodies of nodes n00, n01, ... of all sorts."""
    return [_node(random, f"n{number:02}") for number in range(count)]


def _node(random: Random, name: str) -> dict[str, Any]:
    zone = random.choice(("a", "b", "c", ""))
    labels = {
        **({ZONE: zone} if zone else {}),
        **({FORMER_ZONE: random.choice("ab")} if random.random() < 0.1 else {}),
        **({REGION: "here"} if random.random() < 0.3 else {}),
        **({"disk": random.choice(("ssd", "hdd"))} if random.random() < 0.8 else {}),
        **({"rack": random.choice(("r1", "r2", "r3"))} if random.random() < 0.8 else {}),
        **({"row": random.choice("xy")} if random.random() < 0.9 else {}),
        **({"generation": random.choice(("1", "3", "5", "10", "007", "1_0", "x"))} if random.random() < 0.8 else {}),
    }
    body = fake_node(
        name,
        cpu=random.choice(("2", "7500m", "16", "32", "64")),
        memory=random.choice(("4Gi", "32G", "128Gi", "256Gi")),
        pods=random.choice((4, 10, 110, 110, 110)),
        resources=_counted(random),
        labels=labels,
        taints=_taints(random),
        unschedulable=random.random() < 0.06,
    )
    if random.random() < 0.1:
        del body["metadata"]["labels"][HOSTNAME]
    return body


def _counted(random: Random) -> dict[str, str]:
    kinds = {
        "ephemeral-storage": ("10Gi", "100Gi"),
        GPU: ("1", "4"),
        HUGE: ("4Mi", "64Mi"),
        "example.com/licence": ("0",),
    }
    return {kind: random.choice(amounts) for kind, amounts in kinds.items() if random.random() < 0.6}


def _taints(random: Random) -> list[dict[str, str]]:
    if random.random() < 0.75:
        return []
    effects = ("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule")
    found = {(key, random.choice(effects)) for key in random.sample(TAINTS, random.choice((1, 1, 2)))}
    return [{"key": key, "value": random.choice(("", "yes")), "effect": effect} for key, effect in sorted(found)]


def add_surroundings(api: Api) -> None:
    """Create the namespaces, the runtime class and the bound claims with their volumes."""
    for name in NAMESPACES:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": _LABELS[name]}}
        api.post("/api/v1/namespaces", body)
        for claim in CLAIMED:
            api.post("/api/v1/persistentvolumes", _volume(f"{name}-{claim}", claim, name))
            api.post(f"/api/v1/namespaces/{name}/persistentvolumeclaims", _claim(claim, f"{name}-{claim}"))
    runtime = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": OVERHEAD},
        "handler": OVERHEAD,
        "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
    }
    api.post("/apis/node.k8s.io/v1/runtimeclasses", runtime)


def _volume(name: str, claim: str, namespace: str) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": "example.com", "volumeHandle": name},
        "claimRef": {"namespace": namespace, "name": claim, "kind": "PersistentVolumeClaim", "apiVersion": "v1"},
        "storageClassName": "fixed",
    }
    if claim in _TERMS:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": _TERMS[claim]}}
    metadata = {"name": name, "labels": _ZONES.get(claim, {})}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}


def _claim(name: str, volume: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeName": volume,
            "storageClassName": "fixed",
        },
    }
