"""Functions by their names, as `module:function`.

Owns the import, also from the working folder and in the worker, and the words for what is wrong with a name. The folder
comes last on the path: what is installed, and the standard library before all, is never taken from there.
"""

import os
import sys
from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from wattloom.errors import InputError
from wattloom.program import working_folder


def named_function(name: str) -> Callable[..., Any]:
    """The function that `module:function` names, on the path as it is; `package.module:Class.method` too. Raises
    InputError."""
    module_name, colon, path = name.partition(":")
    if not (module_name and colon and path):
        raise InputError(name, "must be module:function")
    found: Any = _module(module_name, name)
    for part in path.split("."):
        if not hasattr(found, part):
            raise InputError(name, f"{module_name} has no {path}{_instead(part, found)}{_hidden(module_name)}")
        found = getattr(found, part)
    if not callable(found):
        raise InputError(name, f"{path} cannot be called: it is {type(found).__name__}")
    return found  # type: ignore[no-any-return]


def prepare_worker(module_name: str, stdout_to_stderr: bool) -> None:
    """In a worker, before its first call: the import is not a cost of the call, and stdout may be kept for JSON."""
    if stdout_to_stderr:
        prints_to_stderr()
    import_module(module_name)


def prints_to_stderr() -> None:
    """In a worker: what calls print goes to standard error."""
    os.dup2(2, 1)


def prints_nowhere() -> None:
    """In a worker: what calls print is kept for `wattloom logs`, and keeps nobody's terminal or JSON busy."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


class NamedFunction:
    """What is sent to a worker for `module:function`: the name, and the folder to import it from too, so that a later
    run which takes the call up again finds it, wherever that one was typed."""

    def __init__(self, name: str, folder: str) -> None:
        import_also_from(folder)
        self._name = name
        self._folder = folder
        self._function = named_function(name)
        module, _, path = name.partition(":")
        self.__module__ = getattr(self._function, "__module__", None) or module
        self.__qualname__ = getattr(self._function, "__qualname__", None) or path

    def declared(self) -> dict[str, Any]:
        """The options it was decorated with."""
        found: Any = getattr(self._function, "__wattloom__", None)
        return {} if found is None else msgspec.structs.asdict(found[0])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __reduce__(self) -> tuple[Callable[[str, str], Callable[..., Any]], tuple[str, str]]:
        """The worker has the function itself."""
        return _found_from, (self._name, self._folder)


def _found_from(name: str, folder: str) -> Callable[..., Any]:
    import_also_from(folder)
    found = named_function(name)
    undecorated: Any = getattr(found, "__wattloom__", (None, found))[1]
    return undecorated  # type: ignore[no-any-return]


def import_also_from(folder: str) -> None:
    """Have modules of a folder found that are found nowhere else."""
    if folder not in sys.path:
        sys.path.append(folder)


def _module(module_name: str, name: str) -> ModuleType:
    try:
        return import_module(module_name)
    except ModuleNotFoundError as problem:
        if problem.name is not None and f"{module_name}.".startswith(f"{problem.name}."):
            here = working_folder() or "the working folder"
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


def _hidden(module_name: str) -> str:
    """If the working folder has a module of that name which was not the one that was found."""
    first = module_name.partition(".")[0]
    file = getattr(sys.modules.get(first), "__file__", None)
    here = Path(working_folder())
    for own in (here / f"{first}.py", here / first / "__init__.py"):
        if own.is_file() and (file is None or not own.samefile(file)):
            return f" (it is {file or 'built in'}, which goes before {own}: give that another name)"
    return ""


def _instead(part: str, found: object) -> str:
    close = get_close_matches(part, [each for each in dir(found) if not each.startswith("_")], n=1)
    return f"; did you mean {close[0]}?" if close else ""
