"""A run in the journal: the log that the driver writes, the payloads of its calls, and what was learned of functions.

Owns what is written with what: events, instructions and payloads of one turn are one commit. Used by the dispatcher's
thread alone.
"""

from typing import Final

import msgspec

from wattloom.energy.used import Used
from wattloom.history.log import Header
from wattloom.journal.journal import Journal
from wattloom.journal.payloads import Call
from wattloom.local.job import Job
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import AnyInstruction
from wattloom.workload.function import Function

ENDED_AT_ONCE: Final = -1
"""Instead of a chunk: the call ended before its payload was kept."""

MOST_IN_A_CHUNK: Final = 512
"""Calls whose payloads are kept together, till the last of them has ended."""


class JournaledRun:
    """A run's log and payloads; and the next run's, when one has become long."""

    def __init__(self, journal: Journal, header: Header, began: float) -> None:
        self._header: Final = header
        self._began: Final = began
        """Unix time at which the clock of all runs stands at 0."""
        self.journal: Final = journal
        self.run: int = journal.begin_run(header, began)
        self._records: list[object] = []
        self._encode: Final = msgspec.json.Encoder().encode_lines
        self._new: list[Job] = []
        """Accepted, and not in the journal yet."""
        self._left: Final[dict[int, int]] = {}
        """By chunk of payloads: how many of its tasks have not ended."""
        self._learned: Final[dict[tuple[str, str], Used]] = {}
        self._changed: Final[set[tuple[str, str]]] = set()

    def write(self, event: ev.AnyEvent, instructions: list[AnyInstruction]) -> None:
        """An event and what the engine said to it, for the next commit."""
        self._records.append(event)
        self._records += instructions

    def accept(self, job: Job) -> None:
        """Keep what is needed to make the call again."""
        self.journal.keep_function(job.digest, job.function, job.blob)
        self._new.append(job)

    def ended(self, job: Job) -> None:
        """Its payload is not needed any more."""
        chunk = job.chunk
        if not chunk:
            job.chunk = ENDED_AT_ONCE
        elif chunk > 0:
            left = self._left[chunk] - 1
            if left:
                self._left[chunk] = left
            else:
                del self._left[chunk]
                self.journal.forget(chunk)

    @property
    def has_news(self) -> bool:
        return bool(self._records)

    def commit(self) -> None:
        """Everything so far is safe then, or a JournalError says why not."""
        if self._new:
            new = [job for job in self._new if job.chunk != ENDED_AT_ONCE]
            self._new = []
            for first in range(0, len(new), MOST_IN_A_CHUNK):
                self._keep(new[first : first + MOST_IN_A_CHUNK])
        if self._records:
            records, self._records = self._records, []
            self.journal.append(self._encode(records))
        self.journal.commit()

    def _keep(self, new: list[Job]) -> None:
        spool = [(job.spool,) if job.spool else () for job in new]
        chunk = self.journal.keep(
            [
                Call(job.task.id, job.digest, job.args, names, job.key, job.timeout or 0.0, job.content)
                for job, names in zip(new, spool, strict=True)
            ]
        )
        self._left[chunk] = len(new)
        for job in new:
            job.chunk = chunk

    def turn_over(self, ended: float, jobs: list[Job], placed: int) -> None:
        """End the run and begin another with these calls, which have not ended, so that old runs can be removed. Its
        log has to say how things stand before the next commit. `placed`: how many placements were made before."""
        self.keep_learned()
        self.commit()
        header = msgspec.structs.replace(self._header, placed=placed)
        self.run = self.journal.turn_over(header, self._began, ended, len(jobs))
        self._left.clear()
        for job in jobs:
            job.chunk = 0
            self.accept(job)

    # -- functions -----------------------------------------------------------------------------------------------------

    def definition(self, function: Function, machines: dict[str, str], now: float) -> list[ev.AnyEvent]:
        """A function that is called for the first time in this run, with what earlier runs have shown of it.
        `machines`: their architectures. Where several builds could run, nobody knows whose figures they are."""
        found: list[ev.AnyEvent] = [ev.FunctionDefined(now, function)]
        for machine, arch in sorted(machines.items()):
            builds = [variant.name for variant in function.variants if not variant.arch or arch in variant.arch]
            used = self._known(function.name, machine) if len(builds) == 1 else None
            if used is not None:
                self._learned[function.name, machine] = used
                found.append(ev.FunctionLearned(now, function.name, machine, used, builds[0]))
        return found

    def _known(self, function: str, machine: str) -> Used | None:
        """What earlier runs have shown; None: nothing, or nothing that this version understands."""
        try:
            used = msgspec.convert(self.journal.learned(function, machine), Used)
        except msgspec.ValidationError:
            return None
        return used if used.problem() is None else None

    def learn(self, function: str, machine: str, used: Used) -> None:
        """Calls ended: remember what they took, for later runs too."""
        key = (function, machine)
        known = self._learned.get(key)
        self._learned[key] = used if known is None else known + used
        self._changed.add(key)

    def keep_learned(self) -> None:
        for function, machine in self._changed:
            self.journal.learn(function, machine, msgspec.to_builtins(self._learned[function, machine]))
        self._changed.clear()
