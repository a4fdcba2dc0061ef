"""Our scheduler at work on a real API server: in a thread of the test, or as a process of its own."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.kubernetes.in_thread import InThread

from wattloom.kubernetes.kubeconfig import target_of
from wattloom.kubernetes.options import Options
from wattloom.kubernetes.scheduler import Scheduler
from wattloom.testing.kubernetes import Api, ControlPlane, add_nodes, add_pods, eventually, fake_node, fake_pod

CURVE = json.dumps({"cores": 8, "threads": 8, "coresWatts": [[0, 50], [8, 150]], "provenance": "measured"})
CHEAP = json.dumps({"cores": 8, "threads": 8, "coresWatts": [[0, 50], [8, 90]], "provenance": "measured"})
PROFILE = "wattloom.dev/machine-profile"


class Running(InThread[Scheduler]):
    """A scheduler in a thread."""

    @property
    def scheduler(self) -> Scheduler:
        return self.part


def starting(plane: ControlPlane, kubeconfig: Path | None = None, **options: Any) -> Running:
    """A scheduler that has just been started; the caller stops it."""
    target = target_of(kubeconfig or plane.kubeconfig)
    running = Running(lambda: Scheduler(target, Options(**options)))
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
        running.stop()
    if running.error is not None:
        raise running.error
    assert running.scheduler.deciding.refused == 0


class Replica:
    """`wattloom kubernetes scheduler` as a process."""

    def __init__(self, plane: ControlPlane, log: Path, *words: str, kubeconfig: Path | None = None) -> None:
        self.said = log
        command = [sys.executable, "-m", "wattloom.cli.main", "kubernetes", "scheduler"]
        command += ["--kubeconfig", str(kubeconfig or plane.kubeconfig), *words]
        with log.open("wb") as file:
            self.process = subprocess.Popen(command, stderr=file, stdout=file)

    def says(self, words: str) -> bool:
        return re.search(words, self.said.read_text()) is not None

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(30)

    def end(self) -> int:
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(60)


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


def ask(port: int, path: str, host: str = "127.0.0.1", **headers: str) -> tuple[int, str]:
    try:
        with urlopen(Request(f"http://{host}:{port}{path}", headers=headers), timeout=60) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as refused:
        return refused.code, refused.read().decode()
