"""The way in: a profile of this machine's CPUs, from what a caller requests.

Owns how a request becomes a plan and where the file goes. Measuring is `profiler`'s and `bench`'s.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from wattloom.errors import InputError
from wattloom.machines.own_profile import SYSTEM, profile_path, profiles_folder
from wattloom.machines.profile_file import CpuProfile, MachineIdentity, MeterUsed, Method
from wattloom.machines.this_machine import allowed_cpus, slug, this_identity, this_machine
from wattloom.metering.choosing import choose_meter
from wattloom.metering.proc import PROC
from wattloom.metering.protocol import Meter
from wattloom.profiling import frequency
from wattloom.profiling.bench import Bench, Terms
from wattloom.profiling.frequency import Setting
from wattloom.profiling.loads import tool_used
from wattloom.profiling.power_recorder import PowerRecorder
from wattloom.profiling.profiler import AS_FOUND, Plan, Profiler, Step, Tell
from wattloom.profiling.restoring import left_behind
from wattloom.profiling.resuming import beginning
from wattloom.profiling.storing import alone, refuse_missing_folder
from wattloom.profiling.stressors import USUAL, stressors
from wattloom.profiling.temperature import CLASSES, Thermometer
from wattloom.profiling.topology import levels_of, loading_order

EVERY_S: Final = 0.25
"""From reading to reading of the meter."""


class ProfileRequest(msgspec.Struct, frozen=True):
    """What a caller may choose."""

    levels: str = ""
    stressors: str = ",".join(USUAL)
    frequencies: str = ""
    output: Path | None = None
    """Left out: this machine's own profile, which `this_machine` finds."""
    fresh: bool = False
    builtin: bool = False
    terms: Terms = Terms()


class Place(msgspec.Struct, frozen=True):
    """Where the kernel's files are, and where ours go."""

    system: Path = SYSTEM
    classes: Path = CLASSES
    proc: Path = PROC
    """Where the CPU time of the machine is read, to see others at work."""
    folder: Path | None = None
    every_s: float = EVERY_S

    @property
    def profiles(self) -> Path:
        return profiles_folder() if self.folder is None else self.folder


HERE: Final = Place()


def own_path(place: Place = HERE, machine: MachineIdentity | None = None) -> Path:
    """Where this machine's own profile is."""
    here = this_identity(system=place.system) if machine is None else machine
    return profile_path(slug({"model name": here.model}), here.machine_id, place.profiles)


def meter_for(name: str = "") -> Meter:
    """The meter a profile is taken with. InputError if it is of something else than this machine's CPUs."""
    meter = choose_meter(this_machine(), name)
    if meter.quantity == "device":
        raise InputError("meter", f"{meter.name} is of accelerators: name one of the whole machine or its processors")
    return meter


def check(request: ProfileRequest, place: Place = HERE) -> None:
    """InputError if what is wished cannot be: said before anything is measured or warned of."""
    tool_used(request.builtin)
    _plan(request, this_identity(system=place.system), place)
    refuse_missing_folder(request.output)


def profile_cpu(
    request: ProfileRequest,
    meter: Meter,
    date: Callable[[], str],
    tell: Tell = lambda step: None,
    place: Place = HERE,
    now: Callable[[], float] = time.monotonic,
) -> CpuProfile:
    """Take the profile, or what is missing of it; the file is written after every level."""
    tool = tool_used(request.builtin)
    refuse_missing_folder(request.output)
    with alone(place.profiles) as lock:
        left_behind(place.profiles, system=place.system)
        machine = this_identity(system=place.system)
        plan = _plan(request, machine, place)
        path = own_path(place, machine) if request.output is None else request.output
        known = beginning(
            path, _name(machine), date(), machine, _used(meter), _method(tool, request.terms), request.fresh
        )
        if _complete(known, plan):
            return known
        holder: list[Profiler] = []
        recorder = PowerRecorder(meter, Thermometer(place.classes), now, time.sleep, place.every_s)
        bench = Bench(
            recorder,
            request.terms,
            machine.threads,
            builtin=request.builtin,
            proc=place.proc,
            system=place.system,
            beat=lambda: holder[0].beat(),
        )
        profiler = Profiler(
            plan, bench, meter, known, path, tell, now, system=place.system, folder=place.profiles, lock=lock
        )
        holder.append(profiler)
        return profiler.run(date)


def _plan(request: ProfileRequest, machine: MachineIdentity, place: Place) -> Plan:
    order = loading_order(allowed_cpus() or range(machine.threads), place.system)
    return Plan(
        stressors(request.stressors, request.builtin),
        levels_of(request.levels, machine.cores, machine.threads),
        order[: machine.threads],
        _settings(request.frequencies, place.system),
        request.terms,
    )


def _settings(wanted: str, system: Path) -> list[Setting]:
    if not wanted:
        return [AS_FOUND]
    found = frequency.settings(wanted, system)
    problem = frequency.writable(system)
    if problem:
        raise InputError("frequencies", problem)
    return found


def _name(machine: MachineIdentity) -> str:
    return slug({"model name": machine.model}) + (f"-{machine.threads}vcpu" if machine.virtual else "")


def _used(meter: Meter) -> MeterUsed:
    return MeterUsed(
        name=meter.name, quantity="wall" if meter.quantity == "wall" else "package", provenance=meter.provenance
    )


def _method(tool: str, terms: Terms) -> Method:
    return Method(tool=tool, seconds=terms.seconds, settle_s=terms.settle_s, tolerance=terms.tolerance)


def _complete(profile: CpuProfile, plan: Plan) -> bool:
    """Whether nothing that is wanted is missing or was disturbed."""
    known = {each.key for each in profile.levels if profile.sound(each)}
    idle = {(each.setting, each.when) for each in profile.idle if profile.sound(each)}
    names = [setting.name for setting in plan.settings]
    wanted = {(name, kind.name, level) for name in names for kind in plan.stressors for level in plan.levels}
    rest = {(name, when) for name in names for when in ("first", "last")}
    return bool(profile.finished) and wanted <= known and rest <= idle


__all__ = ["Place", "ProfileRequest", "Step", "check", "meter_for", "own_path", "profile_cpu"]
