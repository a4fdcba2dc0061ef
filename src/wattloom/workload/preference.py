"""What a task would need more, or less, on some nodes only: data that is there, a warm worker, a soft affinity.

Owns the preference as it is written. What it comes to is the policy's to weigh: it is given joules and seconds.
"""

from math import isfinite

import msgspec

from wattloom.bounds import LONGEST_S, MOST_JOULES

Labels = tuple[tuple[str, str], ...]


class Preference(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """Joules and seconds that hold for one node, or for all that have some labels."""

    node: str = ""
    labels: Labels = ()
    """Instead of a node: nodes that have all of these."""
    joules: float = 0.0
    """More than elsewhere, beside what its run draws; negative: less."""
    seconds: float = 0.0
    """Longer than elsewhere; negative: shorter. What it draws in that time follows from it."""

    def problem(self) -> tuple[str, str] | None:
        """The first wrong field and what is wrong with it."""
        if bool(self.node) == bool(self.labels):
            return "node", "must be given, or labels must, and not both"
        if not (isfinite(self.joules) and abs(self.joules) <= MOST_JOULES):
            return "joules", f"must be a number, at most {MOST_JOULES:g} either way, not {self.joules}"
        if not (isfinite(self.seconds) and abs(self.seconds) <= LONGEST_S):
            return "seconds", f"must be a number, at most {LONGEST_S:g} either way, not {self.seconds}"
        return None
