"""How alike two machines are expected to be in the shape of their power curves.

Owns the covariance of a Gaussian process over machines: idle ratio, full draw, generation within a line of designs,
family and model of the processor, the machine's maker, the year, and what they draw at loads that are known. Needs
numpy; imported only where a curve is asked for.
"""

from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


class Kernel(msgspec.Struct, frozen=True):
    """Variances (`_v`) and lengths (`_l`) of the terms that add up to the covariance."""

    idle_l: float
    all_v: float
    line_v: float
    line_l: float
    across_lines: float
    year_v: float
    year_l: float
    slope_v: float
    family_v: float
    family_idle_l: float
    size_v: float
    size_l: float
    size_year_l: float
    model_v: float
    model_idle_l: float
    model_full_l: float
    model_year_l: float
    near_v: float
    near_idle_l: float
    near_full_l: float
    near_year_l: float
    maker_line_v: float
    maker_family_v: float
    maker_model_v: float
    maker_line_l: float
    maker_idle_l: float
    noise_v: float
    outlier: float
    """In training: residuals beyond so many medians count less."""
    points_trend: float
    """With points given, the same terms hold what is left around a spline: trends count so much,"""
    points_trend_l: float
    points_kin: float
    """and what is close by so much,"""
    points_kin_l: float
    """and both fade with how far apart two machines are at the points, in shares of the way from idle to full."""
    points_noise_v: float

    def without_maker(self) -> "Kernel":
        """For machines whose makers are not told: everything else has to explain what there is."""
        return msgspec.structs.replace(self, maker_line_v=0.0, maker_family_v=0.0, maker_model_v=0.0)


class Situations(msgspec.Struct, frozen=True):
    """Machines as the kernel sees them: one row each; a code below 0 is like no other."""

    idle: Matrix
    """Logarithm of idle over full draw."""
    full: Matrix
    """Logarithm of the watts at full load."""
    year: Matrix
    generation: Matrix
    line: Matrix
    family: Matrix
    model: Matrix
    maker: Matrix

    def of(self, rows: Any) -> "Situations":
        return Situations(*(getattr(self, name)[rows] for name in self.__struct_fields__))

    def __len__(self) -> int:
        return len(self.idle)


class Alike(NamedTuple):
    """Between every machine of one lot and every one of another."""

    trend: Matrix
    """What slowly changes with idle ratio, generation and year."""
    kin: Matrix
    """What machines close to each other share: model, family, maker."""


def covariance(a: Situations, b: Situations, kernel: Kernel) -> Matrix:
    """Of the shapes of machines, no point between idle and full load being known."""
    trend, kin = alike(a, b, kernel)
    return trend + kin


def covariance_around(known: Alike, gap: Matrix, kernel: Kernel) -> Matrix:
    """Of what is left around a spline, for machines so far apart at the points that are known."""
    trend: Matrix = kernel.points_trend * known.trend * np.exp(-gap / kernel.points_trend_l)
    return trend + kernel.points_kin * known.kin * np.exp(-gap / kernel.points_kin_l)


def alike(a: Situations, b: Situations, kernel: Kernel) -> Alike:
    idle, full, years = _apart(a.idle, b.idle), _apart(a.full, b.full), _apart(a.year, b.year)
    generations, line = _apart(a.generation, b.generation), _same(a.line, b.line)
    family, model = _same(a.family, b.family), _same(a.model, b.model)
    smooth = np.exp(-0.5 * (idle / kernel.idle_l) ** 2)
    lines = (line + kernel.across_lines) / (1.0 + kernel.across_lines)
    trend = kernel.all_v * smooth + kernel.slope_v * np.outer(a.idle + 1.6, b.idle + 1.6)
    trend += kernel.line_v * smooth * np.exp(-generations / kernel.line_l) * lines
    trend += kernel.year_v * smooth * np.exp(-years / kernel.year_l)
    kin = kernel.near_v * np.exp(-idle / kernel.near_idle_l - full / kernel.near_full_l - years / kernel.near_year_l)
    kin += kernel.family_v * family * np.exp(-idle / kernel.family_idle_l)
    kin += kernel.size_v * family * np.exp(-(idle + full) / kernel.size_l - years / kernel.size_year_l)
    kin += (
        kernel.model_v
        * model
        * np.exp(-idle / kernel.model_idle_l - full / kernel.model_full_l - years / kernel.model_year_l)
    )
    if kernel.maker_line_v or kernel.maker_family_v or kernel.maker_model_v:
        near = np.exp(-idle / kernel.maker_idle_l)
        shared = (
            kernel.maker_line_v * line * np.exp(-generations / kernel.maker_line_l) + kernel.maker_family_v * family
        )
        kin += _same(a.maker, b.maker) * (near * shared + kernel.maker_model_v * model)
    return Alike(trend, kin)


def _apart(a: Matrix, b: Matrix) -> Matrix:
    gap: Matrix = np.abs(a[:, None] - b[None, :])
    return gap


def _same(a: Matrix, b: Matrix) -> Matrix:
    same: Matrix = ((a[:, None] == b[None, :]) & (a[:, None] >= 0)).astype(np.float64)
    return same
