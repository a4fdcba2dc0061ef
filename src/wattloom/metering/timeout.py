"""Questions to what may hang, asked in a way that does not: a driver or a bus in trouble can keep a call for minutes.

Owns the thread that asks and the time it is given. One question at a time: while one has no answer, others are refused
at once. Knows nothing of what is asked.
"""

import os
import weakref
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from wattloom.errors import WattloomError

T = TypeVar("T")
Question = tuple[Callable[..., Any], tuple[Any, ...]]


class NoAnswer(WattloomError):
    """There is none yet. The text goes on a sentence about the one who was asked."""


class Answer(NamedTuple):
    """What was found, or what was raised."""

    found: Any
    problem: Exception | None

    def result(self) -> Any:
        if self.problem is not None:
            raise self.problem
        return self.found


class TimeLimiter:
    """Asks from a thread of its own, which ends when this is dropped. Used by one thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._questions: SimpleQueue[Question | None] = SimpleQueue()
        self._answers: SimpleQueue[Answer] = SimpleQueue()
        self._since: float | None = None
        """When the question was asked that has no answer yet."""
        self._pid = 0

    def ask(self, wait_s: float, question: Callable[..., T], *arguments: Any) -> T:
        """The answer, or what the question raises. NoAnswer: not within that time, or an earlier one is still open."""
        self.late()
        self._serve()
        self._since = monotonic()
        self._questions.put((question, arguments))
        try:
            answer = self._answers.get(timeout=wait_s)
        except Empty:
            raise NoAnswer(f"did not answer within {wait_s:g} s") from None
        self._since = None
        return answer.result()  # type: ignore[no-any-return]

    def late(self) -> Answer | None:
        """The answer that came too late, once. None: no question is open. NoAnswer: there is still none."""
        if self._since is None or self._pid != os.getpid():
            return None
        try:
            answer = self._answers.get_nowait()
        except Empty:
            raise NoAnswer(f"has not answered for {monotonic() - self._since:.1f} s") from None
        self._since = None
        return answer

    def close(self) -> None:
        """The thread ends, unless it hangs; then it ends with the program."""
        if self._pid == os.getpid():
            self._questions.put(None)
        self._pid, self._since = 0, None

    def _serve(self) -> None:
        """Start the thread: once, and once more in a child of a fork, which has none."""
        if self._pid == os.getpid():
            return
        self._pid = os.getpid()
        self._questions, self._answers = SimpleQueue(), SimpleQueue()
        Thread(target=_answer, args=(self._questions, self._answers), name=self._name, daemon=True).start()
        weakref.finalize(self, self._questions.put, None)


def _answer(questions: "SimpleQueue[Question | None]", answers: "SimpleQueue[Answer]") -> None:
    """The thread. It knows nothing of who asks, so that whoever is dropped ends it."""
    while (asked := questions.get()) is not None:
        question, arguments = asked
        try:
            answers.put(Answer(question(*arguments), None))
        except Exception as problem:  # handed over to the one who asked
            answers.put(Answer(None, problem))
        del asked, question, arguments
