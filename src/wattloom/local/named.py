"""Functions by their names, as `module:function`.

Owns the import, also from the working folder and in the worker, and the words for what is wrong with a name.
"""

import os
import sys
from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType
from typing import Any

from wattloom.errors import InputError


def named_function(name: str) -> Callable[..., Any]:
    """The function that `module:function` names; `package.module:Class.method` too. Raises InputError."""
    module_name, colon, path = name.partition(":")
    if not (module_name and colon and path):
        raise InputError(name, "must be module:function")
    found: Any = _module(module_name, name)
    for part in path.split("."):
        if not hasattr(found, part):
            raise InputError(name, f"{module_name} has no {path}{_instead(part, found)}")
        found = getattr(found, part)
    if not callable(found):
        raise InputError(name, f"{path} cannot be called: it is {type(found).__name__}")
    return found  # type: ignore[no-any-return]


def prepare_worker(module_name: str, stdout_to_stderr: bool) -> None:
    """In a worker, before its first call: the import is not a cost of the call, and stdout may be kept for JSON."""
    if stdout_to_stderr:
        os.dup2(2, 1)
    import_module(module_name)


def import_from_here() -> str:
    """Have modules of the working folder found, as Python at a prompt does; the folder."""
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    return here


def _module(module_name: str, name: str) -> ModuleType:
    here = import_from_here()
    try:
        return import_module(module_name)
    except ModuleNotFoundError as problem:
        if problem.name is not None and f"{module_name}.".startswith(f"{problem.name}."):
            raise InputError(name, f"there is no module {problem.name}, neither in {here} nor installed") from None
        raise InputError(name, _why_not(problem)) from problem
    except (Exception, SystemExit) as problem:
        raise InputError(name, _why_not(problem)) from problem


def _why_not(problem: BaseException) -> str:
    """With the line where it failed, the last one that is not the import's own."""
    trace, where = problem.__traceback__, ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith("<frozen"):
            where = f" ({file}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return f"cannot be imported: {type(problem).__name__}: {problem}{where}"


def _instead(part: str, found: object) -> str:
    close = get_close_matches(part, [each for each in dir(found) if not each.startswith("_")], n=1)
    return f"; did you mean {close[0]}?" if close else ""
