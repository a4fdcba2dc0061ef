"""What comes of an experiment: published figures and facts, ours beside them, error and verdict, tables and pictures.

Owns their form, the rules by which a verdict follows from the numbers, and how they are written as JSON and CSV. Who
draws a picture is the report's business.
"""

import csv
from collections.abc import Sequence
from io import StringIO
from math import sqrt
from typing import Any, Final, Literal

import msgspec
import numpy as np

from wattloom.energy.forecast import Provenance
from wattloom.simulation.published import WRONG_BY, HeldAgainst

Verdict = Literal["agrees", "agrees in part", "contradicts the source", "calibrated", "not known"]

MOSTLY: Final = 0.9
"""A fact that holds in so large a share of draws agrees, one that holds in less than the rest contradicts."""
Z90: Final = 1.6449
"""Nine times out of ten a normal number is at most so many standard deviations away."""


class Spread(msgspec.Struct, frozen=True):
    """A median, and where nine of ten draws lie; both ends equal to it: one figure."""

    median: float
    low: float
    high: float

    def told(self, unit: str = "") -> str:
        """With its ends, where it has two."""
        sign = unit if unit == "%" else f" {unit}" if unit else ""
        if self.low == self.high:
            return f"{self.median:.4g}{sign}"
        digits = 1 if unit == "%" or self.high < 1000.0 else 0
        return f"{self.median:.{digits}f}{sign} ({self.low:.{digits}f} to {self.high:.{digits}f})"


def spread_of(values: Sequence[float]) -> Spread | None:
    """Of draws. None: there were none."""
    if not len(values):
        return None
    low, median, high = (float(each) for each in np.percentile(values, [5, 50, 95]))
    return Spread(median, low, high)


class HeldFigure(msgspec.Struct, frozen=True, kw_only=True):
    """A published figure, or a range of them, and ours."""

    what: str
    place: str
    """Where in the source."""
    published: float
    to: float | None = None
    """The other end, where a range was published."""
    unit: str = ""
    ours: Spread | None
    provenance: Provenance
    """Of ours."""
    inside: float | None = None
    """Share of our draws within a published range."""
    calibrated: bool = False
    """Whether ours was fitted to it: then it proves nothing."""

    @property
    def error(self) -> float | None:
        """(ours - published) / published; in points where the unit is %. Of a range: to its nearer end, 0 within."""
        if self.ours is None:
            return None
        low, high = self.published, self.published if self.to is None else self.to
        nearest = min(max(self.ours.median, low), high)
        if self.unit == "%":
            return self.ours.median - nearest
        return (self.ours.median - nearest) / abs(nearest) if nearest else None

    @property
    def off(self) -> str:
        if self.error is None:
            return ""
        return f"{self.error:+.1f} points" if self.unit == "%" else f"{self.error:+.1%}"

    @property
    def told(self) -> str:
        """What was published."""
        sign = "%" if self.unit == "%" else f" {self.unit}" if self.unit else ""
        return f"{self.published:g}{sign}" if self.to is None else f"{self.published:g} to {self.to:g}{sign}"

    @property
    def told_ours(self) -> str:
        if self.ours is None:
            return "unknown"
        inside = "" if self.inside is None else f", {self.inside:.0%} of draws inside"
        return self.ours.told(self.unit) + inside

    @property
    def verdict(self) -> Verdict:
        """Agrees: the median is within the range, or as near as a scenario's figures must be. In part: nine of ten
        draws do not exclude what was published."""
        if self.ours is None or self.error is None:
            return "not known"
        if self.calibrated:
            return "calibrated"
        allowed = 0.0 if self.to is not None else 100.0 * WRONG_BY if self.unit == "%" else WRONG_BY
        if abs(self.error) <= allowed:
            return "agrees"
        high = self.published if self.to is None else self.to
        apart = self.ours.high < self.published or self.ours.low > high
        return "contradicts the source" if apart else "agrees in part"


class HeldFact(msgspec.Struct, frozen=True, kw_only=True):
    """A published fact, and in how many of our draws it holds."""

    what: str
    place: str
    held: int
    of: int
    provenance: Provenance
    calibrated: bool = False
    """Whether draws were made so that it holds."""

    @property
    def share(self) -> float | None:
        return self.held / self.of if self.of else None

    @property
    def ends(self) -> tuple[float, float] | None:
        """Where the share of endless draws lies nine times out of ten (Wilson)."""
        if self.share is None:
            return None
        spread = Z90**2 / self.of
        middle = (self.share + spread / 2) / (1 + spread)
        varies = max(0.0, self.share * (1 - self.share)) / self.of + spread / (4 * self.of)
        half = Z90 * sqrt(varies) / (1 + spread)
        return max(0.0, middle - half), min(1.0, middle + half)

    @property
    def told(self) -> str:
        return "holds"

    @property
    def off(self) -> str:
        return ""

    @property
    def told_ours(self) -> str:
        return "unknown" if self.share is None else f"in {self.share:.1%} of {self.of:,} draws"

    @property
    def verdict(self) -> Verdict:
        if self.share is None:
            return "not known"
        if self.calibrated:
            return "calibrated"
        if self.share >= MOSTLY:
            return "agrees"
        return "contradicts the source" if self.share < 1.0 - MOSTLY else "agrees in part"


Held = HeldFigure | HeldFact


def held_figure(held: HeldAgainst) -> HeldFigure:
    """A scenario's published figure, as a row of an experiment. `worst` is a fact, not a figure."""
    assert isinstance(held.published, float | int)
    ours = float(held.ours) if isinstance(held.ours, float | int) else None
    return HeldFigure(
        what=held.figure,
        place=held.source,
        published=float(held.published),
        unit=held.unit,
        ours=None if ours is None else Spread(ours, ours, ours),
        provenance="modelled",
        calibrated=held.calibrated,
    )


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of ours that nothing was published for, by name of row and column."""

    name: str
    title: str
    unit: str
    provenance: Provenance
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[Spread | None, ...], ...]
    """Of each row. None: not known."""


class Bars(msgspec.Struct, frozen=True, kw_only=True):
    """What a picture shows: groups of bars with their spreads; a band where something was published."""

    name: str
    title: str
    caption: str
    unit: str
    groups: tuple[str, ...]
    series: tuple[str, ...]
    cells: tuple[tuple[Spread | None, ...], ...]
    """By group, then series."""
    band: tuple[float, float] | None = None
    band_name: str = ""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """All that an experiment came to."""

    experiment: str
    """As it was asked for, with its options."""
    title: str
    seeds: int
    """Draws or runs: 0, 1 and so on to one less than this."""
    quick: bool
    held: tuple[Held, ...]
    tables: tuple[Table, ...] = ()
    pictures: tuple[Bars, ...] = ()
    assumptions: tuple[str, ...] = ()
    """What was assumed, and from where."""
    cite: tuple[str, ...] = ()
    """Sources, as one cites them."""

    @property
    def sentence(self) -> str:
        """All verdicts in one line."""
        verdicts = [each.verdict for each in self.held]
        counts = {each: verdicts.count(each) for each in dict.fromkeys(verdicts)}
        return f"{len(verdicts)} published figures and facts: " + ", ".join(f"{n} {each}" for each, n in counts.items())

    def to_json(self) -> dict[str, Any]:
        """With what follows from the figures beside them."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        for row, each in zip(plain["held"], self.held, strict=True):
            row["kind"] = "figure" if isinstance(each, HeldFigure) else "fact"
            row |= {"error": each.error} if isinstance(each, HeldFigure) else {"share": each.share, "ends": each.ends}
            row["verdict"] = each.verdict
        return plain

    def to_csv(self) -> str:
        """One line for each published figure or fact; then nothing else, so that a program can read it."""
        out = StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(CSV)
        writer.writerows(_csv_row(each) for each in self.held)
        return out.getvalue()


CSV: Final = ("what", "published", "published_to", "unit", "ours", "low", "high", "draws", "error", "verdict",
              "provenance", "place")  # fmt: skip


def _csv_row(held: Held) -> list[object]:
    if isinstance(held, HeldFact):
        ends = held.ends or ("", "")
        share = "" if held.share is None else held.share
        return [held.what, "holds", "", "share", share, *ends, held.of, "", held.verdict, held.provenance, held.place]
    ours = held.ours
    figures = ["", "", ""] if ours is None else [ours.median, ours.low, ours.high]
    to, error = ("" if value is None else value for value in (held.to, held.error))
    return [
        held.what, held.published, to, held.unit, *figures, "", error, held.verdict, held.provenance, held.place,
    ]  # fmt: skip
