"""What kind of machine the rig plays.

Owns the figures and the curve. Nothing here is known to the code under test.
"""

from math import exp

import msgspec

INTENSITIES = (0.6, 1.0, 1.4, 2.0)
"""Of the functions under test, in the order of `functions.FUNCTIONS`: power of a busy core against the machine's
ordinary code."""


class Conditions(msgspec.Struct, frozen=True):
    """A machine with energy counters, and the company our calls have on it."""

    idle_w: float = 8.0
    full_w: float = 20.0
    """Above idle, with every core busy with ordinary code."""
    bend: float = 0.8
    """How concave the curve is: 0 is a straight line; at 0.8 the last core adds half of what the first does."""
    intensities: tuple[float, ...] = INTENSITIES
    rest: float = 1.0
    """Intensity of all that is not under test: the program, the workers between calls, neighbours."""
    noise: float = 0.02
    """Relative standard deviation of the meter's error."""
    noise_s: float = 0.1
    """How long it stays about the same."""
    lag_s: float = 0.02
    """How much later than the work the counters show it."""
    update_s: float = 0.001
    """How often the counters are brought up to date."""
    step_uj: int = 61
    range_uj: int = 10_000_000_000
    """Where the counters wrap."""
    start_uj: int = 9_940_000_000
    """What the counters show at first: so much that they soon wrap."""
    background: float = 0.0
    """Share of a core that a process that is not ours keeps busy, on and off."""
    background_intensity: float = 1.6
    neighbours: bool = False
    """Whether processes that have nothing to do with the run are on the machine too. Else they are like other guests of
    the same host: they take the cores, and neither their joules nor their CPU time are seen."""
    seed: int = 1


def active_watts(conditions: Conditions, load: float, cores: int) -> float:
    """Watts above idle, where `load` is cores times intensity."""
    if conditions.bend == 0.0:
        return conditions.full_w * load / cores
    return conditions.full_w * (1.0 - exp(-conditions.bend * load / cores)) / (1.0 - exp(-conditions.bend))
