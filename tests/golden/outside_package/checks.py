"""The plug-in's own tests, as the tutorial and the how-to have them: both conformance kits."""
# mypy: ignore-errors

import tempfile
from pathlib import Path

import pytest
from outside_plugin.board_meter import BoardMeter
from outside_plugin.policies import Crowded, Fastest, Nearest

from wattloom.testing.meter_conformance import CHECKS, check_name
from wattloom.testing.policy_conformance import check_policy


class BoardRig:
    frozen = False

    def __init__(self) -> None:
        self.file = Path(tempfile.mkdtemp()) / "energy1_input"
        self.set(5_000_000)

    def set(self, microjoules: int) -> None:
        self.file.write_text(str(microjoules))

    def meter(self) -> BoardMeter:
        return BoardMeter(self.file)

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

    def freeze(self) -> None:  # not every source can: this one is tried where the rig has it
        self.frozen = True


@pytest.mark.parametrize("check", CHECKS, ids=check_name)
def test_the_board_meter_conforms(check) -> None:
    check(BoardRig)


@pytest.mark.parametrize("policy", [Fastest, Crowded, Nearest])
def test_the_policy_is_a_good_citizen(policy) -> None:
    check_policy(policy)
