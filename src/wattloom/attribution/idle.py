"""What the machine draws with nothing to do, as its meter would count it.

Owns where that figure comes from: the profile, if its curve is of the same quantity as the meter and was measured on
this machine, or is what the meter itself works with; else what the meter has shown. A curve at the plug says nothing
about the idle watts of a package, so the two are never mixed. Of a curve of other machines only the shape is taken.
"""

from typing import Final

from wattloom.machines.machine import Machine
from wattloom.machines.profile import MachineProfile
from wattloom.metering.estimate import Estimate
from wattloom.metering.protocol import Meter
from wattloom.units import MILLI, Watts

IDLE_SHARE: Final = 0.18
"""Idle watts over full watts where only busy times were seen: geometric mean of 248 SPECpower machines of 2017-2021."""
ALIKE: Final = 0.02
"""Shares of busy time that count as equally good a look at idleness."""
NEW: Final = 0.2
"""Weight of a new look among equally good ones."""


GUESS_ERROR: Final = 0.6
"""How far that share may be off for one machine, relative."""
BY_PROVENANCE: Final = {"measured": 0.03, "modelled": 0.1, "estimated": 0.5}
"""How far the idle watts of a profile may be off, relative, by where its curve comes from."""


def idle_guess(watts: float, busy: float) -> tuple[float, float]:
    """Idle watts and their spread, of a machine that draws so much with such a share of its threads busy."""
    guess = watts * IDLE_SHARE / (IDLE_SHARE + (1.0 - IDLE_SHARE) * busy)
    # The less it is busy, the nearer what it draws is to idle.
    return guess, GUESS_ERROR * min(watts - guess, guess)


class IdleDraw:
    """Idle watts. Learned from the least busy interval so far: the nearer that was to idle, the less is assumed."""

    __slots__ = ("_believed", "_busy", "_error", "_known", "_lowest", "_machine", "_threads", "_watts")

    def __init__(self, profile: MachineProfile, meter: Meter) -> None:
        machine = Machine(profile)
        same = machine.knows_power and profile.quantity == meter.quantity
        self._machine = machine
        self._known: float | None = machine.idle_w if same else None
        self._believed = same and (profile.provenance == "measured" or meter.name == Estimate.name)
        self._error = BY_PROVENANCE[profile.provenance]
        self._threads = profile.threads
        self._busy = float("inf")
        self._watts = 0.0
        self._lowest = float("inf")

    @property
    def watts(self) -> Watts:
        return Watts(self._known if self._known is not None and self._believed else min(self._watts, self._lowest))

    @property
    def known(self) -> tuple[float, float] | None:
        """What the profile says, and its spread. None: it says nothing of this quantity."""
        return None if self._known is None else (self._known, self._known * self._error)

    def learn(self, watts: float, busy_cores: float) -> None:
        """Look at an interval."""
        # Sums of the same ticks in another order differ in the last bit, and must not fall on another side of ALIKE.
        busy = round(min(busy_cores / self._threads, 1.0), 9)
        guess = self._guess(watts, busy)
        self._lowest = min(self._lowest, watts)
        if busy < self._busy - ALIKE:
            self._busy, self._watts = busy, guess
        elif busy <= self._busy + ALIKE:
            self._watts += NEW * (guess - self._watts)

    def _guess(self, watts: float, busy: float) -> float:
        """Other machines of the kind may draw more or less than this one; how that rises with load is more alike."""
        then_w = self._machine.watts(round(busy * self._threads * MILLI)) if self._known else 0.0
        return watts * self._known / then_w if self._known and then_w > 0.0 else idle_guess(watts, busy)[0]
