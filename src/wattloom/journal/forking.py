"""No fork while SQLite works: its locks would be held in the child for ever, and the child's first query would hang.

Owns a lock for each thread that uses SQLite, which a fork takes first. Threads do not wait for one another, only forks
do for them, as long as a commit takes; and a thread that comes to SQLite for the first time, for a fork under way.
"""

import functools
import os
import threading
import weakref
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Working(threading.local):
    """This thread's lock."""

    def __init__(self) -> None:
        self.lock: Final = Held()
        with _FORKING:  # or a fork would not know of it
            _KNOWN.add(self.lock)


class Held:
    """A lock that can be known weakly: it goes with its thread."""

    def __init__(self) -> None:
        self.lock: Final = threading.RLock()


def forbid_fork() -> None:
    """This process is not forked until this thread allows it again: for what takes several steps."""
    _WORKING.lock.lock.acquire()


def allow_fork() -> None:
    _WORKING.lock.lock.release()


def before_fork(work: Callable[[], None]) -> None:
    """Have this done before every fork, when nobody works any more."""
    _WORK_BEFORE.append(work)


def unforked(work: Callable[P, R]) -> Callable[P, R]:
    """A function during which the process is not forked."""

    @functools.wraps(work)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with _WORKING.lock.lock:
            return work(*args, **kwargs)

    return wrapped


_KNOWN: Final[weakref.WeakSet[Held]] = weakref.WeakSet()
_FORKING: Final = threading.RLock()
_WORKING: Final = Working()
_taken: list[Held] = []
_WORK_BEFORE: Final[list[Callable[[], None]]] = []


def _before() -> None:
    _FORKING.acquire()
    for held in list(_KNOWN):
        held.lock.acquire()
        _taken.append(held)
    for work in _WORK_BEFORE:
        work()


def _after() -> None:
    """In the parent and in the child: there too it was this thread that took them."""
    while _taken:
        _taken.pop().lock.release()
    _FORKING.release()


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
