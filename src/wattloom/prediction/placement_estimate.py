"""What one task of a shape would do at a site: its build, seconds, watts and joules, or why it cannot go there.

Owns the sum of everything known about (shape, site). It holds for every task of the shape and every node of the site.
"""

from math import inf, isfinite
from typing import Final

from wattloom.cluster import fit
from wattloom.cluster.fit import Terms
from wattloom.cluster.node_class import Mode, NodeClass
from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import MICRO, Site
from wattloom.energy.forecast import Forecast, Provenance, RunTime, Unknown
from wattloom.prediction.protocol import Predictor
from wattloom.units import Joules, Seconds, Watts
from wattloom.workload.function import Variant
from wattloom.workload.shape import Shape

LEAST_S: Final = 1e-9
"""However much a task saves at a place, it takes some time there."""
MOST_SITES: Final = 100_000
MOST_CLASSES: Final = 10_000
"""So many are kept per shape: sites and classes come and go."""


class PlacementEstimate:
    """The expected effect of one task at a site."""

    __slots__ = (
        "added_microwatts", "alone", "forecast", "joules", "knows_power", "seconds", "unknown", "variant", "watts",
    )  # fmt: skip

    def __init__(
        self,
        variant: Variant,
        alone: float,
        seconds: float,
        watts: float,
        added_microwatts: int,
        provenance: Provenance,
        unknown: Reason | None,
        knows_power: bool = True,
        spread: float = 0.0,
        more_joules: float = 0.0,
    ) -> None:
        self.variant: Final = variant
        self.alone: Final = alone
        """Seconds by itself; 0 if unknown."""
        self.seconds: Final = seconds
        """Seconds among the neighbours that are there now; 0 if unknown."""
        self.watts: Final = watts
        """What the node draws more above what it draws now, awake; 0 if unknown."""
        self.joules: Final = watts * seconds + more_joules
        self.added_microwatts: Final = added_microwatts
        """What the cluster draws more, a wake-up included."""
        self.knows_power: Final = knows_power
        """Whether the watts are known."""
        self.unknown: Final = unknown
        """Which figure is missing; None if all are there. Run time before power if both are."""
        self.forecast: Final[Forecast | Unknown] = (
            Unknown(str(unknown))
            if unknown is not None
            else Forecast(Seconds(seconds), Watts(watts), Joules(self.joules), Seconds(spread), provenance)
        )
        """The same, as it is told to users."""

    def preferred(self, joules: float, seconds: float) -> "PlacementEstimate":
        """The same on a node where the task takes so many joules and seconds more. What is unknown stays so."""
        known = self.forecast
        if isinstance(known, Unknown):
            return self
        there, alone = max(self.seconds + seconds, LEAST_S), max(self.alone + seconds, LEAST_S)
        return PlacementEstimate(
            self.variant, alone, there, self.watts, self.added_microwatts, known.provenance, None, True, known.spread_s,
            self.joules - self.watts * self.seconds + joules,
        )  # fmt: skip


class PlacementEstimates:
    """PlacementEstimates by shape and site, on one policy's terms."""

    def __init__(self, predictor: Predictor, terms: Terms) -> None:
        self.predictor: Final = predictor
        self.terms: Final = terms
        self._never: dict[int, dict[int, Reason | None]] = {}
        self._usable: dict[int, dict[int, tuple[Variant, ...]]] = {}
        self._seen: dict[int, dict[int, PlacementEstimate | Reason]] = {}

    def at(self, shape: Shape, site: Site) -> PlacementEstimate | Reason:
        """The estimate, or why the shape does not fit there now."""
        seen = self._seen.get(shape.index)
        if seen is None:
            seen = {}
            self._seen[shape.index] = seen
        known = seen.get(site.serial)
        if known is None:
            if len(seen) > MOST_SITES:
                seen.clear()
            known = self._look(shape, site)
            seen[site.serial] = known
        return known

    def with_room(self, shape: Shape, sites: list[Site]) -> list[tuple[Site, PlacementEstimate]]:
        """Those of the sites where the shape fits now, with the estimate there: `at` for many."""
        seen = self._seen.get(shape.index, {})
        found: list[tuple[Site, PlacementEstimate]] = []
        for site in sites:
            estimate = seen.get(site.serial)
            if estimate is None:
                estimate = self.at(shape, site)
            if isinstance(estimate, PlacementEstimate):
                found.append((site, estimate))
        return found

    def never(self, shape: Shape, site: Site) -> Reason | None:
        """Why nodes of this class cannot take the shape even when empty."""
        return self._class_never(shape, site.cls)

    def _class_never(self, shape: Shape, cls: NodeClass) -> Reason | None:
        known = self._never.get(shape.index)
        if known is None or len(known) > MOST_CLASSES:
            known = {}
            self._never[shape.index] = known
        if cls.index not in known:
            known[cls.index] = fit.never(shape, cls, self.terms)
        return known[cls.index]

    def _usable_variants(self, shape: Shape, cls: NodeClass) -> tuple[Variant, ...]:
        known = self._usable.get(shape.index)
        if known is None or len(known) > MOST_CLASSES:
            known = {}
            self._usable[shape.index] = known
        found = known.get(cls.index)
        if found is None:
            found = fit.usable_variants(shape, cls)
            known[cls.index] = found
        return found

    def alone(self, shape: Shape, classes: list[NodeClass]) -> list[tuple[NodeClass, float]]:
        """The classes that could take the shape when empty, and its least seconds there; inf if unknown."""
        found: list[tuple[NodeClass, float]] = []
        for cls in classes:
            if self._class_never(shape, cls) is not None:
                continue
            least = inf
            for variant in fit.usable_variants(shape, cls):
                run = self.predictor.expect(shape.function, variant, cls.machine, shape.size)
                if isinstance(run, RunTime):
                    least = min(least, run.seconds)
            found.append((cls, least))
        return found

    def invalidate(self, shape: Shape) -> None:
        """A forecast for this shape has changed."""
        self._seen.pop(shape.index, None)

    def drop(self, shape: Shape) -> None:
        """No task of this shape is left."""
        self._seen.pop(shape.index, None)
        self._never.pop(shape.index, None)
        self._usable.pop(shape.index, None)

    def _look(self, shape: Shape, site: Site) -> PlacementEstimate | Reason:
        refusal = self.never(shape, site)
        if refusal is not None:
            return refusal
        best: PlacementEstimate | None = None
        for variant in self._usable_variants(shape, site.cls):
            refusal = fit.now(shape, variant, site, self.terms)
            if refusal is not None:
                continue
            estimate = self.of_variant(shape, variant, site)
            if best is None or _better(estimate, best):
                best = estimate
        if best is None:
            assert refusal is not None
            return refusal
        return best

    def with_variant(self, shape: Shape, name: str, site: Site) -> PlacementEstimate | Reason:
        """The estimate with the build of this name, or why that does not fit there now."""
        best = self.at(shape, site)
        if isinstance(best, Reason) or best.variant.name == name:
            return best
        for variant in self._usable_variants(shape, site.cls):
            if variant.name == name:
                return fit.now(shape, variant, site, self.terms) or self.of_variant(shape, variant, site)
        return Reason.NO_SUCH_BUILD

    def of_variant(self, shape: Shape, variant: Variant, site: Site) -> PlacementEstimate:
        """The estimate with one build, whether or not there is room."""
        machine = site.machine
        run = self.predictor.expect(shape.function, variant, machine, shape.size)
        before, after = machine.load(site.demand), machine.load(site.demand + shape.cpu)
        watts = (after[1] - before[1]) * self.predictor.intensity(shape.function.name, machine.name)
        asleep = site.mode in (Mode.ASLEEP, Mode.WAKING)
        most = machine.waking_watts(site.demand + shape.cpu) if asleep else after[1]
        added = round(most * MICRO) - site.microwatts
        missing = None if machine.knows_power else Reason.POWER_UNKNOWN
        if not isfinite(watts):
            watts, missing = 0.0, Reason.POWER_UNKNOWN
        if isinstance(run, Unknown) or not _believed(run, after[0], watts):
            return PlacementEstimate(
                variant, 0.0, 0.0, watts, added, "estimated", Reason.RUNTIME_UNKNOWN, missing is None
            )
        seconds = run.seconds / after[0]
        provenance: Provenance = run.provenance if machine.profile.provenance == run.provenance else "modelled"
        if "estimated" in (run.provenance, machine.profile.provenance):
            provenance = "estimated"
        spread = run.spread / after[0]
        return PlacementEstimate(
            variant, run.seconds, seconds, watts, added, provenance, missing, missing is None, spread
        )


def _believed(run: RunTime, speed: float, watts: float) -> bool:
    """Whether what follows from it are numbers: a figure that no float can hold is as good as none."""
    seconds = run.seconds / speed
    return seconds > 0.0 and isfinite(watts * seconds) and isfinite(run.spread / speed)


def _better(one: PlacementEstimate, other: PlacementEstimate) -> bool:
    """A known build before an unknown one, then the faster, then the one declared first."""
    if (one.unknown is None) != (other.unknown is None):
        return one.unknown is None
    if one.alone == 0.0 or other.alone == 0.0:
        return one.alone > other.alone
    return one.seconds < other.seconds
