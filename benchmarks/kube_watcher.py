"""The neutral eye of the Kubernetes benchmark: a process of its own that sees pods bound and events written.

Owns the clock of what is seen: CLOCK_MONOTONIC, which all processes of a machine share. It asks for bound pods only,
in one namespace, and reads no more of them than their names. The schedulers know nothing of it.

As a program: `kube_watcher.py KUBECONFIG NAMESPACE`. It says `ready`, then a line of counts whenever they change, and
everything it has seen, as one JSON line, when its input ends.
"""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TypeVar, cast

import msgspec

from wattloom.kubernetes.client.api import Api
from wattloom.kubernetes.client.errors import Unreachable
from wattloom.kubernetes.client.kubeconfig import target_of
from wattloom.kubernetes.client.reading import Metadata
from wattloom.kubernetes.client.resource import Resource

SAY_S = 0.2
WATCH_S = 3600.0
BOUND = "spec.nodeName!="
T = TypeVar("T", bound="_Pod | _Event")


class Counts(msgspec.Struct):
    """How far it is."""

    bound: int = 0
    told: int = 0


class _Pod(msgspec.Struct):
    metadata: Metadata


class _Regarding(msgspec.Struct, frozen=True):
    name: str = ""


class _Event(msgspec.Struct):
    metadata: Metadata
    reason: str = ""
    regarding: _Regarding = _Regarding()


PODS = Resource("", "v1", "pods", _Pod)
EVENTS = Resource("events.k8s.io", "v1", "events", _Event)


class Seen(msgspec.Struct):
    """When each pod was seen bound for the first time, and when its event was."""

    bound: dict[str, float] = {}
    told: dict[str, float] = {}
    failed: int = 0
    """Events that say that a pod could not be scheduled (yet)."""

    def pod(self, pod: _Pod, now: float) -> None:
        self.bound.setdefault(pod.metadata.name, now)

    def event(self, event: _Event, now: float) -> None:
        if event.reason == "Scheduled":
            self.told.setdefault(event.regarding.name, now)
        else:
            self.failed += 1


class Watcher:
    """The watcher as its user has it: another process, and what it said last."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        words = [sys.executable, __file__, str(kubeconfig), namespace]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self.counts = Counts()
        self._seen: Seen | None = None
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._ready.wait(30.0):
            self.end()
            raise RuntimeError("the watcher could not begin to watch")

    def end(self) -> Seen:
        """What it has seen."""
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(30.0)
        finally:
            self._process.kill()
        self._reader.join(10.0)
        return self._seen or Seen()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line == b"ready\n":
                self._ready.set()
            elif line.startswith(b'{"bound":{'):
                self._seen = msgspec.json.decode(line, type=Seen)
            else:
                self.counts = msgspec.json.decode(line, type=Counts)


async def watch(kubeconfig: Path, namespace: str) -> None:
    seen = Seen({}, {})
    async with Api(target_of(kubeconfig), agent="benchmark-watcher") as api:
        pods_begun, events_begun = asyncio.Event(), asyncio.Event()
        tasks = [
            asyncio.create_task(_follow(api, PODS, namespace, BOUND, seen.pod, pods_begun)),
            asyncio.create_task(_follow(api, EVENTS, namespace, "", seen.event, events_begun)),
            asyncio.create_task(_say(seen, pods_begun, events_begun)),
        ]
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        for task in tasks:
            if task.done():
                task.result()
            task.cancel()
    _write(msgspec.json.encode(seen))


async def _follow(
    api: Api, resource: Resource[T], namespace: str, fields: str, take: Callable[[T, float], None], begun: asyncio.Event
) -> None:
    """Every object that comes. The API server ends a watch that cannot follow: it goes on from where it was."""
    version = (await api.list(resource, namespace, fields=fields)).version
    while True:
        with suppress(Unreachable):
            async with api.watch(resource, version, namespace, fields=fields, timeout_s=WATCH_S) as stream:
                begun.set()
                while changes := await stream.changes():
                    now = monotonic()
                    for kind, found in changes:
                        version = found.metadata.resource_version or version
                        if kind == "ADDED":
                            take(cast(T, found), now)


async def _say(seen: Seen, *begun: asyncio.Event) -> None:
    for each in begun:
        await each.wait()
    _write(b"ready")
    last = Counts()
    while True:
        await asyncio.sleep(SAY_S)
        now = Counts(len(seen.bound), len(seen.told))
        if now != last:
            last = now
            _write(msgspec.json.encode(now))


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(watch(Path(sys.argv[1]), sys.argv[2]))
