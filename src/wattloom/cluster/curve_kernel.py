"""How alike two machines are expected to be in the shape of their power curves.

Owns the covariance of a Gaussian process over machines: idle ratio, full draw, generation within a line of designs,
family and model of the processor, the machine's maker, and the year. Needs numpy; imported only
where a curve is asked for.
"""

from typing import Any

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
    family_v: float
    family_idle_l: float
    model_v: float
    model_idle_l: float
    model_full_l: float
    year_v: float
    year_l: float
    slope_v: float
    size_v: float
    size_l: float
    maker_line_v: float
    maker_family_v: float
    maker_model_v: float
    maker_line_l: float
    maker_idle_l: float
    noise_v: float
    outlier: float
    """In training: residuals beyond so many medians count less."""

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


def covariance(a: Situations, b: Situations, kernel: Kernel) -> Matrix:
    """Between every machine of `a` and every one of `b`."""
    idle, full = _apart(a.idle, b.idle), _apart(a.full, b.full)
    years, generations = _apart(a.year, b.year), _apart(a.generation, b.generation)
    line, family, model = _same(a.line, b.line), _same(a.family, b.family), _same(a.model, b.model)
    smooth = np.exp(-0.5 * (idle / kernel.idle_l) ** 2)
    lines = (line + kernel.across_lines) / (1.0 + kernel.across_lines)
    both = idle + full
    total = kernel.all_v * smooth + kernel.slope_v * np.outer(a.idle + 1.6, b.idle + 1.6)
    total += kernel.line_v * smooth * np.exp(-generations / kernel.line_l) * lines
    total += kernel.year_v * smooth * np.exp(-years / kernel.year_l)
    total += kernel.family_v * family * np.exp(-idle / kernel.family_idle_l)
    total += kernel.size_v * family * np.exp(-both / kernel.size_l)
    total += kernel.model_v * model * np.exp(-idle / kernel.model_idle_l - full / kernel.model_full_l)
    near = np.exp(-idle / kernel.maker_idle_l)
    kin = kernel.maker_line_v * line * np.exp(-generations / kernel.maker_line_l) + kernel.maker_family_v * family
    result: Matrix = total + _same(a.maker, b.maker) * (near * kin + kernel.maker_model_v * model)
    return result


def _apart(a: Matrix, b: Matrix) -> Matrix:
    gap: Matrix = np.abs(a[:, None] - b[None, :])
    return gap


def _same(a: Matrix, b: Matrix) -> Matrix:
    alike: Matrix = ((a[:, None] == b[None, :]) & (a[:, None] >= 0)).astype(np.float64)
    return alike
