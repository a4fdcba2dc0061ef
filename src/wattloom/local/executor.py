"""`wattloom.Executor`: a `concurrent.futures.Executor` that runs calls through the engine and knows their joules.

Owns what callers see: submitting, mapping, recovering, shutting down. The work is the dispatcher's.
"""

import atexit
import logging
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor as BaseExecutor
from itertools import count, islice
from multiprocessing.context import BaseContext
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal

from wattloom.errors import InputError, WattloomError
from wattloom.history.log import VERSION, Header
from wattloom.local import build, errors
from wattloom.local.chunking import Many, chunks, one_by_one
from wattloom.local.dispatcher import Dispatcher
from wattloom.local.functions import Functions
from wattloom.local.future import TaskFuture
from wattloom.local.job import Job
from wattloom.local.journaled_run import JournaledRun
from wattloom.local.nodes import VirtualNode
from wattloom.local.open_calls import OpenCalls
from wattloom.local.options import Options
from wattloom.local.recovery import Recovered, recovered
from wattloom.local.worker_pool import Upbringing, WorkerPool
from wattloom.machines.this_machine import this_machine
from wattloom.metering.protocol import Meter
from wattloom.planning.plan_store import is_digest
from wattloom.policies.protocol import Policy
from wattloom.runtimes.function_file import FunctionFile
from wattloom.runtimes.packing import (
    Packed,
    mark_of,
    named_arguments,
    pack_call,
    pack_whole,
    size_class,
    who_cannot_be_sent,
)
from wattloom.runtimes.plain import pack_plain
from wattloom.runtimes.protocol import PICKLE
from wattloom.scheduling.engine import Engine
from wattloom.scheduling.lease_terms import LeaseTerms
from wattloom.settings import (
    load_settings,
)
from wattloom.workload.function import DEFAULT_VARIANT, Function

LOG: Final = logging.getLogger("wattloom")
PLAIN: Final = Options()
LEASE: Final = LeaseTerms()
DEFAULT: Final = (DEFAULT_VARIANT,)


class Executor(BaseExecutor):
    """Runs calls in worker processes of this machine. Nothing has to be set; every setting has its own name in
    `wattloom.toml` and in the environment (see the reference)."""

    def __init__(
        self,
        max_workers: int | None = None,
        mp_context: BaseContext | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        *,
        max_tasks_per_child: int | None = None,
        journal: str | Path | None = None,
        durability: Literal["process", "machine"] | None = None,
        policy: str | Policy | None = None,
        meter: str | Meter = "auto",
        nodes: Sequence[VirtualNode] | None = None,
        idle_timeout: float | None = None,
        lease: LeaseTerms | None = LEASE,
    ) -> None:
        workers = build.whole_number("max_workers", max_workers)
        most_calls = build.whole_number("max_tasks_per_child", max_tasks_per_child)
        given = {"durability": durability, "idle_timeout_s": idle_timeout, "max_workers": workers}
        settings = load_settings({"local": given}).local
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        if not isinstance(meter, str | Meter):
            raise InputError("meter", f"must be a meter's name, auto, off or a Meter, not {type(meter).__name__}")
        build.check_context(mp_context)
        if lease is LEASE and (nodes is not None or most_calls is not None):
            lease = None  # each call of its own where policies are tried, or workers have few calls to make
        here = this_machine()
        self._nodes: Final = build.local_nodes(here, settings.max_workers or None, nodes)
        self._workers: Final = max(1, round(sum(node.node.cpu or node.profile.threads for node in self._nodes)))
        self._functions: Final = Functions()
        self._defined: Final[dict[str, Function]] = {}
        self._lock: Final = threading.Lock()
        self._numbers: Final = count(1)
        self._checked: Options = PLAIN
        """The options that were given last, which most calls have in common."""
        self._began: Final = time.monotonic()
        if initializer is not None:
            self._functions.sent(initializer)  # by value from now on, if only we have its module
        first = b"" if initializer is None else pack_whole((initializer, initargs))
        build.refuse_code_of_the_folder(settings, policy is None, journal is None)
        spec, new_policy = build.policy_maker(policy if policy is not None else settings.policy, settings.max_workers)
        self._policy: Final = new_policy()
        build.say_where_tdp_is_not_kept(self._policy, self._nodes)
        self._journal: Final = build.open_journal(journal if journal is not None else settings.journal, settings)
        try:
            header = Header(VERSION, spec, "local", lease=lease)
            journaled = JournaledRun(self._journal, header, time.time())
            keys = build.key_store(self._journal, journal if journal is not None else settings.journal, settings)
            self._prefix: Final = f"{journaled.run}-"
            self._spool: Final = self._journal.spool
            accounting = build.new_accounting(meter, here, self._nodes)
            upbringing = Upbringing(first, most_calls or 0, settings.idle_timeout_s)
            calls = OpenCalls(self._spool)
            host = WorkerPool(self._nodes, self._journal, journaled.run, upbringing, calls.after_commit)
            self._dispatcher: Final = Dispatcher(
                lambda placed: Engine(new_policy(), lease, placed),
                journaled,
                keys,
                calls,
                host,
                accounting,
                self._began,
            )
            self.recovered: Final[list[TaskFuture]] = self._recover()
            """Futures of calls that an earlier run of this journal had accepted and not ended."""
            self._dispatcher.post(self._dispatcher.submissions.settle_keys, None)
        except BaseException:
            self._journal.close()
            raise
        self._dispatcher.thread.start()
        _LIVE.difference_update([each for each in _LIVE if not each.thread.is_alive()])
        _LIVE.add(self._dispatcher)

    @property
    def usable(self) -> bool:
        """Whether it takes calls."""
        return not self._dispatcher.closed and self._dispatcher.broken is None

    @property
    def journal(self) -> Path:
        """Where it writes down what it does."""
        return self._journal.path

    # -- submitting ----------------------------------------------------------------------------------------------------

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> TaskFuture:
        """Have `fn(*args, **kwargs)` called in a worker process. A `wattloom.function` keeps its needs and wishes."""
        options, fn = _declared(fn)
        return self.submit_with(options, fn, args, kwargs)

    def submit_with(
        self, options: Options, fn: Callable[..., Any], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> TaskFuture:
        """The same with needs and wishes (see `wattloom.function`)."""
        if options is not self._checked:
            options.check()
            self._checked = options
        kwargs = kwargs or {}
        dispatcher = self._dispatcher
        if dispatcher.closed:
            raise dispatcher.broken or RuntimeError("cannot schedule new futures after shutdown")
        number = next(self._numbers)
        name = f"{self._prefix}{number}"
        future = TaskFuture(name, number)
        try:
            sent = self._functions.sent(fn)
            packed, content = (
                pack_plain(args, kwargs) if isinstance(fn, FunctionFile) else (pack_call(args, kwargs), PICKLE)
            )
            spool = self._spooled(name, packed) if packed.buffers else ""
        except Exception as problem:
            future.set_running_or_notify_cancel()
            future.set_exception(_cannot_send(name, fn, args, kwargs, problem))
            return future
        if sent.name not in self._defined or isinstance(fn, FunctionFile):
            self._define(options, sent.name, fn)
        job = Job(
            options.task(name, sent.name, self._defined[sent.name], size_class(args, packed)),
            future,
            sent.digest,
            sent.blob,
            packed.body,
            spool,
        )
        job.timeout, job.key, job.cpu, job.content = options.timeout, options.key, options.cpu, content
        if options.key:
            job.mark = mark_of(args, kwargs)
        future._dispatcher = dispatcher
        with dispatcher.lock:
            if dispatcher.closed:
                raise dispatcher.broken or RuntimeError("cannot schedule new futures after shutdown")
            dispatcher.post(dispatcher.submissions.submit, job)
        if dispatcher.broken is not None and not future.done():
            future.set_exception(dispatcher.broken)
        return future

    def _define(self, options: Options, name: str, fn: Callable[..., Any]) -> None:
        """If it is new, or has other builds than before."""
        variants = fn.variants if isinstance(fn, FunctionFile) else DEFAULT
        with self._lock:
            known = self._defined.get(name)
            if known is None or (isinstance(fn, FunctionFile) and known.variants != variants):
                function = Function(name, options.requirements, variants)
                self._dispatcher.post(self._dispatcher.submissions.define, function)
                self._defined[name] = function

    def _spooled(self, name: str, packed: Packed) -> str:
        self._spool.write(f"args-{name}", packed.raw)
        return f"args-{name}"

    def map(
        self,
        fn: Callable[..., Any],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[Any]:
        """Results of `fn` over the iterables, in order. Calls are sent together as it pays; with a `chunksize` so many
        of them are one task, which is cheaper still, and has its joules and its place in the journal as one. With
        `buffersize` no more than so many tasks are under way, so that iterables may be endless."""
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        if buffersize is not None and not isinstance(buffersize, int):
            raise TypeError("buffersize must be an integer or None")
        if buffersize is not None and buffersize < 1:
            raise ValueError("buffersize must be None or > 0")
        calls = zip(*iterables, strict=False)
        options, fn = _declared(fn)
        if chunksize == 1 or isinstance(fn, FunctionFile):  # its calls are made one by one, wherever they are
            return self.map_with(options, fn, calls, timeout, buffersize)
        return one_by_one(self.map_with(options, Many(fn, chunksize), chunks(calls, chunksize), timeout, buffersize))

    def map_with(
        self,
        options: Options,
        fn: Callable[..., Any],
        calls: Iterable[tuple[Any, ...]],
        timeout: float | None = None,
        buffersize: int | None = None,
    ) -> Iterator[Any]:
        """The same with needs and wishes, over tuples of arguments."""
        end = None if timeout is None else time.monotonic() + timeout
        left = iter(calls)
        futures = deque(self.submit_with(options, fn, args) for args in islice(left, buffersize))
        more = None
        if buffersize is not None:
            more = _Refill(weakref.ref(self), options, fn, left)
        return _results(futures, more, end)

    # -- the journal ---------------------------------------------------------------------------------------------------

    def sync(self, timeout: float | None = None) -> bool:
        """Wait until everything submitted so far is in the journal: from then on it is not forgotten."""
        if threading.current_thread() is self._dispatcher.thread:
            raise RuntimeError("a done callback cannot wait for the journal: it is what the journal waits for")
        done = threading.Event()
        self._dispatcher.after_commit(done.set)
        while self._dispatcher.thread.is_alive():
            if done.wait(0.5 if timeout is None else timeout):
                return True
            if timeout is not None:
                return False
        return done.is_set()

    def change_plan(self, digest: str) -> None:
        """Have another plan hold from now on, for a policy that goes by one (`planned`). It is found by its digest
        (`wattloom plan keep`). InputError: it cannot be."""
        problem = self._policy.plan_problem(digest) if is_digest(digest) else "is no digest of a plan"
        if problem:
            raise InputError("plan", problem)
        self._dispatcher.post(self._dispatcher.change_plan, digest)

    def _recover(self) -> list[TaskFuture]:
        found = recovered(self._journal)
        if not (found.jobs or found.leftovers or found.runs):
            return []
        self._defined.update((function.name, function) for function in found.functions)
        for job, _ in found.jobs:
            job.future._dispatcher = self._dispatcher
        self._dispatcher.post(self._dispatcher.submissions.recover, found)
        _say_what_was_left(found, self._journal.path)
        return [job.future for job, _ in found.jobs]

    # -- the end -------------------------------------------------------------------------------------------------------

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """No more calls. Those under way, and without `cancel_futures` those waiting, are still made."""
        news = self._dispatcher.close()
        if cancel_futures:
            self._dispatcher.post(self._dispatcher.submissions.cancel_waiting, None)
        if news:
            self._dispatcher.post(self._dispatcher.stop, False)
        if wait:
            _join(self._dispatcher)

    def kill_workers(self) -> None:
        """End all at once: calls that run are cut off, those waiting are cancelled."""
        self._dispatcher.close()
        _kill(self._dispatcher)

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self.kill_workers()
        else:
            self.shutdown(wait=True)

    def __del__(self) -> None:
        if hasattr(self, "_dispatcher") and not self._dispatcher.closed:
            self.shutdown(wait=False)


def _say_what_was_left(found: Recovered, journal: Path) -> None:
    unknown = sum(bool(message) and not job.task.idempotent for job, message in found.jobs)
    whose = "its" if unknown == 1 else "their"
    again = len(found.jobs) - unknown
    if found.jobs:
        LOG.warning(
            "an earlier run of %s was cut off: %d %s taken up again%s (executor.recovered)",
            journal,
            again,
            "call that it had accepted is" if again == 1 else "calls that it had accepted are",
            f", and {unknown} had begun and may not be run twice, so {whose} outcome is unknown" if unknown else "",
        )


def _declared(fn: Callable[..., Any]) -> tuple[Options, Callable[..., Any]]:
    """What a function was declared to need and wish, and the function itself."""
    declared: tuple[Options, Callable[..., Any]] | None = getattr(fn, "__wattloom__", None)
    return (PLAIN, fn) if declared is None else declared


# -- map ---------------------------------------------------------------------------------------------------------------


class _Refill:
    """Submits the next call of a lazy map, as long as its executor is there."""

    def __init__(
        self,
        executor: "weakref.ref[Executor]",
        options: Options,
        fn: Callable[..., Any],
        left: Iterator[tuple[Any, ...]],
    ) -> None:
        self._executor = executor
        self._options = options
        self._fn = fn
        self._left = left

    def __call__(self, futures: deque[TaskFuture]) -> None:
        executor = self._executor()
        if executor is not None:
            futures.extend(executor.submit_with(self._options, self._fn, args) for args in islice(self._left, 1))


def _results(futures: deque[TaskFuture], more: _Refill | None, end: float | None) -> Iterator[Any]:
    """As they come, in order; what nobody waits for any more is cancelled."""
    try:
        while futures:
            yield _first_of(futures, more, end)  # no name for it here: it is the caller's alone
    finally:
        for each in futures:
            each.cancel()


def _first_of(futures: deque[TaskFuture], more: _Refill | None, end: float | None) -> Any:
    future = futures[0]
    try:
        result = future.result(None if end is None else end - time.monotonic())
    finally:
        if future.done():
            futures.popleft()
        del future
    if more is not None:
        more(futures)
    return result


def _cannot_send(
    task: str, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], problem: Exception
) -> BaseException:
    if isinstance(problem, WattloomError):
        return problem
    if isinstance(fn, FunctionFile):
        return errors.CannotSend(task, f"{fn.name}: {problem}")
    found = errors.CannotSend(task, who_cannot_be_sent(named_arguments(fn, args, kwargs), problem))
    found.__cause__ = problem
    return found


# -- the interpreter's end ---------------------------------------------------------------------------------------------

_LIVE: Final[set[Dispatcher]] = set()
"""Dispatchers that may have work, whether or not their executors are still known to anybody."""


def _join(dispatcher: Dispatcher) -> None:
    try:
        dispatcher.thread.join()
        _LIVE.discard(dispatcher)
    except KeyboardInterrupt:  # whoever asks twice does not want to wait
        _kill(dispatcher)
        raise


def _kill(dispatcher: Dispatcher) -> None:
    dispatcher.post(dispatcher.submissions.cancel_waiting, None)
    dispatcher.post(dispatcher.stop, True)
    dispatcher.thread.join()
    _LIVE.discard(dispatcher)


def _finish_all() -> None:
    """Before the interpreter ends, what was submitted is finished, as with the standard library's executors."""
    interrupted = isinstance(getattr(sys, "last_value", None), KeyboardInterrupt)
    for dispatcher in list(_LIVE):
        dispatcher.close()
        if interrupted:
            _kill(dispatcher)
        else:
            dispatcher.post(dispatcher.stop, False)
            _join(dispatcher)


def _forget_all() -> None:
    """In a forked child the dispatcher's thread does not exist."""
    for dispatcher in _LIVE:
        dispatcher.let_go()
    _LIVE.clear()


try:
    threading._register_atexit(_finish_all)  # type: ignore[attr-defined]
except (AttributeError, RuntimeError):
    atexit.register(_finish_all)
os.register_at_fork(after_in_child=_forget_all)
