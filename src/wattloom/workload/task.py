"""One call: a function with its requirements, wishes and fault semantics.

Owns the task as submitted. Where it is in its life is the engine's business.
"""

from typing import Final

import msgspec

from wattloom.workload.preference import Preference
from wattloom.workload.requirements import Requirements

LEAST_PRIORITY: Final = -(2**31)
MOST_PRIORITY: Final = 2**31 - 1
"""What Kubernetes gives to the parts that a node cannot do without is within."""


class Task(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
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
    size: int = 0
    """Class of its arguments' size, four classes to a doubling; 0: not known. It counts in forecasts where it explains
    how long the function takes."""
    prefers: tuple[Preference, ...] = ()
    """Where it would need more or less than elsewhere, beside what its shape says."""
