"""Kepler's own exporter: the node's energy, under the names up to 0.9 and from 0.10 on.

Owns which of its figures make up the node. Where Kepler guesses instead of measuring, and says so, we say so too.
"""

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from wattloom.energy.forecast import Provenance
from wattloom.machines.profile import MachineProfile
from wattloom.metering.exposition import Line, figures, of_node
from wattloom.metering.http_source import HttpSource, limits
from wattloom.metering.polled import Polled
from wattloom.metering.protocol import Quantity
from wattloom.metering.source import PACKAGE_W, WALL_W, Answer, Joules, SourceProblem, Watts

NEW: Final = "kepler_node_cpu_joules_total"
OLD_PACKAGE: Final = "kepler_node_package_joules_total"
OLD_DRAM: Final = "kepler_node_dram_joules_total"
OLD_PLATFORM: Final = "kepler_node_platform_joules_total"
NEW_PLATFORM: Final = "kepler_platform_watts"
OLD_INFO: Final = "kepler_node_info"
NAMES: Final = (NEW, OLD_PACKAGE, OLD_DRAM, OLD_PLATFORM, NEW_PLATFORM, OLD_INFO)
LATE_S: Final = 6.0
"""It looks at the counters every five seconds."""
GUESSED: Final = ("estimator", "model", "trained power model", "none")
"""What an old Kepler calls its source when it has none."""


class KeplerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Kepler's own exporter, before and after its change of names."""

    url: str = ""
    """Address of its metrics, as `http://localhost:28282/metrics`."""
    node: str = ""
    """Which node, where one address shows several. Empty: the only one."""
    quantity: Literal["package", "wall"] = "package"
    """Processors with their memory, or the whole platform where Kepler knows that."""


class KeplerSource(HttpSource):
    """Its page of metrics."""

    name = "kepler"
    summary = "Kepler's exporter: the node's energy"
    example = "http://localhost:28282/metrics"
    provenance: Provenance = "measured"

    def __init__(self, settings: KeplerSettings) -> None:
        super().__init__(settings.url)
        self._node = settings.node
        self.quantity: Quantity = settings.quantity
        self.limits = limits(WALL_W if settings.quantity == "wall" else PACKAGE_W, LATE_S)

    def ask(self) -> list[Answer]:
        where = self.http.where
        found = of_node(figures(self.http.get().body, NAMES, where), self._node, where, "kepler.node")
        self.provenance = _provenance(found, self.quantity)
        answer = _platform(found) if self.quantity == "wall" else _packages(found)
        if answer is None:
            raise SourceProblem(
                f"{where} shows no {_wanted(self.quantity)}: is it Kepler, and does it see a meter there?"
            )
        return [answer]


def _wanted(quantity: Quantity) -> str:
    return "power of the platform" if quantity == "wall" else "energy of the node's processors"


def _packages(found: list[Line]) -> Answer | None:
    """Packages and their memory. Kepler's other zones lie inside these, and psys around them."""
    new = [each for each in found if each.name == NEW and _zone(each) in ("package", "dram")]
    if new:
        return Joules(_by(new, ("zone", "path")))
    old = [each for each in found if each.name in (OLD_PACKAGE, OLD_DRAM)]
    # Its idle and dynamic parts are two series: a joule is in one of them.
    counters = _by(old, ("package", "mode", "source"))
    return Joules(counters) if sum(counters.values()) > 0.0 else None


def _platform(found: list[Line]) -> Answer | None:
    watts = [each.value for each in found if each.name == NEW_PLATFORM]
    if sum(watts) > 0.0:
        return Watts(sum(watts))
    counters = _by([each for each in found if each.name == OLD_PLATFORM], ("mode", "source"))
    return Joules(counters) if sum(counters.values()) > 0.0 else None


def _zone(each: Line) -> str:
    """`package-0` is a package."""
    return each.labels.get("zone", "").partition("-")[0]


def _by(found: Iterable[Line], labels: tuple[str, ...]) -> dict[str, float]:
    counters: dict[str, float] = {}
    for each in found:
        key = " ".join((each.name, *(each.labels.get(label, "") for label in labels)))
        counters[key] = counters.get(key, 0.0) + each.value
    return counters


def _provenance(found: list[Line], quantity: Quantity) -> Provenance:
    label = "platform_power_source" if quantity == "wall" else "components_power_source"
    sources = [each.labels.get(label, "") for each in found if each.name == OLD_INFO]
    return "estimated" if any(source.lower() in GUESSED for source in sources) else "measured"


def for_machine(profile: MachineProfile, settings: KeplerSettings) -> Polled:
    """The entry point."""
    return Polled(KeplerSource(settings))
