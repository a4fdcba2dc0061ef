"""How far a profile is: a bar with the time left for people, a line for each step where nobody looks.

Owns both. They go to stderr.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

from wattloom.cli.figures import seconds
from wattloom.cli.printing import literal, say

if TYPE_CHECKING:
    from rich.progress import TaskID

    from wattloom.profiling.profiler import Step, Tell

BETWEEN_DRAWINGS_S: Final = 0.1


class _Bar:
    """Draws when told; no thread of its own, which would be load."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        left = TextColumn("{task.fields[left]}")
        self.bar: Progress = Progress(*columns, left, console=Console(stderr=True), transient=True, auto_refresh=False)
        self._task: TaskID = self.bar.add_task("profile", left="")
        self._drawn = 0.0

    def __call__(self, step: "Step") -> None:
        now = monotonic()
        if now - self._drawn >= BETWEEN_DRAWINGS_S:
            self._drawn = now
            self.bar.update(
                self._task, description=literal(step.words), completed=step.done, total=step.total, left=_left(step)
            )
            self.bar.refresh()


class _Lines:
    """One line when a step begins."""

    def __init__(self) -> None:
        self._said = ""

    def __call__(self, step: "Step") -> None:
        if step.words != self._said:
            self._said = step.words
            left = _left(step)
            say(f"{step.done + 1}/{step.total} {step.words}{', ' + left if left else ''}", err=True)


def _left(step: "Step") -> str:
    return f"{seconds(step.left_s)} left" if step.left_s > 0.0 else ""


@contextmanager
def progress_of_steps(path: Path) -> Iterator["Tell"]:
    """Something to tell where we are. Who stops it is told where the profile is."""
    try:
        with _shown() as tell:
            yield tell
    except KeyboardInterrupt:
        say(f"Stopped. What was measured is kept in {path}; the same command goes on from there.", err=True)
        raise


@contextmanager
def _shown() -> Iterator["Tell"]:
    if not sys.stderr.isatty():
        yield _Lines()
        return
    shown = _Bar()
    shown.bar.start()
    try:
        yield shown
    finally:
        shown.bar.stop()
