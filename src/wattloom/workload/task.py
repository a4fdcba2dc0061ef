"""One call: a function with its requirements, wishes and fault semantics.

Owns the task as submitted. Where it is in its life is the engine's business.
"""

from typing import Final

import msgspec

from wattloom.workload.requirements import Requirements

MOST_PRIORITY: Final = 1_000_000_000


class Task(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A call to be placed, run once and ended once."""

    id: str
    function: str
    requirements: Requirements | None = None
    """None: the function's own."""
    priority: int = 0
    """Higher goes first."""
    energy_weight: float = 0.5
    """H: 1 is all for energy, 0 is all for speed."""
    deadline_s: float | None = None
    """Wanted end, in seconds after submission. It bounds how long a policy may wait; a late task still runs."""
    defer_s: float = 0.0
    """How long it may be held back for a cheaper place."""
    after: tuple[str, ...] = ()
    """Tasks that must finish first."""
    idempotent: bool = False
    """May be run again when its node is lost (at least once); otherwise at most once."""
    retries: int = 0
    """Runs again after the function's own failure."""
    infrastructure_retries: int = 3
    """Runs again after a loss that was not the function's fault (only if idempotent)."""

    def problem(self) -> tuple[str, str] | None:
        """The first wrong field and what is wrong with it."""
        if not self.id:
            return "id", "must not be empty"
        if not 0.0 <= self.energy_weight <= 1.0:
            return "energy_weight", f"must be between 0 and 1, not {self.energy_weight}"
        if not -MOST_PRIORITY <= self.priority <= MOST_PRIORITY:
            return "priority", f"must be between -{MOST_PRIORITY} and {MOST_PRIORITY}, not {self.priority}"
        if self.deadline_s is not None and not 0.0 < self.deadline_s < float("inf"):
            return "deadline_s", f"must be positive, not {self.deadline_s}"
        if not 0.0 <= self.defer_s < float("inf"):
            return "defer_s", f"must not be negative, not {self.defer_s}"
        if self.retries < 0:
            return "retries", f"must not be negative, not {self.retries}"
        if self.infrastructure_retries < 0:
            return "infrastructure_retries", f"must not be negative, not {self.infrastructure_retries}"
        if self.id in self.after:
            return "after", "names the task itself"
        wrong = self.requirements.problem() if self.requirements is not None else None
        return None if wrong is None else (f"requirements.{wrong[0]}", wrong[1])
