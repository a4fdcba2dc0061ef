"""The thread that drives the engine on this machine.

Owns the loop: what came in (calls, cancellations, ends, deaths, time) is told to the engine; what it answers is written
to the journal, then carried out; then futures learn their results. The work is done by its parts: `submissions` take
calls in, `instructions` carry out, `worker_events` understand workers, `meter_readings` read joules, and `open_calls`
tell callers.
"""

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from wattloom.driving.snapshot import may_be_cut, snapshot
from wattloom.journal.errors import JournalError
from wattloom.local import errors
from wattloom.local.accounting import USUAL_S, Accounting
from wattloom.local.future import METERED_WITHIN_S, Reading, TaskFuture
from wattloom.local.idempotency import Keys
from wattloom.local.instructions import Instructions
from wattloom.local.job import Job, past_of
from wattloom.local.journaled_run import JournaledRun
from wattloom.local.meter_readings import MeterReadings
from wattloom.local.open_calls import OpenCalls
from wattloom.local.run_clock import RunClock
from wattloom.local.submissions import Submissions
from wattloom.local.worker_events import WorkerEvents
from wattloom.local.worker_host import WorkerHost
from wattloom.machines.profile import MachineProfile
from wattloom.scheduling import events as ev
from wattloom.scheduling.engine import Engine

AT_ONCE: Final = 512
"""Commands that are taken in before anything else is looked at again."""
LONG_RUN: Final = 32 * 1024 * 1024
"""Bytes of a run's log from which on another is begun, however much may be kept."""
CARRIED: Final = 2048
"""Bytes of log that a run must have for each open call: its beginning is to be a small part of the next one."""
TIDYING_S: Final = 0.005
TIDY_EVERY_S: Final = 0.025


class Dispatcher:
    """A thread that runs until it is told to stop and nothing is left to do."""

    def __init__(
        self,
        new_engine: Callable[[int], Engine],
        journaled: JournaledRun,
        keys: Keys,
        calls: OpenCalls,
        host: WorkerHost,
        accounting: Accounting | None,
        began: float,
    ) -> None:
        """`new_engine`: with the number of placements that were made before it. `began`: by the monotonic clock, when
        the run's stood at 0."""
        self.thread: Final = threading.Thread(target=self.run, name="wattloom-dispatcher", daemon=True)
        self.lock = threading.Lock()
        """Held by whoever submits, or says that no more may be submitted."""
        self._inbox: Final[deque[tuple[Callable[[Any], None], Any]]] = deque()
        self._asleep: bool = False
        self._new_engine: Final = new_engine
        self._journaled: Final = journaled
        self._keys: Final = keys
        self._calls: Final = calls
        self._host: Final = host
        self._accounting: Final = accounting
        self._clock: Final = RunClock(began)
        self._instructions: Final = Instructions(
            new_engine(0), journaled, host, calls, keys, accounting, self._clock, self.cancel_later
        )
        self._driver: Final = self._instructions.driver
        self._worker_events: Final = WorkerEvents(journaled, self._instructions, calls, keys, accounting, self._clock)
        self._readings: Final = MeterReadings(accounting, journaled, self._instructions, host, self._clock)
        machines = {node.profile.name: node.profile.arch for node in host.nodes}
        self.submissions: Final = Submissions(journaled, self._instructions, calls, keys, self._clock, machines)
        host.begin(self._worker_events)
        self._long_run: Final = min(LONG_RUN, journaled.journal.long_run)
        self._turn_over_at: float = 0.0
        """When it is tried again, if the meter did not say anything."""
        self._tidying: bool = False
        """Whether rows of runs that were let go may still be there."""
        self._tidy_at: float = 0.0
        self._stopping: bool = False
        self.closed: bool = False
        """Whether no more calls are taken."""
        self.ended: bool = False
        """Whether it has nothing open any more, or is about to."""
        self.broken: BaseException | None = None
        self._forked: bool = False
        """Whether this is a child that the executor's process has forked: everything here is the parent's."""

    # -- from other threads --------------------------------------------------------------------------------------------

    def post(self, command: Callable[[Any], None], what: Any) -> None:
        """Have the thread do something."""
        self._inbox.append((command, what))
        if self._asleep:
            self._host.wake()

    def cancel_later(self, task: str) -> None:
        """Nobody wants it any more."""
        self.post(self._instructions.cancel, task)

    def after_commit(self, then: Callable[[], None]) -> None:
        """Have this called when all that came before is in the journal."""
        self.post(self._calls.after_commit, then)

    def close(self) -> bool:
        """From now on no calls are taken; whether that is news."""
        with self.lock:
            closed, self.closed = self.closed, True
        return not closed

    def let_go(self) -> None:
        """In a forked child, where this thread does not exist; or is the only one, if a done callback forked."""
        self.closed = self._forked = True
        self.lock = threading.Lock()  # nobody is left to let go of the other
        if self.ended:
            return  # its descriptors are closed, and their numbers may be somebody else's
        if self.broken is None:
            self.broken = errors.ExecutorLost("this process was forked from the executor's: make another executor here")
        with suppress(OSError):
            self._host.let_go()

    def check_that_it_can_come(self, future: TaskFuture) -> None:
        """Before somebody waits for the end of a call: this thread must be there to tell it, and be another."""
        if self._forked and self.broken is not None:
            raise self.broken
        if threading.current_thread() is self.thread:
            raise RuntimeError(
                f"a done callback cannot wait for another call (task {future.task_id}): it keeps the thread that would "
                "tell of its end. Give that call a callback too, or wait in a thread of your own"
            )

    def meter_now(self, future: TaskFuture) -> str:
        """Wait until the future has its joules; why the meter said nothing, if so. In a done callback, which this
        thread runs, they are read at once."""
        if threading.current_thread() is self.thread:
            self._readings.read(self._clock.now)
            return ""
        reading = Reading(future)
        self.post(self._readings.ask, reading)
        if self.thread.is_alive():
            reading.done.wait(METERED_WITHIN_S)
        return reading.problem

    def change_plan(self, digest: str) -> None:
        """To be posted. Another plan holds."""
        self._driver.tell(ev.PlanChanged(self._clock.now, digest))

    def stop(self, kill: bool) -> None:
        """To be posted. No more calls will come. `kill`: those that run are not waited for."""
        self._stopping = self._worker_events.stopping = True
        if kill:
            self.submissions.cut_off()

    # -- the loop ------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """The thread."""
        try:
            self._driver.tell_all(self._joining())
            self._readings.begin()
            while not self._is_over():
                self._turn()
            if not self._forked:
                self._finish()
        except BaseException as problem:
            if not self._forked:
                self._break(problem)
        finally:
            self._leave()

    def _is_over(self) -> bool:
        return self._forked or (self._stopping and not (self._calls.jobs or self._inbox or self._keys.waiting))

    def _joining(self) -> list[ev.AnyEvent]:
        """The nodes, as the engine is told of them."""
        now = self._clock.now
        profiles = _different([node.profile for node in self._host.nodes])
        machines = [ev.MachineDefined(now, profile) for profile in profiles]
        return [*machines, *(ev.NodeJoined(now, node.node) for node in self._host.nodes)]

    def _turn(self) -> None:
        """What came in; what follows; what is written; what is done."""
        self._listen()
        self._take_commands()
        self._pass_time()
        if self._keys.unsaved:
            self._keys.save(self._clock.unix())
        if self._journaled.has_news or self._calls.wants_a_commit:
            self._journaled.commit()
        self._deliver()
        if self._journaled.journal.run_bytes > self._long_run:
            self._turn_over()
        elif self._tidying and self._clock.now >= self._tidy_at:
            self._tidy()

    def _listen(self) -> None:
        self._asleep = True
        self._clock.look()
        at_once = self._inbox or self._host.has_unsent or self._calls.waits_to_be_told or self._journaled.has_news
        self._host.wait(0.0 if at_once else self._may_wait())
        self._asleep = False
        self._host.hear(self._clock.look())

    def _may_wait(self) -> float | None:
        """Seconds until something is due; None: only when something comes in."""
        due = (
            self._driver.next_tick,
            self._host.due,
            self._keys.ask_at,
            self._readings.due,
            self._instructions.next_awake,
        )
        times = [when for when in due if when is not None]
        return max(0.0, min(times) - self._clock.now) if times else None

    def _take_commands(self) -> None:
        inbox = self._inbox
        for _ in range(min(len(inbox), AT_ONCE)):
            command, what = inbox.popleft()
            command(what)

    def _pass_time(self) -> None:
        now = self._clock.now
        self._driver.tick(now)
        self._instructions.pass_time(now)
        look_at = self._host.due
        if look_at is not None and look_at <= now:
            self._host.look_after(now)
        self.submissions.pass_time(now)
        self._readings.pass_time(now)

    def _deliver(self) -> None:
        """The journal has it: send what was placed, tell who was waiting."""
        self._host.send(self._clock.now)
        self._worker_events.cancel_unwanted()
        if self._keys.unsaved:  # no other copy may have to wait for what callbacks do
            self._keys.save(self._clock.unix())
        self._calls.deliver()

    # -- a run's end ---------------------------------------------------------------------------------------------------

    def _turn_over(self) -> None:
        """The run has become long: begin another with what is open, so that the journal need not keep this one."""
        jobs, clock = self._calls.jobs, self._clock
        run_bytes = self._journaled.journal.run_bytes
        can_be = self._instructions.next_awake is None and may_be_cut(self._driver.engine)
        if not can_be or len(jobs) * CARRIED > run_bytes or clock.now < self._turn_over_at:
            return  # soon; or when what is told again is little beside what is left behind
        if not self._readings.is_all_paid() and run_bytes < 2 * self._long_run:
            self._turn_over_at = clock.now + USUAL_S
            return
        engine = self._driver.engine
        state = snapshot(engine, clock.now, past_of=lambda record, past: past_of(record, past, jobs[record.name]))
        self._journaled.turn_over(clock.unix(), list(jobs.values()), engine.placed)
        self._host.turn_over()
        self._driver.begin_anew(self._new_engine(engine.placed), self._journaled, state)
        self._journaled.commit()
        self._journaled.journal.prune(self._long_run)
        self._tidying = True

    def _tidy(self) -> None:
        """A little at a time: calls are not to wait for it."""
        self._tidying = self._journaled.journal.tidy(TIDYING_S)
        self._tidy_at = self._clock.look() + TIDY_EVERY_S

    def _finish(self) -> None:
        self._readings.finish()
        self._journaled.commit()
        self._deliver()
        self._journaled.commit()
        self._journaled.journal.end_run(self._clock.unix())

    def _leave(self) -> None:
        self.ended = True
        if not self._forked:
            self._readings.close()
            self._keys.close()
            self._host.close(forget=self.broken is None)
            with suppress(JournalError):
                self._journaled.journal.close()

    def _break(self, problem: BaseException) -> None:
        """Nothing can be done any more: whoever waits is told why."""
        if isinstance(problem, errors.InitializerFailed | errors.ExecutorLost):
            self.broken = problem
        else:
            self.broken = errors.ExecutorLost(f"the dispatcher has stopped: {errors.in_words(problem)}")
            self.broken.__cause__ = problem
        self.close()
        more: list[Job] = []
        while self._inbox:
            command, what = self._inbox.popleft()
            if isinstance(what, Job):
                more.append(what)
            elif isinstance(what, Reading):
                what.done.set()
            elif command == self._calls.after_commit:
                what()
        self._calls.give_up(self.broken, more)


def _different(profiles: list[MachineProfile]) -> list[MachineProfile]:
    return list({profile.name: profile for profile in profiles}.values())
