"""From a measured profile to what the scheduler reads: one curve, one speed, one slow-down.

Owns how many stressors and settings become one MachineProfile. Knows neither files nor meters.
"""

from math import exp, log
from typing import Final

import msgspec

from wattloom.errors import InputError
from wattloom.machines.profile import MachineProfile
from wattloom.machines.profile_file import CpuProfile, Level

YARDSTICK_TOOL: Final = "stress-ng 0.15"
YARDSTICK: Final = {"integer": 2250.0, "matrix": 354.0, "vector": 3110.0}
"""Operations per second of one core with speed YARDSTICK_SPEED: one CPU of a virtual machine on an EPYC at 2.45 GHz.
Rounded medians over eight runs of 1 s, per CPU second, as the machine was busy with other work: integer 1,686 to 2,428,
matrix 325 to 370, vector 2,919 to 3,256. Other work makes such figures too low rather than too high. Other versions of
the tool count work differently. Memory is left out: cores share it."""
YARDSTICK_SPEED: Final = 0.933
"""The catalogue's speed of an EPYC 7763. That the virtual CPU is one of these is assumed from its clock and family."""


def machine_profile(profile: CpuProfile, *, name: str = "", setting: str | None = None) -> MachineProfile:
    """The profile as the scheduler and the estimate read it.

    Watts at a level are the mean over the stressors, of levels where every stressor's power is known. `setting`: which
    governor or frequency; left out, the one that was in force when measuring began, else the fastest.
    """
    chosen = usual_setting(profile) if setting is None else setting
    if chosen not in profile.settings:
        known = ", ".join(each or "as found" for each in profile.settings)
        raise InputError("setting", f"{chosen!r} was not measured; there is {known or 'none'}")
    here = profile.machine
    return MachineProfile(
        name=name or profile.name,
        arch=here.arch,
        cores=here.cores,
        threads=here.threads,
        memory=here.memory,
        watts=_curve(profile, chosen),
        smt_slowdown=smt_slowdown(profile, chosen) or _usual_slowdown(here.cores, here.threads),
        speed=speed(profile, chosen) or 1.0,
        provenance=profile.meter.provenance,
        quantity=profile.meter.quantity,
        source=_source(profile, chosen),
    )


def _usual_slowdown(cores: int, threads: int) -> float:
    """Where it was not measured; with few threads per core it must not promise less than nothing."""
    return 1.5 if threads == cores else min(1.5, threads / cores)


def usual_setting(profile: CpuProfile) -> str:
    """As it was found; else the governor that was in force; else the fastest that was tried."""
    tried = profile.settings
    for wanted in ("", f"governor={profile.machine.governor}"):
        if wanted in tried:
            return wanted
    return max(tried, key=lambda each: _most_work(profile, each), default="")


def smt_slowdown(profile: CpuProfile, setting: str) -> float | None:
    """How much longer two tasks on one core run than one alone: the geometric mean over stressors. None: not known, or
    there are no siblings."""
    cores, threads = profile.machine.cores, profile.machine.threads
    if threads == cores:
        return None
    ratios = []
    for stressor in profile.stressors:
        alone, full = (_work_at(profile, setting, stressor, level) for level in (cores, threads))
        if alone and full:
            ratios.append((alone / cores) / (full / threads))
    return None if not ratios else min(max(_geometric_mean(ratios), 1.0), threads / cores)


def speed(profile: CpuProfile, setting: str) -> float | None:
    """Speed of one core against the catalogue's reference. None: the work was counted by another tool or version than
    the yardstick's, so it cannot be told."""
    if not profile.method.tool.startswith(f"{YARDSTICK_TOOL}."):
        return None
    ones = {stressor: _work_at(profile, setting, stressor, 1) for stressor in YARDSTICK}
    ratios = [work / YARDSTICK[stressor] for stressor, work in ones.items() if work]
    return YARDSTICK_SPEED * _geometric_mean(ratios) if ratios else None


def mean_watts(profile: CpuProfile, setting: str) -> dict[int, float]:
    """Watts by level, 0 for idle: the mean over stressors, where all of them are known and undisturbed."""
    calm = [each.power for each in profile.idle if each.setting == setting and profile.sound(each)]
    idles = [power.watts for power in calm if power is not None]
    found = {0: sum(idles) / len(idles)} if idles else {}
    by_level: dict[int, list[Level]] = {}
    for each in profile.levels:
        if each.setting == setting:
            by_level.setdefault(each.level, []).append(each)
    most = max(map(len, by_level.values()), default=0)
    for level, measured in sorted(by_level.items()):
        known = [each.power.watts for each in measured if each.power is not None and profile.sound(each)]
        if len(known) == most:
            found[level] = sum(known) / most
    return found


def _curve(profile: CpuProfile, setting: str) -> tuple[tuple[float, float], ...]:
    watts, threads = mean_watts(profile, setting), profile.machine.threads
    missing = [name for level, name in ((0, "idle"), (threads, f"level {threads}")) if level not in watts]
    if missing:
        raise InputError("levels", f"{' and '.join(missing)} must be measured undisturbed, or the curve has no end")
    # Noise may put the first level a little below idle, which a curve cannot have.
    return tuple((float(level), max(power, watts[0])) for level, power in watts.items())


def _source(profile: CpuProfile, setting: str) -> str:
    how = f", {setting}" if setting else ""
    kinds = ", ".join(profile.stressors)
    return f"profile of {profile.began[:10]} by meter {profile.meter.name}, {profile.method.tool} ({kinds}){how}"


def _most_work(profile: CpuProfile, setting: str) -> float:
    works = [_work_at(profile, setting, stressor, profile.machine.threads) for stressor in profile.stressors]
    known = [work for work in works if work]
    return _geometric_mean(known) if known else 0.0


def _work_at(profile: CpuProfile, setting: str, stressor: str, level: int) -> float | None:
    """Undisturbed."""
    found = [each for each in profile.at(setting, stressor) if each.level == level and not profile.disturbed(each)]
    return found[0].ops_per_s if found else None


def _geometric_mean(figures: list[float]) -> float:
    return exp(sum(map(log, figures)) / len(figures))


def part_of(whole: MachineProfile, cores: int, threads: int) -> MachineProfile:
    """So much of a machine as a process may use, with that part of its watts."""
    if (cores, threads) == (whole.cores, whole.threads):
        return whole
    share = cores / whole.cores
    return msgspec.structs.replace(
        whole,
        cores=cores,
        threads=threads,
        watts=tuple((at * share, watts * share) for at, watts in whole.watts),
        source=f"{cores} of {whole.cores} cores of {whole.source}",
    )
