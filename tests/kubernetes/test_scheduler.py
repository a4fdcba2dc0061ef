"""The scheduler on a real API server: pods get the nodes the engine decides, and their owners are told in words."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.beds.kubernetes import Api, ControlPlane, eventually
from tests.kubernetes.running import (
    CHEAP,
    CURVE,
    PROFILE,
    Running,
    all_bound,
    events_of,
    nodes,
    nodes_of,
    pods,
    scheduling,
    told,
)

from wattloom.cluster.fit import Terms
from wattloom.errors import InputError
from wattloom.kubernetes.client.credentials import Fixed
from wattloom.kubernetes.client.target import Target
from wattloom.kubernetes.extender import extender
from wattloom.kubernetes.extender.extender import Extender
from wattloom.kubernetes.options import Options, tell_how_it_is_used, usable_policy
from wattloom.kubernetes.scheduler.scheduler import Scheduler
from wattloom.kubernetes.state.pod_entry import At


def waits(running: Running, pod: str) -> bool:
    def asked() -> bool:
        entries = running.scheduler.state.pods.by_uid.values()
        return any(entry.reference.name == pod and entry.at is At.QUEUED for entry in entries)

    return bool(eventually(lambda: running.call(asked), 20))


# -- where they go -----------------------------------------------------------------------------------------------------


def test_pods_go_where_they_cost_least_and_the_event_says_why(running: Running, api: Api, space: str) -> None:
    nodes(api, "dear", annotations={PROFILE: CURVE})
    nodes(api, "cheap", annotations={PROFILE: CHEAP})
    pods(api, space, "one", cpu="2", annotations={"wattloom.dev/runtime-seconds": "10"})
    assert all_bound(api, space) == {"one": "cheap"}
    event = told(api, space, "one", "Scheduled", "to cheap")
    assert f"Successfully assigned {space}/one to cheap: chosen by least-joules among 2 nodes" in event
    assert event.endswith("forecast: 10 W more for 10 s, 100 J")


def test_a_node_without_a_profile_is_unknown_and_never_cheap(running: Running, api: Api, space: str) -> None:
    nodes(api, "a-unknown")
    nodes(api, "b-known", annotations={PROFILE: CURVE})
    pods(api, space, "one", cpu="2", annotations={"wattloom.dev/runtime-seconds": "10"})
    assert all_bound(api, space) == {"one": "b-known"}


def test_what_pods_of_other_schedulers_take_is_not_given_away(running: Running, api: Api, space: str) -> None:
    nodes(api, "n1", "n2", cpu="2")
    pods(api, space, "other", cpu="1500m", scheduler="default-scheduler", node="n1")
    eventually(lambda: running.call(lambda: len(running.scheduler.state.pods.by_task)) == 1)
    pods(api, space, "ours", cpu="1")
    assert all_bound(api, space)["ours"] == "n2"


def test_pods_of_other_schedulers_are_left_alone(running: Running, api: Api, space: str) -> None:
    nodes(api, "n1")
    pods(api, space, "other", scheduler="default-scheduler")
    pods(api, space, "ours")
    eventually(lambda: nodes_of(api, space)["ours"])
    assert nodes_of(api, space) == {"ours": "n1", "other": ""}


def test_the_higher_priority_goes_first(plane: ControlPlane, api: Api, space: str) -> None:
    """Both wait when the scheduler begins, and there is room for one."""
    for name, value in (("low", 1), ("high", 100)):
        body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        api.post("/apis/scheduling.k8s.io/v1/priorityclasses", body | {"value": value})
    nodes(api, "n1", cpu="1")
    pods(api, space, "a-low", cpu="1", spec={"priorityClassName": "low"})
    pods(api, space, "b-high", cpu="1", spec={"priorityClassName": "high"})
    with scheduling(plane):
        eventually(lambda: any(nodes_of(api, space).values()))
        told(api, space, "a-low", "FailedScheduling", "Insufficient cpu")
    assert nodes_of(api, space) == {"a-low": "", "b-high": "n1"}


def test_a_pod_that_ends_makes_room(running: Running, api: Api, space: str) -> None:
    nodes(api, "n1", cpu="1")
    pods(api, space, "first", cpu="1")
    eventually(lambda: nodes_of(api, space)["first"])
    pods(api, space, "second", cpu="1")
    waits(running, "second")
    path = f"/api/v1/namespaces/{space}/pods/first"
    api.patch(f"{path}/status", {"status": {"phase": "Succeeded"}})
    assert eventually(lambda: nodes_of(api, space)["second"]) == "n1"


def test_cordoned_and_tainted_nodes_are_left_out_until_they_are_not(running: Running, api: Api, space: str) -> None:
    nodes(api, "cordoned", unschedulable=True)
    nodes(api, "tainted", taints=[{"key": "gpu", "effect": "NoSchedule"}])
    pods(api, space, "one")
    event = told(api, space, "one", "FailedScheduling", "0/2 nodes")
    assert event == ("0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable.")
    api.patch("/api/v1/nodes/cordoned", {"spec": {"unschedulable": None}})
    assert all_bound(api, space) == {"one": "cordoned"}


# -- who waits ---------------------------------------------------------------------------------------------------------


def test_every_pod_that_waits_is_told_why_as_kube_scheduler_would(running: Running, api: Api, space: str) -> None:
    nodes(api, "n1", "n2", cpu="1", memory="1Gi", pods=3)
    pods(api, space, "big-1", "big-2", cpu="2")
    pods(api, space, "fat", memory="2Gi")
    pods(api, space, "gpu", resources={"example.com/gpu": "1"})
    for pod, lacks in (("big-1", "cpu"), ("big-2", "cpu"), ("fat", "memory")):
        event = told(api, space, pod, "FailedScheduling", "0/2 nodes are available")
        assert event == f"0/2 nodes are available: 2 Insufficient {lacks}."
    assert told(api, space, "gpu", "FailedScheduling", "2 Insufficient example.com/gpu")


def test_rules_between_pods_are_told_node_by_node(running: Running, api: Api, space: str) -> None:
    nodes(api, "n1", "n2")
    nodes(api, "n3", cpu="1")
    apart = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
    alone = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}}
    pods(api, space, "db-1", "db-2", cpu="2", labels={"app": "db"}, spec=alone)
    assert set(all_bound(api, space).values()) == {"n1", "n2"}
    pods(api, space, "db-3", cpu="2", labels={"app": "db"}, spec=alone)
    event = told(api, space, "db-3", "FailedScheduling", "0/3 nodes")
    assert re.search(r"2 node\(s\) didn't (match pod anti-affinity|satisfy existing pods)", event)
    assert "1 Insufficient cpu" in event
    nodes(api, "n4")
    assert eventually(lambda: nodes_of(api, space)["db-3"]) == "n4"


def test_without_nodes_it_says_so(running: Running, api: Api, space: str) -> None:
    pods(api, space, "one")
    assert told(api, space, "one", "FailedScheduling", "no nodes available to schedule pods")


def test_the_same_reason_is_told_once(running: Running, api: Api, space: str) -> None:
    nodes(api, "n1", cpu="1")
    pods(api, space, "big", cpu="2")
    told(api, space, "big", "FailedScheduling", "Insufficient cpu")
    for later in ("big-2", "big-3"):  # whose owners are told in later looks at those who wait
        pods(api, space, later, cpu="2")
        told(api, space, later, "FailedScheduling", "Insufficient cpu")
    assert len(events_of(api, space, "big")) == 1


def test_a_gated_pod_waits_for_its_gates(running: Running, api: Api, space: str) -> None:
    nodes(api, "n1")
    pods(api, space, "gated", spec={"schedulingGates": [{"name": "example.com/quota"}]})
    pods(api, space, "free")
    eventually(lambda: nodes_of(api, space)["free"])
    assert nodes_of(api, space)["gated"] == ""
    api.patch(f"/api/v1/namespaces/{space}/pods/gated", {"spec": {"schedulingGates": None}})
    assert eventually(lambda: nodes_of(api, space)["gated"]) == "n1"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}, "spec.resourceClaims"),
        (
            {"volumes": [{"name": "v", "awsElasticBlockStore": {"volumeID": "v-1"}}]},
            r"spec.volumes\[0\].awsElasticBlockStore",
        ),
    ],
)
def test_what_we_do_not_know_waits_and_names_the_field(
    spec: dict[str, Any], field: str, running: Running, api: Api, space: str
) -> None:
    nodes(api, "n1")
    pods(api, space, "odd", spec=spec)
    pods(api, space, "plain")
    event = told(api, space, "odd", "FailedScheduling", f"^{field}: ")
    assert event.endswith("use kube-scheduler with the Wattloom extender for this pod")
    assert eventually(lambda: nodes_of(api, space)["plain"]) == "n1"
    assert nodes_of(api, space)["odd"] == ""


def test_a_pod_whose_claim_is_not_bound_yet_goes_when_it_is(running: Running, api: Api, space: str) -> None:
    nodes(api, "n1")
    nodes(api, "n2", labels={"topology.kubernetes.io/zone": "west"})
    claims = f"/api/v1/namespaces/{space}/persistentvolumeclaims"
    volume = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "s",
        "hostPath": {"path": "/tmp"},
        "nodeAffinity": {
            "required": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["west"]}]}
                ]
            }
        },
    }
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "s"}
    api.post(
        "/api/v1/persistentvolumes", {"kind": "PersistentVolume", "metadata": {"name": f"v-{space}"}, "spec": volume}
    )
    api.post(claims, {"kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": claim})
    pods(api, space, "db", spec={"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]})
    told(api, space, "db", "FailedScheduling", "claim data is not bound yet")
    bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    api.patch(f"{claims}/data", {"metadata": bound, "spec": {"volumeName": f"v-{space}"}})
    api.patch(f"{claims}/data/status", {"status": {"phase": "Bound"}})
    assert all_bound(api, space) == {"db": "n2"}


def test_a_pod_deleted_while_it_waits_is_forgotten(running: Running, api: Api, space: str) -> None:
    nodes(api, "n1", cpu="1")
    pods(api, space, "big", cpu="2")
    waits(running, "big")
    api.delete(f"/api/v1/namespaces/{space}/pods/big", gracePeriodSeconds=0)
    eventually(lambda: not running.call(lambda: len(running.scheduler.state.pods.by_uid)))
    assert not running.call(lambda: running.scheduler.driver.engine.ledger.tasks)


def test_a_pod_that_is_resized_in_place_takes_what_it_takes_now(running: Running, api: Api, space: str) -> None:
    nodes(api, "n1", cpu="2")
    pods(api, space, "web", cpu="1500m")
    eventually(lambda: nodes_of(api, space)["web"])
    pods(api, space, "next", cpu="1")
    waits(running, "next")
    small = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "500m"}}}]}}
    api.patch(f"/api/v1/namespaces/{space}/pods/web/resize", small, "application/strategic-merge-patch+json")
    assert eventually(lambda: nodes_of(api, space)["next"]) == "n1"


# -- policies ----------------------------------------------------------------------------------------------------------


def test_policies_that_cannot_work_here_are_refused_in_words() -> None:
    with pytest.raises(InputError, match="goes by meters' readings"):
        usable_policy("exec")
    with pytest.raises(InputError, match="sends idle nodes to sleep"):
        usable_policy("least-joules:linger=2")


OVERCOMMITS = """
from wattloom.cluster.fit import Terms
from wattloom.policies.fifo import Fifo

class Mine(Fifo):
    name = "mine"
    terms = Terms(guarantee={guarantee})
"""


@pytest.mark.parametrize(
    "spec",
    [
        "marginal-energy:tdp=true,guarantee=0.8",
        "marginal-energy:guarantee=0.999",
        "spread:ignore_requests=true",
        "0.5",
        "float('nan')",
    ],
)
def test_a_policy_that_overcommits_is_refused_by_its_terms_whoever_wrote_it(spec: str, tmp_path: Path) -> None:
    if ":" not in spec:
        (tmp_path / "mine.py").write_text(OVERCOMMITS.format(guarantee=spec))
        spec = f"{tmp_path / 'mine.py'}:Mine"
    target = Target("http://127.0.0.1:1", Fixed())
    for start in (
        lambda: Scheduler(target, Options(policy=spec)),
        lambda: Extender(target, extender.Options(policy=spec)),
    ):
        with pytest.raises(InputError, match=r"more pods than its allocatable CPU holds .*OutOfcpu.*: use "):
            start()


def test_algorithm_1_runs_here_without_its_second_branch_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    assert usable_policy("marginal-energy").terms == Terms(guarantee=1.0, tdp=True)
    with caplog.at_level("INFO"):
        tell_how_it_is_used("marginal-energy")
        tell_how_it_is_used("spread")
    (said,) = caplog.messages
    assert said.startswith("marginal-energy is used as marginal-energy:guarantee=1")


@pytest.mark.parametrize("policy", ["marginal-energy", "marginal-energy:tdp=false", "spread", "pack", "least-joules"])
def test_nothing_is_bound_beyond_what_a_node_has_to_give(
    plane: ControlPlane, api: Api, space: str, policy: str
) -> None:
    nodes(api, "n1", cpu="4", annotations={PROFILE: CURVE})
    names = [f"p{number}" for number in range(7)]
    with scheduling(plane, policy=policy) as running:
        pods(api, space, *names, cpu="1")
        eventually(lambda: sum(map(bool, nodes_of(api, space).values())) >= 4)
        assert all(waits(running, pod) for pod, node in nodes_of(api, space).items() if not node)
        assert sorted(nodes_of(api, space).values()) == ["", "", "", "n1", "n1", "n1", "n1"]
