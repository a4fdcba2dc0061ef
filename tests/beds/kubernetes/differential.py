"""Two schedulers, one cluster: which nodes are feasible for a pod, by kube-scheduler and by us.

Owns the making of random clusters on a real API server and the comparison. A difference is looked at twice: the second
time kube-scheduler has certainly seen everything.
"""

from random import Random
from time import sleep
from typing import Any, Final, NamedTuple

import msgspec
from tests.beds.kubernetes.client import Api, ApiRefused, eventually
from tests.beds.kubernetes.control_plane import ControlPlane, Part
from tests.beds.kubernetes.fleet import add_nodes, clear, fake_pod
from tests.beds.kubernetes.own_answer import OwnAnswer, world_of
from tests.beds.kubernetes.random_cluster import add_surroundings, random_nodes
from tests.beds.kubernetes.random_pods import RandomPods
from tests.beds.kubernetes.random_status import resized
from tests.beds.kubernetes.reference import Reference

from wattloom.kubernetes.model.storage_cache import StorageCache
from wattloom.kubernetes.model.unsupported import Unsupported

Body = dict[str, Any]
SETTLE_S: Final = 0.3
PATIENCE_S: Final = 120.0


class Difference(NamedTuple):
    """A pod that the two schedulers do not agree about."""

    seed: int
    pod: Body
    theirs: frozenset[str]
    ours: frozenset[str] | Unsupported

    def __str__(self) -> str:
        spec = msgspec.json.format(msgspec.json.encode(self.pod), indent=1).decode()
        if isinstance(self.ours, Unsupported):
            return f"seed {self.seed}: {self.ours.message}\n{spec}"
        more, less = sorted(self.ours - self.theirs), sorted(self.theirs - self.ours)
        return f"seed {self.seed}: only ours {more}, only kube-scheduler's {less}\n{spec}"


class Tried(NamedTuple):
    """What one random cluster showed."""

    cases: int
    nowhere: int
    """Pods that fit on no node."""
    everywhere: int
    refused: int
    """Pods that the API server would not have."""
    differences: list[Difference]


class Differential:
    """A control plane whose kube-scheduler asks a `Reference`."""

    def __init__(self, plane: ControlPlane, reference: Reference) -> None:
        self._api: Api = plane.api
        self._reference = reference
        add_surroundings(self._api)
        config = reference.write_config(
            plane.folder / "reference.yaml", plane.folder / "kubeconfigs" / "kube-scheduler.yaml"
        )
        plane.start_part(Part.SCHEDULER, {"config": str(config)})
        self._storage: StorageCache = world_of(
            self._api.items("/api/v1/namespaces"),
            self._api.items("/api/v1/persistentvolumeclaims"),
            self._api.items("/api/v1/persistentvolumes"),
        )

    def random_cluster(self, seed: int, cases: int) -> Tried:
        """Make a cluster from the seed and compare the feasible nodes of that many pods."""
        random = Random(seed)
        nodes = random_nodes(random, random.randint(6, 16))
        names = [node["metadata"]["name"] for node in nodes]
        pods = RandomPods(random, names)
        placed = [pods.placed(f"s{seed}") for _ in range(random.choice((0, 10, 30, 60, 90)))]
        pending = [pods.pending(f"s{seed}") for _ in range(cases)]
        return self.compare(seed, nodes, placed, pending, random)

    def compare(self, seed: int, nodes: list[Body], placed: list[Body], pending: list[Body], random: Random) -> Tried:
        """The same for bodies that are given."""
        clear(self._api)
        self._api.close()  # the API server ends connections that were long unused, and a post is not repeated
        made = add_nodes(self._api, nodes)
        self._await_nodes(seed, frozenset(node["metadata"]["name"] for node in nodes))
        self._place(placed, random)
        own = OwnAnswer(made, self._api.items("/api/v1/pods"), self._storage)
        sleep(SETTLE_S)
        asked = [pod for body in pending if (pod := self._create(body)) is not None]
        theirs = self._theirs(asked)
        ours = [own.feasible(pod) for pod in asked]
        differences = [
            Difference(seed, body, again, answer)
            for body, first, answer in zip(asked, theirs, ours, strict=True)
            if answer != first and (again := self._again(body)) != answer
        ]
        nowhere, everywhere = (sum(len(each) == size for each in theirs) for size in (0, len(nodes)))
        return Tried(len(asked), nowhere, everywhere, len(pending) - len(asked), differences)

    # -- the cluster -------------------------------------------------------------------------------------------------

    def _await_nodes(self, seed: int, names: frozenset[str]) -> None:
        """Until a pod that goes anywhere is offered every node."""
        numbers = iter(range(10_000))

        def offered() -> bool:
            spec = {"tolerations": [{"operator": "Exists"}]}
            body = fake_pod(f"probe-{seed}-{next(numbers)}", cpu=None, memory=None, spec=spec)
            probe = self._api.post("/api/v1/namespaces/default/pods", body)
            found = self._theirs([probe])[0]
            self._remove(probe)
            return found == names

        eventually(offered, PATIENCE_S)

    def _place(self, placed: list[Body], random: Random) -> None:
        """Some of them are on their way out, some have ended, and some are being resized."""
        for body in placed:
            pod = self._create(body)
            fate = random.random()
            if pod is None:
                continue
            if fate < 0.2:
                self._api.delete(_path(pod), gracePeriodSeconds=3600)
            elif fate < 0.28:
                self._api.patch(f"{_path(pod)}/status", {"status": {"phase": random.choice(("Succeeded", "Failed"))}})
            elif fate < 0.45:
                self._api.patch(f"{_path(pod)}/status", {"status": resized(random, pod)})

    def _create(self, body: Body) -> Body | None:
        """None: it is not valid, which random pods may be."""
        try:
            made: Body = self._api.post(f"/api/v1/namespaces/{body['metadata']['namespace']}/pods", body)
        except ApiRefused as refused:
            if refused.status != 422:
                raise
            return None
        return made

    def _remove(self, pod: Body) -> None:
        self._api.delete(_path(pod), gracePeriodSeconds=0)

    # -- kube-scheduler's answer -------------------------------------------------------------------------------------

    def _theirs(self, pods: list[Body]) -> list[frozenset[str]]:
        """A pod that is said to be unschedulable without a question to the extender fits nowhere."""
        uids = [pod["metadata"]["uid"] for pod in pods]
        eventually(lambda: self._tried().issuperset(uids), PATIENCE_S, 0.1)
        return [self._reference.passed.get(uid, frozenset()) for uid in uids]

    def _tried(self) -> set[str]:
        pods = self._api.items("/api/v1/pods?fieldSelector=spec.nodeName=")
        return {
            pod["metadata"]["uid"]
            for pod in pods
            if any(each["type"] == "PodScheduled" for each in pod["status"].get("conditions", ()))
        }

    def _again(self, pod: Body) -> frozenset[str]:
        """The same pod once more, when all is quiet."""
        self._remove(pod)
        sleep(2 * SETTLE_S)
        metadata = {key: pod["metadata"].get(key) for key in ("namespace", "labels")}
        body = {**pod, "metadata": {**metadata, "name": f"{pod['metadata']['name']}-again"}}
        body.pop("status", None)
        made = self._create(body)
        assert made is not None
        return self._theirs([made])[0]


def _path(pod: Body) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
