"""Watts from counts: learned in bands of frequencies, learned anew when they are off, never negative."""

import numpy as np
import pytest

from wattloom.attribution.counter_model import FIRST_FIT, CounterModel

GHZ = 1e9
WEIGHTS = {2.0: (4.0, 2.0, 0.5), 3.0: (9.0, 3.0, 1.0)}
"""Joules per 10^9 cycles, instructions, stalled cycles: at a higher frequency each costs more."""


class Silicon:
    """A processor whose power is known: three kinds of work in a random mix."""

    KINDS = ((1.0, 3.5, 0.1), (1.0, 0.4, 0.8), (1.0, 1.5, 0.4))

    def __init__(self, seed: int = 1) -> None:
        self.chance = np.random.default_rng(seed)
        self.weights = dict(WEIGHTS)

    def interval(self, ghz: float, noise: float = 0.01) -> tuple[float, list[list[float]]]:
        """Active watts, and counts per second of three processes."""
        busy = self.chance.uniform(0.05, 1.0, 3)
        counts = [[share * ghz * GHZ * each for each in kind] for share, kind in zip(busy, self.KINDS, strict=True)]
        watts = sum(self.true_watts(ghz, each) for each in counts)
        return watts * (1.0 + noise * self.chance.normal()), counts

    def true_watts(self, ghz: float, counts: list[float]) -> float:
        return sum(weight * count / GHZ for weight, count in zip(self.weights[ghz], counts, strict=True))


def total(counts: list[list[float]]) -> list[float]:
    return [sum(each) for each in zip(*counts, strict=True)]


def learn(model: CounterModel, silicon: Silicon, ghz: float, intervals: int) -> None:
    for _ in range(intervals):
        watts, counts = silicon.interval(ghz)
        model.observe(watts, total(counts), ghz * GHZ)


def test_processes_get_their_own_watts_though_they_use_equal_cpu_time() -> None:
    silicon, model = Silicon(), CounterModel(3)
    learn(model, silicon, 2.0, 60)
    counts = [[2.0 * GHZ * each for each in kind] for kind in Silicon.KINDS]
    shares = model.shares(counts, 2.0 * GHZ)
    true = [silicon.true_watts(2.0, each) for each in counts]
    assert shares == pytest.approx([each / sum(true) for each in true], rel=0.05)


def test_bands_of_frequencies_have_weights_of_their_own() -> None:
    silicon, model = Silicon(), CounterModel(3)
    for ghz in (2.0, 3.0):
        learn(model, silicon, ghz, 60)
    for ghz in (2.0, 3.0):
        watts, counts = silicon.interval(ghz, noise=0.0)
        assert model.watts(total(counts), ghz * GHZ) == pytest.approx(watts, rel=0.05)
    assert model.watts([1.0, 1.0, 1.0], 1.0 * GHZ) is None


def test_nothing_is_said_before_enough_was_seen() -> None:
    silicon, model = Silicon(), CounterModel(3)
    learn(model, silicon, 2.0, FIRST_FIT - 1)
    assert model.shares([[1.0, 1.0, 1.0]], 2.0 * GHZ) is None
    learn(model, silicon, 2.0, 1)
    assert model.shares([[1.0, 1.0, 1.0]], 2.0 * GHZ) == [1.0]


def test_it_learns_anew_when_the_machine_changes_and_only_then() -> None:
    silicon, model = Silicon(), CounterModel(3)
    learn(model, silicon, 2.0, 80)
    settled = model.fits
    learn(model, silicon, 2.0, 40)
    assert model.fits - settled <= 2
    silicon.weights[2.0] = (8.0, 1.0, 3.0)
    learn(model, silicon, 2.0, 120)
    assert model.fits > settled
    watts, counts = silicon.interval(2.0, noise=0.0)
    assert model.watts(total(counts), 2.0 * GHZ) == pytest.approx(watts, rel=0.1)


def test_cpu_time_alone_is_a_model_too() -> None:
    model = CounterModel(1)
    for busy in (0.2, 0.5, 1.0, 1.5, 2.0, 0.1, 0.7, 1.2):
        model.observe(10.0 * busy, [busy], 0.0)
    assert model.watts([1.0], 0.0) == pytest.approx(10.0, rel=0.02)
    assert model.shares([[0.5], [1.5]], 0.0) == pytest.approx([0.25, 0.75])


def test_a_wrong_number_of_events_is_an_error() -> None:
    with pytest.raises(ValueError, match="3 events are known, 2 were given"):
        CounterModel(3).observe(1.0, [1.0, 2.0], 0.0)
