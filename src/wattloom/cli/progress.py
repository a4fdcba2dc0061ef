"""A progress bar on stderr, for anything that takes more than two seconds.

Owns the bar. It is there only for a person at a terminal, and gone when the work is done.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Final

from wattloom.cli.printing import literal
from wattloom.simulation.parallel_runs import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

PATIENCE_S: Final = 2.0
BETWEEN_DRAWINGS_S: Final = 0.1


class _Shown:
    """Draws when told how far the work is; no thread of its own."""

    def __init__(self, what: str, units: str) -> None:
        self._what = what
        self._units = units
        self._began = monotonic()
        self._drawn = 0.0
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def __call__(self, done: int, total: int) -> None:
        now = monotonic()
        if now - self._began < PATIENCE_S or now - self._drawn < BETWEEN_DRAWINGS_S:
            return
        self._drawn = now
        bar = self._bar if self._bar is not None else self._start()
        assert self._task is not None
        bar.update(self._task, completed=done, total=total)
        bar.refresh()

    def _start(self) -> "Bar":
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(self._units))
        times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
        bar = RichProgress(*columns, *times, console=Console(stderr=True), transient=True, auto_refresh=False)
        self._task = bar.add_task(literal(self._what))
        bar.start()
        self._bar = bar
        return bar

    def stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()


@contextmanager
def progress_bar(what: str, units: str = "tasks") -> Iterator[Progress | None]:
    """Something to tell how far the work is, or None where nobody looks."""
    if not sys.stderr.isatty():
        yield None
        return
    shown = _Shown(what, units)
    try:
        yield shown
    finally:
        shown.stop()
