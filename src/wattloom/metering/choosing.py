"""Which meter to use here: the best that works, out of all that are installed.

Owns the way in, which is one for ours and anybody else's: entry points of the group `wattloom.meters`. Each names a
class or function that is called with this machine's profile and gives a meter.

The best is, in this order: measured before modelled before estimated; for calls, what is read afresh before what is
slow; the plug before the package. A slow meter at the plug knows all that the machine draws, but a call of 20 ms is
lost in its second; for the total of an hour it is the better one. Of estimates the host's goes before the guest's own.
Meters of devices are beside the machine's and never chosen for it, nor is one that is to be named. One that the
settings ask for and that does not work is warned of, once.
"""

import logging
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from wattloom.energy.forecast import Provenance
from wattloom.errors import InputError
from wattloom.machines.profile import MachineProfile
from wattloom.metering import estimate
from wattloom.metering.configured import NOT_SET_UP, settings_here, withheld
from wattloom.metering.probing import is_set_up, may_be_chosen, problem, problems
from wattloom.metering.protocol import Meter, Quantity, only_named, period_s
from wattloom.metering.setup_hints import split
from wattloom.setting_groups import settings_type
from wattloom.settings import SettingsError

if TYPE_CHECKING:
    from wattloom.metering.devices import DeviceMeter

LOG: Final = logging.getLogger("wattloom")
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
    """The meter that was named, or the best that works here. Raises InputError if the named one does not work, and
    SettingsError if there is something wrong in the settings, whichever meter it is of."""
    settings_here()
    if name:
        return _named(name, profile)
    made = _all(profile, {name: entry for name, entry in _entries().items() if may_be_chosen(entry)})
    lacks = {name: meter for name, meter in made.items() if isinstance(meter, str)}
    sound = {name: meter for name, meter in made.items() if not isinstance(meter, str) and _may_be_chosen(meter)}
    best = next(_that_work(sound, purpose, lacks), None) or estimate.for_machine(profile)
    _warn_of_those_set_up(lacks, best.name)
    return best


def device_meters(profile: MachineProfile) -> "list[DeviceMeter]":
    """The meters of accelerators that work here and tell of single devices."""
    from wattloom.metering.devices import DeviceMeter

    made = _all(profile, _entries())
    beside = {name: meter for name, meter in made.items() if isinstance(meter, DeviceMeter) and _is_beside(meter)}
    lacks = problems(beside)
    return [meter for name, meter in beside.items() if not lacks[name]]


def meters(profile: MachineProfile) -> list[MeterInfo]:
    """Every installed meter, by name. All are asked at the same time. Raises SettingsError as `choose_meter` does."""
    settings_here()
    made = _all(profile, _entries())
    sound = {name: meter for name, meter in made.items() if not isinstance(meter, str)}
    lacks = {name: _with_what_is_withheld(name, lack) for name, lack in problems(sound).items()}
    fit = [(_worse(sound[name], "calls"), name) for name in sound if not lacks[name] and _may_be_chosen(sound[name])]
    best = min(fit)[1] if fit else ""
    return [
        _info(name, sound[name], lacks[name], used=name == best)
        if name in sound
        else MeterInfo(name, "", None, None, *split(str(made[name])))
        for name in sorted(made)
    ]


def _that_work(sound: Mapping[str, Meter], purpose: Purpose, lacks: dict[str, str]) -> Iterator[Meter]:
    """The best first; what the others lack is added. Whether one works may take asking over a network: no more are
    asked than need be."""
    for name in sorted(sound, key=lambda name: _worse(sound[name], purpose)):
        lacks[name] = _with_what_is_withheld(name, problem(sound[name]))
        if not lacks[name]:
            yield sound[name]


def _with_what_is_withheld(name: str, lack: str) -> str:
    """Without its credentials a meter may not know why it is turned away."""
    held = withheld(name) if lack else ""
    return f"{lack}\n{held}" if held and held not in lack else lack


def _warn_of_those_set_up(lacks: Mapping[str, str], used: str) -> None:
    """Whoever set up a meter takes the joules for its."""
    for name, lack in lacks.items():
        if lack and is_set_up(name):
            what, how = split(lack)
            what = f"something is missing: {how.splitlines()[0]}" if what == NOT_SET_UP and how else what
            _warn_once(f"the meter {name} is set up but does not work here: {what}; {used} is used")


@lru_cache(maxsize=64)
def _warn_once(words: str) -> None:
    LOG.warning("%s", words)


def _may_be_chosen(meter: Meter) -> bool:
    """For the whole machine, without being named."""
    return not _is_beside(meter) and not only_named(meter)


def _is_beside(meter: Meter) -> bool:
    return meter.quantity == "device"


def _worse(meter: Meter, purpose: Purpose) -> tuple[int, bool, bool, bool, str]:
    """What is less comes first."""
    # A guest's own estimate knows less than its host's, which sees all guests and the machine they are on.
    own = meter.provenance == "estimated" and meter.quantity != "share"
    slow = purpose == "calls" and period_s(meter) > SLOW_S
    return BEST_FIRST.index(meter.provenance), own, slow, meter.quantity != "wall", meter.name


def _info(name: str, meter: Meter, lacks: str, used: bool) -> MeterInfo:
    what, how = split(lacks)
    period, named = period_s(meter), only_named(meter)
    return MeterInfo(name, meter.summary, meter.provenance, meter.quantity, what, how, period, named, used)


def _named(name: str, profile: MachineProfile) -> Meter:
    found = _entries()
    if name not in found:
        raise InputError("meter", f"{name!r} is not known; the meters are {', '.join(sorted(found)) or 'none'}")
    meter = _made(found[name], profile)
    lacks = meter if isinstance(meter, str) else _with_what_is_withheld(name, problem(meter))
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
        make = entry.load()
        kind = settings_type(make)
        meter = make(profile) if kind is None else make(profile, settings=settings_here().of(entry.name, kind))
    except SettingsError:  # of all of them, and no defect of this one
        raise
    except (Exception, SystemExit) as failure:  # a package that fails must not take the others down with it
        return f"{entry.value} cannot be made: {type(failure).__name__}: {failure}"
    if not isinstance(meter, Meter):
        return f"{entry.value} is not a meter: see wattloom.metering.protocol.Meter"
    return meter
