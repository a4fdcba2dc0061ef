"""Makes a decision log of the Kubernetes scheduler: `python -m tests.golden.kubernetes_log LOG POLICY`.

Owns what happens on that cluster: nodes of several kinds that come, change and go, and pods with most of what pods may
ask for. The API server is real: it needs etcd and kube-apiserver (`make kubernetes-binaries`).
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.beds.kubernetes import Api, ControlPlane, eventually
from tests.beds.kubernetes.fleet import add_namespace
from tests.kubernetes.running import bind, nodes, nodes_of, pods, scheduling

PROFILE = "wattloom.dev/machine-profile"
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
SPACE = "shop"


def main() -> None:
    log, policy = Path(sys.argv[1]).absolute(), sys.argv[2]
    with TemporaryDirectory(prefix="wattloom-golden-") as folder, ControlPlane(Path(folder)) as plane:
        api = plane.api
        add_namespace(api, SPACE)
        prepare(api)
        with scheduling(plane, log=log, policy=policy):
            happen(api)


def curve(most_w: float, speed: float = 1.0) -> dict[str, str]:
    about = {"cores": 8, "threads": 8, "coresWatts": [[0, 50], [8, most_w]], "provenance": "measured", "speed": speed}
    return {PROFILE: json.dumps(about)}


def prepare(api: Api) -> None:
    """What is there before the scheduler is."""
    nodes(api, "old-1", "old-2", annotations=curve(150), labels={ZONE: "a"})
    nodes(api, "new-1", annotations=curve(90), labels={ZONE: "b"})
    nodes(api, "arm-1", annotations=curve(70, 0.6), labels={ZONE: "b"}, arch="arm64")
    nodes(api, "kept-1", taints=[{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}], labels={ZONE: "a"})
    nodes(api, "dark-1", labels={ZONE: "c"})
    pods(api, SPACE, "early-1", "early-2", cpu="1")
    pods(api, SPACE, "elsewhere", scheduler="default-scheduler", cpu="2")
    bind(api, SPACE, "elsewhere", "old-1")


def happen(api: Api) -> None:
    placed(api, "early-1", "early-2")
    for number in range(4):
        one(api, f"batch-{number}", cpu="1500m", annotations={"wattloom.dev/runtime-seconds": "30"})
    constrained(api)
    pods(api, SPACE, "waits", cpu="2", spec={"nodeSelector": {ZONE: "d"}})
    changes(api)


def constrained(api: Api) -> None:
    one(api, "thrifty", annotations={"wattloom.dev/energy-weight": "1", "wattloom.dev/runtime-seconds": "600"})
    one(api, "hasty", annotations={"wattloom.dev/energy-weight": "0", "wattloom.dev/runtime-seconds": "600"})
    one(api, "arm", spec={"nodeSelector": {"kubernetes.io/arch": "arm64"}})
    tolerated = [{"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}]
    one(api, "tolerant", spec={"tolerations": tolerated, "nodeSelector": {HOSTNAME: "kept-1"}})
    for number in range(3):
        one(api, f"web-{number}", labels={"app": "web"}, spec=apart("web"))
    for number in range(3):
        one(api, f"spread-{number}", labels={"app": "spread"}, spec=spread("spread"))
    pods(api, SPACE, "nowhere", spec={"nodeSelector": {ZONE: "z"}})


def changes(api: Api) -> None:
    """Pods end, fail and are deleted; nodes are closed, opened, lost and new. Each step is seen before the next."""
    for name in ("batch-0", "batch-1", "early-1"):
        end(api, name, "Succeeded")
    end(api, "batch-2", "Failed")
    placed(api, "arm")
    api.delete(f"/api/v1/namespaces/{SPACE}/pods/web-0")
    api.patch("/api/v1/nodes/new-1", {"spec": {"unschedulable": True}})
    for number in range(3):
        one(api, f"after-{number}", cpu="1")
    api.patch("/api/v1/nodes/new-1", {"spec": {"unschedulable": None}})
    nodes(api, "new-2", annotations=curve(85), labels={ZONE: "d"})
    placed(api, "waits")
    api.delete("/api/v1/nodes/old-2")
    for number in range(3):
        one(api, f"late-{number}", cpu="2", annotations={"wattloom.dev/runtime-seconds": "60"})


# -- single steps ------------------------------------------------------------------------------------------------------


def one(api: Api, name: str, **about: Any) -> None:
    """A pod that is decided on. A policy that fills one node after the other may have filled the only one for it."""
    pods(api, SPACE, name, **about)
    eventually(lambda: nodes_of(api, SPACE)[name] or why_it_waits(api, name), 60)


def why_it_waits(api: Api, name: str) -> str:
    """As its owner is told; empty: nobody has said so."""
    conditions = api.get(f"/api/v1/namespaces/{SPACE}/pods/{name}")["status"].get("conditions", [])
    return next((each["message"] for each in conditions if each["type"] == "PodScheduled" and "message" in each), "")


def placed(api: Api, *names: str) -> None:
    eventually(lambda: all(nodes_of(api, SPACE)[name] for name in names), 60)


def end(api: Api, name: str, phase: str) -> None:
    ran = {
        "startedAt": "2026-11-18T03:00:00Z",
        "finishedAt": "2026-11-18T03:00:31Z",
        "exitCode": int(phase == "Failed"),
    }
    status = {"name": "main", "image": "none", "imageID": "", "ready": False, "restartCount": 0}
    body = {"phase": phase, "containerStatuses": [status | {"state": {"terminated": ran}}]}
    api.patch(f"/api/v1/namespaces/{SPACE}/pods/{name}/status", {"status": body})


def apart(app: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOSTNAME}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def spread(app: str) -> dict[str, Any]:
    rule = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [rule | {"labelSelector": {"matchLabels": {"app": app}}}]}


if __name__ == "__main__":
    main()
