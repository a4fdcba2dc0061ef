"""Control groups: which of a process's groups counts its CPU time, what it has counted, and what is reserved for it.

Owns how version 1, version 2 and both side by side are read. A group that is gone, or that nobody counts, is None.
"""

import os
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Final

ROOT: Final = Path("/sys/fs/cgroup")
MOST_OPEN: Final = 400
"""Counters kept open between looks, well below the usual 1,024 files of a process. The others are opened each time."""
BYTES: Final = 256
DEFAULT_SHARES: Final = 1024
DEFAULT_WEIGHT: Final = 100


class ControlGroups:
    """The hierarchy that counts CPU time: version 1's `cpuacct` where it is mounted, else version 2."""

    def __init__(self, root: Path = ROOT) -> None:
        self._first = _first_there(root / "cpuacct", root / "cpu,cpuacct")
        second = root if (root / "cgroup.controllers").exists() else root / "unified"
        self._folder = self._first or second
        self._file = "cpuacct.usage" if self._first else "cpu.stat"
        self._settings = _first_there(root / "cpu", root / "cpu,cpuacct") if self._first else second
        self._open: dict[str, int] = {}
        weakref.finalize(self, _close_all, self._open)

    def paths(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Of /proc/<pid>/cgroup: the path that counts CPU time, and the other ones."""
        counted, others = "/", []
        for line in text.splitlines():
            _, controllers, path = line.split(":", 2)
            if "cpuacct" in controllers.split(",") if self._first else not controllers:
                counted = path
            elif path != "/":
                others.append(path)
        return counted, tuple(dict.fromkeys(others))

    def used_s(self, path: str) -> float | None:
        """CPU seconds of a group and of all below it, those that are gone too. None: there is no count."""
        try:
            descriptor = self._open.get(path)
            if descriptor is not None:
                return self._parsed(os.pread(descriptor, BYTES, 0))
            return self._opened(path)
        except (OSError, ValueError, IndexError):
            self.close(path)
            return None

    def close(self, path: str) -> None:
        """It is not asked any more."""
        descriptor = self._open.pop(path, None)
        if descriptor is not None:
            os.close(descriptor)

    def reserved(self, path: str) -> float | None:
        """Cores set aside for a group: what Kubernetes requested for it (kept as weight), else its quota."""
        folder = self._settings
        if folder is None or path == "/":
            return None
        place = f"{folder}/{path.lstrip('/')}"
        if "kubepods" in path and (cores := self._requested(place)) is not None:
            return cores
        return self._quota(place)

    def _opened(self, path: str) -> float:
        descriptor = os.open(f"{self._folder}/{path.lstrip('/')}/{self._file}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            found = self._parsed(os.pread(descriptor, BYTES, 0))
        except BaseException:
            os.close(descriptor)
            raise
        if len(self._open) < MOST_OPEN:
            self._open[path] = descriptor
        else:
            os.close(descriptor)
        return found

    def _parsed(self, text: bytes) -> float:
        """Nanoseconds in version 1; `usage_usec N` as the first line in version 2."""
        return int(text) * 1e-9 if self._first else int(text.split(None, 2)[1]) * 1e-6

    def _requested(self, place: str) -> float | None:
        if self._first:
            shares = _number(f"{place}/cpu.shares")
            return None if shares is None or shares == DEFAULT_SHARES else shares / 1024
        weight = _number(f"{place}/cpu.weight")
        if weight is None or weight == DEFAULT_WEIGHT:
            return None
        return (2 + (weight - 1) * 262_142 / 9_999) / 1024  # as the container runtimes turn shares into weights

    def _quota(self, place: str) -> float | None:
        if self._first:
            quota, period = _number(f"{place}/cpu.cfs_quota_us"), _number(f"{place}/cpu.cfs_period_us")
            return quota / period if quota is not None and quota > 0 and period else None
        with suppress(OSError, ValueError), open(f"{place}/cpu.max", "rb") as file:
            limit, period_us = file.read().split()
            return None if limit == b"max" else int(limit) / int(period_us)
        return None


def _close_all(descriptors: dict[str, int]) -> None:
    """Whoever drops the groups need not think of them."""
    while descriptors:
        os.close(descriptors.popitem()[1])


def _first_there(*folders: Path) -> Path | None:
    return next((folder for folder in folders if folder.is_dir()), None)


def _number(path: str) -> int | None:
    try:
        with open(path, "rb") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def above(path: str) -> list[str]:
    """All groups around a path, the nearest first, without the root."""
    parts = path.strip("/").split("/")
    return ["/" + "/".join(parts[:length]) for length in range(len(parts) - 1, 0, -1)]
