"""Which numbers from outside are believed: one table for every door.

Owns the bounds and nothing else. They lie far beyond what is real and far within what a float can count, so that
nothing that is worked out from figures within them overflows. Whoever takes a number in (an event, a file, an
annotation, a setting, a policy's answer) compares it with these and names the field. Comparing is enough: it is false
for what is not a number, and does not fail for a whole number that no float can hold.
"""

from typing import Final

LATEST_S: Final = 1e11
"""Times from here on are taken for a mistake in units: seconds are wanted, and adding some must make a difference."""
LONGEST_S: Final = 1e9
"""Of a run, a deadline, a wait or a wake-up: thirty years."""
MOST_WATTS: Final = 1e9
"""Of one node: a large power station."""
MOST_CLUSTER_WATTS: Final = 1e15
MOST_JOULES: Final = 1e18
"""Of one node: the most watts for the longest time."""
MOST_SUM: Final = 1e30
"""Of seconds or joules over any number of calls; and its square, of their squares."""
MOST_CORES: Final = 1_000_000
"""Of one machine, and what one task may ask for is below."""
MOST_FILED_CORES: Final = 100_000
"""Of a machine that somebody describes in a file: more is a slip of the pen."""
MOST_SPEED: Final = 1e4
"""Of a core, against the catalogue's reference; and no core is that much slower."""
MOST_COUNT: Final = 2**63 - 1
"""Of bytes, attempts or whatever else is counted: what a log can hold."""
MOST_FIGURE: Final = 1e300
"""Of a number before it is known what it counts: JSON may write one with more digits than any float has."""
MOST_RULES: Final = 1_000
"""About where one task may go, all kinds together: work per task is bounded by it."""
MOST_POINTS: Final = 100_000
"""Of one signal's forecast."""
MOST_SIZE_CLASS: Final = 1_000
"""Four classes to a doubling: far more bytes than there are."""


def out_of_bounds(value: float, most: float, unit: str = "") -> str:
    """What is wrong with a figure that must not be negative; empty: nothing."""
    if not value >= 0.0:
        return f"must be a number, not negative, not {value}"
    if not value <= most:
        return f"must be at most {most if most > MOST_JOULES else round(most)}{unit}, not {value}"
    return ""
