"""The way in: the profile of a GPU, share by share, from what a caller requests.

Owns how a request becomes a plan, what is kept from an interrupted run, and that every point is on the disk before the
next begins. One point is `gpu_bench`'s, the load `gpu_command`'s.
"""

import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

import msgspec

from wattloom.errors import InputError
from wattloom.machines.own_profile import profile_bytes, profiles_folder
from wattloom.machines.profile_file import VERSION, encode_profile
from wattloom.machines.this_machine import this_machine
from wattloom.metering.choosing import GROUP
from wattloom.metering.devices import DeviceMeter, DeviceReading
from wattloom.profiling.bench import Terms
from wattloom.profiling.gpu_bench import GpuBench, OneDevice
from wattloom.profiling.gpu_command import BUILT_IN, GpuLoad, problem_of, words_of
from wattloom.profiling.gpu_file import (
    By,
    GpuIdentity,
    GpuMeterUsed,
    GpuMethod,
    GpuPoint,
    GpuProfile,
    decode_gpu_profile,
)
from wattloom.profiling.profiler import MeterLost, Step, Tell
from wattloom.profiling.resuming import INSTEAD
from wattloom.profiling.storing import alone, refuse_missing_folder, store

EVERY_S: Final = 0.25


class GpuProfileRequest(msgspec.Struct, frozen=True):
    """What a caller may choose."""

    shares: str = "10-100/10"
    load: str = BUILT_IN
    by: By = "time"
    output: Path | None = None
    fresh: bool = False
    terms: Terms = Terms()


def device_meter(name: str = "") -> DeviceMeter:
    """The meter of accelerators that was named, or the first that works here. InputError says why there is none."""
    why: list[str] = []
    here = this_machine()
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        if name and entry.name != name:
            continue
        try:
            meter = entry.load()(here)
        except (Exception, SystemExit) as problem:  # a package that fails must not take the others down with it
            why += [f"{name}: {problem}"] if name else []
            continue
        if isinstance(meter, DeviceMeter) and meter.quantity == "device":
            problem_here = meter.available()
            if problem_here is None:
                return meter
            why.append(f"{meter.name}: {problem_here}")
    if not why:
        raise InputError(
            "meter", f"{name!r} is not a meter of accelerators" if name else "there is none of accelerators"
        )
    raise InputError("meter", "no GPU can be read here. " + "; ".join(why))


def the_device(meter: DeviceMeter, wanted: str, now: float) -> DeviceReading:
    """By number or the beginning of its uuid; empty: the first."""
    found = meter.devices(now)
    for device in found:
        if not wanted or wanted == str(device.index) or device.uuid.lower().startswith(wanted.lower()):
            return device
    there = ", ".join(f"{device.index} ({device.name}, {device.uuid})" for device in found)
    raise InputError("device", f"{wanted!r} is not there; there is {there or 'none'}")


def shares_of(text: str) -> list[int]:
    """From `10,50,100` or `10-100/10`. InputError says what is wrong."""
    found: set[int] = set()
    for part in filter(None, (each.strip() for each in text.split(","))):
        matched = re.fullmatch(r"(\d{1,3})(?:-(\d{1,3})(?:/(\d{1,3}))?)?", part)
        if matched is None:
            raise InputError("shares", f"{part!r} is not a share; write 10,50,100 or 10-100/10")
        first, last, step = int(matched[1]), int(matched[2] or matched[1]), int(matched[3] or 1)
        if not 1 <= first <= last <= 100 or step < 1:
            raise InputError("shares", f"{part!r} must be between 1 and 100, rising")
        found |= set(range(first, last + 1, step))
    if not found:
        raise InputError("shares", "name at least one")
    return sorted(found)


def gpu_profile_path(device: DeviceReading) -> Path:
    """Where the profile of a device is, unless a command is told otherwise."""
    stem = re.sub(r"[^a-z0-9]+", "-", f"{device.name} {device.uuid.removeprefix('GPU-')[:8]}".lower()).strip("-")
    return profiles_folder() / f"gpu-{stem}.json"


def profile_gpu(
    request: GpuProfileRequest,
    meter: DeviceMeter,
    device: DeviceReading,
    date: Callable[[], str],
    tell: Tell = lambda step: None,
    now: Callable[[], float] = time.monotonic,
    every_s: float = EVERY_S,
) -> GpuProfile:
    """Take the profile, or what is missing of it; the file is written after every point."""
    problem_of(request.load, device.kind)
    shares = [0, *shares_of(request.shares)]
    refuse_missing_folder(request.output)
    path = gpu_profile_path(device) if request.output is None else request.output
    with alone(profiles_folder()):
        profile = _beginning(path, request, meter, device, date())
        store(path, encode_profile(profile))  # a place that cannot be written is known before an hour is spent
        taking = _Taking(profile, path, shares, tell, now)
        bench = GpuBench(OneDevice(meter, device.uuid), request.terms, now, time.sleep, every_s, taking.beat)
        for share in shares:
            taking.point(share, partial(bench.measure, share, _starter(request, device, share)))
            if taking.unknown and (gone := meter.available()) is not None:
                raise MeterLost(f"meter {meter.name} does not work any more: {gone}. What was measured is in {path}")
        return taking.finish(date())


def _starter(request: GpuProfileRequest, device: DeviceReading, share: int) -> Callable[[], GpuLoad] | None:
    if share == 0:
        return None
    words = words_of(request.load, request.by, device, share)
    return lambda: GpuLoad(words, device, speaks=request.load == BUILT_IN)


class _Taking:
    """Where we are, and what is in the file."""

    def __init__(
        self, profile: GpuProfile, path: Path, shares: Sequence[int], tell: Tell, now: Callable[[], float]
    ) -> None:
        self._profile, self._path, self._shares = profile, path, shares
        self._tell, self._now = tell, now
        self._words, self._done, self._measured = "", 0, 0
        self._began = now()
        self.unknown = False

    def point(self, share: int, measure: Callable[[], GpuPoint]) -> None:
        self._words = f"{share}%" if share else "idle"
        self.beat()
        known = self._profile.at(share)
        self.unknown = False
        if known is None or known.power is None:
            made = measure()
            self.unknown = made.power is None
            kept = [each for each in self._profile.points if each.share != share]
            points = tuple(sorted((*kept, made), key=lambda each: each.share))
            self._store(msgspec.structs.replace(self._profile, points=points))
            self._measured += 1
        self._done += 1
        self.beat()

    def finish(self, date: str) -> GpuProfile:
        whole = all(point.power is not None for point in self._profile.points)
        self._store(msgspec.structs.replace(self._profile, finished=date if whole else ""))
        return self._profile

    def beat(self) -> None:
        each_s = (self._now() - self._began) / self._measured if self._measured else 0.0
        left = len(self._shares) - self._done
        self._tell(Step(self._words, self._done, len(self._shares), each_s * left))

    def _store(self, profile: GpuProfile) -> None:
        store(self._path, encode_profile(profile))
        self._profile = profile


def _beginning(
    path: Path, request: GpuProfileRequest, meter: DeviceMeter, device: DeviceReading, date: str
) -> GpuProfile:
    """The profile to go on with: that in the file, or a new one. InputError if the two do not belong together."""
    by: By = request.by if request.load == BUILT_IN else "command"
    terms = request.terms
    new = GpuProfile(
        wattloom_profile=VERSION,
        kind="gpu",
        name=device.name or device.uuid,
        began=date,
        device=GpuIdentity(
            uuid=device.uuid,
            name=device.name,
            kind=device.kind,
            memory=device.memory_total,
            limit_w=device.limit_w,
            note=device.note,
        ),
        meter=GpuMeterUsed(name=meter.name, provenance=meter.provenance, source=device.source, lag_s=device.lag_s),
        method=GpuMethod(
            load=request.load, by=by, seconds=terms.seconds, settle_s=terms.settle_s, tolerance=terms.tolerance
        ),
    )
    if request.fresh or not path.exists():
        return new
    old = read_gpu_profile(path)
    for part in ("device", "meter", "method"):
        was, is_now = getattr(old, part), getattr(new, part)
        if was != is_now:
            raise InputError(str(path), f"was measured with another {part}: {was} and now {is_now}; {INSTEAD}")
    return msgspec.structs.replace(old, finished="")


def read_gpu_profile(path: Path) -> GpuProfile:
    """From a file. InputError says what is wrong with it."""
    return decode_gpu_profile(profile_bytes(path), str(path))
