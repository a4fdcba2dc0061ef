from itertools import count
from pathlib import Path

import pytest
from tests.metering.trees import RANGE_UJ, ProcTree, RaplTree, machine

from wattloom.energy.forecast import Unknown
from wattloom.metering.estimate import Estimate
from wattloom.metering.powercap import Powercap
from wattloom.metering.protocol import Meter, Sample
from wattloom.testing.meter_conformance import CHECKS, Check, MakeRig, check_meter, check_name


class PowercapRig:
    """Two packages and one memory at 30 W, 20 W and 5 W."""

    def __init__(self, folder: Path) -> None:
        self.tree = RaplTree(folder / "powercap")
        self.watts = {"intel-rapl:0": 30, "intel-rapl:0:1": 5, "intel-rapl:1": 20}
        for zone, name in zip(self.watts, ("package-0", "dram", "package-1"), strict=True):
            self.tree.zone(zone, name)

    def meter(self) -> Meter:
        return Powercap(self.tree.root)

    def spend(self, seconds: float) -> float:
        for zone, watts in self.watts.items():
            risen = self.tree.get(zone) + round(watts * seconds * 1e6)
            self.tree.set(zone, risen if risen <= RANGE_UJ else risen - RANGE_UJ)
        return sum(self.watts.values()) * seconds

    def fail(self) -> None:
        (self.tree.root / "intel-rapl:1" / "energy_uj").rename(self.tree.root / "hidden")

    def mend(self) -> None:
        (self.tree.root / "hidden").rename(self.tree.root / "intel-rapl:1" / "energy_uj")

    def near_wrap(self) -> bool:
        self.tree.set("intel-rapl:0", RANGE_UJ - 1_000_000)
        return True

    def restart(self) -> None:
        for zone in self.watts:
            self.tree.set(zone, 0)

    def jump(self) -> None:
        self.tree.add("intel-rapl:0", 50_000_000_000)


class EstimateRig:
    """One of two cores busy."""

    def __init__(self, folder: Path) -> None:
        self.tree = ProcTree(folder / "proc")

    def meter(self) -> Meter:
        return Estimate(machine(), proc=self.tree.root)

    def spend(self, seconds: float) -> float:
        self.tree.work(seconds)
        return 30.0 * seconds

    def fail(self) -> None:
        (self.tree.root / "stat").rename(self.tree.root / "hidden")

    def mend(self) -> None:
        (self.tree.root / "hidden").rename(self.tree.root / "stat")

    def near_wrap(self) -> bool:
        return False

    def restart(self) -> None:
        self.tree.work(1.0 - self.tree.busy_s)

    def jump(self) -> None:
        self.tree.work(5000.0)


def makers(folder: Path) -> dict[str, MakeRig]:
    numbers = count()
    return {
        "powercap": lambda: PowercapRig(folder / str(next(numbers))),
        "estimate": lambda: EstimateRig(folder / str(next(numbers))),
    }


@pytest.mark.parametrize("check", CHECKS, ids=check_name)
@pytest.mark.parametrize("meter", ["powercap", "estimate"])
def test_every_meter_conforms(meter: str, check: Check, tmp_path: Path) -> None:
    check(makers(tmp_path)[meter])


# -- the kit itself: a kit that lets everything pass is worth nothing ------------------------------------------------


class Plain:
    """A meter on a dict, right in everything; the odd ones below are wrong in one thing each."""

    name, summary, quantity, provenance, model_error = "plain", "a number", "wall", "measured", 0.1
    most_j = 1000.0

    def __init__(self, source: dict[str, float]) -> None:
        self.source = source
        self.last: tuple[float, float] | None = None
        self.joules, self.epoch = 0.0, 0

    def available(self) -> str | None:
        return "it is broken: mend it" if "broken" in self.source else None

    def read(self, now: float) -> Sample | Unknown:
        if "broken" in self.source:
            return Unknown("it is broken")
        if self.last is not None and now < self.last[0]:
            return Unknown("time went backwards")
        raw, before = self.source["joules"], self.last
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


class Slow(Plain):
    def read(self, now: float) -> Sample | Unknown:
        sum(range(1_000_000))
        return super().read(now)


class PlainRig:
    def __init__(self, cls: type[Plain]) -> None:
        self.cls = cls
        self.source = {"joules": 5000.0}

    def meter(self) -> Meter:
        meter: Meter = self.cls(self.source)  # type: ignore[assignment]
        return meter

    def spend(self, seconds: float) -> float:
        self.source["joules"] = (self.source["joules"] + 40.0 * seconds) % 1e6
        return 40.0 * seconds

    def fail(self) -> None:
        self.source["broken"] = 1.0

    def mend(self) -> None:
        del self.source["broken"]

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
    ],
)
def test_the_kit_catches_a_meter_that_is_wrong_in_one_thing(odd: type[Plain], complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_meter(lambda: PlainRig(odd))
