"""Two replicas: the leader is killed in the middle of a burst, or loses its lease, and nothing is lost or doubled.

A burst of 5,000 pods: WATTLOOM_TAKEOVER_PODS=5000 pytest -n 0 tests/kubernetes/test_scheduler_takeover.py
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.beds.kubernetes import Api, ControlPlane, add_pods, eventually, fake_pod
from tests.kubernetes.running import Replica, nodes, nodes_of, pods, scheduling

PODS = int(os.environ.get("WATTLOOM_TAKEOVER_PODS", "200"))
TAKEN_OVER_S = 15.0
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"


@contextmanager
def replicas(plane: ControlPlane, space: str, folder: Path, **named: Sequence[str]) -> Iterator[list[Replica]]:
    """By name, with what is added to the words of each. Whatever becomes of one, all are ended."""
    with ExitStack() as stack:
        made: list[Replica] = []
        for name, more in named.items():
            words = ("--namespace", space, "--identity", name, "--http", "", "--policy", "spread", *more)
            made.append(Replica(plane, folder / f"{name}.log", *words))
            stack.callback(made[-1].end)
            eventually(partial(made[-1].says, "in step with the cluster"), 60)
        yield made


def holder(api: Api, space: str) -> str:
    lease = api.get(f"{LEASES.format(space)}/wattloom-scheduler")
    return str(lease["spec"].get("holderIdentity") or "")


def bound(api: Api, space: str) -> int:
    return sum(map(bool, nodes_of(api, space).values()))


def test_a_leader_killed_in_a_burst_is_followed_within_15_s_and_no_pod_is_doubled_or_forgotten(
    plane: ControlPlane, api: Api, space: str, tmp_path: Path
) -> None:
    """The leader takes a few seconds for its pods, so that it is certainly in their middle when it is killed."""
    names = [f"n{number:03}" for number in range(20)]
    nodes(api, *names, cpu="64", memory="256Gi", pods=500)
    slowly = ("--qps", str(PODS / 8))
    bodies = [fake_pod(f"burst-{number}", cpu="10m", memory="1Mi", scheduler="wattloom") for number in range(PODS)]
    with replicas(plane, space, tmp_path, first=slowly, second=()) as (leader, standby):
        assert holder(api, space) == "first"
        making = Thread(target=add_pods, args=(api, space, bodies))
        making.start()
        eventually(lambda: bound(api, space) >= PODS // 10, 120)
        leader.kill()
        killed = time.monotonic()
        assert bound(api, space) < PODS
        eventually(lambda: standby.says("second decides from now on"), 60)
        assert time.monotonic() - killed < TAKEN_OVER_S
        making.join()
        eventually(lambda: bound(api, space) == PODS, 60 + PODS / 20)
    check_events(api, space)


def check_events(api: Api, space: str) -> None:
    """Each pod was assigned once, to the node it is on; the killed leader could not tell of its last ones."""
    truth = nodes_of(api, space)
    told: dict[str, list[str]] = {}
    for event in api.items(f"/api/v1/namespaces/{space}/events"):
        if event["reason"] == "Scheduled":
            match = re.search(r"to (n\d+):", event["message"])
            assert match is not None
            told.setdefault(event["involvedObject"]["name"], []).append(match[1])
    assert len(truth) == PODS
    assert all(found == [truth[pod]] for pod, found in told.items())
    assert len(told) > PODS // 2


def test_a_leader_that_is_ended_hands_over_at_once(plane: ControlPlane, api: Api, space: str, tmp_path: Path) -> None:
    nodes(api, "n1")
    with replicas(plane, space, tmp_path, first=(), second=()) as (leader, standby):
        assert leader.end() == 0
        ended = time.monotonic()
        eventually(lambda: standby.says("second decides from now on"), 30)
        assert time.monotonic() - ended < 8.0
        pods(api, space, "one")
        eventually(lambda: bound(api, space) == 1)


def test_a_leader_that_loses_its_lease_stops_with_a_word_and_code_1(
    plane: ControlPlane, api: Api, space: str, tmp_path: Path
) -> None:
    nodes(api, "n1")
    with replicas(plane, space, tmp_path, first=()) as (leader,):
        lease = api.get(f"{LEASES.format(space)}/wattloom-scheduler")
        api.put(f"{LEASES.format(space)}/wattloom-scheduler", stolen(lease))
        assert leader.wait(30) == 1
        assert leader.says("error: the lease wattloom-scheduler is lost: thief leads now")


def stolen(lease: dict[str, Any]) -> dict[str, Any]:
    return lease | {"spec": lease["spec"] | {"holderIdentity": "thief", "leaseTransitions": 1}}


@pytest.mark.parametrize("skew", ["2001-01-01T00:00:00.000000Z", "2099-01-01T00:00:00.000000Z"])
def test_a_lease_written_by_a_clock_that_is_wrong_is_judged_by_ones_own(
    skew: str, plane: ControlPlane, api: Api, space: str
) -> None:
    """Neither is a lease of 2001 taken at once, nor is one of 2099 waited for."""
    nodes(api, "n1")
    spec = {"holderIdentity": "elsewhere", "leaseDurationSeconds": 2, "acquireTime": skew, "renewTime": skew}
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "wattloom-scheduler"}}
    api.post(LEASES.format(space), body | {"spec": spec})
    begun = time.monotonic()
    short: dict[str, Any] = {"lease_s": 1.0, "renew_s": 0.8, "retry_s": 0.1}
    with scheduling(plane, leader_elect=True, lease_namespace=space, **short):
        assert 2.0 < time.monotonic() - begun < 40.0
        pods(api, space, "one")
        eventually(lambda: bound(api, space) == 1)


def test_no_cluster_is_said_in_words(tmp_path: Path) -> None:
    nowhere = tmp_path / "config"
    nowhere.write_text(
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: u, user: {}}]\n"
        "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
    )
    command = [sys.executable, "-m", "wattloom.cli.main", "kubernetes", "scheduler", "--kubeconfig", str(nowhere)]
    ended = subprocess.run([*command, "--first-answer", "1"], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert "error: no cluster can be reached at http://127.0.0.1:1" in ended.stderr
