"""Scaphandre's own exporter: the host's energy as it reads it from RAPL.

Owns which of its figures are used. Its figures of processes are not: they are shares of what the machine could do, not
of what ran.

Its counter of energy adds up the raw counters of the processor, which begin anew now and then; how far they go it does
not tell. So when its sum falls, the count breaks off, once in an hour or so of hard work.
"""

from typing import Final

import msgspec

from wattloom.energy.forecast import Provenance
from wattloom.machines.profile import MachineProfile
from wattloom.metering.exposition import Line, figures
from wattloom.metering.http_source import HttpSource, limits
from wattloom.metering.polled import Polled
from wattloom.metering.protocol import Quantity
from wattloom.metering.source import MICRO, PACKAGE_W, Answer, Joules, SourceProblem, Watts

ENERGY: Final = ("scaph_host_energy_microjoules", "scaph_host_energy_microjoules_total")
POWER: Final = ("scaph_host_power_microwatts",)


class ScaphandreSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Scaphandre's own exporter."""

    url: str = ""
    """Address of its metrics, as `http://localhost:8080/metrics`."""


class ScaphandreSource(HttpSource):
    """Its page of metrics."""

    name = "scaphandre"
    summary = "Scaphandre's exporter: the host's energy"
    example = "http://localhost:8080/metrics"
    quantity: Quantity = "package"
    provenance: Provenance = "measured"
    least_s = 2.0
    """It looks at the processor when it is asked, and not more often than this."""
    limits = limits(PACKAGE_W)

    def ask(self) -> list[Answer]:
        where = self.http.where
        found = figures(self.http.get().body, ENERGY + POWER, where)
        energy = _only(found, ENERGY, where)
        if energy is not None and energy > 0.0:
            return [Joules({"host": energy / MICRO})]
        power = _only(found, POWER, where)
        if power is None or power == 0.0:
            raise SourceProblem(f"{where} shows no energy of the host: does Scaphandre see RAPL there?")
        return [Watts(power / MICRO)]


def _only(found: list[Line], names: tuple[str, ...], where: str) -> float | None:
    values = [each.value for each in found if each.name in names]
    if len(values) > 1:
        raise SourceProblem(f"{where} shows {len(values)} hosts: give the address of the one that is meant")
    return values[0] if values else None


def for_machine(profile: MachineProfile, settings: ScaphandreSettings) -> Polled:
    """The entry point."""
    return Polled(ScaphandreSource(settings.url))
