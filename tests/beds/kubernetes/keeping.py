"""A test bed that outlives the command which started it: a keeper process holds it until it is asked to end.

Owns the keeper's life and the file that says what runs. The keeper is the parent of all parts, so with it they end.
A lock, which the kernel takes back whatever ends the keeper, sees to it that a folder has one keeper.
"""

import fcntl
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep
from typing import Final

import msgspec
from tests.beds import beds_environment
from tests.beds.kubernetes.certificates import Authority, Certificate
from tests.beds.kubernetes.client import Access
from tests.beds.kubernetes.control_plane import ControlPlane
from tests.beds.kubernetes.parts import HOST, Part
from tests.beds.kubernetes.real_node import RealNode

from wattloom.errors import WattloomError
from wattloom.interpreter import own_module

PLANE: Final = "plane"
NODE: Final = "node"
START_S: Final = 300.0
STOP_S: Final = 60.0


class Running(msgspec.Struct, frozen=True):
    """What a keeper holds. `born` tells its process from a later one with the same id."""

    pid: int
    born: str
    what: str
    url: str = ""
    kubeconfig: str = ""
    node: str = ""
    parts: dict[str, int] = {}


def running(folder: Path, what: str) -> Running | None:
    """What runs in the folder, by its keeper's own word, if the keeper lives."""
    try:
        told = msgspec.json.decode((folder / f"{what}.json").read_bytes(), type=Running)
    except (OSError, msgspec.MsgspecError):
        return None
    return told if _born(told.pid) == told.born else None


def start(folder: Path, what: str, *options: str) -> Running:
    """Start a keeper and wait until what it holds works. An error shows what the keeper said."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"{what}-keeper.log"
    words = own_module("tests.beds.kubernetes", "keep", what, "--folder", str(folder), *options)
    with log.open("ab") as out:
        begun = out.tell()
        keeper = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, env=beds_environment()
        )
    end = monotonic() + START_S
    while (found := running(folder, what)) is None or found.pid != keeper.pid:
        if keeper.poll() is not None or monotonic() > end:
            keeper.terminate()
            keeper.wait()
            said = log.read_bytes()[begun:].decode(errors="replace").strip()
            raise WattloomError(f"the {what} did not start:\n{said}")
        sleep(0.1)
    # It may outlive us; if we outlive it, it is buried.
    Thread(target=keeper.wait, daemon=True).start()
    return found


def stop(folder: Path, what: str) -> bool:
    """Ask the keeper to end all it holds, and wait for it. False: nothing ran."""
    found = running(folder, what)
    if found is None:
        return False
    os.kill(found.pid, signal.SIGTERM)
    end = monotonic() + STOP_S
    while _born(found.pid) == found.born:
        if monotonic() > end:
            # The parts die with it: the kernel sees to that.
            os.kill(found.pid, signal.SIGKILL)
            end = monotonic() + STOP_S
        sleep(0.05)
    (folder / f"{what}.json").unlink(missing_ok=True)
    return True


@contextmanager
def alone(folder: Path, what: str) -> Iterator[None]:
    """The only keeper of its kind in the folder, from before anything is started until all has ended."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{what}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise WattloomError(f"another {what} runs in {folder}, or is being started or ended there") from None
        yield


def keep_plane(folder: Path, parts: list[Part]) -> None:
    """Be the keeper of a control plane until SIGTERM."""
    asked = _asked_to_end()
    on = {part: part in parts for part in Part}
    with (
        alone(folder, PLANE),
        ControlPlane(
            folder, controllers=on[Part.CONTROLLERS], scheduler=on[Part.SCHEDULER], kwok=on[Part.KWOK]
        ) as plane,
    ):
        pids = {str(part): plane.pid(part) or 0 for part in plane.parts}
        _tell(folder, PLANE, url=plane.url, kubeconfig=str(plane.kubeconfig), parts=pids)
        asked.wait()


def keep_node(folder: Path, name: str) -> None:
    """Be the keeper of a real node until SIGTERM. It joins the control plane that runs in the same folder."""
    plane = running(folder, PLANE)
    if plane is None:
        raise WattloomError("no control plane runs: `make kubernetes` starts one")
    asked = _asked_to_end()
    with alone(folder, NODE), RealNode(*joining(folder, plane), folder / "node", name=name) as node:
        _tell(folder, NODE, node=name, parts={"node": node.pid or 0})
        asked.wait()


def joining(folder: Path, plane: Running) -> tuple[Authority, Access]:
    """What a node needs to join: the one who signs, and an administrator's way to the API server."""
    authority = Authority(folder.absolute() / "certificates")
    certificate: Certificate = authority.client("admin", ["system:masters"])
    port = int(plane.url.rpartition(":")[2])
    return authority, Access(HOST, port, authority.own.certificate, certificate)


def _asked_to_end() -> Event:
    asked = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.set())
    return asked


def _tell(
    folder: Path, what: str, *, url: str = "", kubeconfig: str = "", node: str = "", parts: dict[str, int]
) -> None:
    told = Running(os.getpid(), _born(os.getpid()), what, url, kubeconfig, node, parts)
    fresh = folder / f".{what}.json.part"
    fresh.write_bytes(msgspec.json.format(msgspec.json.encode(told)))
    fresh.rename(folder / f"{what}.json")


def _born(pid: int) -> str:
    """When a process started, in the kernel's ticks. Empty: there is none, or only its name is left."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return ""
    return "" if words[0] == "Z" else words[19]
