"""Which curve: all are tried, and each counts by how well it explains the readings.

Owns the search over curves and their weights. A bent curve must earn it: it begins with less belief than a straight
line, what is left over is whitened first, so that lasting noise does not pass for many readings, and it must be better
in one stretch of the recording after the other (Vuong's test on stretches), not by what happened once. Else joules are
the straight line's, and the others are only doubt.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from wattloom.disaggregation import noise
from wattloom.disaggregation.activity import Array
from wattloom.disaggregation.fitting import Fit, Problem, fit, losses
from wattloom.disaggregation.noise import fresh
from wattloom.disaggregation.shapes import Shape, shapes

WILD: Final = 6.0
"""Readings so many usual residuals off are taken out before noise is whitened."""
FAR: Final = 9.0
"""Curves so much less likely than the best (in logarithms) do not count."""
PILOT_BENDS: Final = (0.6, 1.0, 2.4, 5.0, 0.55, 0.97)
REFINED: Final = 2
STRETCHES: Final = 12
CONSISTENT: Final = 1.645
"""Standard deviations by which the mean gain of a stretch must be above zero: one in twenty straight machines bends."""
STILL_BENT: Final = 0.3
"""Weight of bent curves in the doubt, where they did not earn a place."""
HOPELESS: Final = 10.0
"""Two bends in a row that are worse than the one before, the first by so much: more of it will not do."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Curves that count, with weights that add up to one, best first."""

    problem: Problem
    fits: list[Fit]
    weights: Array
    doubts: Array
    """The same for spreads: curves that did not earn a place in the figures are still possible."""

    @property
    def best(self) -> Fit:
        return self.fits[0]


def pilot(problem: Problem) -> tuple[Problem, Fit]:
    """The best of a few curves, and the problem with what it says of noise."""
    pilots = [shape for shape in shapes() if shape.straight or shape.bend in PILOT_BENDS]
    best = min((fit(problem, shape) for shape in pilots), key=_loss)
    return whitened(problem, best), best


def choose(problem: Problem, few: bool = False) -> Chosen:
    """All curves are tried, or only `few` of each kind, and the best refined."""
    fits = _all(problem, [shape for shape in shapes() if not few or shape.straight or shape.bend in PILOT_BENDS])
    fits += _refined(problem, fits)
    return weighed(problem, fits)


def whitened(problem: Problem, best: Fit) -> Problem:
    """The same problem with what this fit says of noise."""
    residual = best.residual
    usual = noise.MAD * float(np.median(np.abs(residual - np.median(residual)))) + 1e-9
    wild = np.abs(residual - np.median(residual)) > WILD * usual
    watts = np.where(wild, problem.watts - residual, problem.watts)
    shares = noise.memory(residual)
    new = fresh(residual, shares)
    least = 1e-4 * problem.scale_w + 1e-6
    return replace(
        problem, watts=watts, memory=shares, noise_w=max(noise.size(new), least), trust=noise.independent(new)
    )


def _all(problem: Problem, tried: list[Shape]) -> list[Fit]:
    """Family by family, each curve from where its neighbour ended; a family that only gets worse is left."""
    found: list[Fit] = []
    families: dict[tuple[str, bool], list[Shape]] = {}
    for shape in tried:
        families.setdefault((shape.curve, shape.counted), []).append(shape)
    for family in families.values():
        made: list[Fit] = []
        for shape in family:
            made.append(fit(problem, shape, made[-1].values if made else None))
            if len(made) > 2 and made[-1].loss > made[-2].loss > made[-3].loss + HOPELESS:
                break
        found += made
    return found


def _refined(problem: Problem, fits: list[Fit]) -> list[Fit]:
    """Bends half way to the neighbours of the best of each of the best families, and half way again."""
    found: list[Fit] = []
    families: list[tuple[str, bool]] = []
    for each in sorted(fits, key=_loss):
        family = (each.shape.curve, each.shape.counted)
        if each.shape.straight or family in families:
            continue
        families.append(family)
        found += _between(problem, each, [f for f in fits if (f.shape.curve, f.shape.counted) == family])
        if len(families) == REFINED:
            break
    return found


def _between(problem: Problem, best: Fit, family: list[Fit]) -> list[Fit]:
    bends = sorted(f.shape.bend for f in family)
    at = bends.index(best.shape.bend)
    low, high = bends[max(at - 1, 0)], bends[min(at + 1, len(bends) - 1)]
    found = []
    for share in (0.5, 0.25):
        around = [best.shape.bend + share * (end - best.shape.bend) for end in (low, high) if end != best.shape.bend]
        made = [fit(problem, replace(best.shape, bend=bend), best.values) for bend in around if abs(bend) > 1e-2]
        found += made
        closest = min([best, *made], key=_loss)
        if closest is not best:
            low, high = sorted((best.shape.bend, 2 * closest.shape.bend - best.shape.bend))
            best = closest
    return found


def weighed(problem: Problem, fits: list[Fit]) -> Chosen:
    """By how likely they are; a straight line alone, where no bend has earned its place."""
    ordered = sorted(fits, key=_loss)
    kept = [each for each in ordered if each.loss < ordered[0].loss + FAR]
    weight = np.exp([ordered[0].loss - each.loss for each in kept])
    weight = weight / weight.sum()
    straight = next(each for each in ordered if each.shape.straight)
    if not ordered[0].shape.straight and _better_in_most(problem, ordered[0], straight):
        return Chosen(problem, kept, weight, weight)
    bent = np.array([not each.shape.straight for each in kept])
    share = min(float(weight[bent].sum()), STILL_BENT)
    parts = share * weight[bent] / max(float(weight[bent].sum()), 1e-300)
    alone = np.concatenate([[1.0], np.zeros(len(parts))])
    made = [straight, *(each for each in kept if not each.shape.straight)]
    return Chosen(problem, made, alone, np.append(1.0 - parts.sum(), parts))


def _better_in_most(problem: Problem, bent: Fit, straight: Fit) -> bool:
    """Whether the bend explains more in stretch after stretch."""
    gains = losses(problem, straight.residual) - losses(problem, bent.residual)
    sums = np.array([part.sum() for part in np.array_split(gains, STRETCHES)])
    return float(sums.mean()) > CONSISTENT * float(sums.std(ddof=1)) / STRETCHES**0.5


def _loss(found: Fit) -> float:
    return found.loss
