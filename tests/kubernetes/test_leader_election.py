"""One of several replicas leads, on a real API server, with real time."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.beds.kubernetes import ControlPlane, Part
from tests.kubernetes.live import client, eventually_so, relayed

from wattloom.errors import InputError
from wattloom.kubernetes.client import event_loop
from wattloom.kubernetes.client.api import Api
from wattloom.kubernetes.client.credentials import Fixed
from wattloom.kubernetes.client.leader_election import LEASES, LeaderElection, steady_s
from wattloom.kubernetes.client.target import Target

FAST = {"lease_s": 3.0, "renew_s": 2.0, "retry_s": 0.1}
"""Renewed far more often than a busy machine needs."""
SHORT = {"lease_s": 1.0, "renew_s": 0.7, "retry_s": 0.1}
"""Where what is claimed also holds for a leader that was too slow."""
LONG = {"lease_s": 60.0, "renew_s": 40.0, "retry_s": 0.05}
"""With a clock that the test sets."""


class Replica:
    """A candidate, and when it led."""

    def __init__(self, api: Api, name: str, space: str, **options: Any) -> None:
        self.spans: list[list[float]] = []
        self.election = LeaderElection(
            api, name, namespace=space, started=self._started, stopped=self._stopped, **{**FAST, **options}
        )
        self.task = asyncio.create_task(self.election.run())

    def _started(self) -> None:
        self.spans.append([steady_s()])

    def _stopped(self) -> None:
        self.spans[-1].append(steady_s())

    @property
    def leading(self) -> bool:
        return self.election.leading

    async def end(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


@asynccontextmanager
async def _replicas(api: Api, space: str, *names: str, **options: Any) -> AsyncIterator[list[Replica]]:
    replicas = [Replica(api, name, space, **options) for name in names]
    try:
        yield replicas
    finally:
        for replica in replicas:
            await replica.end()


async def _renewed(api: Api, space: str) -> str | None:
    return (await api.get(LEASES, "wattloom-scheduler", space)).spec.renew_time


def test_exactly_one_of_many_leads_and_the_others_know_who(control_plane: ControlPlane, fresh_namespace: str) -> None:
    async def live() -> None:
        async with client(control_plane) as api, _replicas(api, fresh_namespace, "a", "b", "c", "d") as replicas:
            await eventually_so(lambda: any(each.leading for each in replicas))
            begun = {await _renewed(api, fresh_namespace)}
            while len(begun) < 8:  # of them the others see every one, and take none for their own
                await asyncio.sleep(0.02)
                assert sum(each.leading for each in replicas) == 1
                begun.add(await _renewed(api, fresh_namespace))
            await eventually_so(lambda: all(each.election.holder for each in replicas))
            (leader,) = {each.election.holder for each in replicas}
            assert [each.election.identity for each in replicas if each.leading] == [leader]
            lease = await api.get(LEASES, "wattloom-scheduler", fresh_namespace)
            assert lease.spec.holder_identity == leader
            assert lease.spec.lease_duration_seconds == 3

    event_loop.run(live())


def test_a_leader_that_ends_gives_the_lease_back_and_another_leads_at_once(
    control_plane: ControlPlane, fresh_namespace: str
) -> None:
    async def live() -> None:
        async with client(control_plane) as api, _replicas(api, fresh_namespace, "a", lease_s=60.0) as (first,):
            await eventually_so(lambda: first.leading)
            async with _replicas(api, fresh_namespace, "b", lease_s=60.0) as (second,):
                await eventually_so(lambda: second.election.holder == "a")
                assert not second.leading
                await first.end()
                assert not first.leading
                await eventually_so(lambda: second.leading, 20)  # far less than the lease
                assert first.spans[-1][1] <= second.spans[0][0]
                lease = await api.get(LEASES, "wattloom-scheduler", fresh_namespace)
                assert lease.spec.lease_transitions == 1

    event_loop.run(live())


def test_a_leader_that_is_cut_off_has_stopped_before_another_begins(
    control_plane: ControlPlane, fresh_namespace: str, tmp_path: Path
) -> None:
    async def live() -> None:
        async with (
            client(control_plane) as api,
            relayed(control_plane, tmp_path) as (cut_api, relay),
            _replicas(cut_api, fresh_namespace, "cut", **SHORT) as (cut,),
        ):
            await eventually_so(lambda: cut.leading)
            async with _replicas(api, fresh_namespace, "well", **SHORT) as (well,):
                await eventually_so(lambda: well.election.holder == "cut")
                relay.answers_to_lose = 1_000_000
                relay.cut()
                await eventually_so(lambda: well.leading, 30)
                assert not cut.leading
                assert cut.spans[0][1] < well.spans[0][0]
                relay.answers_to_lose = 0
                await eventually_so(lambda: cut.election.holder == "well")
                assert not cut.leading

    event_loop.run(live())


def test_clocks_that_disagree_by_hours_do_not_matter(
    control_plane: ControlPlane, fresh_namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def live() -> None:
        ahead_s = 7200.0

        def skewed() -> float:
            return steady_s() + ahead_s

        async with client(control_plane) as api, _replicas(api, fresh_namespace, "a", **LONG) as (first,):
            await eventually_so(lambda: first.leading)
            # The clock of the leader stands still in another century: nobody looks at it, but the lease must change.
            monkeypatch.setattr(
                "wattloom.kubernetes.client.leader_election._now", lambda: "1999-01-01T00:00:00.000000Z"
            )
            async with _replicas(api, fresh_namespace, "b", clock=skewed, **LONG) as (second,):
                for _ in range(4):  # in all far longer than the lease lasts
                    seen = second.election._seen
                    await eventually_so(partial(_is_another, second, seen))
                    assert first.leading
                    assert not second.leading
                    ahead_s += 0.6 * LONG["lease_s"]

    event_loop.run(live())


def _is_another(replica: Replica, seen: object) -> bool:
    return replica.election._seen != seen


def test_a_lease_whose_metadata_alone_is_touched_is_a_dead_leaders(
    control_plane: ControlPlane, fresh_namespace: str
) -> None:
    """Labels and annotations are written by anybody: they are no sign of life."""

    async def live() -> None:
        now = 1000.0
        async with client(control_plane) as api:
            dead = LeaderElection(api, "dead", namespace=fresh_namespace, clock=lambda: now)
            standby = LeaderElection(api, "standby", namespace=fresh_namespace, clock=lambda: now)
            assert await dead._try()
            for second in range(9):
                touch = {"metadata": {"annotations": {"example.com/touched": str(second)}}}
                await api.patch(LEASES, touch, "wattloom-scheduler", fresh_namespace)
                assert not await standby._try()
                now += 1.0
            now += 1.5
            assert await standby._try()

    event_loop.run(live())


def test_a_process_that_was_stopped_knows_at_once_that_it_no_longer_leads(
    control_plane: ControlPlane, fresh_namespace: str
) -> None:
    async def live() -> None:
        asleep_s = 0.0

        def clock() -> float:
            return steady_s() + asleep_s

        async with client(control_plane) as api, _replicas(api, fresh_namespace, "a", clock=clock) as (only,):
            await eventually_so(lambda: only.leading)
            asleep_s = 5.0
            assert not only.leading  # before its loop had a chance to run
            await eventually_so(lambda: len(only.spans) == 2)
            assert only.leading

    event_loop.run(live())


def test_without_the_server_the_leader_stops_in_time_and_leads_again_later(
    breakable: ControlPlane, fresh_namespace: str
) -> None:
    async def live() -> None:
        async with client(breakable) as api, _replicas(api, fresh_namespace, "a", **SHORT) as (only,):
            await eventually_so(lambda: only.leading)
            breakable.pause(Part.API_SERVER)  # it takes the request, and says nothing
            begun = time.monotonic()
            await eventually_so(lambda: len(only.spans[0]) == 2)
            assert time.monotonic() - begun < 10
            breakable.resume(Part.API_SERVER)
            await eventually_so(lambda: only.leading)

    event_loop.run(live())


def test_times_that_could_let_two_lead_are_not_accepted() -> None:
    api = Api(Target("http://127.0.0.1:9", Fixed()))
    with pytest.raises(InputError, match="lease > renew"):
        LeaderElection(api, "a", namespace="x", lease_s=5, renew_s=7)
