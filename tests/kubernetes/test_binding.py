"""Pods bound on a real API server: each outcome, and what is true when an answer is lost."""

import asyncio
from pathlib import Path

from tests.beds.kubernetes import ControlPlane, Part, add_nodes, add_pods, fake_node, fake_pod
from tests.kubernetes.live import PODS, client, relayed

from wattloom.kubernetes.client import event_loop
from wattloom.kubernetes.model.objects import Pod
from wattloom.kubernetes.scheduler.binding import (
    AlreadyBound,
    Binder,
    Bound,
    NodeGone,
    Outcome,
    PodGone,
    Refused,
    Unsure,
)


def _pods(plane: ControlPlane, space: str, *names: str) -> list[tuple[str, str]]:
    made = add_pods(plane.api, space, [fake_pod(name, scheduler="wattloom") for name in names])
    return [(pod["metadata"]["name"], pod["metadata"]["uid"]) for pod in made]


def test_a_pod_is_bound_once_and_later_askers_are_told_where(empty_cluster: ControlPlane, fresh_namespace: str) -> None:
    add_nodes(empty_cluster.api, [fake_node("n1"), fake_node("n2")])
    ((name, uid),) = _pods(empty_cluster, fresh_namespace, "once")

    async def live() -> list[Outcome]:
        async with client(empty_cluster) as api:
            binder = Binder(api)
            asked = [await binder.bind(fresh_namespace, name, uid, node) for node in ("n1", "n1", "n2")]
            assert (await api.get(PODS, name, fresh_namespace)).spec.node_name == "n1"
            return asked

    assert event_loop.run(live()) == [Bound("n1"), Bound("n1"), AlreadyBound("n1")]


def test_two_askers_at_the_same_time_share_one_binding(empty_cluster: ControlPlane, fresh_namespace: str) -> None:
    add_nodes(empty_cluster.api, [fake_node("n1"), fake_node("n2")])
    ((name, uid),) = _pods(empty_cluster, fresh_namespace, "shared")

    async def live() -> list[Outcome]:
        async with client(empty_cluster) as api:
            binder = Binder(api)
            both = (binder.bind(fresh_namespace, name, uid, node) for node in ("n1", "n2"))
            return list(await asyncio.gather(*both))

    assert event_loop.run(live()) == [Bound("n1"), Bound("n1")]


def test_a_pod_that_is_gone_or_was_replaced_by_its_namesake_is_not_bound(
    empty_cluster: ControlPlane, fresh_namespace: str
) -> None:
    ((name, uid),) = _pods(empty_cluster, fresh_namespace, "here")

    async def live() -> list[Outcome]:
        async with client(empty_cluster) as api:
            binder = Binder(api)
            asked = [
                await binder.bind(fresh_namespace, "nobody", uid, "n1"),
                await binder.bind(fresh_namespace, name, "00000000-0000-0000-0000-000000000000", "n1"),
            ]
            pod: Pod = await api.get(PODS, name, fresh_namespace)
            assert not pod.spec.node_name
            return asked

    assert event_loop.run(live()) == [PodGone(), PodGone()]


def test_a_pod_that_is_being_deleted_is_gone(empty_cluster: ControlPlane, fresh_namespace: str) -> None:
    body = fake_pod("leaving", scheduler="wattloom")
    body["metadata"]["finalizers"] = ["example.com/wait"]
    (made,) = add_pods(empty_cluster.api, fresh_namespace, [body])

    async def live() -> Outcome:
        async with client(empty_cluster) as api:
            await api.delete(PODS, "leaving", fresh_namespace)
            outcome = await Binder(api).bind(fresh_namespace, "leaving", made["metadata"]["uid"], "n1")
            await api.patch(PODS, {"metadata": {"finalizers": None}}, "leaving", fresh_namespace)
            return outcome

    assert event_loop.run(live()) == PodGone()


def test_a_node_that_left_while_the_binding_waited_is_not_asked_for(
    empty_cluster: ControlPlane, fresh_namespace: str
) -> None:
    ((name, uid),) = _pods(empty_cluster, fresh_namespace, "waits")

    async def live() -> Outcome:
        async with client(empty_cluster) as api:
            outcome = await Binder(api, there=lambda node: node != "n9").bind(fresh_namespace, name, uid, "n9")
            assert not (await api.get(PODS, name, fresh_namespace)).spec.node_name
            return outcome

    assert event_loop.run(live()) == NodeGone("n9")


def test_who_may_not_bind_is_refused_in_words(empty_cluster: ControlPlane, fresh_namespace: str) -> None:
    ((name, uid),) = _pods(empty_cluster, fresh_namespace, "forbidden")
    path = empty_cluster.kubeconfig_of(empty_cluster.access_of_user("nobody"), "nobody")

    async def live() -> Outcome:
        async with client(empty_cluster, path) as api:
            return await Binder(api).bind(fresh_namespace, name, uid, "n1")

    outcome = event_loop.run(live())
    assert isinstance(outcome, Refused)
    assert "pods/binding" in outcome.message


def test_a_lost_answer_is_made_up_for_by_reading_the_pod(
    empty_cluster: ControlPlane, fresh_namespace: str, tmp_path: Path
) -> None:
    add_nodes(empty_cluster.api, [fake_node("n1")])
    pods = _pods(empty_cluster, fresh_namespace, *(f"p{number}" for number in range(8)))

    async def live() -> list[Outcome]:
        async with relayed(empty_cluster, tmp_path, connections=1) as (api, relay):
            binder, outcomes = Binder(api), []
            for name, uid in pods:
                await api.get(PODS, name, fresh_namespace)  # the handshake is over: what is lost is the answer
                relay.answers_to_lose = 1
                outcomes.append(await binder.bind(fresh_namespace, name, uid, "n1"))
                assert relay.answers_to_lose == 0
            return outcomes

    assert event_loop.run(live()) == [Bound("n1")] * 8


def test_without_a_server_it_is_unsure_in_the_end_or_bound_when_the_server_is_back(
    breakable: ControlPlane, fresh_namespace: str
) -> None:
    plane, space = breakable, fresh_namespace
    nodes = [f"n{number}" for number in range(10)]
    add_nodes(plane.api, [fake_node(node) for node in nodes])
    pods = _pods(plane, space, *(f"p{number}" for number in range(120)))

    async def live() -> None:
        async with client(plane) as api, client(plane) as other:
            binder = Binder(api, in_flight=16, patience_s=60)
            asked = [
                asyncio.create_task(binder.bind(space, name, uid, nodes[number % 10]))
                for number, (name, uid) in enumerate(pods)
            ]
            await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
            plane.kill(Part.API_SERVER)
            assert len(binder) > 0  # it did die in the middle
            outcome = await Binder(other, patience_s=0.3).bind(space, "p0", "uid", "n0")
            assert isinstance(outcome, Unsure)
            await asyncio.to_thread(plane.start_part, Part.API_SERVER)
            outcomes = await asyncio.gather(*asked)
            assert outcomes == [Bound(nodes[number % 10]) for number in range(120)]
            there = {pod.metadata.name: pod.spec.node_name for pod in (await api.list(PODS, space)).items}
            assert there == {name: nodes[number % 10] for number, (name, _) in enumerate(pods)}

    event_loop.run(live())
