"""The thread that drives the engine on this machine.

Owns the loop: what came in (calls, cancellations, ends, deaths, time) is told to the engine; what it answers is written
to the journal, then carried out; then futures learn their results.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, InvalidStateError
from concurrent.futures._base import CANCELLED, CANCELLED_AND_NOTIFIED, PENDING, RUNNING
from contextlib import suppress
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from time import monotonic, time
from typing import Any, Final

from wattloom.cluster.profile import MachineProfile
from wattloom.cluster.reasons import Reason
from wattloom.energy.forecast import Unknown
from wattloom.errors import EventRefused
from wattloom.journal.errors import JournalError
from wattloom.local import errors, frames
from wattloom.local.books import Books
from wattloom.local.desk import Desk
from wattloom.local.frames import EndFrame
from wattloom.local.future import METERED_WITHIN_S, Reading, TaskFuture
from wattloom.local.job import Job
from wattloom.local.nodes import LocalNode
from wattloom.local.packing import pack_whole, unpack
from wattloom.local.recovery import Recovered
from wattloom.local.workforce import ENDS, WorkerProcess, Workforce
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import AnyInstruction, Conclude, Evict, Place, Wait, Wake
from wattloom.units import GIB
from wattloom.workload.function import Function

AT_ONCE: Final = 512
"""Commands that are taken in before anything else is looked at again."""
SLOW_S: Final = 0.05
"""A worker that says nothing for so long, with calls behind the one it makes, has these taken back."""
LOOK_EVERY_S: Final = 0.025
"""How often busy workers are looked at."""
KEEP_LEARNED_S: Final = 10.0
MOST_STILLBORN: Final = 3
MOST_KILLED: Final = 20
"""In a row, before they were ready: by themselves, or by somebody who may stop doing so."""
LONG_RUN: Final = 32 * 1024 * 1024
"""Bytes of a run's log from which on another is begun, when nothing is open."""


class Dispatcher:
    """A thread that runs until it is told to stop and nothing is left to do."""

    def __init__(
        self,
        books: Books,
        nodes: list[LocalNode],
        desk: Desk | None,
        initializer: bytes,
        idle_timeout_s: float,
        began: float,
    ) -> None:
        self.thread: Final = threading.Thread(target=self.run, name="wattloom-dispatcher", daemon=True)
        self._books: Final = books
        self._nodes: Final = nodes
        self._desk: Final = desk
        self._idle_timeout_s: Final = idle_timeout_s
        self._began: Final = began
        self._selector: Final = DefaultSelector()
        self._workforce: Final = Workforce(nodes, books.journal.spool, books.run, initializer, self._selector)
        self._wakeup: Final = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._selector.register(self._wakeup, EVENT_READ, None)
        self._inbox: Final[deque[tuple[Callable[[Any], None], Any]]] = deque()
        self._asleep: bool = False
        self._jobs: Final[dict[str, Job]] = {}
        self._keys: Final[dict[str, Job]] = {}
        """Calls under way that gave an idempotency key."""
        self._metered: Final[set[int]] = set()
        """Workers that the account knows."""
        self._stillborn: int = 0
        """Workers in a row that died before they were ready."""
        self._functions: Final[dict[str, Function]] = {}
        self._machines: Final = sorted({node.profile.name for node in nodes})
        self._machine_of: Final = {node.name: node.profile.name for node in nodes}
        self._to_send: Final[dict[int, WorkerProcess]] = {}
        self._to_resolve: list[Job] = []
        self._after_commit: list[Callable[[], None]] = []
        self._placed: int = 0
        """Numbers placements as the journal does, so that after a crash a worker's progress tells which had begun."""
        self._waking: list[tuple[float, str]] = []
        self._look_at: float | None = None
        self._keep_learned_at: float = KEEP_LEARNED_S
        self._now: float = 0.0
        """Seconds since the run began, as this turn sees it."""
        self._stopping: bool = False
        self.closed: bool = False
        """Whether no more calls are taken."""
        self.broken: BaseException | None = None

    # -- from other threads --------------------------------------------------------------------------------------------

    def post(self, command: Callable[[Any], None], what: Any) -> None:
        """Have the thread do something."""
        self._inbox.append((command, what))
        if self._asleep:
            self.wake()

    def let_go(self) -> None:
        """In a forked child, where this thread does not exist."""
        if self.thread.is_alive() or self.broken is None:
            self.broken = errors.ExecutorLost("this process was forked from the executor's: make another executor here")
        with suppress(OSError):
            self._workforce.let_go()

    def wake(self) -> None:
        with suppress(OSError):
            os.eventfd_write(self._wakeup, 1)

    def meter_now(self, future: TaskFuture) -> None:
        """Wait until the future has its joules. In a done callback, which this thread runs, they are read at once."""
        if threading.current_thread() is self.thread:
            if self._desk is not None:
                self._read_meter(self._desk, self._now)
            return
        reading = Reading(future)
        self.post(self.read_meter, reading)
        if self.thread.is_alive():
            reading.done.wait(METERED_WITHIN_S)

    # -- commands ------------------------------------------------------------------------------------------------------

    def submit(self, job: Job) -> None:
        """A call comes in."""
        if job.key and self._known_by_key(job):
            return
        if job.future._state != PENDING:
            _tell_waiters(job.future)
        else:
            self._accept(job, ev.TaskSubmitted(self._now, job.task))

    def _accept(self, job: Job, event: ev.AnyEvent) -> None:
        try:
            instructions = self._books.tell(event)
        except EventRefused as problem:
            job.error = problem
            self._resolve(job)
            return
        self._jobs[job.task.id] = job
        self._books.accept(job)
        if instructions:
            self._carry_out(instructions)

    def _known_by_key(self, job: Job) -> bool:
        """A call with the same key was made before, or is under way: its end is this one's too."""
        first = self._keys.get(job.key)
        if first is not None:
            first.future.add_done_callback(lambda done: _follow(done, job.future))
            return True
        kept = self._books.journal.result_of(job.key)
        if kept is None:
            self._keys[job.key] = job
            return False
        job.future._energy = Unknown(f"the result is that of task {kept.task}, made before with this key")
        job.value = EndFrame(0, frames.VALUE, kept.body, "", 0.0, 0.0, b"")
        self._to_resolve.append(job)
        return True

    def define(self, function: Function) -> None:
        """A function that has not been called before, or that wants something else now."""
        self._functions[function.name] = function
        self._carry_out(self._books.define(function, self._machines, self._now))

    def recover(self, found: Recovered) -> None:
        """Calls of earlier runs, all in one turn and so in one commit: they are in one run or in the other."""
        for function in found.functions:
            self.define(function)
        for job, message in found.jobs:
            if job.key:
                self._keys[job.key] = job
            if message:
                self._accept(job, ev.TaskOrphaned(self._now, job.task, message))
            else:
                self._accept(job, ev.TaskSubmitted(self._now, job.task))
        for task in found.cancelled:
            self.cancel(task)
        for run in found.runs:
            self._books.journal.taken_over(run)
        self._after_commit.append(found.delete_leftovers)

    def cancel(self, task: str) -> None:
        """Its future was cancelled, which only happens before it is sent to a worker."""
        if task in self._jobs:
            with suppress(EventRefused):
                self._tell(ev.CancelRequested(self._now, task))

    def cancel_waiting(self, _: None) -> None:
        """Cancel every call that was not sent to a worker."""
        for job in list(self._jobs.values()):
            job.future.cancel()

    def read_meter(self, reading: Reading) -> None:
        if self._desk is None:
            reading.done.set()
        else:
            self._desk.ask(reading)

    def after_commit(self, then: Callable[[], None]) -> None:
        """Call back when all that came before is in the journal."""
        self._after_commit.append(then)

    def stop(self, kill: bool) -> None:
        """No more calls will come. `kill`: those that run are not waited for."""
        self._stopping = True
        if kill:
            for job in list(self._jobs.values()):
                job.error = errors.WorkerLost(job.task.id, f"{job.function} was cut off: the executor was shut down")
                self.cancel(job.task.id)

    # -- the loop ------------------------------------------------------------------------------------------------------

    def _look_at_the_clock(self) -> None:
        """Once a turn: all that is done in it happens at one time."""
        self._now = monotonic() - self._began

    def run(self) -> None:
        """The thread."""
        try:
            self._begin()
            while not (self._stopping and not self._jobs and not self._inbox):
                self._turn()
            self._finish()
        except BaseException as problem:
            self._break(problem)
        finally:
            self._workforce.close(forget=self.broken is None)
            with suppress(JournalError):
                self._books.journal.close()
            self._selector.close()
            os.close(self._wakeup)

    def _begin(self) -> None:
        self._join()
        if self._desk is not None:
            self._desk.begin(self._now)

    def _join(self) -> None:
        """Tell the engine of the nodes."""
        for profile in _different([node.profile for node in self._nodes]):
            self._tell(ev.MachineDefined(self._now, profile))
        for node in self._nodes:
            self._tell(ev.NodeJoined(self._now, node.node))

    def _turn(self) -> None:
        """What came in; what follows; what is written; what is done."""
        self._listen()
        self._take_commands()
        self._pass_time()
        if self._books.has_news or self._after_commit:
            self._books.commit()
        self._deliver()
        if not self._jobs and not self._inbox and self._books.journal.run_bytes > LONG_RUN:
            self._turn_over()

    def _turn_over(self) -> None:
        """The run has become long, and nothing is open: begin another, so that the journal need not keep this one."""
        metering = self._desk is not None and self._desk.due is not None
        if metering or self._books.has_news or self._to_resolve or self._after_commit or any(self._purging()):
            return
        self._books.turn_over(self._unix(self._now))
        self._workforce.turn_over(self._books.run)
        self._placed = 0
        self._waking.clear()
        self._join()
        for function in list(self._functions.values()):
            self._carry_out(self._books.define(function, self._machines, self._now))
        self._books.journal.prune()

    def _purging(self) -> Iterator[bool]:
        return (worker.purging for worker in self._workforce.workers.values())

    def _listen(self) -> None:
        self._asleep = True
        self._look_at_the_clock()
        wait = 0.0 if self._inbox or self._to_resolve or self._books.has_news else self._may_wait()
        found = self._selector.select(wait)
        self._asleep = False
        self._look_at_the_clock()
        for key, mask in found:
            worker = key.data
            if worker is None:
                with suppress(BlockingIOError):
                    os.eventfd_read(self._wakeup)
            elif isinstance(worker, int):
                dead = self._workforce.by_life.get(worker)
                if dead is not None:
                    self._hear_the_last(dead)
            elif worker.number in self._workforce.workers:
                if mask & EVENT_WRITE:
                    self._workforce.write_on(worker)
                if mask & EVENT_READ:
                    self._hear(worker)

    def _may_wait(self) -> float | None:
        """Seconds until something is due; None: only when something comes in."""
        due = [self.engine_tick, self._look_at, None if self._desk is None else self._desk.due]
        due += [when for when, _ in self._waking]
        times = [when for when in due if when is not None]
        return max(0.0, min(times) - self._now) if times else None

    @property
    def engine_tick(self) -> float | None:
        return self._books.engine.next_tick

    def _take_commands(self) -> None:
        inbox = self._inbox
        for _ in range(min(len(inbox), AT_ONCE)):
            command, what = inbox.popleft()
            command(what)

    def _pass_time(self) -> None:
        now = self._now
        tick = self.engine_tick
        if tick is not None and tick <= now:
            self._tell(ev.Tick(now))
        for due, node in [each for each in self._waking if each[0] <= now]:
            self._waking.remove((due, node))
            if self._desk is not None:
                self._desk.node_mode(node, "awake", now)
            self._tell(ev.NodeAwake(now, node))
        if self._look_at is not None and self._look_at <= now:
            self._look_after_workers(now)
        desk = self._desk
        if desk is not None and desk.due is not None and desk.due <= now:
            self._read_meter(desk, now)

    def _read_meter(self, desk: Desk, now: float) -> None:
        for event, used in desk.read(now, [worker for worker in self._workforce.workers.values() if worker.sent]):
            if event.seconds > 0.0:
                self._tell(event)
            for function, each in used.items():
                self._books.learn(function, self._machine_of[event.node], each)
        if now >= self._keep_learned_at:
            self._books.keep_learned()
            self._keep_learned_at = now + KEEP_LEARNED_S

    # -- what the engine says ------------------------------------------------------------------------------------------

    def _tell(self, event: ev.AnyEvent) -> None:
        self._carry_out(self._books.tell(event))

    def _carry_out(self, instructions: list[AnyInstruction]) -> None:
        for instruction in instructions:
            if isinstance(instruction, Place):
                self._place(instruction)
            elif isinstance(instruction, Conclude):
                self._conclude(instruction)
            elif isinstance(instruction, Evict):
                self._evict(instruction)
            elif isinstance(instruction, Wait):
                self._has_to_wait(instruction)
            elif isinstance(instruction, Wake):
                profile = next(node.profile for node in self._nodes if node.name == instruction.node)
                self._waking.append((self._now + profile.wake_s, instruction.node))
                if self._desk is not None:
                    self._desk.node_mode(instruction.node, "waking", self._now)
            elif self._desk is not None:
                self._desk.node_mode(instruction.node, "asleep", self._now)

    def _place(self, place: Place) -> None:
        job = self._jobs[place.task]
        self._placed += 1
        job.number = self._placed
        job.started = False
        job.attempt = place.attempt
        if place.behind:
            holder = self._jobs[place.behind]
            worker, job.share = holder.worker, holder.share
        else:
            worker, job.share = self._workforce.take(place.node), job.number
        assert worker is not None
        job.worker = worker
        worker.outbox.append(job)
        self._to_send[worker.number] = worker
        if self._desk is not None and worker.pid not in self._metered:
            self._metered.add(worker.pid)
            self._desk.worker_started(worker)

    def _conclude(self, conclude: Conclude) -> None:
        job = self._jobs.pop(conclude.task)
        self._books.ended(job)
        self._keys.pop(job.key, None)
        if conclude.outcome == "failed" and job.error is None:
            job.error = errors.WorkerLost(conclude.task, conclude.message or str(conclude.reason))
        elif conclude.outcome == "unknown":
            job.error = errors.OutcomeUnknown(
                conclude.task,
                f"{job.function} may or may not have run to its end: {conclude.message}. It is not marked idempotent, "
                "so it was not run again",
            )
        elif conclude.outcome == "rejected":
            job.error = errors.TaskRejected(conclude.task, conclude.message or str(conclude.reason))
        self._to_resolve.append(job)

    def _has_to_wait(self, wait: Wait) -> None:
        """Here nodes neither come nor grow: what fits nowhere would wait for ever."""
        if wait.reason == Reason.NEVER_FITS:
            job = self._jobs[wait.task]
            job.error = errors.TaskRejected(wait.task, f"{job.function} fits nowhere here: {self._too_much(job)}")
            self.post(self.cancel, wait.task)

    def _too_much(self, job: Job) -> str:
        """What it asks for, and what there is."""
        needs = job.task.requirements or self._books.engine.ledger.functions[job.function].requirements
        cores = max(node.node.cpu or node.profile.threads for node in self._nodes)
        memory = max(node.profile.memory if node.node.memory is None else node.node.memory for node in self._nodes)
        if needs.cpu > cores:
            return f"it asks for {needs.cpu:g} cores, and the largest node has {cores:g}"
        return f"it asks for {needs.memory / GIB:,.1f} GiB, and the largest node has {memory / GIB:,.1f} GiB"

    def _evict(self, evict: Evict) -> None:
        """Futures are cancelled only before they are sent, so it waits in an outbox."""
        job = self._jobs[evict.task]
        worker = job.worker
        assert worker is not None
        if job in worker.outbox:
            worker.outbox.remove(job)
            self._tell(ev.TaskFailed(self._now, evict.task, evict.attempt, "evicted"))
            self._rest_if_free(worker)
        else:
            self._workforce.kill(worker, "it was cancelled")

    # -- what was written is done --------------------------------------------------------------------------------------

    def _deliver(self) -> None:
        if self._to_send:
            now = self._now
            for worker in list(self._to_send.values()):
                self._send(worker, now)
            self._to_send.clear()
        if self._to_resolve:
            resolve, self._to_resolve = self._to_resolve, []
            for job in resolve:
                self._resolve(job)
        if self._after_commit:
            then, self._after_commit = self._after_commit, []
            for each in then:
                each()

    def _send(self, worker: WorkerProcess, now: float) -> None:
        if worker.purging:
            return
        jobs, worker.outbox = worker.outbox, []
        going = []
        for job in jobs:
            if job.future._state == RUNNING or job.future.set_running_or_notify_cancel():
                going.append(job)
            else:
                worker.outbox.append(job)
                self.cancel(job.task.id)
        if going:
            self._workforce.send(worker, going, now)
            if self._look_at is None or self._look_at > now + LOOK_EVERY_S:
                self._look_at = now + LOOK_EVERY_S
            if self._desk is not None and worker.ready:
                self._desk.busy(worker, now)

    def _resolve(self, job: Job) -> None:
        """The journal knows its end: now its caller may."""
        future = job.future
        if job.spool:
            self._books.journal.spool.delete(job.spool)
        value, error = job.value, job.error
        job.args = b""
        job.value = job.error = None
        if value is None and error is None:
            future.cancel()
        if future._state in (CANCELLED, CANCELLED_AND_NOTIFIED):
            _tell_waiters(future)
            return
        result: Any = None
        if error is None:
            try:
                result = self._unpacked(value)
            except BaseException as problem:
                error = problem
        try:
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)
        except InvalidStateError:
            pass  # the caller has set it himself

    def _unpacked(self, end: EndFrame) -> Any:
        if not end.spool:
            return unpack(end.body, [])
        spool = self._books.journal.spool
        try:
            return unpack(end.body, spool.map(end.spool))
        finally:
            spool.delete(end.spool)

    # -- what workers say ----------------------------------------------------------------------------------------------

    def _hear_the_last(self, worker: WorkerProcess) -> None:
        """It has ended: what it said before still counts."""
        while said := self._workforce.read(worker):
            self._understand(worker, said)
        self._died(worker)

    def _hear(self, worker: WorkerProcess) -> None:
        said = self._workforce.read(worker)
        if said is None:
            self._died(worker)
        else:
            self._understand(worker, said)

    def _understand(self, worker: WorkerProcess, said: list[tuple[int, bytes]]) -> None:
        for kind, body in said:
            if kind == frames.ENDED:
                self._ended(worker, ENDS.decode(body))
            elif kind == frames.READY:
                worker.ready = True
                worker.heard_at = self._now
                self._stillborn = 0
                if self._desk is not None and worker.sent:
                    self._desk.busy(worker, self._now)
                if body:
                    raise errors.InitializerFailed(f"the initializer failed in a worker:\n{body.decode()}")
            elif kind == frames.PURGED:
                self._workforce.purged(worker)
                if worker.outbox:
                    self._to_send[worker.number] = worker

    def _ended(self, worker: WorkerProcess, ends: list[EndFrame]) -> None:
        now = self._now
        sent, desk = worker.sent, self._desk
        worker.heard_at = now
        for end in ends:
            if not sent or sent[0].number != end.number:
                continue  # taken back before
            job = sent.popleft()
            self._rest_if_free(worker)  # before the engine gives it something else to do
            if end.status == frames.RETURNED:
                self._tell(ev.TaskReturned(now, job.task.id, job.attempt))
                continue
            if desk is not None:
                desk.ended(worker, job, end.seconds, end.cpu_s, now)
            if end.output:
                self._books.journal.keep_output(job.task.id, end.output)
            if end.status == frames.VALUE:
                self._succeeded(job, end, now)
            else:
                self._failed(job, end, now)

    def _succeeded(self, job: Job, end: EndFrame, now: float) -> None:
        task = job.task.id
        job.value, job.error = end, None
        del self._jobs[task]
        self._books.ended(job)
        if job.key:
            del self._keys[job.key]
            self._books.journal.keep_result(job.key, task, "finished", self._kept(end), self._unix(now))
        self._tell(ev.TaskFinished(now, task, job.attempt, end.seconds, job.cpu_s))
        self._to_resolve.append(job)

    def _failed(self, job: Job, end: EndFrame, now: float) -> None:
        if end.status == frames.RAISED:
            try:
                problem, text = self._unpacked(end)
                problem.__cause__ = errors.RemoteTraceback(text)
                job.error = problem
            except BaseException as wrong:
                job.error = errors.TaskError(job.task.id, f"its exception cannot be read here: {wrong}")
        else:
            job.error = errors.CannotSend(job.task.id, f"{job.function}: {end.body.decode(errors='replace').strip()}")
        lines = str(job.error).splitlines()
        message = f"{type(job.error).__name__}: {lines[0] if lines else ''}"[:500]
        self._tell(ev.TaskFailed(now, job.task.id, job.attempt, "function", message))

    def _kept(self, end: EndFrame) -> bytes:
        """A result as the journal keeps it: whole."""
        if not end.spool:
            return end.body
        return pack_whole(unpack(end.body, self._books.journal.spool.map(end.spool)))

    def _unix(self, now: float) -> float:
        return time() - (monotonic() - self._began - now)

    def _rest_if_free(self, worker: WorkerProcess) -> None:
        if worker.is_free and worker.number in self._workforce.workers:
            self._workforce.rest(worker, self._now)

    def _died(self, worker: WorkerProcess) -> None:
        """Its running call is lost; those behind it had not begun."""
        now = self._now
        if self._desk is not None:
            self._desk.worker_gone(worker, now)
            self._metered.discard(worker.pid)
        begun = worker.progress.begun()
        how = self._workforce.bury(worker)
        if not worker.ready and not worker.doom:
            self._stillborn += 1
            if self._stillborn >= (MOST_STILLBORN if "SIGKILL" not in how else MOST_KILLED):
                raise errors.ExecutorLost(f"workers cannot be started: {how}; see what they wrote to standard error")
        self._to_send.pop(worker.number, None)
        jobs = [*worker.sent, *worker.outbox]
        worker.sent.clear()
        worker.outbox.clear()
        for job in reversed(jobs):
            if job.number > begun:
                self._tell(ev.TaskReturned(now, job.task.id, job.attempt))
        for job in jobs:
            if job.number <= begun:
                self._lost(job, how, now)
        self._after_commit.append(lambda: self._workforce.forget(worker))  # till then it says what had begun

    def _lost(self, job: Job, how: str, now: float) -> None:
        task = job.task.id
        if isinstance(job.error, errors.TaskTimeout):
            self._tell(ev.TaskFailed(now, task, job.attempt, "function", str(job.error)))
        else:
            if not self._stopping:
                job.error = None
            self._tell(ev.TaskFailed(now, task, job.attempt, "infrastructure", how))

    # -- looking after workers -----------------------------------------------------------------------------------------

    def _look_after_workers(self, now: float) -> None:
        """Calls behind a slow one are taken back; calls beyond their time are stopped; idle workers are ended."""
        next_look: float | None = None
        for worker in list(self._workforce.workers.values()):
            if worker.sent:
                self._look_after(worker, now)
                next_look = now + LOOK_EVERY_S
        for worker in list(self._workforce.idle()):
            if worker.ready and now - worker.idle_since >= self._idle_timeout_s:
                self._workforce.stop(worker)
            else:
                end = max(now + LOOK_EVERY_S, worker.idle_since + self._idle_timeout_s)
                next_look = end if next_look is None else min(next_look, end)
        self._look_at = next_look

    def _look_after(self, worker: WorkerProcess, now: float) -> None:
        running = worker.sent[0]
        if not running.started and worker.progress.begun() >= running.number:
            running.started = True
            self._tell(ev.TaskStarted(now, running.task.id, running.attempt))
        if len(worker.sent) > 1 and now - worker.heard_at > SLOW_S and not worker.purging and worker.ready:
            self._take_back(worker, now)
        if running.timeout is not None and not worker.doom and worker.ready:
            since = max(running.sent_at, worker.heard_at)
            if now - since > running.timeout:
                running.error = errors.TaskTimeout(
                    running.task.id, f"{running.function} ran longer than its timeout of {running.timeout:g} s"
                )
                self._workforce.kill(worker, "it ran longer than its timeout")

    def _take_back(self, worker: WorkerProcess, now: float) -> None:
        """The call it makes takes long: those behind it go elsewhere."""
        sent = worker.sent
        begun = worker.progress.take_back(worker.progress.begun())
        last = sent[-1].number
        back = [job for job in sent if job.number > begun]
        for job in back:
            sent.remove(job)
        if back:
            self._workforce.purge(worker, last)
            for job in back:
                self._tell(ev.TaskReturned(now, job.task.id, job.attempt))
        else:
            self._workforce.purged(worker)

    # -- the end -------------------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        if self._desk is not None and self._desk.due is not None:
            self._read_meter(self._desk, self._now)
        self._books.keep_learned()
        self._books.commit()
        self._deliver()
        self._books.journal.end_run(self._unix(self._now))

    def _break(self, problem: BaseException) -> None:
        """Nothing can be done any more: whoever waits is told why."""
        if isinstance(problem, errors.InitializerFailed | errors.ExecutorLost):
            self.broken = problem
        else:
            self.broken = errors.ExecutorLost(f"the dispatcher has stopped: {type(problem).__name__}: {problem}")
            self.broken.__cause__ = problem
        waiting = [*self._jobs.values(), *self._to_resolve]
        while self._inbox:
            command, what = self._inbox.popleft()
            if isinstance(what, Job):
                waiting.append(what)
            elif isinstance(what, Reading):
                what.done.set()
            elif command == self.after_commit:
                what()
        for job in waiting:
            with suppress(Exception):
                if not job.future.done():
                    job.future.set_exception(self.broken)


def _different(profiles: list[MachineProfile]) -> list[MachineProfile]:
    return list({profile.name: profile for profile in profiles}.values())


def _tell_waiters(future: TaskFuture) -> None:
    """It was cancelled: those who wait for it in `wait` and `as_completed` are told once."""
    with suppress(RuntimeError):
        if future._state == CANCELLED:
            future.set_running_or_notify_cancel()


def _follow(done: "Future[Any]", future: TaskFuture) -> None:
    """What the call with the same key came to."""
    with suppress(Exception):
        if done.cancelled():
            future.cancel()
            _tell_waiters(future)
            return
        future._energy = Unknown("the call was made once for several with this key")
        problem = done.exception()
        if problem is not None:
            future.set_exception(problem)
        else:
            future.set_result(done.result())
