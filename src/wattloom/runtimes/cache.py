"""What a runtime makes once and keeps: compiled classes and modules, in the user's cache.

Owns the folder and the way in: whole or not at all, and nobody else's. What is there is run, so a folder that others
may write to is not used.
"""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from wattloom.ownership import create_folder, refuse_foreign


def cache_folder(kind: str) -> Path:
    """For things of this kind. Raises OSError."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(base) if os.path.isabs(base) else Path(tempfile.gettempdir(), f"wattloom-{os.geteuid()}")
    folder.mkdir(parents=True, exist_ok=True)
    for part in ("wattloom", kind):
        folder = folder / part
        create_folder(folder)
    return folder


def kept(kind: str, name: str, make: Callable[[Path], None]) -> Path:
    """The file or folder of this name; if there is none, `make` is given a path to make it at. Raises OSError, and
    whatever `make` raises."""
    folder = cache_folder(kind)
    path = folder / name
    with suppress(FileNotFoundError):
        refuse_foreign(path)
        return path
    with tempfile.TemporaryDirectory(dir=folder, prefix=".making-") as making:
        new = Path(making, name)
        make(new)
        with suppress(OSError):  # somebody was faster: a folder that is not empty
            os.replace(new, path)
    return path
