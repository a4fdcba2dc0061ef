"""A profile as a file: what one machine drew and did at each level of load, and how that was found out.

Owns the form of the file (JSON, with a version) and what is wrong with one. It neither opens files nor measures;
what the scheduler makes of a profile is `profile_curve`'s business.
"""

import re
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec

from wattloom.bounds import MOST_FILED_CORES, MOST_WATTS
from wattloom.energy.forecast import Provenance
from wattloom.errors import InputError
from wattloom.files import UNREADABLE

VERSION: Final = 1
OTHERS_SHARE: Final = 0.03
OTHERS_LEAST: Final = 0.1
"""Cores that others may keep busy before a reading counts as disturbed: this share of all, but at least so many."""
Watts = Annotated[float, msgspec.Meta(ge=0, le=MOST_WATTS)]
Figure = Annotated[float, msgspec.Meta(ge=0, le=1e18)]
Count = Annotated[int, msgspec.Meta(ge=1, le=MOST_FILED_CORES)]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]


def most_others(threads: int) -> float:
    """Cores that others may keep busy while a machine of so many threads is measured."""
    return max(OTHERS_LEAST, OTHERS_SHARE * threads)


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A part of the file: unknown fields are errors."""


class MachineIdentity(Part, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Which machine, and in what state it was."""

    model: str
    """The processor as the kernel names it."""
    arch: Text
    sockets: Count
    cores: Count
    """Physical cores that could be used."""
    threads: Count
    memory: Annotated[int, msgspec.Meta(ge=0)] = 0
    machine_id: str = ""
    """A digest of the system's own id: two machines of one model differ in it. Empty: there is none."""
    virtual: bool = False
    microcode: str = ""
    kernel: str = ""
    driver: str = ""
    """Who sets the frequency. Empty: nobody here does."""
    governor: str = ""
    boost: bool | None = None
    """Whether frequencies above the nominal one were allowed. None: not known."""


class MeterUsed(Part, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Where the joules came from."""

    name: Text
    quantity: Literal["wall", "package"]
    provenance: Provenance


class Method(Part, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """How it was measured. Levels are only put together if all of this is the same."""

    tool: Text
    """What made the load, with its version: counts of work from two versions cannot be compared."""
    seconds: Annotated[float, msgspec.Meta(gt=0, le=86_400)]
    """How long each level was read for, after it had settled."""
    settle_s: Annotated[float, msgspec.Meta(ge=0, le=86_400)]
    """How long a level was waited for at most."""
    tolerance: Annotated[float, msgspec.Meta(gt=0, le=1)]
    """How much of its mean power may drift in a window that counts as settled."""


class Power(Part, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """What the meter said over a while."""

    watts: Watts
    """Mean."""
    spread_w: Watts
    """Standard deviation of the watts from one reading to the next."""
    intervals: Annotated[int, msgspec.Meta(ge=1)]
    """How many there were between readings."""
    seconds: Figure


class Idle(Part, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The machine without our load."""

    when: Literal["first", "last"]
    setting: str = ""
    power: Power | None = None
    """None: not known, see `problem`."""
    temperature_c: float | None = None
    other_cores: Figure = 0.0
    """Cores kept busy by others meanwhile."""
    settled: bool = True
    problem: str = ""


class Level(Part, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One stressor on so many CPUs."""

    stressor: Text
    level: Count
    """CPUs under load: up to the physical cores each has its own, then their siblings follow."""
    setting: str = ""
    """The governor or frequency that was set, as `governor=powersave`. Empty: as it was found."""
    cpus: tuple[Annotated[int, msgspec.Meta(ge=0, le=MOST_FILED_CORES)], ...] = ()
    power: Power | None = None
    """None: not known, see `problem`."""
    ops_per_s: Figure | None = None
    """Work done per second by all CPUs together, in the stressor's own unit. None: not known."""
    settled: bool = True
    """False: it still drifted when the time for settling was over."""
    settle_s: Figure = 0.0
    temperature_c: float | None = None
    mhz: Figure | None = None
    """Mean frequency of the CPUs under load, as the kernel tells it."""
    other_cores: Figure = 0.0
    """Cores kept busy by others meanwhile."""
    attempts: Count = 1
    problem: str = ""

    @property
    def key(self) -> tuple[str, str, int]:
        return self.setting, self.stressor, self.level


class Profile(Part, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A whole file, of whatever kind."""

    def problem(self) -> tuple[str, str] | None:
        """The first wrong field and what is wrong with it, beyond what the types say."""
        return None


class CpuProfile(Profile, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A whole file of a machine's CPUs."""

    wattloom_profile: Literal[1]
    """Version of the form."""
    kind: Literal["cpu"]
    name: Text
    began: Text
    """When measuring began: date and time with zone."""
    finished: str = ""
    """When the last level was done. Empty: it was interrupted, and can be resumed."""
    machine: MachineIdentity
    meter: MeterUsed
    method: Method
    idle: tuple[Idle, ...] = ()
    levels: tuple[Level, ...] = ()

    @property
    def settings(self) -> list[str]:
        """Governors or frequencies that were tried, in their order."""
        tried = [each.setting for each in self.idle] + [each.setting for each in self.levels]
        return list(dict.fromkeys(tried))

    @property
    def stressors(self) -> list[str]:
        return list(dict.fromkeys(level.stressor for level in self.levels))

    def idle_power(self, setting: str, when: str) -> Power | None:
        found = (each.power for each in self.idle if (each.setting, each.when) == (setting, when))
        return next(found, None)

    def disturbed(self, reading: Idle | Level) -> bool:
        """Whether others were at work, so that it says too much power and too little work."""
        return reading.other_cores > most_others(self.machine.threads)

    def sound(self, reading: Idle | Level) -> bool:
        """Whether its power is known and undisturbed."""
        return reading.power is not None and not self.disturbed(reading)

    def at(self, setting: str, stressor: str) -> list[Level]:
        """Its levels, rising."""
        found = [each for each in self.levels if (each.setting, each.stressor) == (setting, stressor)]
        return sorted(found, key=lambda each: each.level)

    def problem(self) -> tuple[str, str] | None:
        """The first wrong field and what is wrong with it, beyond what the types say."""
        here = self.machine
        if not here.cores <= here.threads <= 8 * here.cores:
            return "machine.threads", f"must be between cores and 8 times as many, not {here.threads}"
        return self._double() or self._beyond()

    def _double(self) -> tuple[str, str] | None:
        keys = [each.key for each in self.levels]
        for number, key in enumerate(keys):
            if key in keys[:number]:
                return f"levels[{number}]", f"{key[1]} at level {key[2]} is there twice"
        idles = [(each.setting, each.when) for each in self.idle]
        for number, idle in enumerate(idles):
            if idle in idles[:number]:
                return f"idle[{number}]", f"the {idle[1]} one is there twice"
        return None

    def _beyond(self) -> tuple[str, str] | None:
        for number, each in enumerate(self.levels):
            if each.level > self.machine.threads:
                return f"levels[{number}].level", f"{each.level} is more than the {self.machine.threads} threads"
            if each.power is None and not each.problem:
                return f"levels[{number}].problem", "must say why the power is not known"
            if each.cpus and not len(each.cpus) == len(set(each.cpus)) == each.level:
                return f"levels[{number}].cpus", f"must be {each.level} different ones"
        return None


Form = TypeVar("Form", bound=Profile)


def decode_profile(data: bytes, where: str) -> CpuProfile:
    """A profile from the bytes of a file. InputError names the file and the field."""
    return decode_as(CpuProfile, data, where)


def decode_as(form: type[Form], data: bytes, where: str) -> Form:
    """The same for any kind of profile."""
    try:
        found = msgspec.json.decode(data, type=form)
    except msgspec.ValidationError as problem:
        raise _wrong_field(where, str(problem), data) from problem
    except UNREADABLE as problem:
        raise InputError(where, f"is not a profile: {problem}") from problem
    wrong = found.problem()
    if wrong is not None:
        raise InputError(f"{where}: {wrong[0]}", wrong[1])
    return found


def encode_profile(profile: Profile) -> bytes:
    """As it stands in a file: indented, the same profile gives the same bytes."""
    return msgspec.json.format(msgspec.json.encode(profile), indent=1) + b"\n"


def _wrong_field(where: str, problem: str, data: bytes) -> InputError:
    words, _, path = problem.partition(" - at `$")
    field = path.rstrip("`").lstrip(".")
    if not field and (found := re.search(r"field `(\w+)`", words)):
        field = found[1]
    version = _version(data)
    if field == "wattloom_profile" or version not in (None, VERSION):
        field, words = "wattloom_profile", f"version {version} is not known; this Wattloom reads version {VERSION}"
    return InputError(f"{where}: {field}" if field else where, words)


def _version(data: bytes) -> Any:
    """What the file says of itself, if that much can be read."""
    try:
        whole = msgspec.json.decode(data)
    except UNREADABLE:
        return None
    return whole.get("wattloom_profile") if isinstance(whole, dict) else None
