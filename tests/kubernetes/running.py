"""Our scheduler at work on a real API server: in a thread of the test, or as a process of its own."""

import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.beds.kubernetes import Api, ControlPlane, add_nodes, add_pods, eventually, fake_node, fake_pod
from tests.beds.kubernetes.processes import Process
from tests.kubernetes.in_thread import InThread

from wattloom.kubernetes.client.kubeconfig import target_of
from wattloom.kubernetes.options import Options
from wattloom.kubernetes.scheduler.binding import Binder, Outcome
from wattloom.kubernetes.scheduler.scheduler import Scheduler

CURVE = json.dumps({"cores": 8, "threads": 8, "coresWatts": [[0, 50], [8, 150]], "provenance": "measured"})
CHEAP = json.dumps({"cores": 8, "threads": 8, "coresWatts": [[0, 50], [8, 90]], "provenance": "measured"})
PROFILE = "wattloom.dev/machine-profile"


class Hold:
    """Bindings stop just before they are sent, all but the first `free`, until `release`."""

    def __init__(self, binder: Binder, free: int = 0) -> None:
        self._binder, self._bind, self._free = binder, binder.bind, free
        self._asked: list[str] = []
        self._go = asyncio.Event()
        binder.bind = self._late  # type: ignore[method-assign]

    @property
    def held(self) -> list[str]:
        """Which pod would go where."""
        return self._asked[self._free :]

    def release(self) -> None:
        """Called in the scheduler's own thread."""
        self._binder.bind = self._bind  # type: ignore[method-assign]
        self._go.set()

    async def _late(self, namespace: str, name: str, uid: str, node: str) -> Outcome:
        self._asked.append(f"{name} to {node}")
        if len(self._asked) > self._free:
            await self._go.wait()
        return await self._bind(namespace, name, uid, node)


class Running(InThread[Scheduler]):
    """A scheduler in a thread."""

    hold: Hold | None = None

    @property
    def scheduler(self) -> Scheduler:
        return self.part

    @property
    def held(self) -> list[str]:
        """Which pod would go where, if bindings were sent."""
        return self.hold.held if self.hold is not None else []

    def release(self) -> None:
        """Send the bindings that are held."""
        if self.hold is not None:
            self.call(self.hold.release)
            self.hold = None


def starting(
    plane: ControlPlane, kubeconfig: Path | None = None, *, free: int | None = None, **options: Any
) -> Running:
    """A scheduler that has just been started; the caller stops it. Bindings after the first `free` are held."""
    target = target_of(kubeconfig or plane.kubeconfig)

    def make() -> Scheduler:
        scheduler = Scheduler(target, Options(**options))
        if free is not None:
            running.hold = Hold(scheduler.binder, free)
        return scheduler

    running = Running(make)
    running.start()
    return running


@contextmanager
def scheduling(plane: ControlPlane, kubeconfig: Path | None = None, **options: Any) -> Iterator[Running]:
    """A scheduler that decides. It must end without an error and without contradictions."""
    given: dict[str, Any] = {"http": "", "leader_elect": False, **options}
    running = starting(plane, kubeconfig, **given)
    try:
        eventually(lambda: running.error or running.scheduler.deciding_now, 60)
        if running.error is None:
            yield running
    finally:
        if running.error is None:
            running.release()
        running.stop()
    if running.error is not None:
        raise running.error
    assert running.scheduler.driver.refused == 0


@contextmanager
def held_bindings(running: Running) -> Iterator[Callable[[], list[str]]]:
    """Bindings stop just before they are sent, until the block ends; which pods were to go where."""
    running.hold = running.call(lambda: Hold(running.scheduler.binder))
    try:
        yield lambda: running.held
    finally:
        running.release()


class Replica(Process):
    """`wattloom kubernetes scheduler` as a process, which dies with the tests."""

    def __init__(self, plane: ControlPlane, log: Path, *words: str, kubeconfig: Path | None = None) -> None:
        command = [sys.executable, "-m", "wattloom.cli.main", "kubernetes", "scheduler"]
        super().__init__(log.name, [*command, "--kubeconfig", str(kubeconfig or plane.kubeconfig), *words], log)
        self.start()

    def says(self, words: str) -> bool:
        return re.search(words, self.log.read_text()) is not None

    def end(self) -> int | None:
        """Its exit code."""
        return self.stop(60.0)


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
        api.target.port = port


# -- what is on the API server -----------------------------------------------------------------------------------------


def nodes_of(api: Api, namespace: str) -> dict[str, str]:
    """By pod: its node, or nothing."""
    pods = api.items(f"/api/v1/namespaces/{namespace}/pods")
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods}


def events_of(api: Api, namespace: str, pod: str, reason: str = "") -> list[str]:
    events = api.items(f"/api/v1/namespaces/{namespace}/events")
    return [
        event["message"]
        for event in events
        if event["involvedObject"]["name"] == pod and reason in ("", event["reason"])
    ]


def all_bound(api: Api, namespace: str, seconds: float = 60.0) -> dict[str, str]:
    def bound() -> dict[str, str]:
        found = nodes_of(api, namespace)
        return found if all(found.values()) else {}

    return eventually(bound, seconds)


def told(api: Api, namespace: str, pod: str, reason: str, words: str, seconds: float = 30.0) -> str:
    """The event on the pod that has these words."""

    def found() -> str:
        return next((each for each in events_of(api, namespace, pod, reason) if re.search(words, each)), "")

    try:
        return str(eventually(found, seconds))
    except Exception as error:
        raise AssertionError(f"no {reason} with {words!r}: {events_of(api, namespace, pod)}") from error


def nodes(api: Api, *names: str, **about: Any) -> None:
    add_nodes(api, [fake_node(name, **about) for name in names])


def pods(api: Api, namespace: str, *names: str, **about: Any) -> None:
    add_pods(api, namespace, [fake_pod(name, **{"scheduler": "wattloom", **about}) for name in names])


def bind(api: Api, namespace: str, pod: str, node: str) -> None:
    """As another scheduler would."""
    body = {"kind": "Binding", "metadata": {"name": pod}, "target": {"kind": "Node", "name": node}}
    api.post(f"/api/v1/namespaces/{namespace}/pods/{pod}/binding", body)


def ask(port: int, path: str, host: str = "127.0.0.1", **headers: str) -> tuple[int, str]:
    try:
        with urlopen(Request(f"http://{host}:{port}{path}", headers=headers), timeout=60) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as refused:
        return refused.code, refused.read().decode()
