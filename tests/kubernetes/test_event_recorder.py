"""Events on pods, on a real API server: every one is written in the end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.beds.kubernetes import ControlPlane, Part, eventually
from tests.kubernetes.live import client, eventually_so

from wattloom.kubernetes.client import event_loop
from wattloom.kubernetes.client.api import Api
from wattloom.kubernetes.client.event_aggregator import Pod
from wattloom.kubernetes.client.event_recorder import EVENTS, EventRecorder


@asynccontextmanager
async def _telling(api: Api, **options: Any) -> AsyncIterator[EventRecorder]:
    recorder = EventRecorder(api, instance="test-1", **options)
    task = asyncio.create_task(recorder.run())
    try:
        yield recorder
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _events(api: Api, space: str) -> list[dict[str, Any]]:
    return (await api.list(EVENTS, space)).items


def test_a_scheduled_pod_is_told_of_in_the_words_given(control_plane: ControlPlane, fresh_namespace: str) -> None:
    async def live() -> None:
        async with client(control_plane) as api, _telling(api) as recorder:
            recorder.scheduled(Pod(fresh_namespace, "web", "uid-1"), "on n1: 3 W more, " + "ü" * 1000)
            await asyncio.wait_for(recorder.drain(), 30)
            (event,) = await _events(api, fresh_namespace)
            assert event["regarding"]["name"] == "web"
            assert event["regarding"]["uid"] == "uid-1"
            assert (event["reason"], event["type"], event["action"]) == ("Scheduled", "Normal", "Binding")
            assert (event["reportingController"], event["reportingInstance"]) == ("wattloom", "test-1")
            assert event["note"].startswith("on n1: 3 W more")
            assert (recorder.written, recorder.dropped, len(recorder)) == (1, 0, 0)

    event_loop.run(live())


def test_a_pod_that_waits_has_one_event_with_a_count(control_plane: ControlPlane, fresh_namespace: str) -> None:
    async def live() -> None:
        pod = Pod(fresh_namespace, "web", "uid-1")
        async with client(control_plane) as api, _telling(api, repeat_s=0.2) as recorder:
            for _ in range(30):
                recorder.failed(pod, "no node has 3 cores free")
                await asyncio.sleep(0.01)
            await asyncio.wait_for(recorder.drain(), 30)
            (event,) = await _events(api, fresh_namespace)
            assert event["series"]["count"] == 30
            assert (event["reason"], event["type"]) == ("FailedScheduling", "Warning")
            assert recorder.written < 10
            recorder.failed(pod, "no watts left")
            await asyncio.wait_for(recorder.drain(), 30)
            notes = sorted(each["note"] for each in await _events(api, fresh_namespace))
            assert notes == ["no node has 3 cores free", "no watts left"]

    event_loop.run(live())


def test_an_event_that_expired_is_made_again(control_plane: ControlPlane, fresh_namespace: str) -> None:
    async def live() -> None:
        pod = Pod(fresh_namespace, "web", "uid-1")
        async with client(control_plane) as api, _telling(api, repeat_s=0) as recorder:
            recorder.failed(pod, "no room")
            await asyncio.wait_for(recorder.drain(), 30)
            (event,) = await _events(api, fresh_namespace)
            await api.delete(EVENTS, event["metadata"]["name"], fresh_namespace)
            recorder.failed(pod, "no room")
            await asyncio.wait_for(recorder.drain(), 30)
            (event,) = await _events(api, fresh_namespace)
            assert event["series"]["count"] == 2

    event_loop.run(live())


def test_what_is_refused_for_good_is_dropped_and_counted(control_plane: ControlPlane, fresh_namespace: str) -> None:
    path = control_plane.kubeconfig_of(control_plane.access_of_user("mute"), "mute")

    async def live() -> None:
        async with client(control_plane, path) as api, _telling(api) as recorder:
            recorder.scheduled(Pod(fresh_namespace, "web", "uid-1"), "on n1")
            await asyncio.wait_for(recorder.drain(), 30)
            assert (recorder.written, recorder.dropped) == (0, 1)

    event_loop.run(live())


def test_while_bindings_wait_only_one_writer_goes_on(control_plane: ControlPlane, fresh_namespace: str) -> None:
    async def live() -> None:
        busy = True
        async with client(control_plane) as api, _telling(api, writers=4, give_way=lambda: busy) as recorder:
            most = 0
            for number in range(60):
                recorder.scheduled(Pod(fresh_namespace, f"p{number}", f"u{number}"), "on n1")
            while recorder.written < 30:
                await asyncio.sleep(0)
                most = max(most, recorder._busy)
            assert most == 1
            busy = False
            recorder.go_on()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert recorder._busy == 4
            await asyncio.wait_for(recorder.drain(), 30)
            assert len(await _events(api, fresh_namespace)) == 60

    event_loop.run(live())


def test_no_event_is_lost_and_none_doubled_when_the_server_dies_in_between(
    breakable: ControlPlane, fresh_namespace: str
) -> None:
    plane, space = breakable, fresh_namespace

    def break_it() -> None:
        plane.kill(Part.API_SERVER)
        plane.start_part(Part.API_SERVER)
        eventually(plane.api.ready)

    async def live() -> None:
        async with client(plane) as api, _telling(api) as recorder:
            for number in range(400):
                recorder.scheduled(Pod(space, f"p{number}", f"u{number}"), "on n1")
            await eventually_so(lambda: recorder.written > 20)
            await asyncio.to_thread(break_it)
            await asyncio.wait_for(recorder.drain(), 90)
            names = [event["regarding"]["name"] for event in await _events(api, space)]
            assert sorted(names) == sorted(f"p{number}" for number in range(400))
            assert (recorder.written, recorder.dropped) == (400, 0)

    event_loop.run(live())
