"""The program that is killed: `python -m tests.local.chaos.program FOLDER LIFE SEED [--last | --calm] [--die-at=N]`.

Owns one life: it takes over what earlier lives left, and with several threads submits more, notes what the journal has
for certain, and every end it sees. The last life submits nothing and ends properly; a calm one submits a little before.
With `--die-at` it kills itself with -9 just before the N-th statement to its journal.
"""

import os
import random
import signal
import sys
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from tests.local.chaos import notes
from tests.local.chaos.work import leave_a_line

import wattloom
from wattloom.journal.journal import Journal
from wattloom.journal.sqlite_store import SqliteStore
from wattloom.local import dispatcher

THREADS = 3
MOST_OPEN = 500
"""Tasks of all threads that have not ended: more are not submitted."""
BALLAST = 100_000
"""Bytes: goes through a file beside the journal."""
SHORT_RUN = 40_000
SHORT_CARRIED = 600
"""Bytes from which on a run gives way to another, and for each open call: so that kills come between two runs too."""
CALM = 100
DIE_AT = "--die-at="
PATIENCE_S = 60.0


@dataclass
class Life:
    """One life of the program."""

    folder: Path
    number: int
    executor: wattloom.Executor
    open: dict[str, wattloom.TaskFuture] = field(default_factory=dict)

    def note(self, *lines: str) -> None:
        notes.append(self.folder / notes.NOTES, *lines)

    def watch(self, future: wattloom.TaskFuture) -> None:
        self.open[future.task_id] = future
        future.add_done_callback(lambda done: self._ended(future.task_id, done))

    def _ended(self, task: str, future: "Future[Any]") -> None:
        problem = None if future.cancelled() else future.exception()
        if future.cancelled():
            self.note(f"end {task} cancelled")
        elif problem is None:
            identity, ballast = future.result()
            self.note(f"result {task} {identity} {len(ballast)}")
        else:
            self.note(f"end {task} {type(problem).__name__} {problem}")
        self.open.pop(task, None)

    def submit(self, chance: random.Random, identity: str) -> str:
        """One task; its name in the journal."""
        idempotent = identity.startswith("i")
        seconds = 0.0 if chance.random() < 0.6 else chance.choice([0.001, 0.003, 0.01, 0.05])
        ballast = bytes(BALLAST if chance.random() < 0.03 else 10)
        function = wattloom.function(idempotent=idempotent, executor=self.executor)(leave_a_line)
        effects = str(self.folder / notes.EFFECTS)
        future = function.remote(effects, identity, seconds, ballast, chance.random() < 0.01)
        self.note(f"submitted {future.task_id} {identity}")
        self.watch(future)
        return future.task_id

    def submit_for_ever(self, thread: int, seed: str) -> None:
        chance = random.Random(f"{seed}-{self.number}-{thread}")
        number = 0
        unsure: list[str] = []
        while True:
            while len(self.open) > MOST_OPEN:
                time.sleep(0.005)
            for _ in range(chance.choice([1, 5, 20, 60, 300])):
                number += 1
                kind = "i" if chance.random() < 0.6 else "n"
                unsure.append(self.submit(chance, f"{kind}-{self.number}-{thread}-{number}"))
            if chance.random() < 0.7 and self.executor.sync():
                self.note(*[f"accepted {task}" for task in unsure])
                unsure.clear()
            time.sleep(chance.choice([0.0, 0.002, 0.02]))

    def submit_a_little(self, seed: str) -> None:
        chance = random.Random(seed)
        tasks = [self.submit(chance, f"{'in'[number % 2]}-{self.number}-0-{number}") for number in range(CALM)]
        self.executor.sync()
        self.note(*[f"accepted {task}" for task in tasks])

    def recover(self) -> None:
        for future in self.executor.recovered:
            self.note(f"recovered {future.task_id}")
            self.watch(future)


def die_at(statements: int) -> None:
    """Kill this process just before so many statements to its journal were carried out."""
    left = count(statements - 1, -1)
    opened = Journal.open

    def opening(path: Path, **options: Any) -> Journal:
        journal = opened(path, **options)
        assert isinstance(journal.store, SqliteStore)
        connection = journal.store.connection()
        connection.set_trace_callback(lambda _: None if next(left) else os.kill(os.getpid(), signal.SIGKILL))
        return journal

    Journal.open = opening  # type: ignore[method-assign]


def main() -> None:
    for option in sys.argv:
        if option.startswith(DIE_AT):
            die_at(int(option.removeprefix(DIE_AT)))
    folder, number, seed = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    notes.append(folder / notes.NOTES, f"opening {number}")
    began = time.monotonic()
    dispatcher.LONG_RUN, dispatcher.CARRIED = SHORT_RUN, SHORT_CARRIED  # type: ignore[misc]
    executor = wattloom.Executor(2, journal=folder / "work.journal")
    life = Life(folder, number, executor)
    executor.sync()
    life.note(f"ready {number} {time.monotonic() - began:.4f} {len(executor.recovered)}")
    life.recover()
    if "--calm" in sys.argv:
        life.submit_a_little(seed)
    elif "--last" not in sys.argv:
        for thread in range(THREADS):
            threading.Thread(target=life.submit_for_ever, args=(thread, seed), daemon=True).start()
        time.sleep(PATIENCE_S)
        sys.exit("nobody killed it")
    executor.shutdown()
    life.note(f"done {number}")


if __name__ == "__main__":
    main()
