"""The ISA study's check of its power model for ARM: load from 0 to 100% in steps, the model held against SMpro.

An Altra Max is played: the rails of SMpro show what 128 cores draw, of which only the test knows the law. The ordinary
meter reads them; the model is learned in one pass of steps and held against the meter in another.
"""

from math import exp
from pathlib import Path
from random import Random
from typing import Final

import pytest
from numpy import interp
from tests.metering.rigs import SmproRig

from wattloom import api
from wattloom.energy.forecast import Unknown
from wattloom.machines.catalogue import machines

ALTRA: Final = machines()["altra-max-m128-1s"]
STEPS: Final = tuple(range(0, 101, 10))
STEP_S: Final = 60
"""A minute at each, of a clock that the test moves; in the study three."""
SETTLED_S: Final = 5
"""The first seconds of a step are of two loads."""
BEND: Final = 0.3
NOISE: Final = 0.01
OTHER_RAILS_W: Final = sum(SmproRig.WATTS[1:])
Errors = dict[int, float]


class PlayedAltra:
    """Its rails, and what it draws at a load: concave as machines are, noisy as meters are."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._rig = SmproRig(folder)
        self._meter = self._rig.meter()
        self._chance = Random(seed)
        self._now = 1000.0
        self._off = 0.0

    def passes(self) -> list[tuple[int, float, float]]:
        """(load, cores in use, watts as the meter has them), second by second through all steps."""
        found = []
        before = self._second(0)
        for load in STEPS:
            for second in range(STEP_S):
                after = self._second(load)
                if second >= SETTLED_S:
                    cores = ALTRA.cores * load / 100 * self._chance.uniform(0.99, 1.0)
                    found.append((load, cores, after - before))
                before = after
        return found

    def _second(self, load: int) -> float:
        """Joules so far, a second later."""
        idle, full = ALTRA.watts[0][1], ALTRA.watts[-1][1]
        self._off = 0.8 * self._off + self._chance.gauss(0.0, 0.6 * NOISE)
        watts = idle + (full - idle) * (1.0 - exp(-BEND * load / 100)) / (1.0 - exp(-BEND))
        self._rig.tree.set("power1", round((watts * (1.0 + self._off) - OTHER_RAILS_W) * 1e6))
        self._now += 1.0
        sample = self._meter.read(self._now)
        assert not isinstance(sample, Unknown)
        return sample.joules


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> tuple[Errors, Errors]:
    """Against the meter at each step, as a share of its watts: of the model, and of the catalogue's straight line."""
    folder = tmp_path_factory.mktemp("altra")
    samples = folder / "samples.csv"
    learned = PlayedAltra(folder / "first", 1).passes()
    rows = "".join(f"{at},{cores:.4f},{watts:.4f}\n" for at, (_, cores, watts) in enumerate(learned))
    samples.write_text(f"time_s,cpu_cores,watts\n{rows}")
    curve = api.machine_curve_from_samples(samples)
    held = PlayedAltra(folder / "second", 2).passes()
    line = [cores for cores, _ in ALTRA.watts], [watts for _, watts in ALTRA.watts]
    return _against(held, curve.cores, curve.watts), _against(held, *line)


def _against(held: list[tuple[int, float, float]], cores: list[float], watts: list[float]) -> Errors:
    return {
        step: sum(float(interp(used, cores, watts)) for load, used, _ in held if load == step)
        / sum(metered for load, _, metered in held if load == step)
        - 1.0
        for step in STEPS
    }


def test_the_model_follows_the_meter_at_every_step_from_idle_to_full(errors: tuple[Errors, Errors]) -> None:
    learned, _ = errors
    assert max(abs(error) for error in learned.values()) < 0.02, learned


def test_a_curve_that_was_not_learned_on_the_machine_is_told_apart(errors: tuple[Errors, Errors]) -> None:
    """The check can fail: a straight line between idle and full is off in the middle, and right at both ends."""
    learned, line = errors
    assert abs(line[30]) > 0.03 > 2 * abs(learned[30])
    assert abs(line[0]) < 0.02
    assert abs(line[100]) < 0.02
