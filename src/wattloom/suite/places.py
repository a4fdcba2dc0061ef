"""Where what was installed for the suite lies: in the user's cache, one folder for each function and version of it.

Owns the paths. A folder's name tells what it was made of, so that other sources or versions have another one; it is
there whole or not at all (`installing`).
"""

import os
import tempfile
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from typing import Final

from wattloom.errors import InputError
from wattloom.ownership import NotOurs, refuse_foreign
from wattloom.suite.catalogue import SuiteFunction, described

SOURCES: Final = {
    "node": ("node", "js"),
    "java": ("java", "java"),
    "native": ("native", "cpp"),
    "wasm": ("native", "cpp"),
}
"""By runtime: the folder of a function's source in this package, and how it ends."""
COMPILED: Final = ("native", "wasm")
RECIPE: Final = "1"
"""To be raised when something is installed in another way."""


def suite_folder() -> Path:
    """$XDG_CACHE_HOME/wattloom/suite, or ~/.cache/wattloom/suite; for a user without a home, in a temporary folder.
    What is there is run: one that others may write to is refused. Raises InputError."""
    folder = _cache() / "suite"
    try:
        for part in (folder.parent, folder):
            with suppress(FileNotFoundError, NotADirectoryError):
                refuse_foreign(part)
    except NotOurs as problem:
        raise InputError(str(problem.filename), str(problem.strerror)) from problem
    return folder


def _cache() -> Path:
    given = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(given):
        return Path(given) / "wattloom"
    try:
        return Path.home() / ".cache" / "wattloom"
    except RuntimeError:
        return Path(tempfile.gettempdir()) / f"wattloom-{os.getuid()}"


def source(name: str) -> Path:
    """The file in this package that a function of another language than Python is."""
    one = described(name)
    folder, ending = SOURCES[one.runtime]
    stem = one.family.replace("-", "_")
    if one.runtime == "java":
        stem = "".join(part.capitalize() for part in stem.split("_"))
    return Path(str(files("wattloom.suite"))) / folder / f"{stem}.{ending}"


def installed(name: str) -> Path:
    """The folder of what was, or would be, installed for a function."""
    return suite_folder() / f"{name}-{_digest(name)}"


@cache
def _digest(name: str) -> str:
    """Of its source and of the versions it is made of."""
    one = described(name)
    found = blake2b("\n".join((RECIPE, name, *one.packages)).encode(), digest_size=5)
    for path in _made_of(one):
        found.update(path.read_bytes())
    return found.hexdigest()


def _made_of(one: SuiteFunction) -> list[Path]:
    """Files of ours that go into what is installed."""
    here = Path(str(files("wattloom.suite")))
    if one.runtime == "python":
        return [here / "networks.py", here / "families" / "image_recognition.py"] if one.builders else []
    header = include() / "wattloom.h"
    return [source(one.name), *([header] if one.runtime in COMPILED else [])]


def include() -> Path:
    """The folder of `wattloom.h`."""
    return Path(str(files("wattloom.runtimes")))
