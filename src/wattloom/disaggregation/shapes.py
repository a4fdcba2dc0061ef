"""How power may bend with load: the curves that are tried.

Owns their formulas and how likely each is before anything was measured. Each begins at zero with slope one. A curve
bends by what runs draw (`weighted`: hotter functions use the machine up sooner) or by how many there are (`counted`:
each core is slower when many are busy).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from wattloom.disaggregation.activity import Array

Curve = Callable[[Array, float], Array]


def _log(u: Array, bend: float) -> Array:
    return np.asarray(np.log1p(bend * u) / bend)


def _log_slope(u: Array, bend: float) -> Array:
    return np.asarray(1.0 / (1.0 + bend * u))


def _levelling(u: Array, bend: float) -> Array:
    return np.asarray(-np.expm1(-bend * np.minimum(u, 50.0)) / bend)


def _levelling_slope(u: Array, bend: float) -> Array:
    return np.asarray(np.exp(-bend * np.minimum(u, 50.0)))


KNEE: Final = 0.06
"""Width of a knee's rounding, as a share of the usual most."""


def _knee(u: Array, place: float) -> Array:
    """A third of the slope beyond `place`."""
    return np.asarray(u - 0.67 * (_soft(u - place) - _soft(np.full(1, -place))))


def _soft(u: Array) -> Array:
    return np.asarray(KNEE * np.logaddexp(0.0, u / KNEE))


def _knee_slope(u: Array, place: float) -> Array:
    return np.asarray(1.0 - 0.67 / (1.0 + np.exp(np.clip(-(u - place) / KNEE, -60, 60))))


CURVES: Final[dict[str, tuple[Curve, Curve]]] = {
    "log": (_log, _log_slope),
    "levelling": (_levelling, _levelling_slope),
    "knee": (_knee, _knee_slope),
}


@dataclass(frozen=True, slots=True)
class Shape:
    """A curve with its bend. `prior`: how likely it is before measuring, in logarithms."""

    curve: str
    bend: float
    counted: bool
    prior: float

    @property
    def straight(self) -> bool:
        return self.curve == "straight"

    @property
    def linear(self) -> bool:
        """In the watts of functions."""
        return self.counted or self.straight

    @property
    def name(self) -> str:
        return (
            self.curve if self.straight else f"{'counted' if self.counted else 'weighted'} {self.curve} {self.bend:g}"
        )

    def value(self, u: Array) -> Array:
        return u if self.straight else CURVES[self.curve][0](u, self.bend)

    def slope(self, u: Array) -> Array:
        return np.ones_like(u) if self.straight else CURVES[self.curve][1](u, self.bend)

    def per_unit(self, u: Array) -> Array:
        """Value over u: what a unit of load draws when there is so much."""
        near = np.maximum(u, 1e-6)
        return self.value(near) / near


def shapes() -> list[Shape]:
    """All that are tried: from hardly bent to a slope of a few per cent at full load, and slightly the other way."""
    bends = {
        "log": (0.15, 0.3, 0.6, 1.0, 1.6, 2.4, 3.4, 5.0, 8.0),
        "levelling": (-0.3, -0.15, 0.15, 0.3, 0.45, 0.6, 0.75, 0.88, 0.97),
        "knee": (0.25, 0.4, 0.55, 0.7),
    }
    counts = {
        "log": (0.15, 0.3, 0.6, 1.2, 2.4, 5.0, 12.0, 30.0),
        "levelling": (-0.2, 0.25, 0.5, 1.0, 1.6, 2.4),
        "knee": (0.25, 0.4, 0.55, 0.7),
    }
    found = [Shape("straight", 0.0, False, 0.0)]
    for counted, table in ((False, bends), (True, counts)):
        found += [
            Shape(curve, bend, counted, -np.log(2.0 * len(table) * len(places)))
            for curve, places in table.items()
            for bend in places
        ]
    return found
