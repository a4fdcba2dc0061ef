"""What goes wrong on the way: every fault a cluster has in store, made for real."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Thread
from typing import Any

from tests.kubernetes.running import (
    CURVE,
    PROFILE,
    Running,
    all_bound,
    nodes,
    nodes_of,
    pods,
    scheduling,
    starting,
    told,
)

from wattloom.kubernetes.binding import Outcome
from wattloom.kubernetes.manifests import manifest
from wattloom.kubernetes.pod_entry import At
from wattloom.testing.kubernetes import Api, ControlPlane, Part, eventually
from wattloom.testing.kubernetes.fleet import add_namespace

BURST = 300


@contextmanager
def held_bindings(running: Running) -> Iterator[Callable[[], list[str]]]:
    """Bindings stop just before they are sent, until the block ends; the names of those that were asked for."""
    binder = running.scheduler.binder
    bind, asked = binder.bind, []
    go = running.call(asyncio.Event)

    async def late(namespace: str, name: str, uid: str, node: str) -> Outcome:
        asked.append(f"{name} to {node}")
        await go.wait()
        return await bind(namespace, name, uid, node)

    binder.bind = late  # type: ignore[method-assign]
    try:
        yield lambda: asked
    finally:
        binder.bind = bind  # type: ignore[method-assign]
        running.call(go.set)


def load_of(running: Running) -> dict[str, int]:
    """By node of the engine: how many tasks it has there."""
    index = running.scheduler.deciding.engine.ledger.index
    found: dict[str, int] = running.call(lambda: {name: len(node.tasks) for name, node in index.nodes.items()})
    return found


def bind(api: Api, space: str, pod: str, node: str) -> None:
    """As another scheduler would."""
    body = {"kind": "Binding", "metadata": {"name": pod}, "target": {"kind": "Node", "name": node}}
    api.post(f"/api/v1/namespaces/{space}/pods/{pod}/binding", body)


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


def burst(api: Api, space: str, size: int = BURST) -> Thread:
    """Pods made one by one by somebody who does not give up."""

    def make() -> None:
        for number in range(size):
            eventually(partial(_made, api, space, f"burst-{number}"), 120)

    thread = Thread(target=make)
    thread.start()
    return thread


def _made(api: Api, space: str, name: str) -> bool:
    try:
        pods(api, space, name, cpu="50m", memory="1Mi")
    except Exception as error:
        if "AlreadyExists" in str(error) or "already exists" in str(error):
            return True
        raise
    return True


def check_burst(running: Running, api: Api, space: str, size: int = BURST) -> None:
    """Everybody has a node, and what the engine knows is what the API server says."""

    def whole() -> bool:
        found = nodes_of(api, space)
        return len(found) == size and all(found.values())

    eventually(whole, 180)
    truth = Counter(nodes_of(api, space).values())
    eventually(lambda: {node: load for node, load in load_of(running).items() if load} == dict(truth), 60)


def wait_for_some(api: Api, space: str, some: int) -> None:
    eventually(lambda: sum(map(bool, nodes_of(api, space).values())) >= some, 120)


def test_a_burst_survives_a_kill_of_the_api_server(make_plane: Callable[..., ControlPlane]) -> None:
    plane = make_plane()
    space = add_namespace(plane.api, "burst")
    nodes(plane.api, *(f"n{number}" for number in range(10)))
    with scheduling(plane, policy="spread") as running:
        making = burst(plane.api, space)
        wait_for_some(plane.api, space, 50)
        plane.restart(Part.API_SERVER)
        making.join()
        check_burst(running, plane.api, space)


def test_a_burst_survives_a_kill_of_etcd(make_plane: Callable[..., ControlPlane]) -> None:
    plane = make_plane()
    space = add_namespace(plane.api, "burst")
    nodes(plane.api, *(f"n{number}" for number in range(10)))
    with scheduling(plane, policy="spread") as running:
        making = burst(plane.api, space)
        wait_for_some(plane.api, space, 50)
        plane.kill(Part.ETCD)
        time.sleep(2.0)
        plane.start_part(Part.ETCD)
        making.join()
        check_burst(running, plane.api, space)


def test_a_watch_that_is_too_old_is_read_anew(make_plane: Callable[..., ControlPlane]) -> None:
    """The API server forgets (its store is compacted, its memory is new) while it is out of reach."""
    plane = make_plane(flags={Part.API_SERVER: {"etcd-compaction-interval": "1s"}})
    space = add_namespace(plane.api, "old")
    nodes(plane.api, "n1", "n2")
    with scheduling(plane, policy="spread") as running:
        pods(plane.api, space, "first")
        all_bound(plane.api, space)
        with cut_off(running):
            plane.api.delete("/api/v1/nodes/n2")
            for number in range(30):
                pods(plane.api, space, f"meanwhile-{number}", cpu="10m")
                plane.api.patch("/api/v1/nodes/n1", {"metadata": {"annotations": {"turn": str(number)}}})
            time.sleep(4.0)
            plane.restart(Part.API_SERVER)
        all_bound(plane.api, space, 120)
        eventually(lambda: load_of(running).keys() == {"n1"}, 60)
        counts = running.call(lambda: [each.counts.expired for each in running.scheduler.state.reflectors])
        assert sum(counts) >= 1


@contextmanager
def cut_off(running: Running) -> Iterator[None]:
    """New connections of the scheduler lead nowhere, and those it has are closed."""
    api = running.scheduler.api
    port = api.target.port

    def cut() -> None:
        api.target.port = 1
        for connection in tuple(api._pool._all):
            connection.close()

    running.call(cut)
    try:
        yield
    finally:
        running.call(lambda: setattr(api.target, "port", port))


def test_an_api_server_that_throttles_is_given_time(make_plane: Callable[..., ControlPlane]) -> None:
    few = {"max-requests-inflight": "4", "max-mutating-requests-inflight": "2"}
    plane = make_plane(flags={Part.API_SERVER: few})
    space = add_namespace(plane.api, "slow")
    nodes(plane.api, *(f"n{number}" for number in range(5)))
    with scheduling(plane, policy="spread") as running:
        burst(plane.api, space, 100).join()
        check_burst(running, plane.api, space, 100)
        told(plane.api, space, "burst-99", "Scheduled", "Successfully assigned", 120)


def test_an_api_server_that_hangs_is_waited_for(make_plane: Callable[..., ControlPlane]) -> None:
    plane = make_plane()
    space = add_namespace(plane.api, "hung")
    nodes(plane.api, "n1", "n2")
    with scheduling(plane, policy="spread") as running:
        pods(plane.api, space, *(f"p-{number}" for number in range(20)), cpu="10m")
        plane.pause(Part.API_SERVER)
        time.sleep(5.0)
        plane.resume(Part.API_SERVER)
        check_burst(running, plane.api, space, 20)


# -- what people write -------------------------------------------------------------------------------------------------


def install_profiles(api: Api) -> None:
    import yaml

    api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", yaml.safe_load(manifest("crd")))


def a_profile(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "wattloom.dev/v1alpha1",
        "kind": "MachineProfile",
        "metadata": {"name": name},
        "spec": {"cores": 8, "threads": 8, "coresWatts": [[0, 50], [8, 150]], **spec},
    }


def test_a_malformed_profile_makes_its_node_unknown_and_harms_no_other(
    make_plane: Callable[..., ControlPlane],
) -> None:
    plane = make_plane()
    api, space = plane.api, add_namespace(plane.api, "malformed")
    install_profiles(api)
    profiles = "/apis/wattloom.dev/v1alpha1/machineprofiles"
    eventually(lambda: api.get(profiles) is not None)
    nodes(api, "a-falling", "b-known", "c-garbled")
    api.patch("/api/v1/nodes/c-garbled", {"metadata": {"annotations": {PROFILE: "{"}}})
    api.patch("/api/v1/nodes/b-known", {"metadata": {"annotations": {PROFILE: CURVE}}})
    falling = {"coresWatts": [[8, 50], [0, 5]]}
    api.post(profiles, a_profile("falling", nodeName="a-falling", **falling))
    with scheduling(plane) as running:
        about = {"annotations": {"wattloom.dev/runtime-seconds": "10"}}
        pods(api, space, "one", **about)
        assert all_bound(api, space) == {"one": "b-known"}
        problems = running.call(lambda: dict(running.scheduler.state.nodes.problems))
        assert problems.keys() == {"a-falling", "c-garbled"}
        mended = a_profile("falling", nodeName="a-falling", coresWatts=[[0, 5], [8, 20]])
        api.put(f"{profiles}/falling", mended | {"metadata": api.get(f"{profiles}/falling")["metadata"]})
        eventually(lambda: "a-falling" not in running.call(lambda: dict(running.scheduler.state.nodes.problems)))
        pods(api, space, "two", **about)
        assert eventually(lambda: nodes_of(api, space)["two"]) == "a-falling"


def test_the_curve_of_a_node_may_change_while_pods_run_there(running: Running, api: Api, space: str) -> None:
    nodes(api, "n1", "n2", annotations={PROFILE: CURVE})
    pods(api, space, "one")
    all_bound(api, space)
    steep = json.dumps({"cores": 8, "threads": 8, "coresWatts": [[0, 50], [8, 950]]})
    api.patch("/api/v1/nodes/n1", {"metadata": {"annotations": {PROFILE: steep}}})
    eventually(lambda: running.call(lambda: len(running.scheduler.deciding.engine.ledger.machines)) == 3)
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
        assert standby.scheduler.deciding.refused == 0
