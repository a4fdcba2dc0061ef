from collections.abc import Callable
from itertools import count
from pathlib import Path

import msgspec
import pytest
from tests.metering.rigs import RIGS

from wattloom.energy.forecast import Unknown
from wattloom.machines.profile import MachineProfile
from wattloom.metering.protocol import Meter, Sample
from wattloom.testing.meter_conformance import CHECKS, Check, MakeRig, check_meter, check_name, it_can_be_set


def makers(folder: Path, rig: str) -> MakeRig:
    numbers = count()
    return lambda: RIGS[rig](folder / str(next(numbers)))


@pytest.mark.parametrize("check", CHECKS, ids=check_name)
@pytest.mark.parametrize("rig", RIGS)
def test_every_meter_conforms(rig: str, check: Check, tmp_path: Path) -> None:
    check(makers(tmp_path, rig))


# -- the kit itself: a kit that lets everything pass is worth nothing ------------------------------------------------


class Plain:
    """A meter on a dict, right in everything; the odd ones below are wrong in one thing each."""

    name, summary, quantity, provenance, model_error = "plain", "a number", "wall", "measured", 0.1
    most_j = 1000.0
    still_s = 30.0

    def __init__(self, source: dict[str, float]) -> None:
        self.source = source
        self.last: tuple[float, float] | None = None
        self.joules, self.epoch = 0.0, 0
        self.moved = 0.0

    def available(self) -> str | None:
        return "it is broken: mend it" if "broken" in self.source else None

    def read(self, now: float) -> Sample | Unknown:
        if "broken" in self.source:
            return Unknown("it is broken")
        if self.last is not None and now < self.last[0]:
            return Unknown("time went backwards")
        raw, before = self.source["joules"], self.last
        if before is None or raw != before[1]:
            self.moved = now
        if now - self.moved > self.still_s:
            return Unknown("it stands still")
        self.last = (now, raw)
        if before is not None:
            rise = self.rise(before[1], raw)
            if not 0.0 <= rise <= (now - before[0] + 1.0) * self.most_j:
                self.epoch += 1
                return Unknown("it broke off")
            self.joules += rise
        return Sample(now, self.joules, 0.01, epoch=self.epoch)

    def rise(self, before: float, raw: float) -> float:
        """Wraps at 1 MJ."""
        return raw - before if raw >= before else raw - before + 1e6


class Zero(Plain):
    """Says zero where it knows nothing."""

    def read(self, now: float) -> Sample | Unknown:
        answer = super().read(now)
        return Sample(now, 0.0, 0.01) if isinstance(answer, Unknown) else answer


class NoWrap(Plain):
    def rise(self, before: float, raw: float) -> float:
        return max(raw - before, 0.0)


class Believing(Plain):
    most_j = 1e12


class Nameless(Plain):
    summary = ""


class Exact(Plain):
    """Claims that a reading has no error."""

    def read(self, now: float) -> Sample | Unknown:
        answer = super().read(now)
        return Sample(now, answer.joules, 0.0, epoch=answer.epoch) if isinstance(answer, Sample) else answer


class Hasty(Plain):
    """Has the wrong time."""

    def read(self, now: float) -> Sample | Unknown:
        answer = super().read(now)
        return Sample(now + 1, answer.joules, 0.01, epoch=answer.epoch) if isinstance(answer, Sample) else answer


class Doubled(Plain):
    """Sums a parent with its child."""

    def rise(self, before: float, raw: float) -> float:
        return 2.0 * super().rise(before, raw)


class Optimist(Plain):
    def available(self) -> str | None:
        return None


class Shared(Plain):
    """Resets the source when it reads."""

    def read(self, now: float) -> Sample | Unknown:
        if "broken" in self.source:
            return Unknown("it is broken")
        self.joules += self.source["joules"]
        self.source["joules"] = 0.0
        return Sample(now, self.joules, 0.01)


class Numb(Plain):
    """Takes a source that hangs for a machine that draws nothing."""

    still_s = 1e12


class Forgiving(Plain):
    """Takes what it finds after a fault for what was drawn meanwhile."""

    def read(self, now: float) -> Sample | Unknown:
        if "broken" in self.source:
            self.last = None
        return super().read(now)


class Early(Plain):
    """Says that it is of now; it is of the second before."""

    def read(self, now: float) -> Sample | Unknown:
        answer = super().read(now)
        return Sample(now - 1, answer.joules, 0.01, epoch=answer.epoch) if isinstance(answer, Sample) else answer


class Slow(Plain):
    def read(self, now: float) -> Sample | Unknown:
        sum(range(500_000))
        return super().read(now)


class PlainRig:
    def __init__(self, cls: type[Plain]) -> None:
        self.cls = cls
        self.source = {"joules": 5000.0}

    def meter(self) -> Meter:
        meter: Meter = self.cls(self.source)  # type: ignore[assignment]
        return meter

    def spend(self, seconds: float) -> float:
        if "frozen" in self.source:
            return 0.0
        self.source["joules"] = (self.source["joules"] + 40.0 * seconds) % 1e6
        return 40.0 * seconds

    def fail(self) -> None:
        self.source["broken"] = 1.0

    forbid = garble = fail

    def freeze(self) -> None:
        self.source["frozen"] = 1.0

    def mend(self) -> None:
        self.source.pop("broken", None)
        self.source.pop("frozen", None)

    def near_wrap(self) -> bool:
        self.source["joules"] = 1e6 - 1.0
        return True

    def restart(self) -> None:
        self.source["joules"] = 0.0

    def jump(self) -> None:
        self.source["joules"] += 300_000.0


def test_the_kit_passes_a_meter_that_is_right() -> None:
    check_meter(lambda: PlainRig(Plain))


@pytest.mark.parametrize(
    ("odd", "complaint"),
    [
        (Zero, "not Unknown"),
        (NoWrap, "over a wrap"),
        (Believing, "same epoch"),
        (Nameless, "has no summary"),
        (Exact, "never exact"),
        (Hasty, "the sample says"),
        (Doubled, "were spent"),
        (Optimist, "says that it works"),
        (Shared, "not Unknown|counted"),
        (Slow, "CPU time"),
        (Numb, "stood still"),
        (Forgiving, "joules of the gap are missing"),
        (Early, "the sample says"),
    ],
)
def test_the_kit_catches_a_meter_that_is_wrong_in_one_thing(odd: type[Plain], complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_meter(lambda: PlainRig(odd))


class Keyed(msgspec.Struct, frozen=True):
    url: str = ""
    api_key: str = ""


class Speechless(Plain):
    def available(self) -> str | None:
        return "" if self.source is NOWHERE else super().available()


NOWHERE: dict[str, float] = {"joules": 0.0}


def keyed(profile: MachineProfile, settings: Keyed) -> Plain:
    return Plain(NOWHERE)


def speechless(profile: MachineProfile) -> Plain:
    return Speechless(NOWHERE)


def no_meter(profile: MachineProfile) -> object:
    return profile


@pytest.mark.parametrize(
    ("entry_point", "complaint"),
    [(keyed, "api_key looks like a secret"), (speechless, "does not say what"), (no_meter, "gives no meter")],
)
def test_the_kit_catches_an_entry_point_that_is_wrong(entry_point: Callable[..., object], complaint: str) -> None:
    rig = PlainRig(Plain)
    rig.entry_point = entry_point  # type: ignore[attr-defined]
    with pytest.raises(AssertionError, match=complaint):
        it_can_be_set(lambda: rig)


class Delayed(Plain):
    """A slow source, right in everything: it knows what was there half a second ago, and says so."""

    def read(self, now: float) -> Sample | Unknown:
        answer = super().read(now)
        if isinstance(answer, Unknown):
            return answer
        return Sample(now - 0.05, answer.joules, 0.01, epoch=answer.epoch)


class DelayedRig(PlainRig):
    lag_s = 0.1

    def __init__(self) -> None:
        super().__init__(Delayed)
        self.caught_up: list[float] = []

    def catch_up(self, now: float) -> None:
        self.caught_up.append(now)


def test_the_kit_passes_a_slow_meter_whose_samples_are_of_earlier() -> None:
    check_meter(DelayedRig)


def test_the_kit_lets_a_meter_catch_up_before_it_is_read() -> None:
    rig = DelayedRig()
    CHECKS[2](lambda: rig)
    assert rig.caught_up == [1000.0, 1001.0, 1001.25, 1006.25, 1007.25]


class PowerOnly(Plain):
    """Integrates over any gap."""


class PowerRig(PlainRig):
    def restart(self) -> bool:  # type: ignore[override]
        return False


def test_the_kit_lets_nobody_bridge_a_long_gap_who_does_not_count() -> None:
    with pytest.raises(AssertionError, match="bridged by a source that does not count"):
        check_meter(lambda: PowerRig(PowerOnly))
