"""A laptop's battery: what the whole machine draws while it runs on it.

Owns how the kernel's `power_supply` folders are read. With the charger plugged in the battery does not know what the
machine draws, and neither does this meter.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from wattloom.energy.forecast import Provenance, Unknown
from wattloom.machines.curves import FUNCTIONS_DIFFER
from wattloom.machines.profile import MachineProfile
from wattloom.metering.count import Limits, seconds_asleep
from wattloom.metering.counters import Counters, Raw
from wattloom.metering.integrated import Integrated
from wattloom.metering.kernel_files import Unreadable, entries, number, optional, word
from wattloom.metering.protocol import Quantity, Sample, Zone

ROOT: Final = Path("/sys/class/power_supply")
CHARGERS: Final = ("Mains", "USB", "Wireless")
PERIOD_S: Final = 10.0
"""How old its figures may be: firmware brings them up to date every 1 to 30 seconds, and does not say when it did."""
LIMITS: Final = Limits(most_w=400.0, gap_s=30.0, still_s=300.0)
COUNTED: Final = Limits(most_w=400.0, late_s=120.0, gap_s=3600.0, still_s=500.0)
"""Where only the charge left is shown, in steps of which one may be worth a minute."""
JOULES_PER_UWH: Final = 3.6e-3
STEP_UWH: Final = 10_000
"""The usual step of the charge that is shown."""


class Discharge(msgspec.Struct, frozen=True):
    """What the batteries show together."""

    watts: float | None
    """None: they show no power."""
    left_uwh: dict[str, int]
    """What is left in each, where that is shown."""


class Battery:
    """Joules drawn from the batteries, while they are discharged."""

    name = "battery"
    summary = "what the battery gives while the machine runs on it"
    quantity: Quantity = "wall"
    provenance: Provenance = "measured"
    model_error = FUNCTIONS_DIFFER
    period_s = PERIOD_S

    def __init__(self, root: Path = ROOT, *, asleep: Callable[[], float] = seconds_asleep) -> None:
        self._root = root
        self._power = Integrated(LIMITS, period_s=PERIOD_S, noise=0.03, asleep=asleep)
        self._charge: Counters[str] = Counters(COUNTED, joules=JOULES_PER_UWH, update_s=PERIOD_S, asleep=asleep)
        self._by_power: bool | None = None
        self._on = False
        """Whether the batteries told what the machine draws when they were last looked at."""
        self._used: dict[str, tuple[int, int]] = {}
        """By battery: the charge that was left when it was last looked at, and what was used since the first look."""

    def available(self) -> str | None:
        found = self._look()
        return found if isinstance(found, str) else None

    def read(self, now: float) -> Sample | Unknown:
        found = self._look()
        if isinstance(found, str):
            return self._off(now, found)
        self._on = True
        used = {name: self._uwh(name, left) for name, left in found.left_uwh.items()}
        if self._by_power is None:
            self._by_power = found.watts is not None
        if self._by_power:
            return self._by_watts(now, found.watts)
        refusal = self._charge.refusal(now)
        if refusal is not None:
            return refusal
        return self._charge.read(now, {name: Raw(uwh) for name, uwh in used.items()}, STEP_UWH)

    def zones(self) -> list[Zone]:
        """What each battery gave, as far as the charge that is left tells."""
        return [Zone(name, used * JOULES_PER_UWH) for name, (_, used) in self._used.items()]

    def _by_watts(self, now: float, watts: float | None) -> Sample | Unknown:
        if not watts:
            shown = "no power" if watts is None else "0 W"
            return Unknown(f"the battery is being discharged and shows {shown}, which cannot be")
        return self._power.read(now, watts)

    def _uwh(self, name: str, left: int) -> int:
        """How much was used since the first look: rises as the charge falls."""
        before, used = self._used.get(name, (left, 0))
        self._used[name] = (left, used + before - left)
        return self._used[name][1]

    def _off(self, now: float, reason: str) -> Unknown:
        """On the charger nothing is known, and that time is never bridged."""
        count = self._power if self._by_power else self._charge
        last, was_on = count.last, self._on
        if not was_on or last is None or now < last.time:
            return Unknown(reason)
        self._on = False
        self._used.clear()
        return count.break_off(now, reason)

    def _look(self) -> Discharge | str:
        """What the batteries show, or why that is not what the machine draws."""
        names = [name for name in entries(self._root) if word(self._root / name / "scope") != "Device"]
        batteries = [name for name in names if self._is_battery(name)]
        if not batteries:
            return f"this machine has no battery (none under {self._root})"
        charger = next((name for name in names if self._is_online(name)), "")
        if charger:
            return (
                f"the charger {charger} is plugged in, so the battery does not tell what the machine draws: unplug it"
            )
        states = {name: word(self._root / name / "status") for name in batteries}
        if "Charging" in states.values() or "Discharging" not in states.values():
            shown = ", ".join(f"{name} is {state or 'silent'}" for name, state in states.items())
            return f"no battery is being discharged ({shown})"
        try:
            return self._shown([name for name, state in states.items() if state == "Discharging"])
        except Unreadable as problem:
            return str(problem)

    def _shown(self, batteries: list[str]) -> Discharge:
        watts = [_watts(self._root / name) for name in batteries]
        left = {name: _left(self._root / name) for name in batteries}
        known = [each for each in watts if each is not None]
        if len(known) < len(watts) and None in left.values():
            raise Unreadable(self._root / batteries[0], "shows neither power nor current nor charge")
        return Discharge(
            sum(known) if len(known) == len(watts) else None,
            {name: value for name, value in left.items() if value is not None},
        )

    def _is_battery(self, name: str) -> bool:
        folder = self._root / name
        return word(folder / "type") == "Battery" and optional(folder / "present") != 0

    def _is_online(self, name: str) -> bool:
        folder = self._root / name
        return word(folder / "type") in CHARGERS and optional(folder / "online") not in (None, 0)


def _watts(folder: Path) -> float | None:
    """Some drivers show what is discharged as negative."""
    if (folder / "power_now").exists():
        return abs(number(folder / "power_now")) * 1e-6
    if (folder / "current_now").exists() and (folder / "voltage_now").exists():
        return abs(number(folder / "current_now") * number(folder / "voltage_now")) * 1e-12
    return None


def _left(folder: Path) -> int | None:
    """Microwatt hours."""
    energy = optional(folder / "energy_now")
    if energy is not None:
        return energy
    charge = optional(folder / "charge_now")
    volts = optional(folder / "voltage_min_design") or optional(folder / "voltage_now")
    return round(charge * volts * 1e-6) if charge is not None and volts else None


def for_machine(profile: MachineProfile) -> Battery:
    """The entry point."""
    return Battery()
