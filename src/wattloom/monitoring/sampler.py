"""Watching this machine: what to look with, and when.

Owns the clock, the thread and the pace. A look that costs much makes the next one come later, so that watching never
takes more than its share of a core, however many processes there are.
"""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from time import monotonic, thread_time
from typing import Final

from wattloom.attribution.idle_policy import IdlePolicy
from wattloom.errors import InputError
from wattloom.machines.this_machine import this_machine
from wattloom.metering.choosing import choose_meter, device_meters
from wattloom.metering.count import seconds_asleep
from wattloom.metering.patient_meter import PatientMeter
from wattloom.metering.protocol import Meter
from wattloom.monitoring.accelerators import Accelerators
from wattloom.monitoring.accountant import Accountant
from wattloom.monitoring.census import Census
from wattloom.monitoring.cpu_weights import best_cpu_weights
from wattloom.monitoring.journal_tail import JournalTail
from wattloom.monitoring.snapshot import Snapshot
from wattloom.settings import state_folder

INTERVAL_S: Final = 1.0
MOST_OF_A_CORE: Final = 0.02
"""Watching takes no more than this; with very many processes it looks less often instead."""


def accountant_here(
    meter: str | Meter = "auto", *, policy: IdlePolicy = "node", node: str = "", journals: Path | None = None
) -> Accountant:
    """Everything that is needed to look at this machine. Raises InputError if the named meter does not work here."""
    here = this_machine()
    chosen = choose_meter(here, "" if meter == "auto" else meter) if isinstance(meter, str) else meter
    if journals is not None and not journals.is_dir():
        raise InputError("journals", f"{journals} is no folder")
    census, beside = Census(), device_meters(here)
    return Accountant(
        census,
        PatientMeter(chosen),
        here,
        node=node or os.environ.get("NODE_NAME", "") or socket.gethostname(),
        policy=policy,
        devices=Accelerators(beside, lambda pid: census.living.get(pid)) if beside else None,
        tasks=JournalTail(journals or state_folder()),
        cpu_weights=best_cpu_weights(),
    )


class Sampler:
    """Looks again and again in a thread of its own; `latest` is always a whole picture."""

    def __init__(
        self, accountant: Accountant, interval_s: float = INTERVAL_S, told: Callable[[Snapshot], None] | None = None
    ) -> None:
        self._accountant: Final = accountant
        self._interval_s: Final = interval_s
        self._told: Final = told
        self._over: Final = Event()
        self._thread: Final = Thread(target=self._run, name="wattloom-watch", daemon=True)
        self.failure: BaseException | None = None
        """What ended the watching before it was told to."""
        self.latest: Snapshot = accountant.sample(monotonic(), seconds_asleep())

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        due = monotonic() + self._interval_s
        try:
            while not self._over.wait(max(due - monotonic(), 0.0)):
                began, cost = monotonic(), thread_time()
                self.latest = self._accountant.sample(began, seconds_asleep())
                if self._told is not None:
                    self._told(self.latest)
                pause = max(self._interval_s, (thread_time() - cost) / MOST_OF_A_CORE)
                due = max(due + pause, began + pause / 2)  # after a hold-up the looks missed are not made up for
        except BaseException as problem:
            self.failure = problem
            raise
