"""Functions in a warm process: loaded once, called often, loaded again in another process if that one has died.

Owns which functions a process has, and what its answers mean as outcomes. How the process is started, and what it is
told of a function, is its runtime's business.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from wattloom.runtimes import child as frames
from wattloom.runtimes import plain
from wattloom.runtimes.child import Child, Ended
from wattloom.runtimes.packing import Packed
from wattloom.runtimes.protocol import BYTES, JSON, LOST, Outcome
from wattloom.runtimes.raised import FunctionFailed, Raised, raised_from


class WarmProcess:
    """One process at a time, with the functions it has."""

    def __init__(self, runtime: str, start: Callable[[], Child]) -> None:
        self._runtime: Final = runtime
        self._start: Final = start
        self._child: Child | None = None
        self._known: dict[bytes, int] = {}
        """Numbers of the functions that it has loaded, by what it was told of them."""

    def processes(self) -> list[int]:
        return [self._child.pid] if self._child is not None and self._child.is_alive else []

    def load(self, told: dict[str, Any]) -> bytes:
        """Have it load a function; by what is returned it is called. Raises FunctionFailed."""
        key = msgspec.json.encode(told)
        self._number(key)
        return key

    def _number(self, key: bytes) -> int:
        child = self._alive()
        number = self._known.get(key)
        if number is None:
            try:
                kind, body = child.ask(frames.LOAD, len(self._known), key)
            except Ended as ended:
                raise FunctionFailed(self._end(ended, "while its function was loaded")) from ended
            if kind != frames.READY:
                self._close_if_last(kind)
                raise FunctionFailed(self._raised(body))
            number = self._known[key] = len(self._known)
        return number

    def _alive(self) -> Child:
        if self._child is None or not self._child.is_alive:
            self.close()
            self._known = {}
            try:
                self._child = self._start()
            except OSError as problem:
                text = f"its process cannot be started: {problem}"
                raise FunctionFailed(Raised("CannotStart", text, runtime=self._runtime)) from problem
        return self._child

    def call(self, key: bytes, body: bytes, buffers: list[memoryview], content: str) -> Outcome:
        if content not in (JSON, BYTES):
            return plain.unsendable(f"{self._runtime} takes JSON or bytes, not pickles: call it by wattloom.load")
        try:
            number = self._number(key)
            asked = frames.CALL_JSON if content == JSON else frames.CALL_BYTES
            kind, answer = self._alive().ask(asked, number, plain.whole_of(body, buffers))
        except Ended as ended:
            return self._died(ended)
        except FunctionFailed as problem:
            return plain.failed(problem.told)
        return self._outcome(kind, answer)

    def _outcome(self, kind: int, answer: bytes) -> Outcome:
        if kind == frames.VALUE_JSON:
            return plain.value(answer, JSON)
        if kind == frames.VALUE_BYTES:
            return plain.value(answer, BYTES)
        self._close_if_last(kind)
        if kind in (frames.RAISED, frames.RAISED_LAST):
            return plain.failed(self._raised(answer))
        if kind == frames.UNSENDABLE:
            return plain.unsendable(f"the result cannot be sent back: {answer.decode(errors='replace')}")
        return plain.unsendable(f"{self._runtime} answered with a frame of kind {kind}, which nobody knows")

    def _close_if_last(self, kind: int) -> None:
        if kind == frames.RAISED_LAST:
            self.close()

    def _raised(self, body: bytes) -> Raised:
        try:
            told = raised_from(msgspec.json.decode(body))
        except msgspec.DecodeError:
            told = Raised("Error", body.decode(errors="replace"))
        return msgspec.structs.replace(told, runtime=self._runtime)

    def _died(self, ended: Ended) -> Outcome:
        """One that has ended itself has failed; one that was killed is lost: nobody knows how far it came."""
        if not ended.by_its_own_fault:
            return Outcome(LOST, Packed(f"its {self._runtime} process {ended}".encode(), []), JSON)
        return plain.failed(self._end(ended, ""))

    def _end(self, ended: Ended, when: str) -> Raised:
        text = " ".join(filter(None, [f"its {self._runtime} process {ended}", when]))
        return Raised("ProcessEnded", text, runtime=self._runtime, exit_code=ended.exit_code)

    def close(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None
