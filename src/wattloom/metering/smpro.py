"""Ampere Altra: power of the rails as the SMpro co-processor shows it to the hardware monitor `smpro_hwmon`.

Owns which rails belong to what is metered. Power only: `integrated` makes joules of it.

The five rails do not overlap: the regulators of the cores, of the rest of the chip, of the memory's two halves and of
the root complexes for PCIe (RCA). All five are summed: that is the package, with its memory.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from wattloom.energy.forecast import Provenance, Unknown
from wattloom.machines.curves import FUNCTIONS_DIFFER
from wattloom.machines.profile import MachineProfile
from wattloom.metering.count import Limits, seconds_asleep
from wattloom.metering.integrated import Integrated
from wattloom.metering.kernel_files import HWMON, Unreadable, entries, labelled, number, sensors
from wattloom.metering.protocol import Quantity, Sample, Zone
from wattloom.metering.setup_hints import files_for_group, missing, module

DRIVER: Final = "smpro_hwmon"
RAILS: Final = 5
PERIOD_S: Final = 1.0
"""How old its figures are taken to be at most. Its documentation does not say."""
LIMITS: Final = Limits(most_w=2000.0, gap_s=10.0, still_s=60.0)
"""Two sockets of 250 W with their memory, and much to spare."""


class Smpro:
    """Joules of all rails of all sockets."""

    name = "smpro"
    summary = "power of Ampere Altra's rails, added up over time"
    quantity: Quantity = "package"
    provenance: Provenance = "measured"
    model_error = FUNCTIONS_DIFFER
    period_s = PERIOD_S

    def __init__(self, root: Path = HWMON, *, asleep: Callable[[], float] = seconds_asleep) -> None:
        self._root = root
        self._integrated = Integrated(LIMITS, period_s=PERIOD_S, asleep=asleep)
        self._seen: list[str] = []
        self._rails: dict[str, Path] = {}
        self._watts: dict[str, float] = {}
        self._joules: dict[str, float] = {}

    def available(self) -> str | None:
        found = rails(self._root)
        if not found:
            return missing(
                f"no hardware monitor under {self._root} is called {DRIVER}: no Ampere Altra, or the module is "
                "not loaded",
                *module("smpro_hwmon"),
            )
        if len(found) % RAILS:
            return f"{DRIVER} shows {len(found)} rails, not {RAILS} for each socket: the sum would lack some"
        try:
            for file in found.values():
                number(file)
        except Unreadable as problem:
            files = f"{next(iter(found.values())).parent}/power*_input"
            how = files_for_group("hwmon", f'ATTR{{name}}=="{DRIVER}"', "power*_input", files)
            return missing(str(problem), *(how if problem.forbidden else ()))
        return None

    def read(self, now: float) -> Sample | Unknown:
        seen = entries(self._root)
        if seen != self._seen or not self._rails:
            self._seen, self._rails = seen, rails(self._root) or self._rails
        if not self._rails or len(self._rails) % RAILS:
            return Unknown((self.available() or "there are no rails").partition("\n")[0])
        try:
            watts = {label: number(file) * 1e-6 for label, file in self._rails.items()}
        except Unreadable as problem:
            return Unknown(str(problem))
        below = next((label for label, value in watts.items() if value < 0.0), "")
        if below:
            return self._integrated.break_off(now, f"{below} shows {watts[below]} W, which cannot be")
        last = self._integrated.last
        sample = self._integrated.read(now, sum(watts.values()))
        self._add_up(last, sample, watts)
        return sample

    def _add_up(self, last: Sample | None, sample: Sample | Unknown, watts: dict[str, float]) -> None:
        """The joules of each rail, over the same times as the sum's."""
        if isinstance(sample, Sample) and last is not None and last.epoch == sample.epoch:
            for label, value in watts.items():
                mean = 0.5 * (self._watts.get(label, value) + value)
                self._joules[label] = self._joules.get(label, 0.0) + mean * (sample.time - last.time)
        self._watts = watts

    def zones(self) -> list[Zone]:
        """The rails."""
        return [Zone(label, self._joules.get(label, 0.0)) for label in self._rails]


def rails(root: Path) -> dict[str, Path]:
    """The power inputs of every socket by their labels."""
    folders = sensors(root, DRIVER)
    found: dict[str, Path] = {}
    for socket, folder in enumerate(folders):
        before = f"socket {socket} " if len(folders) > 1 else ""
        found |= {f"{before}{_plain(label)}": file for label, file in labelled(folder, "power").items()}
    return found


def _plain(label: str) -> str:
    """`power1 CORE VRD` is `CORE VRD`."""
    first, _, rest = label.partition(" ")
    return rest if rest and first.startswith("power") else label


def for_machine(profile: MachineProfile) -> Smpro:
    """The entry point."""
    return Smpro()
