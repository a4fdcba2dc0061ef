"""The process that plays the hardware: it watches who uses the cores, and moves the energy counters.

`python -m tests.beds.rig.silicon FOLDER PROGRAM`, until its input ends. Owns the loop over small steps of time,
and what is written down in each for the truth. It costs about a tenth of a core, which is not on the machine it plays.
"""

import os
import subprocess
import sys
import time
from array import array
from collections import deque
from contextlib import suppress
from math import exp, sqrt
from pathlib import Path
from random import Random
from select import select
from typing import BinaryIO, Final

import msgspec
from tests.beds.rig.conditions import Conditions, active_watts
from tests.beds.rig.slots import MOST_FUNCTIONS, SlotReader

from wattloom.interpreter import own_module
from wattloom.metering.proc import PROC, USER_HZ, busy_seconds, process_seconds

MOST_WORKERS: Final = 16
COLUMNS: Final = ("time", "active_j", "price", "meter_j", "busy_s")
"""Of a record; behind these the CPU clocks of the workers."""
LOOK_S: Final = 0.02
"""How often new workers are looked for, and the machine's busy time is read."""
OTHERS_S: Final = 0.3
"""What others use is known in steps of 10 ms only: over so long it is smoothed."""
URGENT: Final = 10


class Watched:
    """One worker, and what it has used so far."""

    def __init__(self, worker: int, slots: Path, intensities: tuple[float, ...], rest: float) -> None:
        self.worker: Final = worker
        self._path: Final = slots / str(worker)
        self._slot: SlotReader | None = None
        self._folder: Final = PROC / str(worker)
        self.clock: float = process_seconds(self._folder) or 0.0
        self._more: Final = tuple(intensity - rest for intensity in intensities)
        self._rest: Final = rest
        self._weighed: float = self._weigh(self.clock) or 0.0

    def _weigh(self, clock: float) -> float | None:
        """Intensity times CPU seconds since its start."""
        if self._slot is None:
            return clock * self._rest
        read = self._slot.read()
        if read is None:
            return None
        function, since, ended = read
        weighed = clock * self._rest
        for more, seconds in zip(self._more, ended, strict=False):
            weighed += more * seconds
        return weighed if function < 0 else weighed + self._more[function] * max(clock - since, 0.0)

    def look(self) -> None:
        """It may have begun to say what it runs."""
        if self._slot is None and self._path.exists():
            self._slot = SlotReader(self._path)

    def step(self) -> tuple[float, float]:
        """CPU seconds since the last step, and the same times intensity."""
        clock = process_seconds(self._folder)
        weighed = None if clock is None else self._weigh(clock)
        if clock is None or weighed is None:
            return 0.0, 0.0
        used, more = clock - self.clock, max(weighed - self._weighed, 0.0)
        self.clock, self._weighed = clock, self._weighed + more
        return used, more


class Silicon:
    """The machine, step by step."""

    def __init__(self, folder: Path, program: int, conditions: Conditions, background: int) -> None:
        self._conditions: Final = conditions
        self._slots: Final = folder / "slots"
        self._cores: Final = os.cpu_count() or 1
        self._counter: Final = os.open(folder / "powercap" / "intel-rapl:0" / "energy_uj", os.O_RDWR)
        self._busy: Final = os.open(folder / "busy", os.O_RDWR | os.O_CREAT)
        self._records: Final[BinaryIO] = (folder / "records").open("wb")
        self._workers: Final[list[Watched]] = []
        self._seen: Final = set(os.listdir(PROC))
        self._program: Final = program
        self._known: Final[dict[Path, list[float]]] = {}
        if conditions.neighbours:
            self._known[PROC / "self"] = [conditions.rest, process_seconds(PROC / "self") or 0.0]
        for pid, intensity in ((program, conditions.rest), (background, conditions.background_intensity)):
            if pid:
                self._known[PROC / str(pid)] = [intensity, process_seconds(PROC / str(pid)) or 0.0]
        self._chance: Final = Random(conditions.seed)
        self._off: float = 0.0
        self._meter_j: float = 0.0
        self._late: Final[deque[tuple[float, float]]] = deque()
        self._shown_j: float = 0.0
        self._known_s: float = 0.0
        self._busy_s: float = 0.0
        self._others: float = 0.0
        self._looked: tuple[float, float, float] = (time.monotonic(), busy_seconds(PROC) or 0.0, 0.0)
        self._last: float = time.monotonic()

    def run(self) -> None:
        every = self._conditions.update_s
        due = time.monotonic() + every
        while not select([sys.stdin], [], [], max(due - time.monotonic(), 0.0))[0]:
            now = time.monotonic()
            self._step(now)
            due = max(due + every, now)
        self._records.close()
        (self._slots.parent / "workers").write_text(" ".join(str(each.worker) for each in self._workers))

    def _step(self, now: float) -> None:
        seconds, self._last = now - self._last, now
        weighed, known_s = 0.0, 0.0
        for folder, state in self._known.items():
            clock = process_seconds(folder)
            if clock is not None:
                weighed += (clock - state[1]) * state[0]
                known_s += clock - state[1]
                state[1] = clock
        for worker in self._workers:
            used, more = worker.step()
            weighed += more
            known_s += used
        self._known_s += known_s
        if self._conditions.neighbours:
            weighed += self._others * seconds * self._conditions.rest
        else:
            ticks = int(self._known_s * USER_HZ)
            self._busy_s = ticks / USER_HZ
            os.pwrite(self._busy, b"%020d" % ticks, 0)
        active_j = active_watts(self._conditions, weighed / seconds, self._cores) * seconds
        self._show(now, seconds, active_j)
        price = active_j / weighed if weighed > 0.0 else 0.0
        clocks = [worker.clock for worker in self._workers]
        row = array("d", (now, active_j, price, self._shown_j, self._busy_s, *clocks))
        row.extend([0.0] * (len(COLUMNS) + MOST_WORKERS - len(row)))
        self._records.write(row.tobytes())
        if now - self._looked[0] >= LOOK_S:
            self._look(now)

    def _show(self, now: float, seconds: float, active_j: float) -> None:
        """Move the counter: with noise, later, and in steps."""
        how = self._conditions
        kept = exp(-seconds / how.noise_s)
        self._off = self._off * kept + sqrt(1.0 - kept * kept) * self._chance.gauss(0.0, how.noise)
        self._meter_j += (how.idle_w * seconds + active_j) * (1.0 + self._off)
        self._late.append((now + how.lag_s, self._meter_j))
        while self._late and self._late[0][0] <= now:
            self._shown_j = self._late.popleft()[1]
        steps = int(self._shown_j * 1e6) // how.step_uj * how.step_uj
        # Always as long, so that whoever reads meanwhile reads a whole number.
        os.pwrite(self._counter, b"%020d\n" % ((how.start_uj + steps) % (how.range_uj + 1)), 0)

    def _look(self, now: float) -> None:
        """New workers, and how busy the machine is beside what is known."""
        then, busy_then, known_then = self._looked
        busy = busy_seconds(PROC) or busy_then
        found = max((busy - busy_then) - (self._known_s - known_then), -0.5 * (now - then)) / (now - then)
        self._others = max(self._others + (found - self._others) * min((now - then) / OTHERS_S, 1.0), 0.0)
        self._looked = (now, busy, self._known_s)
        if self._conditions.neighbours:
            self._busy_s = busy
        for name in os.listdir(PROC):
            if name not in self._seen:
                self._seen.add(name)
                self._meet(name)
        for each in self._workers:
            each.look()

    def _meet(self, name: str) -> None:
        """A process that was not there before. Those that the program starts are its workers."""
        if name.isdigit() and _parent(name) == self._program and len(self._workers) < MOST_WORKERS:
            self._workers.append(Watched(int(name), self._slots, self._conditions.intensities, self._conditions.rest))


def _parent(process: str) -> int:
    try:
        return int((PROC / process / "stat").read_bytes().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def main() -> None:
    folder, program = Path(sys.argv[1]), int(sys.argv[2])
    conditions = msgspec.json.decode((folder / "conditions.json").read_bytes(), type=Conditions)
    assert len(conditions.intensities) <= MOST_FUNCTIONS
    background = None
    if conditions.background > 0.0:
        command = own_module("tests.beds.rig.background", str(conditions.background), "7")
        background = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    with suppress(OSError):  # without the right to it the counters are sometimes late, as others' are too
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(URGENT))
    try:
        silicon = Silicon(folder, program, conditions, background.pid if background is not None else 0)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        silicon.run()
    finally:
        if background is not None:
            background.kill()
            background.wait()


if __name__ == "__main__":
    main()
