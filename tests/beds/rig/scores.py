"""How far from the truth: the figures by which runs on the rig are judged.

Owns the arithmetic over a run's calls. What is learned of functions takes a while, so calls of the first third of a run
are scored apart.
"""

from typing import Final

import msgspec
import numpy as np
from tests.beds.rig.rivals import faasmeter, kepler, scaphandre
from tests.beds.rig.trial import Told, Trial
from tests.beds.rig.truth import Floats

WITHIN: Final = 1.645
"""Spreads on either side that hold 90% of the truths, if they are right."""
TOGETHER: Final = 100
"""Calls of one function whose sum is scored."""


class Score(msgspec.Struct, frozen=True):
    """Relative errors of single calls."""

    median: float
    p95: float
    bias: float
    """Of all together."""


class Scores(msgspec.Struct, frozen=True):
    """Of one run."""

    calls: int
    ours: Score
    first: Score
    """Ours, of the first third of the run."""
    held: float
    """Share of calls whose 90% interval holds the truth."""
    spread: float
    """Median, relative."""
    sums: Score | None
    """Ours, of sums over 100 calls of a function. None: there are not so many."""
    scaphandre: Score
    kepler: Score
    faasmeter: Score


def scores(trial: Trial) -> Scores:
    told, calls = trial.told, [each.call for each in trial.told]
    ended = np.array([call.ended for call in calls])
    later = ended >= ended.min() + (ended.max() - ended.min()) / 3.0
    true = np.array([each.truth_j for each in told])
    said = np.array([each.joules for each in told])
    spread = np.array([each.spread for each in told])
    cores = trial.plan.cores
    return Scores(
        int(later.sum()),
        score(said[later], true[later]),
        score(said[~later], true[~later]) if (~later).any() else score(said, true),
        float((np.abs(said - true) <= WITHIN * spread)[later].mean()),
        float(np.median(spread[later] / np.maximum(said[later], 1e-12))),
        _sums([each for each, is_later in zip(told, later, strict=True) if is_later]),
        score(scaphandre(trial.truth, calls, cores)[later], true[later]),
        score(kepler(trial.truth, calls, cores)[later], true[later]),
        score(faasmeter(trial.truth, calls)[later], true[later]),
    )


def score(said: Floats, true: Floats) -> Score:
    errors = np.abs(said / true - 1.0)
    return Score(float(np.median(errors)), float(np.quantile(errors, 0.95)), float(said.sum() / true.sum() - 1.0))


def _sums(told: list[Told]) -> Score | None:
    """Of each function's calls in the order in which they ended, a hundred at a time."""
    said, true = [], []
    for function in {each.call.function for each in told}:
        mine = sorted((each for each in told if each.call.function == function), key=lambda each: each.call.ended)
        for first in range(0, len(mine) - TOGETHER + 1, TOGETHER):
            some = mine[first : first + TOGETHER]
            said.append(sum(each.joules for each in some))
            true.append(sum(each.truth_j for each in some))
    return score(np.array(said), np.array(true)) if said else None
