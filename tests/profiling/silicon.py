"""Silicon, simulated: a powercap tree whose counter runs as fast as processes of a real load are at work.

So many watts at rest and so many more for each of them, whatever else this machine does: so figures can be told from
the number of CPUs loaded.
"""

import os
import threading
import time
from pathlib import Path

from tests.metering.trees import RaplTree

from wattloom.metering.powercap import Powercap

IDLE_W = 10.0
EACH_W = 5.0
STEP_S = 0.01


class Silicon:
    """`with Silicon(folder) as chip: chip.meter` counts; `chip.lose()` takes the counter away."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "powercap"
        self._tree = RaplTree(self.root)
        self._tree.zone("intel-rapl:0", "package-0")
        self._over = threading.Event()
        self._lost = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.meter = Powercap(self.root)

    def __enter__(self) -> "Silicon":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def lose(self) -> None:
        self._lost.set()
        (self.root / "intel-rapl:0" / "name").write_text("gone\n")

    def workers(self) -> int:
        """Processes of loads that we have started."""
        return sum(len(_children(load)) for load in _children(os.getpid()) if _is_load(load))

    def _run(self) -> None:
        joules, last = 1.0, time.monotonic()
        while not self._over.wait(STEP_S):
            watts = IDLE_W + EACH_W * self.workers()
            now = time.monotonic()
            joules += watts * (now - last)
            last = now
            self._show(round(joules * 1e6))

    def _show(self, microjoules: int) -> None:
        """In one step: nobody must read half a number."""
        zone = self.root / "intel-rapl:0"
        (zone / "new").write_text("nothing\n" if self._lost.is_set() else f"{microjoules}\n")
        (zone / "new").replace(zone / "energy_uj")


def _children(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []


def _is_load(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"stress-ng" in words or b"own_load" in words
