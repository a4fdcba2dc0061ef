"""Where plans are found by their digest: one file per plan, in the state folder.

Owns the folder. Who decides by a plan (the policy `planned`, a log that is replayed) names it by its digest and finds
it here; a file that does not hold what its name says is as good as none.
"""

import os
import re
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

from wattloom.errors import InputError
from wattloom.planning.plan import Plan
from wattloom.planning.plan_file import encode_plan, read_plan
from wattloom.settings import state_folder

DIGEST: Final = re.compile(r"[0-9a-f]{32}\Z")
KEPT: Final = 64
"""So many plans are kept in memory."""


def plans_folder() -> Path:
    """Where this user's plans are found by their digest."""
    return state_folder() / "plans"


def is_digest(text: str) -> bool:
    return DIGEST.match(text) is not None


def keep_plan(plan: Plan, folder: Path | None = None) -> str:
    """Put the plan where it is found by its digest, which is returned. All of it is written, or nothing."""
    path = _path(plan.digest, folder)
    if not path.exists() or _digest_in(path) != plan.digest:
        _write(path, encode_plan(plan))
    return plan.digest


def find_plan(digest: str, folder: Path | None = None) -> Plan:
    """The plan of this digest. InputError: it is not there, or is not what its name says."""
    return _kept(digest, folder or plans_folder())


@lru_cache(maxsize=KEPT)
def _kept(digest: str, folder: Path) -> Plan:
    """A digest names one content: what was read once stays true."""
    path = _path(digest, folder)
    if not is_digest(digest):
        raise InputError(f"plan {digest}", "is no digest of a plan: 32 hexadecimal digits")
    if not path.exists():
        raise InputError(
            f"plan {digest}", f"is not in {folder}: `wattloom plan keep PLAN.json` puts a plan there, by its digest"
        )
    plan = read_plan(path)
    if plan.digest != digest:
        raise InputError(str(path), f"holds the plan {plan.digest}: the file was changed; keep the right one again")
    return plan


def _digest_in(path: Path) -> str:
    try:
        return read_plan(path).digest
    except InputError:
        return ""


def _path(digest: str, folder: Path | None) -> Path:
    return (folder or plans_folder()) / f"{digest}.json"


def _write(path: Path, content: bytes) -> None:
    """A new file, brought to the disk, takes the name."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=path.parent, prefix=".plan.", delete=False) as part:
            try:
                part.write(content)
                part.flush()
                os.fsync(part.fileno())
                os.replace(part.name, path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(part.name)
                raise
    except OSError as problem:
        raise InputError(str(path), f"cannot be written: {problem.strerror or problem}") from problem
