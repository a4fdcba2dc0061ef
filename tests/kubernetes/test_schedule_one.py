"""Pods on their way to the engine and to their nodes: none of them stands in the way of the others."""

import asyncio
from collections.abc import Coroutine
from itertools import count
from typing import Any

import msgspec
import pytest
from tests.beds.kubernetes import Api, eventually
from tests.kubernetes.running import Running, nodes, nodes_of, pods, told

from wattloom.kubernetes import metrics as m
from wattloom.kubernetes.client.credentials import Fixed
from wattloom.kubernetes.client.target import Target
from wattloom.kubernetes.model.objects import Node, Pod
from wattloom.kubernetes.options import Options
from wattloom.kubernetes.scheduler import status_reporter
from wattloom.kubernetes.scheduler.answering import Answering
from wattloom.kubernetes.scheduler.binding import AlreadyBound, Bound, NodeGone, Outcome, PodGone, Refused, Unsure
from wattloom.kubernetes.scheduler.schedule_one import BindQueue, SchedulingQueue
from wattloom.kubernetes.scheduler.scheduler import Scheduler
from wattloom.kubernetes.state.pod_entry import At, PodEntry
from wattloom.scheduling.state import Stage

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

        queue = SchedulingQueue(submit, lambda: 0, most_under_way=2)
        for name in ("a", "bad", "c"):
            queue.put(PodEntry(pod(name)))
        queue.open()
        running = asyncio.create_task(queue.run())
        await until(lambda: len(submitted) == 2 or running.done())
        assert submitted == ["a", "c"]
        assert queue.failed == 1
        queue.put(PodEntry(pod("d")))
        await until(lambda: len(submitted) == 3 or running.done())
        assert not running.done()
        running.cancel()

    lived(story())
    assert "shop/bad is left aside" in caplog.text


def test_pods_left_aside_are_counted_as_contradictions() -> None:
    async def story() -> None:
        made = scheduler()
        made.scheduling.queue.failed = 2
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
        assert made.scheduling.binds.under_way == 1
        await until(lambda: made.scheduling.binds.under_way == 0)
        assert entry.at is At.QUEUED
        assert entry.task is not None
        record = made.driver.engine.ledger.tasks[entry.task.id]
        assert record.stage is Stage.BACKING_OFF
        made.driver.stop()

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
        made.driver.stop()

    lived(story())


OUTCOMES = [
    pytest.param(Bound("n1"), At.BINDING, Stage.PLACED, 1, id="bound: it keeps its place and its owner is told"),
    pytest.param(AlreadyBound("n2"), At.BINDING, Stage.PLACED, 0, id="bound by others: the watch says where it is"),
    pytest.param(NodeGone("n1"), At.QUEUED, Stage.BACKING_OFF, 0, id="its node is gone: the place is given back"),
    pytest.param(Refused("no"), At.QUEUED, Stage.BACKING_OFF, 0, id="refused: the place is given back"),
    pytest.param(Unsure("?"), At.QUEUED, Stage.BACKING_OFF, 0, id="nobody knows: the place is given back"),
    pytest.param(PodGone(), At.ASIDE, None, 0, id="deleted: the engine has it no more"),
]


@pytest.mark.parametrize(("outcome", "at", "stage", "events"), OUTCOMES)
def test_each_outcome_of_a_binding_keeps_or_undoes_what_was_assumed(
    outcome: Outcome, at: At, stage: int | None, events: int
) -> None:
    async def story() -> None:
        made = scheduler()

        async def answers(namespace: str, name: str, uid: str, node: str) -> Outcome:
            return outcome

        made.binder.bind = answers  # type: ignore[method-assign]
        sees(made, node("n1"), pod("one"))
        entry = entry_of(made, "one")
        assert made.scheduling.submit(entry)
        assert (entry.at, entry.node) == (At.BINDING, "n1")
        task = entry.task
        assert task is not None
        await until(lambda: made.scheduling.binds.under_way == 0)
        record = made.driver.engine.ledger.tasks.get(task.id)
        assert (entry.at, entry.node) == (at, "n1" if at is At.BINDING else "")
        assert (record.stage if record is not None and record.stage is not Stage.ENDED else None) is stage
        assert len(made.recorder) == events
        made.driver.stop()

    lived(story())


def test_bindings_go_in_order_and_no_more_at_once_than_allowed() -> None:
    async def story() -> None:
        begun: list[str] = []
        ends = [asyncio.Event() for _ in range(3)]

        async def bind(entry: PodEntry, node: str) -> None:
            begun.append(node)
            await ends[len(begun) - 1].wait()

        done: list[int] = []
        binds = BindQueue(bind, lambda entry, why: None, lambda: done.append(1), in_flight=2)
        for name in ("n1", "n2", "n3"):
            binds.put(PodEntry(pod(name)), name)
        await asyncio.sleep(0)
        assert (begun, binds.under_way) == (["n1", "n2"], 3)
        ends[0].set()
        await until(lambda: len(begun) == 3)
        assert (begun[-1], binds.under_way) == ("n3", 2)
        for end in ends:
            end.set()
        await binds.end(10.0)
        assert (binds.under_way, len(done)) == (0, 3)

    lived(story())


# -- why they wait -----------------------------------------------------------------------------------------------------


def test_others_have_their_turns_while_many_owners_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock finds a second gone."""

    async def story() -> None:
        clock = count()
        monkeypatch.setattr(status_reporter, "monotonic", lambda: float(next(clock)))
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
        parts = made.state.pods, made.driver, made.recorder, made.conditions
        assert await status_reporter.tell_why_they_wait(*parts, 1_000) == 20
        assert turns >= 20
        assert await status_reporter.tell_why_they_wait(*parts, 1_000) == 0
        assert len(made.conditions) == 20
        other.cancel()
        made.driver.stop()

    lived(story())


def test_a_pod_that_got_its_place_while_others_had_their_turn_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        clock = count()
        monkeypatch.setattr(status_reporter, "monotonic", lambda: float(next(clock)))
        made = scheduler()
        made.binder.bind = never  # type: ignore[method-assign]
        sees(made, node("n1", cpu="1"), pod("first", cpu="4"), pod("second", cpu="4", job="second"))
        for name in ("first", "second"):
            assert made.state.pods.submit(entry_of(made, name))
        asyncio.get_running_loop().call_soon(sees, made, node("n2"))
        parts = made.state.pods, made.driver, made.recorder, made.conditions
        assert await status_reporter.tell_why_they_wait(*parts, 1_000) == 0
        assert entry_of(made, "second").at is At.BINDING
        await made.scheduling.binds.end(0.0)
        made.driver.stop()

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
    assert running.scheduler.scheduling.queue.failed == 0
