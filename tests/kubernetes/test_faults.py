"""What goes wrong on the way: every fault a cluster has in store, made for real."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.beds.kubernetes import Api, ControlPlane, Part, eventually
from tests.beds.kubernetes.applying import apply
from tests.beds.kubernetes.fleet import add_namespace
from tests.kubernetes.conftest import PROFILES
from tests.kubernetes.running import (
    CURVE,
    PROFILE,
    Running,
    all_bound,
    bind,
    cut_off,
    held_bindings,
    nodes,
    nodes_of,
    pods,
    scheduling,
    starting,
    told,
)

from wattloom.kubernetes.manifests import NAMESPACE, manifest
from wattloom.kubernetes.options import Options
from wattloom.kubernetes.state.pod_entry import At

BURST, SOME = 150, 20
"""Pods in a burst, and how many of them are bound when something happens."""


def load_of(running: Running) -> dict[str, int]:
    """By node of the engine: how many tasks it has there."""
    index = running.scheduler.driver.engine.ledger.index
    found: dict[str, int] = running.call(lambda: {name: len(node.tasks) for name, node in index.nodes.items()})
    return found


# -- races -------------------------------------------------------------------------------------------------------------


def test_a_node_deleted_while_a_binding_is_under_way_costs_the_pod_nothing(
    running: Running, api: Api, space: str
) -> None:
    nodes(api, "n1")
    with held_bindings(running) as asked:
        pods(api, space, "one")
        eventually(lambda: asked() == ["one to n1"])
        nodes(api, "n2")
        eventually(lambda: "n2" in load_of(running))
        api.delete("/api/v1/nodes/n1")
        eventually(lambda: not running.call(lambda: running.scheduler.state.nodes.knows("n1")))
    assert all_bound(api, space) == {"one": "n2"}
    eventually(lambda: load_of(running) == {"n2": 1})


def test_a_node_deleted_after_the_binding_leaves_the_pod_to_others_and_counts_it_when_it_comes_back(
    running: Running, api: Api, space: str
) -> None:
    nodes(api, "n1", cpu="1")
    pods(api, space, "one", cpu="1")
    all_bound(api, space)
    eventually(lambda: load_of(running) == {"n1": 1})
    api.delete("/api/v1/nodes/n1")
    eventually(lambda: load_of(running) == {})
    nodes(api, "n1", cpu="1")
    eventually(lambda: load_of(running) == {"n1": 1})
    pods(api, space, "two", cpu="1")
    told(api, space, "two", "FailedScheduling", "Insufficient cpu")


def test_another_scheduler_that_was_faster_is_right(running: Running, api: Api, space: str) -> None:
    nodes(api, "n1", "n2", cpu="1")
    with held_bindings(running) as asked:
        pods(api, space, "one", cpu="1")
        eventually(lambda: asked() == ["one to n1"])
        bind(api, space, "one", "n2")
    eventually(lambda: load_of(running) == {"n1": 0, "n2": 1})
    pods(api, space, "two", cpu="1")
    assert all_bound(api, space) == {"one": "n2", "two": "n1"}


def test_a_pod_deleted_while_its_binding_is_under_way_gives_its_place_back(
    running: Running, api: Api, space: str
) -> None:
    nodes(api, "n1", cpu="1")
    with held_bindings(running) as asked:
        pods(api, space, "one", cpu="1")
        eventually(asked)
        api.delete(f"/api/v1/namespaces/{space}/pods/one", gracePeriodSeconds=0)
        eventually(lambda: load_of(running) == {"n1": 0})
    pods(api, space, "two", cpu="1")
    assert all_bound(api, space) == {"two": "n1"}


def test_a_namesake_made_while_the_binding_is_under_way_is_another_pod(running: Running, api: Api, space: str) -> None:
    nodes(api, "n1", "n2", cpu="1")
    with held_bindings(running) as asked:
        pods(api, space, "one", cpu="1")
        eventually(asked)
        api.delete(f"/api/v1/namespaces/{space}/pods/one", gracePeriodSeconds=0)
        pods(api, space, "one", cpu="1")
        eventually(lambda: len(asked()) == 2)
    all_bound(api, space)
    eventually(lambda: sum(load_of(running).values()) == 1)


# -- the API server and its store --------------------------------------------------------------------------------------


def many(size: int, name: str = "burst") -> list[str]:
    return [f"{name}-{number}" for number in range(size)]


@contextmanager
def binding_many(plane: ControlPlane, space: str) -> Iterator[Running]:
    """A scheduler in the middle of a burst: some pods are bound, and many bindings wait for the word to be sent."""
    nodes(plane.api, *(f"n{number}" for number in range(10)))
    pods(plane.api, space, *many(BURST), cpu="50m", memory="1Mi")
    with scheduling(plane, policy="spread", free=SOME) as running:
        eventually(lambda: running.scheduler.counts.bindings == {"bound": SOME})
        eventually(lambda: len(running.held) == running.scheduler.binder.in_flight)
        yield running


def check_burst(running: Running, api: Api, space: str, size: int) -> None:
    """Everybody has a node, and what the engine knows is what the API server says."""

    def whole() -> bool:
        found = nodes_of(api, space)
        return len(found) == size and all(found.values())

    eventually(whole, 180)
    truth = Counter(nodes_of(api, space).values())
    eventually(lambda: {node: load for node, load in load_of(running).items() if load} == dict(truth), 60)


def sent_to_nobody(running: Running, plane: ControlPlane, part: Part) -> None:
    """Kill a part that has stopped answering, while bindings are under way to it."""
    plane.pause(part)
    running.release()
    plane.kill(part)
    assert running.call(lambda: running.scheduler.scheduling.binds.under_way) > 0


def test_a_burst_survives_a_kill_of_the_api_server(breakable: ControlPlane, space: str) -> None:
    with binding_many(breakable, space) as running:
        sent_to_nobody(running, breakable, Part.API_SERVER)
        breakable.start_part(Part.API_SERVER)
        pods(breakable.api, space, *many(10, "late"), cpu="50m", memory="1Mi")
        check_burst(running, breakable.api, space, BURST + 10)


def test_a_burst_survives_a_kill_of_etcd(breakable: ControlPlane, space: str) -> None:
    with binding_many(breakable, space) as running:
        sent_to_nobody(running, breakable, Part.ETCD)
        eventually(lambda: not breakable.api.ready(), 60)
        breakable.start_part(Part.ETCD)
        eventually(breakable.api.ready, 60)
        pods(breakable.api, space, *many(10, "late"), cpu="50m", memory="1Mi")
        check_burst(running, breakable.api, space, BURST + 10)


def test_a_watch_that_is_too_old_is_read_anew(breakable: ControlPlane, space: str) -> None:
    """The API server forgets (its store is compacted, its memory is new) while it is out of reach."""
    plane = breakable
    nodes(plane.api, "n1", "n2")
    with scheduling(plane, policy="spread") as running:
        pods(plane.api, space, "first")
        all_bound(plane.api, space)
        with cut_off(running):
            plane.api.delete("/api/v1/nodes/n2")
            pods(plane.api, space, *many(10, "meanwhile"), cpu="10m")
            plane.compact()
            plane.kill(Part.API_SERVER)
        plane.start_part(Part.API_SERVER)
        all_bound(plane.api, space, 120)
        eventually(lambda: load_of(running).keys() == {"n1"}, 60)
        counts = running.call(lambda: [each.counts.expired for each in running.scheduler.state.reflectors])
        assert sum(counts) >= 1


def test_an_api_server_that_throttles_is_given_time(make_plane: Callable[..., ControlPlane]) -> None:
    """An administrator's requests are never turned away: so the scheduler has the account that is shipped."""
    few = {"enable-priority-and-fairness": "false", "max-mutating-requests-inflight": "1"}
    plane = make_plane(flags={Part.API_SERVER: few})
    apply(plane.api, manifest("namespace") + "---\n" + manifest("rbac"))
    account = plane.kubeconfig_of(plane.access_of_account(NAMESPACE, "wattloom-scheduler"), "scheduler")
    space = add_namespace(plane.api, "slow")
    nodes(plane.api, *(f"n{number}" for number in range(5)))
    pods(plane.api, space, *many(60), cpu="50m", memory="1Mi")
    with scheduling(plane, account, policy="spread", free=0) as running:
        eventually(lambda: len(running.held) == Options().bind_concurrency)
        running.release()  # all at once, where one is too many
        check_burst(running, plane.api, space, 60)
        assert running.scheduler.api.throttled > 0
        assert running.scheduler.counts.bindings == {"bound": 60}
        told(plane.api, space, "burst-59", "Scheduled", "Successfully assigned", 120)


def test_an_api_server_that_hangs_is_waited_for(breakable: ControlPlane, space: str) -> None:
    nodes(breakable.api, "n1", "n2")
    with scheduling(breakable, policy="spread", free=0) as running:
        pods(breakable.api, space, *many(20), cpu="10m")
        eventually(lambda: len(running.held) == 20)
        breakable.pause(Part.API_SERVER)
        running.release()
        time.sleep(1.0)
        assert running.call(lambda: running.scheduler.scheduling.binds.under_way) == 20
        breakable.resume(Part.API_SERVER)
        check_burst(running, breakable.api, space, 20)
        assert running.scheduler.counts.bindings == {"bound": 20}


# -- what people write -------------------------------------------------------------------------------------------------


def a_profile(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "wattloom.dev/v1alpha1",
        "kind": "MachineProfile",
        "metadata": {"name": name},
        "spec": {"cores": 8, "threads": 8, "coresWatts": [[0, 50], [8, 150]], **spec},
    }


def test_a_malformed_profile_makes_its_node_unknown_and_harms_no_other(
    plane: ControlPlane, profiles: Api, space: str
) -> None:
    api = profiles
    nodes(api, "a-falling", "b-known", "c-garbled")
    api.patch("/api/v1/nodes/c-garbled", {"metadata": {"annotations": {PROFILE: "{"}}})
    api.patch("/api/v1/nodes/b-known", {"metadata": {"annotations": {PROFILE: CURVE}}})
    falling = {"coresWatts": [[8, 50], [0, 5]]}
    api.post(PROFILES, a_profile("falling", nodeName="a-falling", **falling))
    with scheduling(plane) as running:
        about = {"annotations": {"wattloom.dev/runtime-seconds": "10"}}
        pods(api, space, "one", **about)
        assert all_bound(api, space) == {"one": "b-known"}
        problems = running.call(lambda: dict(running.scheduler.state.nodes.problems))
        assert problems.keys() == {"a-falling", "c-garbled"}
        mended = a_profile("falling", nodeName="a-falling", coresWatts=[[0, 5], [8, 20]])
        api.put(f"{PROFILES}/falling", mended | {"metadata": api.get(f"{PROFILES}/falling")["metadata"]})
        eventually(lambda: "a-falling" not in running.call(lambda: dict(running.scheduler.state.nodes.problems)))
        pods(api, space, "two", **about)
        assert eventually(lambda: nodes_of(api, space)["two"]) == "a-falling"


def test_the_curve_of_a_node_may_change_while_pods_run_there(running: Running, api: Api, space: str) -> None:
    nodes(api, "n1", "n2", annotations={PROFILE: CURVE})
    pods(api, space, "one")
    all_bound(api, space)
    steep = json.dumps({"cores": 8, "threads": 8, "coresWatts": [[0, 50], [8, 950]]})
    api.patch("/api/v1/nodes/n1", {"metadata": {"annotations": {PROFILE: steep}}})
    eventually(lambda: running.call(lambda: len(running.scheduler.driver.engine.ledger.machines)) == 3)
    about = {"annotations": {"wattloom.dev/runtime-seconds": "10"}}
    pods(api, space, "two", **about)
    assert all_bound(api, space)["two"] == "n2"


def test_a_standby_has_read_everything_and_binds_nothing(plane: ControlPlane, api: Api, space: str) -> None:
    nodes(api, "n1")
    with scheduling(plane, leader_elect=True, lease_namespace=space) as leader:
        standby = starting(plane, leader_elect=True, lease_namespace=space, http="")
        try:
            eventually(lambda: standby.scheduler.state.synced)
            pods(api, space, "one", "two")
            all_bound(api, space)
            eventually(lambda: load_of(standby) == {"n1": 2} == load_of(leader))
            assert standby.scheduler.counts.bindings == {}
            assert not standby.scheduler.deciding_now
            assert all(e.at is At.ON_NODE for e in standby.scheduler.state.pods.by_uid.values())
        finally:
            standby.stop()
        assert standby.error is None
        assert standby.scheduler.driver.refused == 0
