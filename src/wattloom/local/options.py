"""What a call needs and wishes.

Owns the options of a call, their checks, and the task they make.
"""

import msgspec

from wattloom.bounds import LONGEST_S
from wattloom.errors import InputError
from wattloom.workload.function import Function
from wattloom.workload.requirements import Requirements
from wattloom.workload.task import Task
from wattloom.workload.task_problem import task_problem


class Options(msgspec.Struct, frozen=True):
    """Needs and wishes of a call; the defaults are those of a plain `submit`."""

    cpu: float = 1.0
    """Cores it keeps busy."""
    memory: int = 0
    """Bytes."""
    retries: int = 0
    """Runs again after the function's own exception or timeout."""
    infrastructure_retries: int = 3
    """Runs again after a loss that was not the function's fault, if idempotent."""
    timeout: float | None = None
    """Seconds after which its worker is stopped."""
    idempotent: bool = False
    """May be run more than once: it is run again when its worker or this program dies."""
    energy_weight: float = 0.5
    """1: all for energy, 0: all for speed."""
    priority: int = 0
    deadline: float | None = None
    """Wanted end, in seconds after submission."""
    defer: float = 0.0
    """Seconds for which it may be held back for a cheaper place."""
    key: str = ""
    """Idempotency key: a call with a key that was finished before is not made again, its result is given."""
    arch: tuple[str, ...] = ()  # last: journals hold pickles of this, by position
    """Architectures it runs on (`x86_64`, `aarch64`); empty: any."""

    @property
    def requirements(self) -> Requirements:
        return Requirements(self.cpu, self.memory, arch=self.arch)

    def check(self) -> None:
        """Raise InputError that names the wrong field."""
        task = self.task("task", "function", None)
        problem = task_problem(task) or self.requirements.problem()
        if problem is not None:
            raise InputError(problem[0], problem[1])
        try:
            self.key.encode()
        except UnicodeEncodeError as wrong:
            raise InputError("key", "holds something that is no character") from wrong
        if self.timeout is not None and not 0.0 < self.timeout <= LONGEST_S:
            raise InputError("timeout", f"must be seconds, more than 0, at most {LONGEST_S:g}, not {self.timeout}")

    def task(self, name: str, function: str, defined: Function | None, size: int = 0) -> Task:
        """As the engine is told."""
        needs = self.requirements
        return Task(
            name,
            function,
            None if defined is not None and defined.requirements == needs else needs,
            self.priority,
            self.energy_weight,
            self.deadline,
            self.defer,
            (),
            self.idempotent,
            self.retries,
            self.infrastructure_retries,
            size,
        )
