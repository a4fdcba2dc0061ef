"""Writes what each virtual machine was ascribed into a folder that is shared into it.

Owns what is in the folder: one below it for each guest, with our file and with Scaphandre's tree. Everything is written
beside its place and moved there, so that a guest never reads half a figure. A guest's folder itself is left when the
guest is gone: its definition names it, and it could not start again without. Whose the joules are is the snapshot's
business.
"""

import fcntl
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from wattloom.errors import InputError
from wattloom.metering.host_share import COUNTER, FILE, RANGE_UJ, Shared

LOCK: Final = ".lock"
"""Held while somebody writes into the folder."""


class VmShares:
    """A folder of shares. `like` has what is the same for every guest."""

    def __init__(self, folder: Path, like: Shared) -> None:
        self._folder = folder
        self._like = like
        self._written: dict[str, int] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(folder / LOCK)
        except BlockingIOError:
            raise InputError("vms", f"another export writes into {folder} already") from None
        except OSError as problem:
            raise InputError("vms", f"{folder} cannot be used: {problem.strerror or problem}") from problem

    def write(self, joules: dict[str, float], time_s: float, unix_s: float) -> list[str]:
        """Cumulative joules of every guest there is. Guests that are gone lose their files. What went wrong, in words:
        a full disk for one guest is no reason to forget the others."""
        problems: list[str] = []
        for guest, total in sorted(joules.items()):
            # A figure that was told never falls, whatever the sums are rounded to.
            energy_uj = max(round(total * 1e6), self._written.get(guest, 0))
            self._written[guest] = energy_uj
            try:
                self._write_one(guest, energy_uj % (RANGE_UJ + 1), time_s, unix_s)
            except OSError as problem:
                problems.append(f"the share of {guest} was not written: {problem.strerror or problem}")
        for guest in set(self._written) - set(joules):
            self._remove(guest)
        return problems

    def begin_anew(self, run: str) -> None:
        """Some time's joules are not known here: guests must not take them for none."""
        self._like = msgspec.structs.replace(self._like, run=run)

    def close(self) -> None:
        """Nothing is written any more: what lies there would be taken for true until it is stale."""
        for guest in list(self._written):
            self._remove(guest)
        if self._lock >= 0:
            with suppress(OSError):
                (self._folder / LOCK).unlink()
            os.close(self._lock)
            self._lock = -1

    def _write_one(self, guest: str, energy_uj: int, time_s: float, unix_s: float) -> None:
        folder = self._folder / folder_name(guest)
        tree = (folder / COUNTER).parent
        if not tree.exists():
            tree.mkdir(parents=True)
            _put(tree / "name", b"package-0\n")
            _put(tree / "max_energy_range_uj", b"%d\n" % RANGE_UJ)
        shared = msgspec.structs.replace(self._like, guest=guest, energy_uj=energy_uj, time_s=time_s, unix_s=unix_s)
        _put(folder / FILE, msgspec.json.encode(shared) + b"\n")
        _put(folder / COUNTER, b"%d\n" % energy_uj)

    def _remove(self, guest: str) -> None:
        self._written.pop(guest, None)
        folder = self._folder / folder_name(guest)
        shutil.rmtree((folder / COUNTER).parent, ignore_errors=True)
        with suppress(OSError):
            (folder / FILE).unlink()


def _locked(path: Path) -> int:
    """The file, open and held. Who held it before may have removed it since it was opened: then once more."""
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), path.stat()):
                return lock
        os.close(lock)


def folder_name(guest: str) -> str:
    """A guest's name as the name of a folder: it may hold anything, and must not lead elsewhere."""
    plain = re.sub(r"[^A-Za-z0-9._+-]", "_", guest)
    return plain if plain.strip(".") else "_" * max(len(plain), 1)


def _put(path: Path, content: bytes) -> None:
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.write_bytes(content)
        os.replace(beside, path)
    except OSError:
        with suppress(OSError):
            beside.unlink()
        raise
