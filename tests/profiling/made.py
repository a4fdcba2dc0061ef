"""Profiles as tests want them: so many cores, a straight line of watts, work that siblings slow down."""

from collections.abc import Callable
from shutil import which
from typing import Any

import msgspec
import pytest

from wattloom.machines.profile_file import CpuProfile, Idle, Level, MachineIdentity, MeterUsed, Method, Power

needs_stress_ng = pytest.mark.skipif(
    which("stress-ng") is None, reason="NOT TRIED: real load. stress-ng is missing: sudo apt install stress-ng"
)
TOOL = "stress-ng 0.15.06; Python 3.11.7, numpy 2.4.6"


def power(watts: float, spread_w: float = 0.1) -> Power:
    return Power(watts=watts, spread_w=spread_w, intervals=40, seconds=10.0)


def identity(**changes: Any) -> MachineIdentity:
    usual = MachineIdentity(
        model="AMD EPYC 7763 64-Core Processor", arch="x86_64", sockets=1, cores=4, threads=8, memory=1 << 34
    )
    return msgspec.structs.replace(usual, **changes)


def disturbed(profile: CpuProfile, *levels: int, idle: tuple[str, ...] = ()) -> CpuProfile:
    """Others kept a core busy at these levels: more power, less work."""
    return msgspec.structs.replace(
        profile,
        levels=tuple(_disturbed_level(each) if each.level in levels else each for each in profile.levels),
        idle=tuple(
            msgspec.structs.replace(each, other_cores=1.0) if each.when in idle else each for each in profile.idle
        ),
    )


def _disturbed_level(level: Level) -> Level:
    assert level.power is not None
    assert level.ops_per_s is not None
    return msgspec.structs.replace(
        level, other_cores=1.0, power=power(3.0 * level.power.watts), ops_per_s=0.6 * level.ops_per_s
    )


def cpu_profile(
    *,
    watts: Callable[[int], float] = lambda level: 20.0 + 10.0 * level,
    work: Callable[[int], float] = lambda level: 2250.0 * min(level, 4) + 500.0 * max(0, level - 4),
    stressors: tuple[str, ...] = ("integer",),
    setting: str = "",
    quantity: str = "package",
    provenance: str = "measured",
    tool: str = TOOL,
    name: str = "made",
    machine: MachineIdentity | None = None,
) -> CpuProfile:
    """Every level of every stressor; `watts(0)` is idle."""
    here = identity() if machine is None else machine
    levels = [
        Level(
            stressor=stressor,
            level=level,
            setting=setting,
            cpus=tuple(range(level)),
            power=power(watts(level)),
            ops_per_s=work(level),
        )
        for stressor in stressors
        for level in range(1, here.threads + 1)
    ]
    return CpuProfile(
        wattloom_profile=1,
        kind="cpu",
        name=name,
        began="2026-11-16T10:00:00+00:00",
        finished="2026-11-16T11:00:00+00:00",
        machine=here,
        meter=msgspec.convert({"name": "powercap", "quantity": quantity, "provenance": provenance}, MeterUsed),
        method=Method(tool=tool, seconds=10.0, settle_s=60.0, tolerance=0.01),
        idle=(
            Idle(when="first", setting=setting, power=power(watts(0))),
            Idle(when="last", setting=setting, power=power(watts(0))),
        ),
        levels=tuple(levels),
    )
