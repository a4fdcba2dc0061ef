"""`wattloom kubernetes scheduler` as it is typed: what its options do to the process."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from tests.beds.kubernetes import Api, ControlPlane, eventually
from tests.kubernetes.running import Replica, all_bound, ask, nodes, pods

from wattloom.history.log import Log
from wattloom.scheduling import events as ev

TOKEN = "a-token-of-16-or-more"


@contextmanager
def running(
    plane: ControlPlane, folder: Path, *words: str, kubeconfig: Path | None = None, http: str = ""
) -> Iterator[Replica]:
    """A process that decides; it ends well."""
    replica = Replica(plane, folder / "said", "--no-leader-elect", "--http", http, *words, kubeconfig=kubeconfig)
    try:
        eventually(lambda: replica.says("decides from now on"), 60)
        yield replica
        assert replica.end() == 0, replica.log.read_text()
    finally:
        replica.end()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def address_of_this_machine() -> str:
    """By which it counts as somebody else."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.connect(("192.0.2.1", 9))
        return str(found.getsockname()[0])


def test_qps_is_the_most_pods_decided_in_a_second(plane: ControlPlane, api: Api, space: str, tmp_path: Path) -> None:
    nodes(api, "n1")
    log = tmp_path / "decisions.log"
    with running(plane, tmp_path, "--qps", "10", "--log", str(log)):
        pods(api, space, *(f"p{number}" for number in range(12)), cpu="10m")
        all_bound(api, space)
    times = [event.time for event in Log(log).events() if isinstance(event, ev.TaskSubmitted)]
    assert len(times) == 12
    assert min(later - earlier for earlier, later in pairwise(times)) > 0.09


def test_a_log_that_another_scheduler_writes_is_refused(
    plane: ControlPlane, api: Api, space: str, tmp_path: Path
) -> None:
    nodes(api, "n1")
    log = tmp_path / "decisions.log"
    with running(plane, tmp_path, "--log", str(log)) as first:
        for _ in range(2):
            code, said = typed("--kubeconfig", str(plane.kubeconfig), "--http", "", "--log", str(log))
            assert code == 2
            assert f"error: log {log}: is in use by process {first.pid};" in said
        pods(api, space, "one")
        all_bound(api, space)
    assert {path.name for path in tmp_path.glob("decisions*")} == {"decisions.log", "decisions.log.lock"}
    assert any(isinstance(event, ev.TaskSubmitted) for event in Log(log).events())


def test_the_context_that_is_named_is_taken(plane: ControlPlane, api: Api, space: str, tmp_path: Path) -> None:
    given = yaml.safe_load(plane.kubeconfig.read_text())
    name = given["current-context"]
    nowhere = {"name": "nowhere", "cluster": {"server": "https://127.0.0.1:1"}}
    given["clusters"].append(nowhere)
    given["contexts"].append({"name": "nowhere", "context": {"cluster": "nowhere", "user": given["users"][0]["name"]}})
    given["current-context"] = "nowhere"
    file = tmp_path / "kubeconfig.yaml"
    file.write_text(yaml.safe_dump(given))
    nodes(api, "n1")
    with running(plane, tmp_path, "--context", name, kubeconfig=file):
        pods(api, space, "one")
        assert all_bound(api, space) == {"one": "n1"}
    said = typed("--kubeconfig", str(file), "--first-answer", "0.5")
    assert said[0] == 1
    assert "no cluster can be reached at https://127.0.0.1:1" in said[1]
    said = typed("--kubeconfig", str(file), "--context", "missing")
    assert said[0] == 2
    assert "missing" in said[1]


def test_with_the_token_of_the_file_others_may_ask(plane: ControlPlane, api: Api, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    port, there = free_port(), address_of_this_machine()
    with running(plane, tmp_path, "--token-file", str(tmp_path / "token"), http=f":{port}"):
        assert ask(port, "/metrics", there)[0] == 401
        assert ask(port, "/metrics", there, Authorization="Bearer another-token-altogether")[0] == 401
        assert ask(port, "/metrics", there, Authorization=f"Bearer {TOKEN}")[0] == 200


@pytest.mark.parametrize("text", [None, "", "short"])
def test_a_token_file_without_a_usable_token_is_refused(text: str | None, plane: ControlPlane, tmp_path: Path) -> None:
    file = tmp_path / "token"
    if text is not None:
        file.write_text(text)
    code, said = typed("--kubeconfig", str(plane.kubeconfig), "--token-file", str(file))
    assert code == 2, said
    assert "token" in said


def test_what_is_said_can_be_json_line_by_line(plane: ControlPlane, api: Api, tmp_path: Path) -> None:
    with running(plane, tmp_path, "--log-format", "json", "--verbose") as replica:
        pass
    lines = [json.loads(line) for line in replica.log.read_text().splitlines()]
    assert any(line["message"].endswith("0 pods wait") for line in lines)
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)


def typed(*words: str) -> tuple[int, str]:
    """A command that is to end by itself, and what it says."""
    command = [sys.executable, "-m", "wattloom.cli.main", "kubernetes", "scheduler", "--no-leader-elect", "--http", ""]
    done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr
