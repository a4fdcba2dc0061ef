"""Journals as programs left them: one with a proper end, one whose program was killed with calls open.

Owns making, packing and unpacking them, and the next program's life on the killed one. A folder is packed whole: the
journal with SQLite's files beside it, keys, spool, workers' progress, and the marks that calls left.
"""

import gzip
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from tests.golden.comparing import lost

PROGRAMS: Final = Path(__file__).parent / "journal_files"
NAMES: Final = ("finished", "killed")
MAKERS: Final = {"finished": ("make_finished.py", 0), "killed": ("make_killed.py", -signal.SIGKILL)}
"""The program, and how it ends."""
JOURNAL: Final = "work.journal"
RECOVERED: Final = Path(__file__).with_name("recovered.json")
BOOTS: Final = ("same boot", "another boot")
"""Whether the machine was started anew since the kill: nothing is known of what had begun, then."""
PYTHON: Final = (3, 11)
"""What the killed program ran on: a function that was sent by value is bytecode of it."""
BY_VALUE: Final = "1-46"
TOO_LONG_S: Final = 120.0
AGO_S: Final = 60.0

Tell = Callable[[str], None]


def make(tell: Tell) -> None:
    """Both anew, by the code of today. The old ones are gone then: only where that is meant."""
    for name, (program, ends) in MAKERS.items():
        with tempfile.TemporaryDirectory(prefix="wattloom-golden-") as folder:
            done = _run(Path(folder), program)
            assert done.returncode == ends, done.stderr
            _pack(Path(folder), _archive(name))
        tell(f"journals: {name}")


def unpacked(name: str, folder: Path) -> Path:
    """The journal, in this folder."""
    with tarfile.open(_archive(name)) as archive:
        archive.extractall(folder, filter="data")
    return folder / JOURNAL


def recovery(boot: str) -> dict[str, Any]:
    """What the next program on the killed one's journal finds, and what becomes of it."""
    with tempfile.TemporaryDirectory(prefix="wattloom-golden-") as name:
        folder = Path(name)
        _killed_just_now(unpacked("killed", folder), boot)
        done = _run(folder, "recover.py")
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout.replace(str(folder), "FOLDER"))
        found["said"] = sorted(done.stderr.replace(str(folder), "FOLDER").splitlines())
        return found


def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECOVERED.read_text())
    return found


def record(tell: Tell) -> None:
    found = {}
    for number, boot in enumerate(BOOTS, start=1):
        found[boot] = recovery(boot)
        tell(f"recovery {number} of {len(BOOTS)}: {boot}")
    RECOVERED.write_text(json.dumps(found, indent=1) + "\n")


def different(boot: str) -> list[str]:
    """What the next program makes otherwise than it was recorded."""
    before = recorded()[boot]
    if sys.version_info[:2] != PYTHON:
        del before["recovered"][BY_VALUE]
    return list(lost(before, recovery(boot), boot))


# -- the folder --------------------------------------------------------------------------------------------------------


def _archive(name: str) -> Path:
    return PROGRAMS / f"{name}.tar.gz"


def _pack(folder: Path, target: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in sorted(folder.iterdir()):
            archive.add(path, path.name, filter=_nobodys)
    target.write_bytes(gzip.compress(packed.getvalue(), mtime=0))


def _nobodys(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid, entry.gid, entry.uname, entry.gname, entry.mtime = 0, 0, "", "", 0
    return entry


def _killed_just_now(journal: Path, boot: str) -> None:
    """As if it had happened here a minute ago: keys name their journal by its path, runs the machine's start."""
    here = Path("/proc/sys/kernel/random/boot_id").read_text().strip() if boot == BOOTS[0] else "another"
    for path, statement, values in (
        (journal, "UPDATE runs SET boot = ?, began = ?", (here, time.time() - AGO_S)),
        (journal.with_name(f"{JOURNAL}.keys"), "UPDATE keys SET boot = ?, journal = ?", (here, str(journal))),
    ):
        with closing(sqlite3.connect(path)) as connection, connection:
            assert connection.execute(statement, values).rowcount > 0


def _run(folder: Path, program: str) -> "subprocess.CompletedProcess[str]":
    paths = [str(PROGRAMS), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "XDG_STATE_HOME": str(folder / "state")}
    return subprocess.run(
        [sys.executable, str(PROGRAMS / program)],
        cwd=folder,
        env=environment | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=TOO_LONG_S,
    )
