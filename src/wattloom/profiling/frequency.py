"""Governors and frequencies through the kernel's cpufreq: what can be set here, setting it, putting it back.

Owns the files of cpufreq and the order in which they may be written. That all is put back whatever happens is
`restoring`'s business.
"""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from wattloom.errors import InputError, WattloomError
from wattloom.machines.own_profile import SYSTEM, text

CHANGED: Final = ("scaling_governor", "scaling_min_freq", "scaling_max_freq", "scaling_setspeed")
"""Files that a sweep writes to."""
FILE: Final = re.compile(rf"cpufreq/policy\d{{1,6}}/({'|'.join(CHANGED)})")
"""A file of those, below the kernel's folder."""
WORD: Final = re.compile(r"[a-z0-9_]{1,15}")
"""A governor's name, or a frequency in kHz: as the kernel has them."""
UNUSABLE: Final = ("userspace",)
"""Governors that do nothing by themselves."""
NONE_HERE: Final = (
    "there is no cpufreq here ({0}/policy* does not exist): the kernel sets no frequencies on this machine, as in most "
    "virtual machines. Leave --frequencies out"
)


class FrequencyError(WattloomError):
    """The kernel did not take a governor or frequency."""


class Saved(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was set before: file by file, with the system it was set on."""

    root: str
    boot_id: str
    files: dict[str, str]
    """Path below the root, and what it held."""

    def problem(self, system: Path = SYSTEM) -> str:
        """What in it cannot have been set before; empty: nothing. It may have been read from a file, which is not to
        say what is written where."""
        if Path(self.root) != system:
            return f"is of {self.root}, not of {system}"
        for name, value in self.files.items():
            if FILE.fullmatch(name) is None or WORD.fullmatch(value) is None:
                return f"{name} = {value!r} is no governor or frequency of the kernel's"
        return ""


class Setting(msgspec.Struct, frozen=True):
    """A governor, or one frequency for all."""

    name: str
    """As it stands in a profile: `governor=powersave`, `khz=1200000`."""
    governor: str = ""
    khz: int = 0


def policies(system: Path = SYSTEM) -> list[Path]:
    """A folder for each group of CPUs with one frequency."""
    found = (system / "cpufreq").glob("policy*")
    return sorted(found, key=lambda policy: int(policy.name.removeprefix("policy") or 0))


def settings(wanted: str, system: Path = SYSTEM) -> list[Setting]:
    """From `governors`, names of governors, `min`, `max` or kHz, with commas between. InputError if it cannot be."""
    groups = policies(system)
    if not groups:
        raise InputError("frequencies", NONE_HERE.format(system / "cpufreq"))
    found: list[Setting] = []
    for word in (part.strip().lower() for part in wanted.split(",") if part.strip()):
        found += _settings(word, groups)
    if not found:
        raise InputError("frequencies", "give governors, the name of one, min, max, or frequencies in kHz")
    return list(dict.fromkeys(found))


def _settings(word: str, groups: Sequence[Path]) -> list[Setting]:
    known = _governors(groups)
    if word == "governors":
        return [Setting(f"governor={name}", governor=name) for name in known]
    if word in known:
        return [Setting(f"governor={word}", governor=word)]
    lowest = max(_khz(group / "cpuinfo_min_freq") for group in groups)
    highest = min(_khz(group / "cpuinfo_max_freq") for group in groups)
    khz = {"min": lowest, "max": highest}.get(word) or (int(word) if word.isdigit() else 0)
    if not khz:
        raise InputError("frequencies", f"{word!r} is neither governors, {', '.join(known)}, min, max nor a number")
    if not lowest <= khz <= highest:
        raise InputError("frequencies", f"{khz} kHz is not between {lowest} and {highest}, which all CPUs here can do")
    return [Setting(f"khz={khz}", khz=khz)]


def _governors(groups: Sequence[Path]) -> list[str]:
    """Those that every group has."""
    each = [text(group / "scaling_available_governors").split() for group in groups]
    return [name for name in each[0] if all(name in names for names in each) and name not in UNUSABLE]


def saved(system: Path = SYSTEM, boot_id: str = "") -> Saved:
    """All that a sweep may change, as it is now."""
    files = {
        str(file.relative_to(system)): found
        for group in policies(system)
        for name in CHANGED
        if (found := text(file := group / name)) and not found.startswith("<")  # setspeed says <unsupported>
    }
    return Saved(str(system), boot_id, files)


def writable(system: Path = SYSTEM) -> str:
    """Why nothing can be set, found out by writing what is there already. Empty: it can."""
    for group in policies(system):
        file = group / "scaling_governor"
        try:
            _put(file, text(file))
        except OSError as problem:
            return (
                f"{file} cannot be written: {problem.strerror}. Setting frequencies needs root: sudo wattloom profile"
            )
    return ""


def apply(setting: Setting, system: Path = SYSTEM) -> None:
    """Set it on all CPUs, and see that the kernel took it."""
    for group in policies(system):
        if setting.governor:
            _write(group / "scaling_governor", setting.governor)
        else:
            _one_frequency(group, setting.khz)


def _one_frequency(group: Path, khz: int) -> None:
    """The lower bound must never pass the upper one on the way."""
    _write(group / "scaling_min_freq", text(group / "cpuinfo_min_freq"))
    _write(group / "scaling_max_freq", str(khz))
    _write(group / "scaling_min_freq", str(khz))


def _write(file: Path, value: str) -> None:
    try:
        _put(file, value)
    except OSError as problem:
        raise FrequencyError(f"{file}: the kernel did not take {value!r}: {problem.strerror}") from problem
    found = text(file)
    if found != value:
        raise FrequencyError(f"{file}: was told {value!r} and says {found!r}")


def _put(file: Path, value: str) -> None:
    """Into a file that is there, through no link. Raises OSError."""
    descriptor = os.open(file, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)


def restore(before: Saved, system: Path = SYSTEM) -> list[str]:
    """Put everything back. What could not be: file by file; empty: all is as it was."""
    if problem := before.problem(system):
        return [problem]
    root = Path(before.root)
    groups = list(dict.fromkeys(name.rpartition("/")[0] for name in before.files))
    for group in groups:  # so that whatever bounds were set come between those that are to be
        with suppress(OSError):
            _put(root / group / "scaling_min_freq", text(root / group / "cpuinfo_min_freq"))
    order = ("scaling_governor", "scaling_max_freq", "scaling_min_freq", "scaling_setspeed")
    for name in order:
        for group in groups:
            if (value := before.files.get(f"{group}/{name}")) is not None:
                with suppress(OSError):
                    _put(root / group / name, value)
    return [
        f"{root / name} is {text(root / name)!r}, was {value!r}"
        for name, value in before.files.items()
        if text(root / name) != value
    ]


def mhz(cpus: Sequence[int], system: Path = SYSTEM) -> float | None:
    """Mean frequency of some CPUs now. None: the kernel does not say."""
    found = [_khz(system / f"cpu{cpu}" / "cpufreq" / "scaling_cur_freq") for cpu in cpus]
    known = [khz for khz in found if khz]
    return sum(known) / len(known) / 1000.0 if known else None


def _khz(file: Path) -> int:
    found = text(file)
    return int(found) if found.isdigit() else 0
