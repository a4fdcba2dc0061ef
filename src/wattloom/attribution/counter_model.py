"""Watts out of what the processor counted: a regression for every band of frequencies, which calibrates itself.

Owns the weights and when they are learned anew, after SmartWatts (Fieni, Rouvoy, Seinturier: 2020): active power is a
sum of counted events, each with a weight that is not negative; a weight holds within a band of frequencies; when what
the weights say is too far from the meter, they are fitted anew to the last intervals. Pure arithmetic: counts and
joules are handed in. CPU time goes in as one more event, so that a machine that counts nothing else still has a model.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final

import numpy as np

from wattloom.disaggregation.quadratic import bounded

BAND_HZ: Final = 100e6
"""Intervals whose mean frequency differs by less are one band."""
THRESHOLD: Final = 0.05
"""Fit anew when the model is off by more than this share of the active watts, as a mean over a few intervals."""
LEAST_W: Final = 0.5
"""Errors below this are never worth a fit: they are the meter's own."""
REMEMBERED: Final = 240
"""Intervals kept in a band."""
FIRST_FIT: Final = 8
"""Intervals a band needs before it has weights."""
RECENT: Final = 0.3
"""Weight of the last interval in the running error."""
RIDGE: Final = 1e-3
"""How much weights are held together, relative to the counts' own size: events rise and fall together."""


class CounterModel:
    """Learns watts per event and second. `events`: how many there are; all rates are per second."""

    def __init__(self, events: int, *, threshold: float = THRESHOLD) -> None:
        self._events = events
        self._threshold = threshold
        self._bands: dict[int, _Band] = {}
        self.fits = 0
        """How often weights were learned."""

    def observe(self, active_w: float, rates: Sequence[float], hertz: float) -> float | None:
        """An interval: watts above idle, events per second of the whole machine, its mean frequency (0: not known). How
        far the model was off, in watts; None: it had no model for this band yet."""
        self._check(rates)
        band = self._bands.setdefault(self._band_of(hertz), _Band(self._events))
        error = band.error(active_w, rates)
        band.keep(active_w, rates)
        if band.wants_fit(active_w, self._threshold):
            band.fit()
            self.fits += 1
        return error

    def watts(self, rates: Sequence[float], hertz: float) -> float | None:
        """What so many events per second draw above idle. None: nothing was learned for such a frequency."""
        self._check(rates)
        band = self._bands.get(self._band_of(hertz))
        if band is None or band.weights is None:
            return None
        return float(np.dot(band.weights, rates))

    def shares(self, processes: Sequence[Sequence[float]], hertz: float) -> list[float] | None:
        """Each process's part of the active power, by its counts: they add up to 1. None: not learned yet, or nothing
        was counted."""
        watts = [self.watts(counts, hertz) for counts in processes]
        known = [each for each in watts if each is not None]
        total = sum(known)
        if len(known) < len(watts) or total <= 0.0:
            return None
        return [each / total for each in known]

    def _band_of(self, hertz: float) -> int:
        return round(max(hertz, 0.0) / BAND_HZ)

    def _check(self, rates: Sequence[float]) -> None:
        if len(rates) != self._events:
            raise ValueError(f"{self._events} events are known, {len(rates)} were given")


class _Band:
    """One band of frequencies."""

    __slots__ = ("_events", "_recent_w", "_seen", "weights")

    def __init__(self, events: int) -> None:
        self._events = events
        self._seen: deque[tuple[float, tuple[float, ...]]] = deque(maxlen=REMEMBERED)
        self._recent_w = 0.0
        self.weights: np.ndarray | None = None

    def keep(self, active_w: float, rates: Sequence[float]) -> None:
        self._seen.append((max(active_w, 0.0), tuple(rates)))

    def error(self, active_w: float, rates: Sequence[float]) -> float | None:
        if self.weights is None:
            return None
        off = float(np.dot(self.weights, rates)) - active_w
        self._recent_w += RECENT * (abs(off) - self._recent_w)
        return off

    def wants_fit(self, active_w: float, threshold: float) -> bool:
        if self.weights is None:
            return len(self._seen) >= FIRST_FIT
        return self._recent_w > max(threshold * active_w, LEAST_W)

    def fit(self) -> None:
        """Newer intervals count more: what was learned before a change is to be forgotten."""
        age = np.arange(len(self._seen))[::-1]
        weight = np.sqrt(0.5 ** (age / (REMEMBERED / 8)))
        watts = np.array([each for each, _ in self._seen]) * weight
        rates = np.array([each for _, each in self._seen]) * weight[:, None]
        scale = np.where(rates.max(axis=0) > 0.0, rates.max(axis=0), 1.0)
        scaled = rates / scale
        square = scaled.T @ scaled + RIDGE * len(self._seen) * np.eye(self._events)
        self.weights = bounded(square, scaled.T @ watts, np.zeros(self._events)) / scale
        self._recent_w = 0.0
