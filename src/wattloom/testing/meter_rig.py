"""What a meter's conformance kit tries it on, and how it does so: the `Rig`, which a meter's author writes.

Owns the protocol of rigs and the steps that several rules share. The rules themselves are in `meter_conformance`.
"""

from collections.abc import Callable
from math import isfinite
from typing import Final, Protocol

from wattloom.energy.forecast import Unknown
from wattloom.metering.protocol import Meter, Sample

START: Final = 1000.0
"""When every check begins."""


class Rig(Protocol):
    """A source of joules under the test's control, and the meter that reads it.

    A rig may have more, where its source can do more; what it lacks is not tried:

    - `catch_up(now)`: called before every read: lets a meter that reads in the background take its reading for `now`.
    - `lag_s`: how much earlier than `now` a sample may be, in seconds. Left out: 0, it is of `now`.
    - `freeze()`: the source goes on showing its last value whatever is spent, as a driver that hangs. `mend` ends it.
    - `forbid()`: permission is taken away. `mend` gives it back.
    - `garble()`: it shows what is no number. `mend` ends it.
    - `entry_point`: what the meter's entry point names, as an attribute of the class (a function: `staticmethod`). With
      it the settings that the meter brings are tried.
    - `remembers`: True where a source that does not count knows all the same what was drawn in a gap, as a recording.
    """

    def meter(self) -> Meter:
        """A new meter on this source."""

    def spend(self, seconds: float) -> float:
        """The source goes on for so long, at any power it can have; the joules it counts meanwhile."""

    def fail(self) -> None:
        """The source cannot be read from now on."""

    def mend(self) -> None:
        """It can be read again. It has counted on, where it is a counter."""

    def near_wrap(self) -> bool:
        """Bring the count to where the next `spend` wraps it. False: this source never wraps. Before the first read."""

    def restart(self) -> bool | None:
        """The source begins again at nothing, as after a reboot or a driver's reload. False: it does not count."""

    def jump(self) -> None:
        """The count leaps by more than the machine can have drawn."""


MakeRig = Callable[[], Rig]
Check = Callable[[MakeRig], None]


def require(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)


def ask(rig: Rig, meter: Meter, now: float) -> Sample | Unknown:
    catch_up = getattr(rig, "catch_up", None)
    if catch_up is not None:
        catch_up(now)
    return meter.read(now)


def read(rig: Rig, meter: Meter, now: float) -> Sample:
    """A reading that must be good."""
    sample = ask(rig, meter, now)
    if isinstance(sample, Unknown):
        raise AssertionError(f"{meter.name} at {now}: the source works, but the reading is unknown: {sample.reason}")
    require(isfinite(sample.joules) and sample.joules >= 0.0, f"{meter.name}: {sample.joules} J cannot be")
    good = isfinite(sample.resolution_j) and sample.resolution_j > 0.0
    require(good, f"{meter.name}: a reading is never exact, but its resolution is {sample.resolution_j} J")
    return sample


def unknown(answer: Sample | Unknown, what: str) -> None:
    require(isinstance(answer, Unknown), f"{what} gave {answer}, not Unknown")
    require(isinstance(answer, Unknown) and bool(answer.reason.strip()), f"{what} gave Unknown without a reason")


def eventually(meter: Meter, rig: Rig, now: float) -> tuple[Sample, float]:
    """The first good reading, and when it was asked for: a meter may need one more read to find its feet."""
    sample = ask(rig, meter, now)
    if isinstance(sample, Unknown):
        rig.spend(1.0)
        now += 1.0
        sample = read(rig, meter, now)
    return sample, now


def open_j(rig: Rig, first: Sample, sample: Sample, spent: float) -> float:
    """How far the joules between two readings may be off: their resolution, and what a slow source has not seen yet."""
    seconds = max(sample.time - first.time, 1.0)
    late_j = float(getattr(rig, "lag_s", 0.0)) * 2.0 * spent / seconds
    return 4.0 * (first.resolution_j + sample.resolution_j) + 0.01 * spent + late_j


def recovers(rig: Rig, fault: Callable[[], object], what: str) -> None:
    """A fault is unknown, and said; once mended, the count covers the gap or has broken off."""
    meter = rig.meter()
    first = read(rig, meter, START)
    spent = rig.spend(1.0)
    fault()
    unknown(ask(rig, meter, START + 1.0), f"a source {what}")
    require(bool(meter.available()), f"available() says that it works on a source {what}")
    rig.mend()
    require(meter.available() is None, f"mended, but available() says: {meter.available()}")
    spent += rig.spend(1.0)
    sample, _ = eventually(meter, rig, START + 2.0)
    if sample.epoch == first.epoch:
        least = spent - open_j(rig, first, sample, spent)
        require(sample.joules - first.joules >= least, "joules of the gap are missing, in the same epoch")


def breaks_off(meter: Meter, rig: Rig, last: Sample, now: float, lie: Callable[[], bool | None]) -> None:
    """After a lie the meter says Unknown or begins a new epoch; and it goes on, counting only what is spent then."""
    what = lie.__name__
    if lie() is False:
        return
    answer = ask(rig, meter, now + 0.5)
    if isinstance(answer, Sample):
        require(answer.epoch > last.epoch, f"{what}: {last} became {answer} in the same epoch")
    rig.spend(1.0)
    before, now = eventually(meter, rig, now + 1.5)
    require(before.epoch > last.epoch, f"{what}: the count goes on in the same epoch: {last}, then {before}")
    spent = rig.spend(1.0)
    after = read(rig, meter, now + 1.0)
    counted = after.joules - before.joules
    require(abs(counted - spent) <= open_j(rig, before, after, spent), f"{what}: the meter does not count on rightly")
