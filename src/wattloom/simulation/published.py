"""What a scenario's source published, held against what the model gives.

Owns the form of such a figure in a scenario's file, the error of ours, and when it is a contradiction. Ours come from
the runs at hand; where their policies were not run, or with fewer seeds, from the figure that the file has recorded,
which says so.
"""

from collections.abc import Mapping
from math import isfinite
from typing import Annotated, Final, Literal

import msgspec

WRONG_BY: Final = 0.05
"""From so far off on, of the figure itself or of all energy for a saving, we contradict the source."""
UNITS: Final = {"energy": "Wh", "makespan": "s", "saving": "%", "worst": ""}


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A figure of the source's."""

    what: Literal["energy", "makespan", "saving", "worst"]
    """Of a run: its energy or makespan; the energy saved `against` another policy; or who of all `against` and itself
    needs the most energy."""
    policy: str
    """Ours that stands for the source's."""
    value: float | None = None
    unit: Literal["Wh", "s", "%", ""] = ""
    against: list[str] = []
    source: str = ""
    calibrated: bool = False
    """Whether the scenario was fitted to this figure: then it proves nothing."""
    here: float | str | None = None
    """What the model gave when this was written: a figure, or the policy with the most energy."""
    seeds: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1
    """Over how many seeds that is the mean."""

    def __post_init__(self) -> None:
        """What a file says must be something to hold ours against; msgspec adds where it stands."""
        wrong = self._wrong_value() or self._wrong_against() or self._wrong_here()
        if wrong:
            raise ValueError(f"{wrong} for `what` = {self.what!r}")

    def _wrong_value(self) -> str:
        if self.unit not in ("", UNITS[self.what]):
            return f"`unit` must be {UNITS[self.what]!r}, not {self.unit!r},"
        if self.what == "worst":
            return "" if self.value is None else "`value` means nothing"
        if self.value is None:
            return "`value` is needed"
        sound = isfinite(self.value) and (self.what == "saving" or self.value > 0.0)
        return "" if sound else f"`value` cannot be {self.value:g}"

    def _wrong_against(self) -> str:
        if self.what == "worst":
            return "" if self.against else "`against` must name the other policies"
        wanted = 1 if self.what == "saving" else 0
        if len(self.against) == wanted:
            return ""
        return "`against` must name one policy" if wanted else "`against` means nothing"

    def _wrong_here(self) -> str:
        if self.here is None:
            return ""
        if self.what == "worst":
            return "" if self.here in (self.policy, *self.against) else "`here` must be one of its policies"
        return "" if isinstance(self.here, float | int) and isfinite(self.here) else "`here` must be a number"

    def ours(self, energy_wh: Mapping[str, float], makespan_s: Mapping[str, float]) -> float | str | None:
        """The same of runs of ours, by policy; None: not all that are needed were run."""
        if self.what == "makespan":
            return makespan_s.get(self.policy)
        if any(policy not in energy_wh for policy in (self.policy, *self.against)):
            return None
        if self.what == "worst":
            return max((self.policy, *self.against), key=lambda policy: energy_wh[policy])
        if self.what == "energy":
            return energy_wh[self.policy]
        before = energy_wh[self.against[0]]
        return 100.0 * (before - energy_wh[self.policy]) / before if before > 0.0 else None


class HeldAgainst(msgspec.Struct, frozen=True):
    """A published figure and ours."""

    what: str
    policy: str
    against: list[str]
    published: float | str | None
    """For `worst` the policy."""
    ours: float | str | None
    unit: str
    error: float | None
    """(ours - published) / published; for a saving the difference in points of a hundred. None: there is none."""
    contradicts: bool
    recorded: bool
    """Whether ours is the recorded figure, because its policies were not run, or with fewer seeds."""
    seeds: int
    """Of the recorded figure."""
    calibrated: bool
    source: str

    @property
    def figure(self) -> str:
        """What of whom."""
        if self.what == "worst":
            return f"most energy of {', '.join((self.policy, *self.against))}"
        return f"{self.what} of {self.policy}" + (f" against {self.against[0]}" if self.what == "saving" else "")

    def told(self, figure: float | str | None) -> str:
        """One of the two figures, with its unit."""
        if figure is None:
            return "unknown"
        if isinstance(figure, str):
            return figure
        return f"{figure:.1f}%" if self.what == "saving" else f"{figure:.4g} {self.unit}"

    @property
    def told_ours(self) -> str:
        """Ours, and where it is from if not from the runs at hand."""
        if not self.recorded or self.ours is None:
            return self.told(self.ours)
        return f"{self.told(self.ours)}, recorded" + (f" over {self.seeds} seeds" if self.seeds > 1 else "")

    @property
    def off(self) -> str:
        """How far ours is off."""
        if self.error is None:
            return ""
        return f"{self.error:+.1f} points" if self.what == "saving" else f"{self.error:+.1%}"

    @property
    def verdict(self) -> str:
        if self.ours is None:
            return "not known"
        return "contradicts the source" if self.contradicts else "calibrated" if self.calibrated else "agrees"

    @property
    def sentence(self) -> str:
        """Both in one line."""
        off = f" ({self.off})" if self.off else ""
        return f"{self.figure}: published {self.told(self.published)}, here {self.told_ours}{off}: {self.verdict}"


def held_against(
    figures: list[Published], energy_wh: Mapping[str, float], makespan_s: Mapping[str, float], seeds: int
) -> list[HeldAgainst]:
    """Each published figure with ours: of these runs, else the recorded one. One lucky seed does not outweigh a mean of
    many."""
    return [_held(each, each.ours(energy_wh, makespan_s) if _weighs(each, seeds) else None) for each in figures]


def _weighs(figure: Published, seeds: int) -> bool:
    """Whether so many seeds say as much as what is recorded."""
    return figure.here is None or seeds >= figure.seeds


def _held(figure: Published, ours: float | str | None) -> HeldAgainst:
    recorded = ours is None
    ours = figure.here if recorded else ours
    published: float | str | None = figure.policy if figure.what == "worst" else figure.value
    error = _error(figure, ours)
    return HeldAgainst(
        what=figure.what,
        policy=figure.policy,
        against=figure.against,
        published=published,
        ours=ours,
        unit=UNITS[figure.what],
        error=error,
        contradicts=_contradicts(figure, ours, error),
        recorded=recorded,
        seeds=figure.seeds,
        calibrated=figure.calibrated,
        source=figure.source,
    )


def _error(figure: Published, ours: float | str | None) -> float | None:
    if figure.value is None or not isinstance(ours, float | int):
        return None
    if figure.what == "saving":
        return ours - figure.value
    return (ours - figure.value) / figure.value if figure.value else None


def _contradicts(figure: Published, ours: float | str | None, error: float | None) -> bool:
    if figure.what == "worst":
        return ours is not None and ours != figure.policy
    if error is None or figure.value is None or not isinstance(ours, float | int):
        return False
    if figure.what == "saving":
        return ours * figure.value < 0.0 or abs(error) > 100.0 * WRONG_BY
    return abs(error) > WRONG_BY
