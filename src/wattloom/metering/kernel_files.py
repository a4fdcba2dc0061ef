"""Numbers in files of the kernel: how they are read, and what went wrong, in words.

Owns nothing but that. Such a file is answered by a driver from memory or from a register: reading it does not wait for
anything that may never come, so meters read in the thread that asks.
"""

import os
from pathlib import Path
from typing import Final

from wattloom.errors import WattloomError

HWMON: Final = Path("/sys/class/hwmon")
LONGEST: Final = 40


class Unreadable(WattloomError):
    """A file of the kernel gave no number; the text says why."""

    def __init__(self, path: Path, problem: str, forbidden: bool = False) -> None:
        super().__init__(f"{path} {problem}")
        self.forbidden = forbidden


def number(path: Path) -> int:
    """The number in a file. Raises Unreadable."""
    try:
        text = path.read_bytes()
    except PermissionError:
        raise Unreadable(path, "may not be read by this user", forbidden=True) from None
    except FileNotFoundError:
        raise Unreadable(path, "is not there (any more)") from None
    except OSError as problem:  # ENODATA, EIO, ENXIO: the driver has no answer just now
        raise Unreadable(path, f"cannot be read: {problem.strerror or problem}") from None
    try:
        return int(text)
    except ValueError:
        raise Unreadable(path, f"shows {text[:LONGEST]!r}, which is no whole number") from None


def optional(path: Path) -> int | None:
    """The number in a file, where there may be none."""
    try:
        return number(path)
    except Unreadable:
        return None


def word(path: Path) -> str:
    """The text in a file. Empty: it cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def entries(folder: Path) -> list[str]:
    """What a folder holds, in order. Empty: it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def sensors(root: Path, name: str) -> list[Path]:
    """The folders of the hardware monitors of this name."""
    return [root / entry for entry in entries(root) if word(root / entry / "name") == name]


def labelled(folder: Path, kind: str) -> dict[str, Path]:
    """A hardware monitor's inputs of one kind (`energy`, `power`) by their labels; without one, by their own names. An
    input that has a label and is gone is among them: it must be missed."""
    names = {entry.rpartition("_")[0] for entry in entries(folder) if entry.endswith(("_input", "_label"))}
    found = sorted((name for name in names if name.startswith(kind)), key=lambda name: (len(name), name))
    return {word(folder / f"{name}_label") or name: folder / f"{name}_input" for name in found}
