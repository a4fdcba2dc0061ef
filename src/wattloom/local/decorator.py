"""`@wattloom.function`: a function that can be called somewhere else.

Owns the decorator and the executor that is there without asking. What a call needs and wishes is in `options`.
"""

import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, TypeVar, overload

import msgspec

from wattloom.errors import InputError
from wattloom.local.options import Options

if TYPE_CHECKING:  # a worker that meets such a function needs no executor
    from wattloom.local.executor import Executor
    from wattloom.local.future import TaskFuture

P = ParamSpec("P")
R = TypeVar("R")

_DEFAULT: "Final[list[Executor]]" = []
_LOCK = threading.Lock()


def _renew_lock() -> None:
    """In a forked child nobody is left to let go of it."""
    global _LOCK
    _LOCK = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


def default_executor() -> "Executor":
    """The executor of functions that were not given another; begun when first used, ended with the program."""
    from wattloom.local.executor import Executor

    with _LOCK:
        if not _DEFAULT or not _DEFAULT[0].usable:
            _DEFAULT[:] = [Executor()]
        return _DEFAULT[0]


class RemoteFunction(Generic[P, R]):
    """A function with needs and wishes. Called plainly it is the function itself."""

    def __init__(self, function: Callable[P, R], options: Options, executor: "Executor | None" = None) -> None:
        functools.update_wrapper(self, function)
        self._function: Final = function
        self._options: Final = options
        self._executor: Final = executor
        self.__wattloom__: Final = (options, function)
        """For executors that are given this in place of the function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    def local(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call it here and now, in this process."""
        return self._function(*args, **kwargs)

    def remote(self, *args: P.args, **kwargs: P.kwargs) -> "TaskFuture":
        """Have it called in a worker; a future of its result, with its joules."""
        return self._where().submit_with(self._options, self._function, args, kwargs)

    def map(
        self, *iterables: Iterable[Any], timeout: float | None = None, buffersize: int | None = None
    ) -> Iterator[R]:
        """Results over the iterables, in order. With `buffersize` no more than so many calls are under way."""
        calls = zip(*iterables, strict=False)
        return self._where().map_with(self._options, self._function, calls, timeout, buffersize)

    def options(self, *, executor: "Executor | None" = None, **changed: Any) -> "RemoteFunction[P, R]":
        """The same function with other needs and wishes."""
        return RemoteFunction(self._function, options_with(self._options, changed), executor or self._executor)

    @property
    def executor(self) -> "Executor | None":
        """Where it runs; None: the default one."""
        return self._executor

    def _where(self) -> "Executor":
        return self._executor or default_executor()

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteFunction, (self._function, self._options)

    def __repr__(self) -> str:
        return f"<wattloom function {self._function.__qualname__}>"


@overload
def function(function: Callable[P, R], /) -> RemoteFunction[P, R]: ...


@overload
def function(
    *,
    cpu: float = ...,
    memory: int = ...,
    retries: int = ...,
    infrastructure_retries: int = ...,
    timeout: float | None = ...,
    idempotent: bool = ...,
    energy_weight: float = ...,
    priority: int = ...,
    deadline: float | None = ...,
    defer: float = ...,
    key: str = ...,
    arch: tuple[str, ...] = ...,
    executor: "Executor | None" = ...,
) -> Callable[[Callable[P, R]], RemoteFunction[P, R]]: ...


def function(function: Any = None, /, *, executor: "Executor | None" = None, **wishes: Any) -> Any:
    """Make a function that runs in worker processes: `f.remote(...)`, `f.map(...)`; `f(...)` stays what it was.

    `cpu` cores and `memory` bytes are what a call needs. `retries` after its own exceptions, `timeout` in seconds,
    `idempotent`: it may be run again when its worker or this program dies. `energy_weight` from 0 (all for speed) to 1
    (all for energy); `priority`; `deadline` and `defer` (seconds; told to the policy: of ours only `least-joules`
    looks at them, and only where nodes sleep). `key`: such a call is made once, ever (mostly given
    with `options`). `arch`: the machines it runs on (`("x86_64",)`). `executor`: another than the default one.
    """
    options = options_with(Options(), wishes)
    if function is not None:
        return RemoteFunction(function, options, executor)
    return lambda wrapped: RemoteFunction(wrapped, options, executor)


def options_with(before: Options, changed: dict[str, Any]) -> Options:
    unknown = sorted(set(changed) - set(before.__struct_fields__))
    if unknown:
        raise InputError(unknown[0], f"is no option of a function; they are {', '.join(before.__struct_fields__)}")
    try:
        found = msgspec.convert(msgspec.structs.asdict(before) | changed, Options)
    except msgspec.ValidationError as problem:
        what, _, where = str(problem).partition(" - at `$.")
        raise InputError(where.rstrip("`") or "options", what[0].lower() + what[1:]) from problem
    found.check()
    return found
