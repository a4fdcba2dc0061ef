"""What the conformance tests run: functions and values that any worker process can import.

Owns the work, and the files by which a test and its workers signal each other (a file can be sent to every kind of
worker; a lock or an event cannot). It knows no executor.
"""

import gc
import os
import time
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

PATIENCE_S = 10.0  # a task that waits longer than this for its test gives up, so that nothing outlives a failed test


@dataclass(frozen=True)
class Gate:
    """A door between a test and its workers: shut until somebody opens it."""

    path: str

    def open(self) -> None:
        Path(self.path).touch()

    def is_open(self) -> bool:
        return Path(self.path).exists()

    def wait(self) -> None:
        until = time.monotonic() + PATIENCE_S
        while not self.is_open():
            if time.monotonic() > until:
                raise TimeoutError(f"nobody opened {self.path}")
            time.sleep(0.002)


def pass_gate(gate: Gate, value: Any = None) -> Any:
    """Come back with `value` once the gate is open."""
    gate.wait()
    return value


def announce_and_pass(started: Gate, gate: Gate, value: Any = None) -> Any:
    started.open()
    return pass_gate(gate, value)


def fail_behind(gate: Gate) -> NoReturn:
    gate.wait()
    raise LookupError("behind the gate")


def meet(mine: Gate, others: Iterable[Gate]) -> int:
    """Come back only if all who should meet run at the same time; says in which process."""
    mine.open()
    for other in others:
        other.wait()
    return os.getpid()


def leave_mark(folder: str, name: object) -> None:
    (Path(folder) / str(name)).touch()


def capture(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return args, kwargs


def call(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    return function(*args)


def answer() -> int:
    return 42


def add(left: int, right: int) -> int:
    return left + right


def double(value: int) -> int:
    return 2 * value


def hand_back(value: Any) -> Any:
    return value


def size(data: bytes) -> int:
    return len(data)


def block(length: int) -> bytes:
    return bytes(length)


def total(data: Any) -> float:
    return float(data.sum())


def worker_id(*_: object) -> int:
    return os.getpid()


def pause_and_tell_worker(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def divide(dividend: int, divisor: int) -> float:
    return dividend / divisor


@dataclass
class Parcel:
    """A value that a weak reference can watch."""

    content: Any = None
    inner: list["Parcel"] = field(default_factory=list)

    def open(self) -> Any:
        return self.content


def wrap(content: Any) -> Parcel:
    return Parcel(content)


def unwrap(parcel: Parcel) -> Any:
    return parcel.content


def unwrap_and_fail(parcel: Parcel) -> NoReturn:
    raise LookupError(parcel.content)


_prepared: list[Any] = []  # one list in each worker process: what the initializer left there


def prepare(*values: Any) -> None:
    _prepared.append(values)


def prepared_here() -> tuple[int, list[Any]]:
    return os.getpid(), list(_prepared)


def meet_prepared(mine: Gate, others: list[Gate]) -> tuple[int, list[Any]]:
    meet(mine, others)
    return prepared_here()


def refuse_to_prepare(*_: Any) -> NoReturn:
    raise ValueError("this initializer always fails")


def open_after(gate: Gate, seconds: float) -> None:
    time.sleep(seconds)
    gate.open()


_watched: list["weakref.ref[Parcel]"] = []  # in each worker process: what it was given


def watch_here(parcel: Parcel) -> Parcel:
    _watched.append(weakref.ref(parcel))
    result = Parcel()
    _watched.append(weakref.ref(result))
    return result


def still_watched_here() -> int:
    gc.collect()
    return sum(reference() is not None for reference in _watched)


def append_line(path: str, value: int) -> None:
    with open(path, "a") as lines:
        lines.write(f"{value}\n")


def double_in_place(array: Any) -> Any:
    array *= 2
    return array
