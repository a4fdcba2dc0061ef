"""The typed client on a real API server."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from tests.beds.kubernetes import ControlPlane
from tests.kubernetes.live import MAPS, PODS, Map, a_map, client

from wattloom.kubernetes.client import event_loop
from wattloom.kubernetes.client.errors import (
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Unauthorized,
    Unreachable,
)
from wattloom.kubernetes.client.reading import Metadata
from wattloom.kubernetes.client.resource import Resource


def test_an_object_is_made_read_changed_and_deleted(control_plane: ControlPlane, fresh_namespace: str) -> None:
    async def live() -> None:
        space = fresh_namespace
        async with client(control_plane) as api:
            made = await api.post(MAPS, a_map("one", colour="red"), space)
            assert made.data == {"colour": "red"}
            patched = await api.patch(MAPS, {"data": {"size": "1"}}, "one", space)
            assert patched.data == {"colour": "red", "size": "1"}
            put = await api.put(MAPS, a_map("one", colour="blue"), "one", space)
            assert await api.get(MAPS, "one", space) == put
            assert put.data == {"colour": "blue"}
            with pytest.raises(Conflict):
                await api.delete(MAPS, "one", space, uid="another")
            await api.delete(MAPS, "one", space, uid=put.metadata.uid)
            with pytest.raises(NotFound, match='configmaps "one" not found'):
                await api.get(MAPS, "one", space)

    event_loop.run(live())


def test_a_list_comes_in_pages_of_one_version(control_plane: ControlPlane, fresh_namespace: str) -> None:
    async def live() -> None:
        async with client(control_plane) as api:
            await asyncio.gather(*(api.post(MAPS, a_map(f"m{n:02}"), fresh_namespace) for n in range(25)))
            pages = [page async for page in api.pages(MAPS, fresh_namespace, limit=10)]
            assert [len(page.items) for page in pages] == [10, 10, 5]
            assert len({page.version for page in pages}) == 1
            whole = await api.list(MAPS, fresh_namespace, fields="metadata.name!=m07")
            assert [each.metadata.name for each in whole.items] == [f"m{n:02}" for n in range(25) if n != 7]

    event_loop.run(live())


def test_a_watch_tells_what_happens_after_the_list(control_plane: ControlPlane, fresh_namespace: str) -> None:
    async def live() -> list[tuple[str, str]]:
        seen: list[tuple[str, str]] = []
        async with client(control_plane) as api:
            await api.post(MAPS, a_map("before"), fresh_namespace)
            version = (await api.list(MAPS, fresh_namespace)).version
            async with api.watch(MAPS, version, fresh_namespace, timeout_s=60) as watch:
                await api.post(MAPS, a_map("after"), fresh_namespace)
                await api.patch(MAPS, {"data": {"x": "y"}}, "before", fresh_namespace)
                await api.delete(MAPS, "after", fresh_namespace)
                async for kind, found in watch:
                    seen.append((kind, found.metadata.name))
                    if len(seen) == 3:
                        return seen
        return seen

    assert event_loop.run(live()) == [("ADDED", "after"), ("MODIFIED", "before"), ("DELETED", "after")]


def test_a_watch_ends_when_its_time_is_over(control_plane: ControlPlane, fresh_namespace: str) -> None:
    async def live() -> set[str]:
        async with client(control_plane) as api:
            version = (await api.list(MAPS, fresh_namespace)).version
            async with api.watch(MAPS, version, fresh_namespace, timeout_s=1) as watch:
                return {kind async for kind, _ in watch}

    assert event_loop.run(live()) <= {"BOOKMARK"}


def test_a_version_that_is_no_longer_kept_is_gone(control_plane: ControlPlane, fresh_namespace: str) -> None:
    """Of events the API server keeps nothing itself, so what etcd has forgotten is gone."""
    events = Resource("", "v1", "events", dict[str, Any])
    control_plane.compact()

    async def live() -> None:
        async with client(control_plane) as api, api.watch(events, "1", fresh_namespace, timeout_s=5) as watch:
            await watch.changes()

    with pytest.raises(Gone, match="too old"):
        event_loop.run(live())


def test_one_object_that_does_not_fit_its_type_does_not_hold_back_the_others(
    control_plane: ControlPlane, fresh_namespace: str
) -> None:
    class Data(msgspec.Struct):
        size: int

    class Sized(msgspec.Struct):
        metadata: Metadata
        data: Data

    sized = Resource("", "v1", "configmaps", Sized)

    async def live() -> None:
        async with client(control_plane) as api:
            await api.post(MAPS, a_map("bad", size="big"), fresh_namespace)
            page = await api.list(sized, fresh_namespace)
            assert page.items == []
            (broken,) = page.unreadable
            assert (broken.metadata.name, broken.metadata.namespace) == ("bad", fresh_namespace)
            assert "$.data.size" in broken.problem

    event_loop.run(live())


def test_what_is_not_allowed_says_which_verb_on_what(control_plane: ControlPlane, fresh_namespace: str) -> None:
    path = control_plane.kubeconfig_of(control_plane.access_of_user("stranger"), "stranger")

    async def live() -> None:
        async with client(control_plane, path) as api:
            await api.list(PODS, fresh_namespace)

    with pytest.raises(Forbidden, match=r'not allowed .*"stranger" cannot list resource "pods".*Role'):
        event_loop.run(live())


@pytest.mark.parametrize(
    ("body", "error", "words"),
    [
        (a_map("there"), Conflict, "already exists"),
        (a_map("There!"), Invalid, "metadata.name"),
        ({"kind": "Nonsense"}, Invalid, "apiVersion|Kind|kind"),
    ],
)
def test_what_the_server_does_not_take_comes_with_its_words(
    control_plane: ControlPlane, fresh_namespace: str, body: dict[str, Any], error: type[ApiError], words: str
) -> None:
    async def live() -> None:
        async with client(control_plane) as api:
            await api.post(MAPS, a_map("there"), fresh_namespace)
            await api.post(MAPS, body, fresh_namespace)

    with pytest.raises(error, match=words):
        event_loop.run(live())


def test_two_who_change_the_same_version_do_not_overwrite_each_other(
    control_plane: ControlPlane, fresh_namespace: str
) -> None:
    async def live() -> list[Map | BaseException]:
        async with client(control_plane) as api:
            first = await api.post(MAPS, a_map("one"), fresh_namespace)
            bodies = [a_map("one", who=who) for who in ("a", "b")]
            for body in bodies:
                body["metadata"]["resourceVersion"] = first.metadata.resource_version
            return await asyncio.gather(
                *(api.put(MAPS, body, "one", fresh_namespace) for body in bodies), return_exceptions=True
            )

    kinds = sorted(type(each).__name__ for each in event_loop.run(live()))
    assert kinds == ["Conflict", "Map"]


def _edited(control_plane: ControlPlane, path: Path, **changes: Any) -> Path:
    config = yaml.safe_load(control_plane.kubeconfig.read_text())
    config["clusters"][0]["cluster"].update(changes.get("cluster", {}))
    if "user" in changes:
        config["users"][0]["user"] = changes["user"]
    for key in changes.get("without", ()):
        config["clusters"][0]["cluster"].pop(key, None)
    path.write_text(yaml.safe_dump(config))
    return path


CA = ("certificate-authority", "certificate-authority-data")


def test_a_server_whose_certificate_is_not_of_our_authority_is_not_talked_to(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    path = _edited(control_plane, tmp_path / "config", without=CA)

    async def live(path: Path) -> None:
        async with client(control_plane, path) as api:
            await api.list(PODS)

    with pytest.raises(Unreachable, match="is not who it should be") as caught:
        event_loop.run(live(path))
    assert not caught.value.sent
    skipping = {"insecure-skip-tls-verify": True}
    event_loop.run(live(_edited(control_plane, tmp_path / "config", without=CA, cluster=skipping)))
    named = {"tls-server-name": "elsewhere.example"}
    with pytest.raises(Unreachable, match="is not who it should be"):
        event_loop.run(live(_edited(control_plane, tmp_path / "config", cluster=named)))


def test_a_token_nobody_knows_is_told_so(control_plane: ControlPlane, tmp_path: Path) -> None:
    path = _edited(control_plane, tmp_path / "config", user={"token": "nobody-knows"})

    async def live() -> None:
        async with client(control_plane, path) as api:
            await api.list(PODS)

    with pytest.raises(Unauthorized, match="does not accept the credentials"):
        event_loop.run(live())


def test_a_token_file_that_vanished_is_told_by_name(control_plane: ControlPlane, tmp_path: Path) -> None:
    path = _edited(control_plane, tmp_path / "config", user={"tokenFile": "gone"})

    async def live() -> None:
        async with client(control_plane, path) as api:
            await api.list(PODS)

    with pytest.raises(Unauthorized, match=r"users\[0\].user.tokenFile: cannot read .*gone"):
        event_loop.run(live())
