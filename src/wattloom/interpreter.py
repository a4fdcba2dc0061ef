"""How a Python of ours is started: a worker, a guard, a load, whatever runs a module of this package.

Owns its words and its surroundings. `python -m` alone looks for modules in the working folder first, which may be
anybody's, for those of the standard library and of this package too. So `-P` keeps that folder out. Whoever needs the
program's own paths is told of them afterwards, when all that is ours has been imported.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

PACKAGE_FOLDER: Final = str(Path(__file__).parents[1])
"""Where this package lies: the program may have found it by ways that another interpreter does not know."""
PATH: Final = "PYTHONPATH"
SAFE_PATH: Final = "PYTHONSAFEPATH"


def own_module(module: str, *words: str) -> list[str]:
    """The command that runs a module of this package; `own_environment` belongs to it."""
    flags = ["-s"] if sys.flags.no_user_site else []
    return [sys.executable, "-P", *flags, "-m", module, *words]


def own_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment to start it in. Variables of Python's that this interpreter was told to ignore stay behind."""
    found = dict(os.environ if environ is None else environ)
    if sys.flags.ignore_environment:
        found = {name: value for name, value in found.items() if not name.startswith("PYTHON")}
    before = found.get(PATH, "")
    return found | {PATH: f"{PACKAGE_FOLDER}{os.pathsep}{before}" if before else PACKAGE_FOLDER}


@contextmanager
def without_the_working_folder() -> Iterator[None]:
    """For processes that the standard library starts with words of its own, as `multiprocessing` does by `-c`."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        os.environ.pop(SAFE_PATH)
        if before is not None:
            os.environ[SAFE_PATH] = before
