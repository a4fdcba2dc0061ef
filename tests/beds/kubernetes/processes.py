"""A process of the test bed: its log, its death with ours, and what it said when it failed.

Whatever ends this Python, the kernel ends the processes (PR_SET_PDEATHSIG). Knows nothing of Kubernetes.
"""

import ctypes
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from random import SystemRandom
from time import monotonic, sleep
from typing import Final

from wattloom.errors import WattloomError

PR_SET_PDEATHSIG: Final = 1
LINES_SHOWN: Final = 20
PORTS: Final = range(15000, 32000)
"""Below the ports that outgoing connections are given, so that a part finds its own free when it starts again."""
_libc = ctypes.CDLL(None, use_errno=True)


class PartFailed(WattloomError):
    """A process of the test bed ended, or was not ready in time. Shows the end of its log."""


class Process:
    """A program with its words, started as often as wanted on the same log."""

    def __init__(
        self,
        name: str,
        words: Sequence[str | Path],
        log: Path,
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.words = [str(word) for word in words]
        self.log = log
        self._cwd, self._env = cwd, env
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The id of the process, as long as it runs."""
        return self._running.pid if self._running is not None and self._running.poll() is None else None

    def start(self) -> None:
        if self.pid is None:
            self._running = _starter().submit(_popen, self.words, self.log, self._cwd, self._env).result()

    def signal(self, number: signal.Signals) -> None:
        if self._running is not None and self._running.poll() is None:
            self._running.send_signal(number)

    def pause(self) -> None:
        """Freeze it, and wait until none of its threads does anything any more."""
        if (pid := self.pid) is not None:
            self.signal(signal.SIGSTOP)
            os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def stop(self, patience_s: float = 5.0) -> int | None:
        """Ask it to end, and make it end if it does not. Its exit code; None: it was never started."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        self._gone(patience_s)
        return self.kill()

    def kill(self) -> int | None:
        """End it as kill -9 does, and wait until it is gone."""
        self.signal(signal.SIGKILL)
        self._gone(None)
        return None if self._running is None else self._running.returncode

    def wait(self, seconds: float) -> int:
        """Until it ends by itself; its exit code. PartFailed if it takes longer."""
        self._gone(seconds)
        code = None if self._running is None else self._running.returncode
        if code is None:
            raise PartFailed(f"{self.name} did not end within {seconds:g} s\n{self.tail()}")
        return code

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Until it says so. PartFailed if it ends before, or takes longer."""
        end = monotonic() + seconds
        while not ready():
            if self.pid is None:
                raise PartFailed(f"{self.name} ended before it was ready\n{self.tail()}")
            if monotonic() > end:
                raise PartFailed(f"{self.name} was not ready within {seconds:g} s\n{self.tail()}")
            sleep(0.05)

    def tail(self) -> str:
        """The end of its log, with the log's path."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join([f"the end of {self.log}:", *lines[-LINES_SHOWN:]])

    def _gone(self, patience_s: float | None) -> None:
        if self._running is None:
            return
        try:
            self._running.wait(patience_s)
        except subprocess.TimeoutExpired:
            return


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens on at this moment."""
    chance = SystemRandom()
    found: set[int] = set()
    while len(found) < count:
        port = chance.choice(PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.add(port)
    return sorted(found)


@cache
def _starter() -> ThreadPoolExecutor:
    """One thread that starts all: the kernel ends a child when the thread that started it ends, not our process."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="test-bed")


def _popen(words: list[str], log: Path, cwd: Path | None, env: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
    parent = os.getpid()

    def die_with_parent() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        # A session of its own: Ctrl-C goes to us, and we end the parts in their order.
        return subprocess.Popen(
            words,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
