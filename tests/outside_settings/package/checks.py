"""The plug-in's own tests: the conformance kits, with the settings."""
# mypy: ignore-errors

import tempfile
from pathlib import Path

import pytest
from outside_margin import Margin
from outside_strip import StripMeter, StripSettings, for_machine

from wattloom.testing.meter_conformance import CHECKS, check_name
from wattloom.testing.predictor_conformance import check_predictor


class StripRig:
    entry_point = staticmethod(for_machine)
    frozen = False

    def __init__(self) -> None:
        self.file = Path(tempfile.mkdtemp()) / "counter"
        self.set(5_000_000)

    def set(self, microjoules: int) -> None:
        self.file.write_text(str(microjoules))

    def meter(self) -> StripMeter:
        return StripMeter(StripSettings(file=str(self.file)))

    def spend(self, seconds: float) -> float:
        if self.frozen:
            return 0.0
        self.set((int(self.file.read_text()) + round(20e6 * seconds)) % 2**32)
        return 20.0 * seconds

    def fail(self) -> None:
        self.file.rename(self.file.with_name("hidden"))

    def mend(self) -> None:
        if not self.frozen:
            self.file.with_name("hidden").rename(self.file)
        self.frozen = False

    def near_wrap(self) -> bool:
        self.set(2**32 - 1000)
        return True

    def restart(self) -> None:
        self.set(0)

    def jump(self) -> None:
        self.set(3_000_000_000)

    def freeze(self) -> None:
        self.frozen = True


@pytest.mark.parametrize("check", CHECKS, ids=check_name)
def test_the_strip_conforms(check) -> None:
    check(StripRig)


def test_the_margin_is_a_good_citizen() -> None:
    check_predictor(Margin)
