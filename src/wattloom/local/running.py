"""One function or one command, run through an executor of its own: what `wattloom run` does.

Owns the way from words to calls, the passing on of signals, and what is told of each call afterwards. Prints nothing of
its own.
"""

import os
import shlex
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean, stdev
from types import FrameType
from typing import Any, Final

import msgspec

from wattloom.energy.forecast import Unknown
from wattloom.energy.measured import Energy
from wattloom.errors import InputError
from wattloom.history.listing import Row, list_tasks
from wattloom.history.runs import runs
from wattloom.local.command import CANNOT_RUN, GRACE_S, PASSED_ON, SIGNALLED, TIMED_OUT, Command, CommandFailed
from wattloom.local.decorator import function
from wattloom.local.errors import TaskTimeout
from wattloom.local.executor import Executor
from wattloom.local.future import TaskFuture
from wattloom.local.import_path import NamedFunction, prepare_worker, prints_to_stderr
from wattloom.local.loading import load, split_spec
from wattloom.local.stdio_passing import StdioServer

NOT_FOUND: Final = 127
FILE_SUFFIXES: Final = (".js", ".mjs", ".cjs", ".wasm", ".java", ".jar", ".class")
FAILED: Final = 1
PATIENCE_S: Final = 10.0
"""After a signal was passed on: a command that has not ended by then is killed."""


class CommandNotFound(InputError):
    """There is no such command, or it may not be run. `code` is the exit code that shells give it."""

    def __init__(self, field: str, problem: str, code: int = NOT_FOUND) -> None:
        super().__init__(field, problem)
        self.code = code


class RanCall(msgspec.Struct, frozen=True):
    """One call, or one run of a command, that came to its end."""

    task: str
    """Its name for `wattloom why`, `tasks` and `logs`."""
    state: str
    seconds: float | None
    energy: Energy | Unknown
    message: str


class Ran(msgspec.Struct, frozen=True):
    """What became of it. With `repeat` there are several calls; the first that fails is the last."""

    what: str
    journal: str
    calls: list[RanCall]
    value: Any
    """Of the last call; of a command None."""
    error: BaseException | None
    exit_code: int

    @property
    def joules(self) -> list[float]:
        """Of each call whose joules are known."""
        return [float(call.energy.joules) for call in self.calls if isinstance(call.energy, Energy)]

    @property
    def mean_j(self) -> float | None:
        return fmean(self.joules) if self.joules else None

    @property
    def deviation_j(self) -> float | None:
        """Standard deviation from call to call; None: fewer than two."""
        return stdev(self.joules) if len(self.joules) > 1 else None

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it, without the value."""
        return {
            "what": self.what,
            "exit_code": self.exit_code,
            "journal": self.journal,
            "calls": [_call_json(call) for call in self.calls],
            "mean_j": self.mean_j,
            "deviation_j": self.deviation_j,
        }


def _call_json(call: RanCall) -> dict[str, Any]:
    known = call.energy if isinstance(call.energy, Energy) else None
    return {
        "task": call.task,
        "state": call.state,
        "seconds": call.seconds,
        "joules": None if known is None else known.joules,
        "spread_j": None if known is None else known.spread,
        "provenance": "" if known is None else known.provenance,
        "message": call.message,
    }


class RunRequest(msgspec.Struct, frozen=True):
    """How it is to be run. None: as everywhere."""

    options: dict[str, Any] = {}
    """Those of `wattloom.function`."""
    policy: str | None = None
    journal: str | None = None
    meter: str = "auto"
    quiet_stdout: bool = False
    """Whether what a function prints goes to standard error."""
    recovered: Callable[[list[TaskFuture]], None] | None = None
    """Called with the calls of an earlier run that are taken up again, if there are some."""


def run_function(name: str, args: list[Any], kwargs: dict[str, Any], repeat: int, request: RunRequest) -> Ran:
    """Call `module:function`, one call after the other. A decorated function keeps its own options where none is given.
    Raises InputError if there is no such function."""
    if is_function_file(name):
        return _run_file(name, args, kwargs, repeat, request)
    found = NamedFunction(name, os.getcwd())
    remote = function(found).options(**found.declared() | request.options)
    first = (name.partition(":")[0], request.quiet_stdout)
    with _executor(request, initializer=prepare_worker, initargs=first) as executor:
        ready = remote.options(executor=executor)
        futures = list(_one_after_the_other(lambda: ready.remote(*args, **kwargs), repeat))
    return _ran(name, executor, futures)


def is_function_file(name: str) -> bool:
    """Whether it names a file of another language, and no module: by how it ends, or by the folder it is in."""
    path, _ = split_spec(name)
    return path.suffix in FILE_SUFFIXES or (os.sep in name and path.suffix != ".py")


def _run_file(name: str, args: list[Any], kwargs: dict[str, Any], repeat: int, request: RunRequest) -> Ran:
    remote = load(name, **request.options)
    first = {"initializer": prints_to_stderr, "initargs": ()} if request.quiet_stdout else {}
    with _executor(request, **first) as executor:
        ready = remote.options(executor=executor)
        futures = list(_one_after_the_other(lambda: ready.remote(*args, **kwargs), repeat))
    return _ran(name, executor, futures)


def run_command(words: list[str], repeat: int, request: RunRequest) -> Ran:
    """Run a command with this process's standard streams, so often or until it fails. Signals that would end this
    process are passed on to it. Raises CommandNotFound."""
    _check_command(words)
    timeout: float | None = request.options.get("timeout")
    # The command is told to end when its time is over, and keeps its output; if it does not, its worker is killed.
    own = request.options | ({} if timeout is None else {"timeout": timeout + 2 * GRACE_S})
    remote = function(**own)(Command(words))
    with _executor(request) as executor, _passed_on(executor) as stdio:
        ready = remote.options(executor=executor)
        calls = _one_after_the_other(lambda: ready.remote(words, os.getcwd(), stdio.name, timeout), repeat)
        futures = list(calls)
    return _ran(shlex.join(words), executor, futures, stdio.asked)


@contextmanager
def _executor(request: RunRequest, **more: Any) -> Iterator[Executor]:
    """What an earlier run left is waited for too, but not beyond a Ctrl-C."""
    executor = Executor(journal=request.journal, policy=request.policy, meter=request.meter, **more)
    try:
        if executor.recovered and request.recovered is not None:
            request.recovered(executor.recovered)
        yield executor
        executor.shutdown()
    except BaseException:
        executor.kill_workers()
        raise


def _check_command(words: list[str]) -> None:
    if not words or not words[0]:
        raise InputError("command", "name one: wattloom run -- COMMAND...")
    if shutil.which(words[0]) is None:
        path = Path(words[0])
        if "/" in words[0] and path.is_file():
            raise CommandNotFound(words[0], "may not be executed (chmod +x)", CANNOT_RUN)
        raise CommandNotFound(words[0], "is a folder" if path.is_dir() else "command not found")


def _one_after_the_other(submit: Callable[[], TaskFuture], repeat: int) -> Iterator[TaskFuture]:
    """The joules of a call are clearest while nothing else runs."""
    for _ in range(repeat):
        future = submit()
        failed = _error_of(future) is not None
        _ = future.energy  # read now: the idle time in between is not the call's
        yield future
        if failed:
            return


def calls_of(executor: Executor, futures: list[TaskFuture]) -> list[RanCall]:
    """What the journal says of calls that have ended, once their executor has shut down: then all is there."""
    rows = _rows(executor.journal, futures)
    calls = []
    for future in futures:
        row, failed = rows.get(future.task_id), _error_of(future)
        state = ("finished" if failed is None else "failed") if row is None else row.state
        message = str(failed or "") if row is None else row.message
        calls.append(RanCall(future.task_id, state, None if row is None else row.seconds, future.energy, message))
    return calls


def _ran(what: str, executor: Executor, futures: list[TaskFuture], asked: int = 0) -> Ran:
    calls = calls_of(executor, futures)
    error = _error_of(futures[-1])
    if asked and error is not None and not isinstance(error, CommandFailed):
        begun = not isinstance(error, CancelledError)
        problem = "killed, since it did not end by itself" if begun else "it was to end before it had begun"
        error = CommandFailed(SIGNALLED + asked, problem)
    value = None if error is not None else futures[-1].result()
    return Ran(what, str(executor.journal), calls, value, error, _exit_code(error))


def _rows(journal: Path, futures: list[TaskFuture]) -> dict[str, Row]:
    """They may be in several runs: the executor begins another when one has become long."""
    first = int(futures[0].task_id.partition("-")[0])
    ours = [run.run for run in runs(journal) if run.run >= first]
    return {row.task: row for run in ours for row in list_tasks(journal, run=run)}


def _error_of(future: TaskFuture) -> BaseException | None:
    """Also of one that was cancelled, as after a second Ctrl-C."""
    try:
        return future.exception()
    except CancelledError as problem:
        return problem


def _exit_code(error: BaseException | None) -> int:
    if error is None:
        return 0
    if isinstance(error, CommandFailed):
        return error.code
    return TIMED_OUT if isinstance(error, TaskTimeout) else FAILED


@contextmanager
def _passed_on(executor: Executor) -> Iterator[StdioServer]:
    """Signals go to the command. At the second one, or after a while, it is killed; if it has not begun, at once."""
    stdio = StdioServer()
    killing = threading.Timer(PATIENCE_S, executor.kill_workers)
    killing.daemon = True

    def pass_on(number: int, frame: FrameType | None) -> None:
        if stdio.asked or not stdio.begun:
            threading.Thread(target=executor.kill_workers, daemon=True).start()
        else:
            killing.start()
        stdio.signal(number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        ours = [each for each in PASSED_ON if signal.getsignal(each) != signal.SIG_IGN]
        before = {each: signal.signal(each, pass_on) for each in ours}
    try:
        yield stdio
    finally:
        killing.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
        stdio.close()
