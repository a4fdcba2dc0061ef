"""Which meter to use here: the best that works, out of all that are installed.

Owns the way in, which is one for ours and anybody else's: entry points of the group `wattloom.meters`. Each names a
class or function that is called with this machine's profile and gives a meter.
"""

from importlib.metadata import EntryPoint, entry_points
from typing import Final

import msgspec

from wattloom.cluster.profile import MachineProfile
from wattloom.energy.forecast import Provenance
from wattloom.errors import InputError
from wattloom.metering import estimate
from wattloom.metering.protocol import Meter, Quantity

GROUP: Final = "wattloom.meters"
BEST_FIRST: Final[tuple[Provenance, ...]] = ("measured", "modelled", "estimated")


class MeterInfo(msgspec.Struct, frozen=True):
    """An installed meter, and whether it works here."""

    name: str
    summary: str
    provenance: Provenance | None
    quantity: Quantity | None
    problem: str
    """Why it does not work here and how to allow it. Empty: it works."""


def choose_meter(profile: MachineProfile, name: str = "") -> Meter:
    """The meter that was named, or the best that works here. Raises InputError if the named one does not work."""
    if name:
        return _named(name, profile)
    working = [meter for meter in _all(profile).values() if not isinstance(meter, str) and meter.available() is None]
    # The plug knows more than the package: all that the machine draws.
    working.sort(key=lambda meter: (BEST_FIRST.index(meter.provenance), meter.quantity != "wall", meter.name))
    return working[0] if working else estimate.for_machine(profile)


def meters(profile: MachineProfile) -> list[MeterInfo]:
    """Every installed meter, by name."""
    return [_info(name, meter) for name, meter in sorted(_all(profile).items())]


def _info(name: str, meter: Meter | str) -> MeterInfo:
    if isinstance(meter, str):
        return MeterInfo(name, "", None, None, meter)
    return MeterInfo(name, meter.summary, meter.provenance, meter.quantity, meter.available() or "")


def _named(name: str, profile: MachineProfile) -> Meter:
    found = _all(profile)
    if name not in found:
        raise InputError("meter", f"{name!r} is not known; the meters are {', '.join(sorted(found)) or 'none'}")
    meter = found[name]
    problem = meter if isinstance(meter, str) else meter.available()
    if isinstance(meter, str) or problem is not None:
        raise InputError("meter", f"{name} does not work here: {problem}")
    return meter


def _all(profile: MachineProfile) -> dict[str, Meter | str]:
    """Every installed meter, or what is wrong with it."""
    return {entry.name: _made(entry, profile) for entry in entry_points(group=GROUP)}


def _made(entry: EntryPoint, profile: MachineProfile) -> Meter | str:
    try:
        meter = entry.load()(profile)
    except (Exception, SystemExit) as problem:  # a package that fails must not take the others down with it
        return f"{entry.value} cannot be made: {type(problem).__name__}: {problem}"
    if not isinstance(meter, Meter):
        return f"{entry.value} is not a meter: see wattloom.metering.protocol.Meter"
    return meter
