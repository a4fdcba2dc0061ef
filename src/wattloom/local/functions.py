"""Functions as they are sent: pickled once as long as nothing they use has changed.

Owns the cache. A function that is importable is sent by its name. One that is not (a script's, a lambda, a closure) is
sent by value with the globals it uses; it is pickled anew for each call unless all it uses cannot change.
"""

import importlib.util
import sys
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Final
from weakref import WeakKeyDictionary

import cloudpickle

from wattloom.errors import clean
from wattloom.local.chunking import Many
from wattloom.runtimes.function_file import FunctionFile

FROZEN: Final = (int, float, complex, str, bytes, bool, type(None), ModuleType, BuiltinFunctionType)
DEEPEST: Final = 8
OWN_NAME: Final = "__wattloom_name__"
"""What a function has that is called otherwise than its module and name say."""


class Sent:
    """A function as it is sent."""

    __slots__ = ("bare", "blob", "digest", "name", "uses")

    def __init__(self, name: str, blob: bytes, uses: "dict[str, object] | None") -> None:
        self.bare: CodeType | None = None
        """Its code, if it uses nothing else at all."""
        self.name = name
        self.blob = blob
        self.digest = blake2b(blob, digest_size=16).hexdigest()
        self.uses = uses
        """What it used when it was pickled; None: nothing that can change."""


class Functions:
    """Pickled functions by the function itself."""

    def __init__(self) -> None:
        self._sent: WeakKeyDictionary[Callable[..., Any], Sent] = WeakKeyDictionary()
        self._importable: dict[str, bool] = {}

    def sent(self, function: Callable[..., Any]) -> Sent:
        """The function, ready to be sent. Raises whatever pickling raises."""
        if isinstance(function, FunctionFile):
            return Sent(function.name, function.blob, None)
        known = self._sent.get(function) if isinstance(function, FunctionType) else None
        if known is not None:
            bare = known.bare is not None and known.bare is function.__code__ and not function.__defaults__
            if bare or known.uses is None or _used_by(function) == known.uses:
                return known
        return self._pickle(function)

    def _pickle(self, function: Callable[..., Any]) -> Sent:
        by_name = self._travels_by_name(function)
        blob = cloudpickle.dumps(function, protocol=5)
        sent = Sent(name_of(function), blob, None if by_name else _used_by(function))
        if isinstance(function, FunctionType) and (by_name or sent.uses is not None):
            self._sent[function] = sent
            if sent.uses is not None and len(sent.uses) == 1 and not _names(function.__code__):
                sent.bare = function.__code__
        return sent

    def _travels_by_name(self, function: Callable[..., Any]) -> bool:
        """Whether the worker will find it by its name; a module that only we have is sent by value."""
        name = getattr(function, "__module__", None)
        module = sys.modules.get(name or "")
        if module is None or name == "__main__":
            return False
        if not self._is_importable(module):
            cloudpickle.register_pickle_by_value(module)
            return False
        found: object = module
        for part in getattr(function, "__qualname__", "<").split("."):
            found = getattr(found, part, None)
        return found is function

    def _is_importable(self, module: ModuleType) -> bool:
        known = self._importable.get(module.__name__)
        if known is None:
            known = self._importable[module.__name__] = _is_importable(module)
        return known


def _is_importable(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if module.__name__ in sys.builtin_module_names or file is None:
        return True
    try:
        spec = importlib.util.find_spec(module.__name__)
    except (ImportError, ValueError, AttributeError):
        return False
    if spec is not None and spec is getattr(module, "__spec__", None):  # remembered, not found
        spec = _found_afresh(module.__name__)
    return spec is not None and spec.origin is not None and Path(spec.origin) == Path(file)


def _found_afresh(name: str) -> Any:
    """What an interpreter that has not imported the module yet would find on the path."""
    from importlib.machinery import PathFinder

    path: Any = None
    parent, _, _ = name.rpartition(".")
    if parent:
        above = sys.modules.get(parent)
        found = _found_afresh(parent) if above is not None else None
        if found is None:
            return None
        path = found.submodule_search_locations
    return PathFinder.find_spec(name, path)


def name_of(function: Callable[..., Any]) -> str:
    """How a function is called in the journal: module and name, a script's by the script's name; or as it says by
    itself (`__wattloom_name__`)."""
    if isinstance(function, Many):
        return f"{name_of(function.func)} x{function.size}"
    if isinstance(function, FunctionFile):
        return function.name
    own = getattr(function, OWN_NAME, None)
    if isinstance(own, str) and own:
        return clean(own)
    inner = getattr(function, "func", function) if not isinstance(function, FunctionType) else function
    module = getattr(inner, "__module__", None) or type(inner).__module__
    name = getattr(inner, "__qualname__", None) or type(inner).__qualname__
    if module == "__main__":
        file = getattr(sys.modules.get("__main__"), "__file__", None)
        module = Path(file).stem if file else "interactive"
    if name.endswith("<lambda>") and isinstance(inner, FunctionType):
        name = f"{name}:{inner.__code__.co_firstlineno}"
    return clean(f"{module}.{name}")


# -- what a function uses ----------------------------------------------------------------------------------------------


def _used_by(function: Callable[..., Any]) -> dict[str, object] | None:
    """Everything a function sent by value takes along, if it can be told apart by identity; None: it cannot."""
    uses: dict[str, object] = {}
    return uses if isinstance(function, FunctionType) and _gather(function, uses, "", 0) else None


def _gather(function: FunctionType, uses: dict[str, object], prefix: str, depth: int) -> bool:
    if depth > DEEPEST or function.__dict__ or function.__kwdefaults__:
        return False
    code = function.__code__
    uses[f"{prefix}()"] = code
    found: dict[str, object] = {}
    for name in _names(code):
        if name in function.__globals__:
            found[name] = function.__globals__[name]
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[f"{name}'"] = cell.cell_contents
        except ValueError:
            return False
    for position, value in enumerate(function.__defaults__ or ()):
        found[f"={position}"] = value
    return all(_note(f"{prefix}.{name}", value, function, uses, depth) for name, value in found.items())


def _note(name: str, value: object, user: FunctionType, uses: dict[str, object], depth: int) -> bool:
    if isinstance(value, FROZEN):
        uses[name] = (type(value), value)
        return True
    if value is user:
        return True
    if isinstance(value, FunctionType):
        return name in uses or _gather(value, uses, name, depth + 1)
    if isinstance(value, type) and value.__module__ != "__main__":
        uses[name] = value
        return True
    return False


def _names(code: CodeType) -> set[str]:
    """Names of globals (and of attributes: one too many does no harm) in a function and those inside it."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names
