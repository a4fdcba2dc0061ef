"""One of several replicas leads: whoever holds the Lease, for as long as it renews it in time.

Owns the Lease. Clocks are never compared between machines: a replica counts on its own clock how long it has seen the
Lease unchanged. The leader counts from before it asked, stops after `renew_s`, and nobody else takes over before
`lease_s` after having seen what it wrote: so it has stopped before another can begin.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from wattloom.errors import InputError
from wattloom.kubernetes.client.api import Api
from wattloom.kubernetes.client.errors import ApiError, Conflict, NotFound
from wattloom.kubernetes.client.resource import Resource

LOG: Final = logging.getLogger(__name__)


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(msgspec.Struct, frozen=True):
    metadata: _Meta
    spec: _Spec = _Spec()


LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", Lease)


def steady_s() -> float:
    """Seconds that also pass while the machine sleeps, where the system can tell."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class LeaderElection:
    """`run` until cancelled. `started` and `stopped` are called in the event loop, in turn; `following` with the name
    of each other replica that is seen to lead."""

    def __init__(
        self,
        api: Api,
        identity: str,
        *,
        namespace: str,
        name: str = "wattloom-scheduler",
        lease_s: float = 10.0,
        renew_s: float = 7.0,
        retry_s: float = 2.0,
        started: Callable[[], None] = lambda: None,
        stopped: Callable[[], None] = lambda: None,
        following: Callable[[str], None] = lambda holder: None,
        clock: Callable[[], float] = steady_s,
    ) -> None:
        if not lease_s > renew_s > retry_s * 1.2 > 0:
            raise InputError("lease", f"must be lease > renew > 1.2 retry: {lease_s:g}, {renew_s:g}, {retry_s:g} s")
        self.identity: Final = identity
        self.holder = ""
        """Who leads, as far as is known here."""
        self.why_not = ""
        """Why this replica leads no longer, in words, once it has."""
        self._api = api
        self._namespace, self._name = namespace, name
        self._lease_s, self._renew_s, self._retry_s = lease_s, renew_s, retry_s
        self._started, self._stopped, self._following = started, stopped, following
        self._followed = ""
        self._fault = ""
        """Why the lease cannot be asked for now."""
        self._clock = clock
        self._seen: _Spec | None = None
        self._seen_at = 0.0
        self._until = 0.0
        self._told = False

    @property
    def leading(self) -> bool:
        """Asked of the clock, so that it is right also in a process that was stopped and goes on."""
        return self._told and self._clock() < self._until

    async def run(self) -> None:
        try:
            while True:
                await self._stand()
                await self._lead()
        finally:
            if self._told:
                self._stop("this process ends")
                await self._release()

    async def _stand(self) -> None:
        """Until the lease is ours."""
        while True:
            begun = self._clock()
            try:
                async with asyncio.timeout(self._renew_s):
                    if await self._try() and self._clock() < begun + self._renew_s:
                        break
                self._fault = ""
                self._follow()
            except (ApiError, TimeoutError) as error:
                self._cannot_ask(error)
            await asyncio.sleep(self._retry_s * random.uniform(0.8, 1.0))
        self._until = begun + self._renew_s
        self._told = True
        self._fault = self._followed = ""
        LOG.info("%s leads", self.identity)
        self._started()

    async def _lead(self) -> None:
        """Until the lease was not renewed in time, or another holds it."""
        while self._clock() < self._until:
            await asyncio.sleep(min(self._retry_s, max(0.0, self._until - self._clock())))
            begun = self._clock()
            if begun >= self._until:
                break
            try:
                async with asyncio.timeout(self._until - begun):
                    renewed = await self._try()
            except TimeoutError as error:
                self._cannot_ask(error)
                break
            except ApiError as error:
                self._cannot_ask(error)
                continue
            self._fault = ""
            if not renewed and self.holder != self.identity:
                self._stop(f"{self.holder or 'nobody'} leads now")
                return
            if renewed:
                self._until = begun + self._renew_s
        cause = f" ({self._fault})" if self._fault else ""
        self._stop(f"not renewed for {self._renew_s:g} s{cause}; another replica may lead now")

    def _cannot_ask(self, error: Exception) -> None:
        """Said once for each cause in a row."""
        words = _words(error)
        level = logging.DEBUG if words == self._fault else logging.WARNING
        LOG.log(level, "lease %s/%s: %s", self._namespace, self._name, words)
        self._fault = words

    def _follow(self) -> None:
        if self.holder not in ("", self.identity, self._followed):
            self._followed = self.holder
            self._following(self.holder)

    def _stop(self, why: str) -> None:
        self._told = False
        self.why_not = why
        LOG.info("%s leads no longer: %s", self.identity, why)
        self._stopped()

    async def _try(self) -> bool:
        """Take or renew the lease, if it is ours to take. A conflict means that somebody else did."""
        try:
            lease = await self._api.get(LEASES, self._name, self._namespace)
        except NotFound:
            return await self._create()
        self._observe(lease)
        if not self._free(lease):
            return False
        try:
            self._observe(await self._api.put(LEASES, self._next(lease), self._name, self._namespace))
        except Conflict:
            return False
        return True

    async def _create(self) -> bool:
        try:
            self._observe(await self._api.post(LEASES, self._next(None), self._namespace))
        except Conflict:
            return False
        return True

    def _observe(self, lease: Lease) -> None:
        # Only the holder writes the spec; metadata may be touched by anybody, and says nothing of his life.
        if self._seen != lease.spec:
            self._seen, self._seen_at = lease.spec, self._clock()
        self.holder = lease.spec.holder_identity or ""

    def _free(self, lease: Lease) -> bool:
        if not self.holder or self.holder == self.identity:
            return True
        # What the holder promised counts, if it is more than what is set here.
        lasts_s = max(self._lease_s, float(lease.spec.lease_duration_seconds or 0))
        return self._clock() >= self._seen_at + lasts_s

    def _next(self, old: Lease | None) -> dict[str, Any]:
        now, spec = _now(), old.spec if old else _Spec()
        if now == spec.renew_time:
            # The API server takes what is the same for no change, and the others would not see the leader live.
            now = f"{now[:-2]}{(int(now[-2]) + 1) % 10}Z"
        mine = self.holder == self.identity and old is not None
        transitions = (spec.lease_transitions or 0) + (0 if mine or old is None else 1)
        meta = {"name": self._name, "namespace": self._namespace}
        if old is not None:
            meta["resourceVersion"] = old.metadata.resource_version
        return _body(
            meta,
            holderIdentity=self.identity,
            leaseDurationSeconds=max(1, round(self._lease_s)),
            acquireTime=spec.acquire_time if mine and spec.acquire_time else now,
            renewTime=now,
            leaseTransitions=transitions,
        )

    async def _release(self) -> None:
        """So that another need not wait. Whoever fails here is waited for, as if killed."""
        try:
            async with asyncio.timeout(self._retry_s):
                lease = await self._api.get(LEASES, self._name, self._namespace)
                if lease.spec.holder_identity == self.identity:
                    await self._api.put(LEASES, self._given_back(lease), self._name, self._namespace)
        except (ApiError, TimeoutError) as error:
            LOG.warning("lease %s/%s was not given back: %s", self._namespace, self._name, _words(error))

    def _given_back(self, lease: Lease) -> dict[str, Any]:
        now = _now()
        return _body(
            {"name": self._name, "namespace": self._namespace, "resourceVersion": lease.metadata.resource_version},
            holderIdentity="",
            leaseDurationSeconds=1,
            acquireTime=now,
            renewTime=now,
            leaseTransitions=lease.spec.lease_transitions or 0,
        )


def _words(error: Exception) -> str:
    return "no answer in time" if isinstance(error, TimeoutError) else str(error)


def _body(meta: dict[str, str], **spec: str | int) -> dict[str, Any]:
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
