"""AMD's energy counters as the hardware monitor `amd_energy` shows them: kernels 5.8 to 5.12, and its fork `zenergy`.

Owns which of its inputs are summed. Later kernels show the same registers by powercap.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from wattloom.energy.forecast import Provenance, Unknown
from wattloom.machines.curves import FUNCTIONS_DIFFER
from wattloom.machines.profile import MachineProfile
from wattloom.metering.count import Limits, seconds_asleep
from wattloom.metering.counters import Counters, Raw
from wattloom.metering.kernel_files import HWMON, Unreadable, entries, labelled, number, sensors
from wattloom.metering.protocol import Quantity, Sample, Zone
from wattloom.metering.setup_hints import files_for_group, missing, module

DRIVERS: Final = ("amd_energy", "zenergy")
SOCKET: Final = "Esocket"
"""Begins the labels of sockets. `Ecore` are the cores, which are inside these."""
MOST_W_PER_SOCKET: Final = 1000.0
STILL_S: Final = 0.4
STEP_UJ: Final = 16


class AmdEnergy:
    """Joules of the sockets. Memory is not in them."""

    name = "amd_energy"
    summary = "AMD's energy counters by a hardware monitor"
    quantity: Quantity = "package"
    provenance: Provenance = "measured"
    model_error = FUNCTIONS_DIFFER

    def __init__(self, root: Path = HWMON, *, asleep: Callable[[], float] = seconds_asleep) -> None:
        self._root = root
        self._counters: Counters[str] = Counters(Limits(MOST_W_PER_SOCKET * 8, still_s=STILL_S), asleep=asleep)
        self._seen: list[str] = []
        self._sockets: dict[str, Path] = {}

    def available(self) -> str | None:
        found = sockets(self._root)
        if not found:
            return missing(
                f"no hardware monitor under {self._root} is called {' or '.join(DRIVERS)}: no AMD machine, or the "
                "module is not loaded",
                *module("amd_energy"),
                "from kernel 5.13 on it is not part of Linux: the meter powercap reads the same counters there",
            )
        try:
            for file in found.values():
                number(file)
        except Unreadable as problem:
            match = f'ATTR{{name}}=="{DRIVERS[0]}"'
            how = files_for_group("hwmon", match, "energy*_input", f"{next(iter(found.values())).parent}/energy*_input")
            return missing(str(problem), *(how if problem.forbidden else ()))
        return None

    def read(self, now: float) -> Sample | Unknown:
        refusal = self._counters.refusal(now)
        if refusal is not None:
            return refusal
        seen = entries(self._root)
        if seen != self._seen or not self._sockets:
            self._seen, self._sockets = seen, sockets(self._root) or self._sockets
        if not self._sockets:
            return Unknown((self.available() or "there are no energy counters").partition("\n")[0])
        try:
            # The driver adds up to 64 bits what the registers count in 32: these do not wrap.
            shown = {label: Raw(number(file), None, MOST_W_PER_SOCKET) for label, file in self._sockets.items()}
        except Unreadable as problem:
            return Unknown(str(problem))
        return self._counters.read(now, shown, STEP_UJ)

    def zones(self) -> list[Zone]:
        """The sockets."""
        return [Zone(label, self._counters.joules_of(label)) for label in self._sockets]


def sockets(root: Path) -> dict[str, Path]:
    """The counters of whole sockets by their labels."""
    folders = [folder for driver in DRIVERS for folder in sensors(root, driver)][:1]
    inputs = [pair for folder in folders for pair in labelled(folder, "energy").items()]
    return {label: file for label, file in inputs if label.startswith(SOCKET)}


def for_machine(profile: MachineProfile) -> AmdEnergy:
    """The entry point."""
    return AmdEnergy()
