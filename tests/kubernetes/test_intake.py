"""Pods on their way to the engine and to their nodes: none of them stands in the way of the others."""

import asyncio
from collections.abc import Coroutine
from itertools import count
from typing import Any

import msgspec
import pytest
from tests.kubernetes.running import Running, nodes, nodes_of, pods, told

from wattloom.kubernetes import looking_after
from wattloom.kubernetes import metrics as m
from wattloom.kubernetes.answering import Answering
from wattloom.kubernetes.binding import Bound, Outcome
from wattloom.kubernetes.credentials import Fixed
from wattloom.kubernetes.intake import Intake
from wattloom.kubernetes.objects import Node, Pod
from wattloom.kubernetes.options import Options
from wattloom.kubernetes.pod_entry import At, PodEntry
from wattloom.kubernetes.scheduler import Scheduler
from wattloom.kubernetes.target import Target
from wattloom.scheduling.state import Stage
from wattloom.testing.kubernetes import Api, eventually

ABSURD = ["1e310", "1e999", "9" * 5_000, "2000000"]
"""The API server takes all of these."""


def pod(name: str, cpu: str = "1", **labels: str) -> Pod:
    requests = {"resources": {"requests": {"cpu": cpu}}}
    meta = {"name": name, "namespace": "shop", "uid": f"{name}-uid", "labels": labels}
    return msgspec.convert({"metadata": meta, "spec": {"schedulerName": "wattloom", "containers": [requests]}}, Pod)


def node(name: str, cpu: str = "8") -> Node:
    has = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return msgspec.convert({"metadata": {"name": name}, "status": {"allocatable": has, "capacity": has}}, Node)


def scheduler(**options: Any) -> Scheduler:
    """One that decides and is told of its cluster by the test: it is not run."""
    made = Scheduler(Target("http://127.0.0.1:1", Fixed()), Options(**{"http": "", "leader_elect": False, **options}))
    made.deciding_now = True
    return made


def sees(made: Scheduler, *seen: Pod | Node) -> None:
    for each in seen:
        if isinstance(each, Pod):
            made.state.pods.changed(each)
        else:
            made.state.nodes.changed(each)


def entry_of(made: Scheduler, name: str) -> PodEntry:
    return made.state.pods.by_uid[f"{name}-uid"]


def lived(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 30))


async def until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0.001)


async def never(namespace: str, name: str, uid: str, node: str) -> Outcome:
    return await asyncio.Future[Outcome]()


# -- to the engine -----------------------------------------------------------------------------------------------------


def test_a_pod_that_cannot_be_dealt_with_is_left_aside_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        submitted: list[str] = []

        def submit(entry: PodEntry) -> bool:
            if entry.reference.name == "bad":
                raise OverflowError("too large")
            submitted.append(entry.reference.name)
            return True

        intake = Intake(submit, lambda: 0, most_under_way=2)
        for name in ("a", "bad", "c"):
            intake.put(PodEntry(pod(name)))
        intake.open()
        running = asyncio.create_task(intake.run())
        await until(lambda: len(submitted) == 2 or running.done())
        assert submitted == ["a", "c"]
        assert intake.failed == 1
        intake.put(PodEntry(pod("d")))
        await until(lambda: len(submitted) == 3 or running.done())
        assert not running.done()
        running.cancel()

    lived(story())
    assert "shop/bad is left aside" in caplog.text


def test_pods_left_aside_are_counted_as_contradictions() -> None:
    async def story() -> None:
        made = scheduler()
        made.intake.failed = 2
        assert Answering(made)._figures()[m.REFUSED] == {(): 2.0}

    lived(story())


# -- to their nodes ----------------------------------------------------------------------------------------------------


def test_a_binding_that_fails_in_an_unforeseen_way_is_tried_again() -> None:
    async def story() -> None:
        made = scheduler()

        async def fails(namespace: str, name: str, uid: str, node: str) -> Outcome:
            raise ValueError("what is this?")

        made.binder.bind = fails  # type: ignore[method-assign]
        sees(made, node("n1"), pod("one"))
        entry = entry_of(made, "one")
        made.state.pods.submit(entry)
        assert made.carrying.under_way == 1
        await until(lambda: made.carrying.under_way == 0)
        assert entry.at is At.QUEUED
        assert entry.task is not None
        record = made.deciding.engine.ledger.tasks[entry.task.id]
        assert record.stage is Stage.BACKING_OFF
        made.deciding.stop()

    lived(story())


def test_a_pod_that_is_placed_just_when_the_last_binder_ends_is_bound() -> None:
    async def story() -> None:
        made = scheduler(bind_concurrency=1)
        bound: list[str] = []

        async def at_once(namespace: str, name: str, uid: str, node: str) -> Outcome:
            bound.append(name)
            return Bound(node)

        made.binder.bind = at_once  # type: ignore[method-assign]
        sees(made, node("n1"), pod("one"), pod("two"))
        made.state.pods.submit(entry_of(made, "one"))
        # In the very turn of the loop in which the first is bound, right after it.
        asyncio.get_running_loop().call_soon(made.state.pods.submit, entry_of(made, "two"))
        for _ in range(10):
            await asyncio.sleep(0)
        assert bound == ["one", "two"]
        made.deciding.stop()

    lived(story())


# -- why they wait -----------------------------------------------------------------------------------------------------


def test_others_have_their_turns_while_many_owners_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock finds a second gone."""

    async def story() -> None:
        clock = count()
        monkeypatch.setattr(looking_after, "monotonic", lambda: float(next(clock)))
        made = scheduler()
        names = [f"p{number}" for number in range(20)]
        sees(made, node("n1", cpu="1"), *(pod(name, cpu="4", job=name) for name in names))
        for name in names:
            assert made.state.pods.submit(entry_of(made, name))
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        other = asyncio.create_task(others())
        parts = made.state.pods, made.deciding, made.teller, made.conditions
        assert await looking_after.tell_why_they_wait(*parts, 1_000) == 20
        assert turns >= 20
        assert await looking_after.tell_why_they_wait(*parts, 1_000) == 0
        assert len(made.conditions) == 20
        other.cancel()
        made.deciding.stop()

    lived(story())


def test_a_pod_that_got_its_place_while_others_had_their_turn_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        clock = count()
        monkeypatch.setattr(looking_after, "monotonic", lambda: float(next(clock)))
        made = scheduler()
        made.binder.bind = never  # type: ignore[method-assign]
        sees(made, node("n1", cpu="1"), pod("first", cpu="4"), pod("second", cpu="4", job="second"))
        for name in ("first", "second"):
            assert made.state.pods.submit(entry_of(made, name))
        asyncio.get_running_loop().call_soon(sees, made, node("n2"))
        parts = made.state.pods, made.deciding, made.teller, made.conditions
        assert await looking_after.tell_why_they_wait(*parts, 1_000) == 0
        assert entry_of(made, "second").at is At.BINDING
        await made.carrying.end(0.0)
        made.deciding.stop()

    lived(story())


# -- on a real API server ----------------------------------------------------------------------------------------------


def test_absurd_amounts_are_told_and_keep_nobody_else_waiting(running: Running, api: Api, space: str) -> None:
    nodes(api, "n1")
    for number, amount in enumerate(ABSURD):
        pods(api, space, f"cpu-{number}", cpu=amount)
        pods(api, space, f"there-{number}", cpu=amount, node="n1")
    pods(api, space, "memory", memory="1e310")
    pods(api, space, "other", resources={"example.com/gpu": "1e310"})
    for name in (*(f"cpu-{number}" for number in range(len(ABSURD))), "memory", "other"):
        told(api, space, name, "FailedScheduling", r"spec\.containers\.resources: .*(cpu|memory|gpu|digits)")
    path = f"/api/v1/namespaces/{space}/pods"
    conditions = eventually(lambda: api.get(f"{path}/cpu-0")["status"].get("conditions"))
    assert conditions[0]["reason"] == "SchedulerError"
    nodes(api, "n2")
    pods(api, space, "plain", cpu="1")
    assert eventually(lambda: nodes_of(api, space)["plain"]) == "n2"
    assert running.scheduler.intake.failed == 0
