"""A harness that writes its log, as a backend does.

Owns the writing, and reading it back through `replay` and `why`: for tests of logs that no simulation makes.
"""

from pathlib import Path

from wattloom.history.log import VERSION, Header, LogWriter
from wattloom.history.why import Why, why
from wattloom.policies.fifo import Fifo
from wattloom.policies.protocol import Policy
from wattloom.simulation.replay import Replay, replay
from wattloom.testing.harness import Harness


class Backend(Harness):
    """Writes its own log, as a backend does."""

    def __init__(self, policy: Policy | None = None, time: float = 0.0) -> None:
        super().__init__(policy if policy is not None else Fifo())
        self.time = time

    def after(self, seconds: float) -> "Backend":
        self.time += seconds
        return self

    def run(self, task: str, seconds: float) -> None:
        """Submit, start and, some seconds later, finish."""
        self.submit(task)
        self.start(task)
        self.after(seconds).finish(task, seconds)

    def write(self, path: Path, spec: str = "") -> Path:
        with path.open("wb") as file:
            writer = LogWriter(file, Header(VERSION, spec or self.policy.name, "test"))
            for event, instructions in self.recorded:
                writer.write(event, instructions)
        return path

    def replayed(self, path: Path, policy: Policy | None = None) -> Replay:
        return replay(self.write(path), self.policy, policy)

    def why_in(self, path: Path, task: str) -> Why:
        return why(self.write(path), task, self.policy)
