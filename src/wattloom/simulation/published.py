"""What a scenario's source published, held against what the model gives.

Owns the form of such a figure in a scenario's file, the error of ours, and when it is a contradiction. Ours come from
the runs at hand; where their policies were not run, from the figure that the file has recorded, which says so.
"""

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

WRONG_BY: Final = 0.05
"""From so far off on, of the figure itself or of all energy for a saving, we contradict the source."""


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
    seeds: int = 1
    """Over how many seeds that is the mean."""

    def ours(self, energy_wh: Mapping[str, float], makespan_s: Mapping[str, float]) -> float | str | None:
        """The same of runs of ours, by policy; None: not all that are needed were run."""
        if any(policy not in energy_wh for policy in (self.policy, *self.against)):
            return None
        if self.what == "worst":
            return max((self.policy, *self.against), key=lambda policy: energy_wh[policy])
        if self.what == "makespan":
            return makespan_s[self.policy]
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
    """Whether ours is the recorded figure, because its policies were not run."""
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
        return figure if isinstance(figure, str) else f"{figure:.4g}{'' if self.unit == '%' else ' '}{self.unit}"

    @property
    def off(self) -> str:
        """How far ours is off."""
        if self.error is None:
            return ""
        return f"{self.error:+.1f} points" if self.what == "saving" else f"{self.error:+.1%}"

    @property
    def verdict(self) -> str:
        return "calibrated" if self.calibrated else "contradicts the source" if self.contradicts else "agrees"

    @property
    def sentence(self) -> str:
        """Both in one line."""
        where, off = "recorded" if self.recorded else "here", f" ({self.off})" if self.off else ""
        figures = f"published {self.told(self.published)}, {where} {self.told(self.ours)}{off}"
        return f"{self.figure}: {figures}: {self.verdict}"


def held_against(
    figures: list[Published], energy_wh: Mapping[str, float], makespan_s: Mapping[str, float]
) -> list[HeldAgainst]:
    """Each published figure with ours: of these runs, else the recorded one."""
    return [_held(each, each.ours(energy_wh, makespan_s)) for each in figures]


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
        unit=figure.unit,
        error=error,
        contradicts=_contradicts(figure, ours, error),
        recorded=recorded,
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
