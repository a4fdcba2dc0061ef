"""One kind of object kept in step with a real API server, through everything that can happen to the stream."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.beds.kubernetes import ControlPlane, Part, eventually
from tests.beds.kubernetes.fleet import add_namespace
from tests.kubernetes.live import MAPS, Map, a_map, client, eventually_so, relayed

from wattloom.kubernetes.client import event_loop
from wattloom.kubernetes.client.api import Api
from wattloom.kubernetes.client.backoff import Backoff
from wattloom.kubernetes.client.reading import Metadata, Unreadable
from wattloom.kubernetes.client.reflector import Living, Reflector
from wattloom.kubernetes.client.resource import Resource


class Notes:
    """Listens, and keeps what follows from what it heard."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []
        self.state: dict[str, dict[str, str]] = {}
        self.broken: list[Unreadable] = []

    def changed(self, object: Map, old: Map | None) -> None:
        name = object.metadata.name
        assert (old is None) == (name not in self.state)
        self.heard.append(("changed" if old else "added", name))
        self.state[name] = object.data or {}
        if name == "poison":
            raise ValueError("this consumer cannot take it")

    def deleted(self, object: Map) -> None:
        self.heard.append(("deleted", object.metadata.name))
        del self.state[object.metadata.name]

    def unreadable(self, object: Unreadable) -> None:
        self.broken.append(object)


@asynccontextmanager
async def _running(api: Api, notes: Notes, space: str, **options: Any) -> AsyncIterator[Reflector[Map]]:
    options.setdefault("fields", "metadata.name!=kube-root-ca.crt")
    reflector = Reflector(api, MAPS, notes, namespace=space, backoff=Backoff(0.05, 0.5), **options)
    task = asyncio.create_task(reflector.run())
    try:
        await asyncio.wait_for(reflector.synced.wait(), 30)
        yield reflector
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def test_what_is_there_is_told_first_and_then_what_happens(control_plane: ControlPlane, fresh_namespace: str) -> None:
    async def live() -> list[tuple[str, str]]:
        notes, space = Notes(), fresh_namespace
        async with client(control_plane) as api:
            for name in ("a", "b", "c"):
                await api.post(MAPS, a_map(name), space)
            async with _running(api, notes, space, page=2) as reflector:
                assert sorted(notes.state) == ["a", "b", "c"]
                await api.patch(MAPS, {"data": {"x": "1"}}, "b", space)
                await api.delete(MAPS, "a", space)
                await api.post(MAPS, a_map("d"), space)
                await eventually_so(lambda: len(notes.heard) == 6)
                assert len(reflector) == 3
                assert notes.state["b"] == {"x": "1"}
        return notes.heard[3:]

    assert event_loop.run(live()) == [("changed", "b"), ("deleted", "a"), ("added", "d")]


def test_what_is_over_is_told_with_its_last_state_and_not_kept(
    control_plane: ControlPlane, fresh_namespace: str
) -> None:
    class Hears(Notes):
        last: dict[str, str] | None = None

        def deleted(self, object: Map) -> None:
            super().deleted(object)
            self.last = object.data

    over = Living(
        "metadata.name!=kube-root-ca.crt", "metadata.name!=kube-root-ca.crt", lambda each: "over" in (each.data or {})
    )

    async def live() -> None:
        notes, space = Hears(), fresh_namespace
        async with client(control_plane) as api, _running(api, notes, space, fields=over) as reflector:
            await api.post(MAPS, a_map("a"), space)
            await api.patch(MAPS, {"data": {"over": "well"}}, "a", space)
            await eventually_so(lambda: len(notes.heard) == 2)
            assert (notes.heard[1], notes.last, len(reflector)) == (("deleted", "a"), {"over": "well"}, 0)
            await api.patch(MAPS, {"data": {"more": "1"}}, "a", space)
            await api.delete(MAPS, "a", space)
            await api.post(MAPS, a_map("b", over="from the start"), space)
            await api.post(MAPS, a_map("a"), space)  # another one of that name
            await eventually_so(lambda: len(notes.heard) == 3)
            assert notes.heard[2] == ("added", "a")
            assert len(reflector) == 1

    event_loop.run(live())


def test_how_long_nothing_was_heard_is_known_and_over_once_a_watch_stands(
    control_plane: ControlPlane, fresh_namespace: str, tmp_path: Path
) -> None:
    async def live() -> None:
        async with (
            relayed(control_plane, tmp_path) as (api, relay),
            _running(api, Notes(), fresh_namespace) as reflector,
        ):
            assert reflector.failing_s == 0.0
            relay.answers_to_lose = 1_000_000
            relay.cut()
            await eventually_so(lambda: reflector.failing_s > 1.5)
            heard = reflector.heard
            relay.answers_to_lose = 0
            await eventually_so(lambda: reflector.failing_s == 0.0)
            assert reflector.heard >= heard

    event_loop.run(live())


def test_a_listener_that_fails_is_logged_and_goes_on_listening(
    control_plane: ControlPlane, fresh_namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def live() -> list[tuple[str, str]]:
        notes = Notes()
        async with client(control_plane) as api, _running(api, notes, fresh_namespace):
            await api.post(MAPS, a_map("poison"), fresh_namespace)
            await api.post(MAPS, a_map("food"), fresh_namespace)
            await eventually_so(lambda: len(notes.heard) == 2)
        return notes.heard

    with caplog.at_level(logging.ERROR):
        assert event_loop.run(live()) == [("added", "poison"), ("added", "food")]
    assert "this consumer cannot take it" in caplog.text


def test_a_cut_wire_is_taken_up_where_it_was_without_a_new_list(
    control_plane: ControlPlane, fresh_namespace: str, tmp_path: Path
) -> None:
    async def live() -> None:
        notes, space = Notes(), fresh_namespace
        async with (
            client(control_plane) as other,
            relayed(control_plane, tmp_path) as (api, relay),
            _running(api, notes, space) as reflector,
        ):
            for number in range(5):
                relay.cut()
                await other.post(MAPS, a_map(f"m{number}"), space)
                await eventually_so(lambda: len(notes.heard) == number + 1)  # noqa: B023
            assert reflector.counts.lists == 1
            assert reflector.counts.restarts >= 1
            assert reflector.failure is None

    event_loop.run(live())


def test_what_happened_while_the_server_was_away_is_told_as_the_difference(
    breakable: ControlPlane, tmp_path: Path
) -> None:
    plane = breakable
    space = add_namespace(plane.api, "away")

    async def live() -> None:
        notes = Notes()
        async with relayed(plane, tmp_path) as (api, relay):
            for name in ("stays", "goes", "changes", "again"):
                await api.post(MAPS, a_map(name), space)
            async with _running(api, notes, space, slim=lambda each: Map(each.metadata)) as reflector:
                heard = len(notes.heard)
                relay.answers_to_lose = 1_000_000
                relay.cut()
                await asyncio.to_thread(_meanwhile, plane, space)
                assert len(notes.heard) == heard  # nothing of it was seen as it happened
                relay.answers_to_lose = 0
                await eventually_so(lambda: len(notes.heard) >= heard + 5, 60)
                difference = notes.heard[heard:]
                assert sorted(difference) == [
                    ("added", "again"),
                    ("added", "new"),
                    ("changed", "changes"),
                    ("deleted", "again"),
                    ("deleted", "goes"),
                ]
                assert difference.index(("deleted", "again")) < difference.index(("added", "again"))
                assert (reflector.counts.expired, reflector.counts.lists) == (1, 2)
                await api.post(MAPS, a_map("after"), space)
                await eventually_so(lambda: "after" in notes.state)

    event_loop.run(live())


def _meanwhile(plane: ControlPlane, space: str) -> None:
    path = f"/api/v1/namespaces/{space}/configmaps"
    plane.api.delete(f"{path}/goes")
    plane.api.delete(f"{path}/again")
    plane.api.post(path, a_map("again", second="yes"))
    plane.api.post(path, a_map("new"))
    plane.api.put(f"{path}/changes", a_map("changes", x="2"))
    plane.restart(Part.API_SERVER, kill=True)  # so that it no longer knows what was before
    eventually(plane.api.ready)


def test_an_object_that_cannot_be_read_is_told_and_the_others_go_on(
    control_plane: ControlPlane, fresh_namespace: str
) -> None:
    class Data(msgspec.Struct):
        size: str
        colour: int | None = None

    class Sized(msgspec.Struct):
        metadata: Metadata
        data: Data

    sized = Resource("", "v1", "configmaps", Sized)

    class Hears:
        def __init__(self) -> None:
            self.names: list[str] = []
            self.broken: list[str] = []

        def changed(self, object: Sized, old: Sized | None) -> None:
            self.names.append(object.metadata.name)

        def deleted(self, object: Sized) -> None:
            self.names.remove(object.metadata.name)

        def unreadable(self, object: Unreadable) -> None:
            self.broken.append(object.metadata.name)

    async def live() -> None:
        hears, space = Hears(), fresh_namespace
        async with client(control_plane) as api:
            await api.post(MAPS, a_map("good", size="1"), space)
            await api.post(MAPS, a_map("bad", size="1", colour="red"), space)
            reflector = Reflector(api, sized, hears, namespace=space, fields="metadata.name!=kube-root-ca.crt")
            task = asyncio.create_task(reflector.run())
            await asyncio.wait_for(reflector.synced.wait(), 30)
            assert (hears.names, hears.broken) == (["good"], ["bad"])
            await api.post(MAPS, a_map("worse", colour="red"), space)
            await api.post(MAPS, a_map("fine", size="2"), space)
            await eventually_so(lambda: "fine" in hears.names)
            assert hears.broken == ["bad", "worse"]
            assert reflector.counts.unreadable == 2
            task.cancel()
            await asyncio.wait([task])

    event_loop.run(live())


def test_what_it_may_not_see_is_told_and_tried_again(
    control_plane: ControlPlane, fresh_namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = control_plane.kubeconfig_of(control_plane.access_of_user("watcher"), "watcher")

    async def live() -> None:
        async with client(control_plane, path) as api:
            reflector = Reflector(api, MAPS, Notes(), namespace=fresh_namespace, backoff=Backoff(0.01, 0.05))
            task = asyncio.create_task(reflector.run())
            await eventually_so(lambda: reflector.counts.failures > 3)
            assert not reflector.synced.is_set()
            assert "cannot list" in str(reflector.failure)
            task.cancel()
            await asyncio.wait([task])

    event_loop.run(live())
    assert caplog.text.count("cannot list") == 1  # said once, not at every try
