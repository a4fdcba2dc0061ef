"""Which program this is: the name by which its journal is found again, by it and by nobody else.

Owns that name. A script is known by its path. What runs other people's code (pytest, a notebook's kernel, a server,
`python -c`, a prompt) is known by its folder and its command line too, and by that of the Python that started it: what
a pool or a test runner starts is told by its own words only that it is one of those. A worker is known by the program
that started it.
"""

import hashlib
import os
import re
import site
import sys
import sysconfig
from pathlib import Path
from typing import Final

INTERACTIVE: Final = "interactive"
LONGEST_STEM: Final = 60
APART: Final = "@"
"""In a name: before what tells one use of a launcher from another."""
HALF: Final = 6
"""Letters for its folder, and as many for its command line."""
NESTED: Final = "nested"
STDIN: Final = "<stdin>"
"""What Python gives as the file of a script that it reads there."""
OWN: Final = "wattloom"
_INSIDE: Final[list[str]] = []
"""In a worker: the name of the program that started it."""


def this_program() -> str:
    """Its name."""
    if _INSIDE:
        return f"{_INSIDE[-1]}{APART}{NESTED}"
    path = program_path()
    return name_of(path) if path and not _is_installed(path) else name_of(path) + _apart(path)


def name_of(path: str) -> str:
    """The name of a script; without a path, of what is typed in."""
    if not path:
        return INTERACTIVE
    script = Path(path)
    stem = script.parent.name if script.stem == "__main__" else script.stem
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", stem)[:LONGEST_STEM].strip("-.") or "program"
    return f"{plain}-{_hash(path)[:8]}"


def set_inside(program: str) -> None:
    """In a worker: executors made here are of this program, not of all that have workers."""
    _INSIDE[:] = [program.removesuffix(f"{APART}{NESTED}")]


def program_path() -> str:
    """Full path of the script that runs; empty: there is none, as in a notebook or at a prompt."""
    main = _main_file()
    return os.path.realpath(main) if main and main != STDIN else ""


def _main_file() -> str:
    return getattr(sys.modules.get("__main__"), "__file__", None) or ""


def working_folder() -> str:
    """Empty: it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return ""


# -- launchers ---------------------------------------------------------------------------------------------------------


def _apart(path: str) -> str:
    """What tells one use of a launcher from another."""
    return f"{APART}{_hash(working_folder())[:HALF]}{_hash(_command(path))[:HALF]}"


def _is_installed(path: str) -> bool:
    """Whether a main module came with Python or with a package, or is a command of one; but for our own command, which
    takes up what was cut off, wherever it was typed."""
    if Path(path).name == OWN:
        return False
    known = {sysconfig.get_path(name) for name in ("scripts", "stdlib", "purelib", "platlib")}
    known |= {os.path.dirname(sys.executable), os.path.join(site.getuserbase(), "bin"), site.getusersitepackages()}
    return any(path.startswith(os.path.realpath(folder) + os.sep) for folder in known if folder)


def _command(path: str) -> str:
    """How it was started. A notebook's kernel gets another file each time: there its name counts, where it is known."""
    if Path(path).stem.startswith("ipykernel"):
        return os.environ.get("JPY_SESSION_NAME", "")
    # A child of multiprocessing has its parent's arguments, and beside them numbers of pipes.
    own = not path and "--multiprocessing-fork" not in sys.orig_argv
    return "\0".join([*(sys.orig_argv[1:] if own else sys.argv[1:]), *_read_from(), *_started_by()])


def _read_from() -> list[str]:
    """Of a script from standard input: its file. A pipe has a number that no other has: nobody knows what came through
    the one before."""
    return [_link("/proc/self/fd/0")] if _main_file() == STDIN else []


def _started_by() -> list[str]:
    """The words of the parent, if it is a Python as this one."""
    parent = f"/proc/{os.getppid()}"
    try:
        if _link(f"{parent}/exe") == _link("/proc/self/exe") != "":
            return os.fsdecode(Path(parent, "cmdline").read_bytes()).split("\0")
    except OSError:  # it has just ended, or may not be looked at
        pass
    return []


def _link(path: str) -> str:
    """Where it leads; empty: nobody may know."""
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
