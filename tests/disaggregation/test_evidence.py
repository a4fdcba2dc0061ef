"""What must be shown before it is believed: a bend, heat, and how sure a figure is."""

from dataclasses import replace

import numpy as np
import pytest
from tests.beds.field_runs import field_run
from tests.beds.power_machines import Machine
from tests.beds.power_traces import STEP_S
from tests.disaggregation.test_disaggregate import PLAIN, run
from tests.disaggregation.traces import WEIGHTS, recorded, some_work

from wattloom.disaggregation import activity, choosing
from wattloom.disaggregation.fitting import Fit, Problem, losses
from wattloom.disaggregation.online import PowerFilter
from wattloom.disaggregation.response import Reading, Response
from wattloom.disaggregation.shapes import shapes


def a_problem(readings: int) -> Problem:
    over = activity.on_steps(
        activity.Calls(np.zeros(1), np.ones(1), np.zeros(1, dtype=np.intp), np.ones(1)), 1, 0.0, 1.0, 4
    )
    return Problem(
        watts=np.zeros(readings),
        weight=np.ones(readings),
        over=over,
        reading=Reading(over, np.arange(2.0), Response(0.0, 1.0)),
        drift=np.zeros((readings, 0)),
        drift_w=np.zeros(0),
        drift_is=np.zeros(0),
        heated=False,
        idle=(0.0, 1.0),
        awake_w=1.0,
        scale_w=1.0,
        most=1.0,
        noise_w=1.0,
        trust=1.0,
        memory=np.zeros(0),
        awake=np.zeros(readings),
    )


@pytest.mark.parametrize(("better_in", "bends"), [(range(1), False), (range(2), False), (range(12), True)])
def test_a_bend_must_show_in_stretch_after_stretch(better_in: range, bends: bool) -> None:
    """Each time the bent curve is likelier by the same, far more than it costs: once may be anything."""
    problem = a_problem(1200)
    plain, less = np.ones(1200), np.ones(1200)
    for stretch in better_in:
        less[100 * stretch : 100 * (stretch + 1)] = (1.0 - 1.2 / len(better_in)) ** 0.5 if len(better_in) > 1 else 0.0
    straight, bent = shapes()[0], shapes()[4]
    made = [
        Fit(shape, np.zeros(3), float(losses(problem, residual).sum()), residual, np.zeros((1200, 3)), np.eye(3))
        for shape, residual in ((straight, plain), (bent, less))
    ]
    chosen = choosing.weighed(problem, made)
    assert (chosen.best.shape is bent) == bends
    assert chosen.weights[0] > 0.99
    assert chosen.doubts.sum() == pytest.approx(1.0)
    assert (chosen.doubts[chosen.fits.index(made[1])] > 0.2) or bends, "what may be bent is in the spread all the same"


def test_heat_that_follows_the_work_is_the_work_s() -> None:
    """Fans and leakage come minutes later: leaving a function out saves them, too."""
    lasting = np.exp(-np.arange(0.0, 600.0, STEP_S) / 120.0)

    def draw(calls: np.ndarray) -> np.ndarray:
        drawn = calls @ WEIGHTS
        size = len(drawn) + len(lasting)
        slow = np.fft.irfft(np.fft.rfft(drawn, size) * np.fft.rfft(lasting / lasting.sum(), size), size)
        return np.asarray(drawn + 0.15 * slow[: len(drawn)])

    trace = recorded(Machine(4, 60.0, 210.0, draw), some_work(seconds=900.0), replace(PLAIN, around_s=50.0), 900.0)
    found = run(trace)
    off = found.marginal_j / found.metered / trace.marginal_j - 1.0
    assert off.mean() > -0.08, "without heat in the model it is -0.13"
    assert np.all(np.abs(off) < 1.645 * found.marginal_spread / found.marginal_j)


@pytest.mark.parametrize(("family", "seed"), [("heat", 11), ("waits", 12)])
def test_spreads_know_of_what_no_model_of_ours_has(family: str, seed: int) -> None:
    """90% intervals of 8 figures: before, spreads of 4% stood beside errors of 10 to 30%."""
    trace = field_run(family, seed, seconds=500.0)
    found = run(trace)
    off = np.abs(found.marginal_j / found.metered - trace.marginal_j)
    assert (off < 1.645 * found.marginal_spread / found.metered).sum() >= 3
    assert np.all(found.marginal_spread < 0.6 * found.marginal_j)


def test_errors_that_last_make_the_filter_less_sure() -> None:
    rng = np.random.default_rng(3)
    slow, quick = np.zeros(900), rng.normal(0.0, 2.0, 900)
    for at in range(1, 900):
        slow[at] = 0.9 * slow[at - 1] + rng.normal(0.0, 2.0 * (1 - 0.9**2) ** 0.5)
    spreads = []
    for noise in (quick, slow):
        power = PowerFilter(idle_w=60.0)
        for at in range(900):
            ran = float(at // 20 % 2)
            power.feed(1.0, 60.0 + 20.0 * ran + noise[at], {"f": ran} if ran else {})
        now = power.of("f")
        assert now is not None
        assert abs(now.watts - 20.0) < 2.0 * now.spread
        assert now.spread > 0.06 * now.watts, "a linear filter is never surer than that"
        spreads.append((now.spread**2 - (0.1 * now.watts) ** 2) ** 0.5)
    assert spreads[1] > 1.3 * spreads[0]
