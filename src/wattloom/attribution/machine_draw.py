"""What a whole machine draws idle, learned from its intervals by whoever does not tell functions apart.

Owns the choice between two ways: a meter that measures is followed by the same filter as functions are, so that the
idle watts show as soon as the machine was busy in different measure; any other by its least busy interval.
"""

from math import inf

from wattloom.attribution.idle import IdleDraw
from wattloom.attribution.intensities import Intensities
from wattloom.cluster.profile import MachineProfile
from wattloom.metering.protocol import Meter

ALL = "all"


class MachineDraw:
    """Idle watts. Say `learn` after every interval."""

    def __init__(self, profile: MachineProfile, meter: Meter) -> None:
        self._idle = IdleDraw(profile, meter)
        self._filter: Intensities | None = None
        if meter.provenance == "measured" and meter.model_error > 0.0:
            self._filter = Intensities(profile.threads, meter.model_error, self._idle.known)
        self._lowest = inf

    @property
    def watts(self) -> float:
        return self._idle.watts if self._filter is None else min(self._filter.idle_w, self._lowest)

    def learn(self, seconds: float, meter_j: float, spread_j: float, busy_s: float, tick_s: float) -> None:
        """Look at an interval: what the meter counted, and how many CPU seconds somebody was at work."""
        if self._filter is None:
            self._idle.learn(meter_j / seconds, busy_s / seconds)
            return
        self._filter.look(seconds, meter_j, spread_j, {ALL: busy_s}, tick_s)
        self._lowest = min(self._lowest, meter_j / seconds)
