"""How much a CPU second of each function draws, learned from the intervals of a meter.

Owns one small filter. A machine's watts are taken for

    idle + m · S · (1 + c) / (1 + c · S / cores),    S = Σ cores that i keeps busy · (1 + d_i)

where i is a function, our own overhead or everybody else; m is what each core draws with ordinary code on all of them,
d_i how far i is from ordinary, and c how concave the machine is. Each interval is one look at it, and moves what it can
tell apart: of functions that always run in the same mix only the sum becomes known. An extended Kalman filter with a
random walk, so old looks fade; looks that cannot be true are weakened, and several of them in a row mean that some
function has changed. Pure arithmetic, the same for the same intervals.
"""

from math import inf, sqrt
from typing import Final

from wattloom.attribution.idle import idle_guess
from wattloom.units import Watts

OWN: Final = "\0own"
"""This process, and workers between calls."""
OTHERS: Final = "\0others"
"""Everybody else."""
MOST: Final = 24
"""So many are told apart; of the others, those that were used longest ago are forgotten."""

_IDLE, _BEND, _MEAN, _FIRST = 0, 1, 2, 3
SELDOM: Final = 0.05
"""A machine that is less busy than this tells nothing of what its work draws."""
BEND, BEND_ERROR = 0.4, 0.25
"""Most machines draw more for their first busy cores than for the others: 248 SPECpower machines of 2017-2021 have 17%
of their active watts at a tenth of the load."""
MEAN_ERROR: Final = 0.5
NOISE: Final = 0.01
"""Of the machine's watts: what meters are off by."""
MISFIT: Final = 0.025
"""Of the active watts: what the model is off by."""
LEAST_S: Final = 0.2
"""Intervals shorter than this are looked at together."""
ALIKE_S: Final = 0.8
"""A meter's errors stay about the same for so long: more looks in that time are not worth more."""
DRIFT: Final = 1.0 / 900.0
"""What is known of a function fades to nothing in so many seconds of its use, if there are no more looks."""
DRIFT_OTHERS: Final = 1.0 / 60.0
LEAST: Final = 0.1
"""No function draws less than this share of the ordinary."""
UNEVEN: Final = 0.15
"""Of the bend: how much of it shows in the prices of single moments."""
STRANGE: Final = 3.5
"""Standard deviations."""
CHANGED_AFTER: Final = 3
LEARN_NOISE: Final = 0.08
"""What one look counts among those that tell how noisy the meter is."""
RISE: Final = 0.002
"""The least that was seen is forgotten slowly: it may have been a mistake."""
LEAST_J: Final = 1e-6


class Intensities:
    """The filter. `differ`: how far functions are from each other, as one relative standard deviation."""

    __slots__ = (
        "_at",
        "_cores",
        "_cpu",
        "_differ",
        "_idle",
        "_lowest",
        "_meter_j",
        "_names",
        "_p",
        "_scale",
        "_seconds",
        "_seen",
        "_strange",
        "_x",
        "looks",
    )

    def __init__(self, threads: int, differ: float, idle: tuple[float, float] | None = None) -> None:
        """`idle`: idle watts and their spread, where something is known of them before."""
        self._cores = float(threads)
        self._differ = differ
        self._names: list[str] = []
        """Of the d in the state."""
        self._at: dict[str, int] = {}
        self._seen: list[int] = []
        """At which look each was last used."""
        self._idle = idle
        self._x: list[float] = []
        self._p: list[list[float]] = []
        self._scale = 1.0
        """How much larger the errors are than was thought, squared."""
        self._strange: list[int] = []
        """In how many strange looks each was, one after another."""
        self._lowest = inf
        """The least watts that were seen: idle is not more."""
        self._seconds, self._meter_j = 0.0, 0.0
        self._cpu: dict[str, float] = {}
        """Of intervals that were too short to tell much: they are looked at together."""
        self.looks = 0

    @property
    def idle_w(self) -> Watts:
        return Watts(max(self._x[_IDLE], 0.0))

    def weight(self, name: str) -> float:
        """What a core that is busy with it draws, against one with ordinary code."""
        at = self._at.get(name)
        return 1.0 if at is None else 1.0 + self._x[at]

    # -- looks -----------------------------------------------------------------------------------------------------

    def look(self, seconds: float, meter_j: float, spread_j: float, cpu: dict[str, float], tick_s: float) -> None:
        """An interval: what the meter counted, and who used how many CPU seconds."""
        self.begin(meter_j / seconds, sum(cpu.values()) / seconds)
        self._seconds += seconds
        self._meter_j += meter_j
        for name, used in cpu.items():
            self._cpu[name] = self._cpu.get(name, 0.0) + used
        if self._seconds >= LEAST_S:
            # What the readings in between leave open cancels out.
            self._learn(self._seconds, self._meter_j, spread_j, self._cpu, tick_s)
            self._seconds, self._meter_j, self._cpu = 0.0, 0.0, {}

    def _learn(self, seconds: float, meter_j: float, spread_j: float, cpu: dict[str, float], tick_s: float) -> None:
        watts = meter_j / seconds
        self._lowest = min(self._lowest + RISE * (watts - self._lowest), watts) if self.looks else watts
        for name, used in cpu.items():
            if used > 0.0:
                self._place(name)  # which may move the places of others
        present = [(self._at[name], used / seconds) for name, used in cpu.items() if used > 0.0 and name in self._at]
        self._fade(present, seconds)
        expected, slope = self._expect(present)
        mean = self._x[_MEAN]
        noise = (spread_j / seconds) ** 2 + (mean * tick_s / seconds) ** 2 + (NOISE * watts) ** 2
        noise += (MISFIT * max(watts - self._x[_IDLE], 0.0)) ** 2
        self._update(watts - expected, slope, noise * max(ALIKE_S / seconds, 1.0), present)
        self.looks += 1

    def begin(self, watts: float, busy: float) -> None:
        """At the first look: a guess that fits it."""
        if self._p:
            return
        share = min(max(busy / self._cores, SELDOM), 1.0)
        idle, idle_error = self._idle or idle_guess(watts, share)
        active = max(watts - idle, SELDOM * watts, 1e-6)
        mean = active * (1.0 + BEND * share) / ((1.0 + BEND) * share * self._cores)
        errors = (idle_error, BEND_ERROR, mean * (MEAN_ERROR if share > 2.0 * SELDOM else 3.0))
        self._x = [min(idle, watts), BEND, mean]
        self._p = [[0.0] * _FIRST for _ in errors]
        for at, error in enumerate(errors):
            self._p[at][at] = error * error

    def _place(self, name: str) -> int:
        """Where it is in the state; it is given a place if it has none."""
        at = self._at.get(name)
        if at is None:
            if len(self._names) >= MOST:
                self._forget(min(range(len(self._names)), key=self._seen.__getitem__))
            at = self._at[name] = _FIRST + len(self._names)
            self._names.append(name)
            self._seen.append(self.looks)
            self._strange.append(0)
            self._x.append(0.0)
            for row in self._p:
                row.append(0.0)
            self._p.append([0.0] * at + [self._differ**2])
        self._seen[at - _FIRST] = self.looks
        return at

    def _forget(self, index: int) -> None:
        del (
            self._names[index],
            self._seen[index],
            self._strange[index],
            self._x[_FIRST + index],
            self._p[_FIRST + index],
        )
        for row in self._p:
            del row[_FIRST + index]
        self._at = {name: _FIRST + place for place, name in enumerate(self._names)}

    def _fade(self, present: list[tuple[int, float]], seconds: float) -> None:
        """What is known gets older."""
        most = self._differ**2
        for at, cores in present:
            drift = DRIFT_OTHERS if self._names[at - _FIRST] == OTHERS else DRIFT
            row = self._p[at]
            row[at] = max(min(row[at] + most * drift * seconds * min(cores, 1.0), most), row[at])
        self._p[_MEAN][_MEAN] += (0.1 * self._x[_MEAN]) ** 2 * seconds / 600.0
        self._p[_IDLE][_IDLE] += (0.05 * self._x[_IDLE]) ** 2 * seconds / 600.0

    def _expect(self, present: list[tuple[int, float]]) -> tuple[float, dict[int, float]]:
        """Watts, and how they change with each part of the state."""
        x = self._x
        idle, bend, mean = x[_IDLE], x[_BEND], x[_MEAN]
        work = sum((1.0 + x[at]) * cores for at, cores in present)
        load = work / self._cores
        under = 1.0 + bend * load
        active = mean * work * (1.0 + bend) / under
        slope = {_IDLE: 1.0, _BEND: mean * work * (1.0 - load) / (under * under), _MEAN: active / mean}
        for at, cores in present:
            slope[at] = mean * cores * (1.0 + bend) / (under * under)
        return idle + active, slope

    def _update(self, off: float, slope: dict[int, float], noise: float, present: list[tuple[int, float]]) -> None:
        p = self._p
        parts = list(slope.items())
        gain = [sum(row[at] * rate for at, rate in parts) for row in p]
        model = sum(gain[at] * rate for at, rate in parts)
        noise *= self._scale
        square = off * off / (model + noise)
        strange = square > STRANGE * STRANGE
        self._suspect(present, strange)
        # What cannot be told by the model's own error is the noise's.
        learned = LEARN_NOISE * noise / (model + noise)
        self._scale = max(self._scale * (1.0 + learned * (min(square, 9.0) - 1.0)), 1.0)
        if strange:
            noise = max(off * off / STRANGE**2 - model, noise)
        whole = model + noise
        for row, mine in zip(p, gain, strict=True):
            share = mine / whole
            for column, theirs in enumerate(gain):
                row[column] -= share * theirs
        for at, mine in enumerate(gain):
            self._x[at] += mine / whole * off
        self._bound()

    def _suspect(self, present: list[tuple[int, float]], strange: bool) -> None:
        """Who was there in several strange looks, and in no other since, has changed: what is known of it is not sure
        any more."""
        for at, _ in present:
            index = at - _FIRST
            self._strange[index] = self._strange[index] + 1 if strange else 0
            if self._strange[index] >= CHANGED_AFTER:
                self._strange[index] = 0
                self._doubt(at)

    def _doubt(self, at: int) -> None:
        for row in self._p:
            row[at] = 0.0
        self._p[at] = [0.0] * len(self._p)
        self._p[at][at] = self._differ**2

    def _bound(self) -> None:
        x = self._x
        x[_IDLE] = min(max(x[_IDLE], 0.0), self._lowest)
        x[_BEND] = min(max(x[_BEND], -0.5), 3.0)
        x[_MEAN] = max(x[_MEAN], 1e-9)
        for at in range(_FIRST, len(x)):
            x[at] = max(x[at], LEAST - 1.0)

    # -- what is known ---------------------------------------------------------------------------------------------

    @property
    def noise(self) -> float:
        """What the meter is off by in a second or so, as a share of what it shows."""
        return NOISE * sqrt(self._scale)

    @property
    def uneven(self) -> float:
        """How far the price of a moment may be from that of a longer time: on a concave machine it hangs on what else
        runs in that moment."""
        return UNEVEN * sqrt(self._x[_BEND] ** 2 + max(self._p[_BEND][_BEND], 0.0))

    def errors(self, seconds: float, active_j: float, cpu: dict[str, float]) -> dict[str, float]:
        """By name: how far its share of the active joules may be off, as one relative standard deviation."""
        work = sum(self.weight(name) * used for name, used in cpu.items())
        if work <= 0.0 or active_j <= 0.0:
            return dict.fromkeys(cpu, self._differ)
        # The logarithm of a share is ln(meter - idle) + ln(weight) - ln(work). This is how all but the second change:
        common = {_IDLE: -seconds / max(active_j, LEAST_J)}
        unseen = 0.0
        for name, used in cpu.items():
            if name in self._at:
                common[self._at[name]] = -used / work
            else:
                unseen += (used / work) ** 2
        parts = list(common.items())
        carried = [sum(row[at] * rate for at, rate in parts) for row in self._p]
        base = sum(carried[at] * rate for at, rate in parts) + self._differ**2 * unseen
        return {name: self._error(name, base, carried, used / work) for name, used in cpu.items()}

    def _error(self, name: str, base: float, carried: list[float], share: float) -> float:
        at = self._at.get(name)
        if at is None:  # who is alone has all of it, whatever it draws
            return sqrt(max(base + self._differ**2 * (1.0 - 2.0 * share), 0.0))
        weight = 1.0 + self._x[at]
        return sqrt(max(base + (2.0 * carried[at] + self._p[at][at] / weight) / weight, 0.0))
