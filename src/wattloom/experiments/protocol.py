"""What an experiment is: one class that says what it holds against whom, what it needs, and runs.

Owns the protocol. A new experiment is one module with such a class and a line in the entry-point group
`wattloom.experiments`; `wattloom.testing.experiment_conformance` holds it to the rules.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar

import msgspec

from wattloom.experiments.outcome import Outcome

Progress = Callable[[int, int], None]
"""Told how many draws of how many are done."""


class Data(msgspec.Struct, frozen=True):
    """A file that an experiment reads and that does not come with it."""

    file: str
    """Its name in the folder of `--data`."""
    what: str
    whence: str
    """Where everybody can have it."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """How an experiment is to be run."""

    seeds: int
    quick: bool = False
    data: Path | None = None
    progress: Progress | None = None

    def tell(self, done: int) -> None:
        if self.progress is not None:
            self.progress(done, self.seeds)


class Experiment(ABC):
    """A published study, and what we make of the same. The same seeds give the same outcome."""

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    cite: ClassVar[tuple[str, ...]] = ()
    """How the source is cited; the first is the study itself."""
    seeds: ClassVar[int] = 1
    """Draws or runs where nothing is asked for."""
    quick_seeds: ClassVar[int] = 1
    """With `--quick`: seconds, not minutes."""
    needs: ClassVar[tuple[Data, ...]] = ()
    options: ClassVar[Mapping[str, str]] = {}
    """Each parameter of the constructor, and what it does."""

    @abstractmethod
    def run(self, asked: Asked) -> Outcome:
        """Published beside ours. Every published row has its place in the source; no figure is made up."""
