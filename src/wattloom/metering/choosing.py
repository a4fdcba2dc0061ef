"""Which meter to use here: the best that works, out of all that are installed.

Owns the way in, which is one for ours and anybody else's: entry points of the group `wattloom.meters`. Each names a
class or function that is called with this machine's profile and gives a meter.

The best is, in this order: measured before modelled before estimated; for calls, what is read afresh before what is
slow; the plug before the package. A slow meter at the plug knows all that the machine draws, but a call of 20 ms is
lost in its second; for the total of an hour it is the better one. Meters of devices are beside the machine's and never
chosen for it, nor is one that is to be named.
"""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from wattloom.cluster.profile import MachineProfile
from wattloom.energy.forecast import Provenance
from wattloom.errors import InputError
from wattloom.metering import estimate
from wattloom.metering.allowing import split
from wattloom.metering.asking import problem, problems
from wattloom.metering.likely import may_be_chosen
from wattloom.metering.protocol import Meter, Quantity, only_named, period_s

if TYPE_CHECKING:
    from wattloom.metering.devices import DeviceMeter

GROUP: Final = "wattloom.meters"
BEST_FIRST: Final[tuple[Provenance, ...]] = ("measured", "modelled", "estimated")
SLOW_S: Final = 0.5
"""Figures older than this are slow: calls are metered twice a second."""
Purpose = Literal["calls", "totals"]
"""What the joules are wanted for: single calls, or all that the machine draws over a long time."""


class MeterInfo(msgspec.Struct, frozen=True):
    """An installed meter, and whether it works here."""

    name: str
    summary: str
    provenance: Provenance | None
    quantity: Quantity | None
    problem: str
    """Why it does not work here. Empty: it works."""
    allow: str = ""
    """How to allow it, in lines."""
    period_s: float = 0.0
    """How old its figures may be. 0: always new."""
    only_named: bool = False
    """It is used only where it is named."""
    used: bool = False
    """It is the one that is used where none is named."""


def choose_meter(profile: MachineProfile, name: str = "", purpose: Purpose = "calls") -> Meter:
    """The meter that was named, or the best that works here. Raises InputError if the named one does not work."""
    if name:
        return _named(name, profile)
    found = {name: entry for name, entry in _entries().items() if may_be_chosen(entry)}
    made = [meter for meter in _all(profile, found).values() if not isinstance(meter, str)]
    fit = sorted(filter(_may_be_chosen, made), key=lambda meter: _worse(meter, purpose))
    # Whether one works may take asking over a network: no more are asked than need be.
    return next((meter for meter in fit if not problem(meter)), None) or estimate.for_machine(profile)


def device_meters(profile: MachineProfile) -> "list[DeviceMeter]":
    """The meters of accelerators that work here and tell of single devices."""
    from wattloom.metering.devices import DeviceMeter

    made = _all(profile, _entries())
    beside = {name: meter for name, meter in made.items() if isinstance(meter, DeviceMeter) and _is_beside(meter)}
    lacks = problems(beside)
    return [meter for name, meter in beside.items() if not lacks[name]]


def meters(profile: MachineProfile) -> list[MeterInfo]:
    """Every installed meter, by name. All are asked at the same time."""
    made = _all(profile, _entries())
    sound = {name: meter for name, meter in made.items() if not isinstance(meter, str)}
    lacks = problems(sound)
    fit = [(_worse(sound[name], "calls"), name) for name in sound if not lacks[name] and _may_be_chosen(sound[name])]
    best = min(fit)[1] if fit else ""
    return [
        _info(name, sound[name], lacks[name], used=name == best)
        if name in sound
        else MeterInfo(name, "", None, None, *split(str(made[name])))
        for name in sorted(made)
    ]


def _may_be_chosen(meter: Meter) -> bool:
    """For the whole machine, without being named."""
    return not _is_beside(meter) and not only_named(meter)


def _is_beside(meter: Meter) -> bool:
    return meter.quantity == "device"


def _worse(meter: Meter, purpose: Purpose) -> tuple[int, bool, bool, str]:
    """What is less comes first."""
    slow = purpose == "calls" and period_s(meter) > SLOW_S
    return BEST_FIRST.index(meter.provenance), slow, meter.quantity != "wall", meter.name


def _info(name: str, meter: Meter, lacks: str, used: bool) -> MeterInfo:
    what, how = split(lacks)
    period, named = period_s(meter), only_named(meter)
    return MeterInfo(name, meter.summary, meter.provenance, meter.quantity, what, how, period, named, used)


def _named(name: str, profile: MachineProfile) -> Meter:
    found = _entries()
    if name not in found:
        raise InputError("meter", f"{name!r} is not known; the meters are {', '.join(sorted(found)) or 'none'}")
    meter = _made(found[name], profile)
    lacks = meter if isinstance(meter, str) else problem(meter)
    if isinstance(meter, str) or lacks:
        raise InputError("meter", f"{name} does not work here: {lacks}")
    return meter


def _entries() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _all(profile: MachineProfile, entries: Mapping[str, EntryPoint]) -> dict[str, Meter | str]:
    """Every one of these meters, or what is wrong with it."""
    return {name: _made(entry, profile) for name, entry in entries.items()}


def _made(entry: EntryPoint, profile: MachineProfile) -> Meter | str:
    try:
        meter = entry.load()(profile)
    except (Exception, SystemExit) as failure:  # a package that fails must not take the others down with it
        return f"{entry.value} cannot be made: {type(failure).__name__}: {failure}"
    if not isinstance(meter, Meter):
        return f"{entry.value} is not a meter: see wattloom.metering.protocol.Meter"
    return meter
