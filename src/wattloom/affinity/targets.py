"""What is profiled: functions by their names, with the arguments they are called with.

Owns the words and what they mean: functions of the suite by their names, `module:function`, `file.py:function`, and
files of other languages as `wattloom.load` takes them; arguments behind `=` as a JSON list.
"""

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec

from wattloom.errors import InputError
from wattloom.files import UNREADABLE
from wattloom.local.functions import name_of
from wattloom.local.import_path import NamedFunction
from wattloom.local.loading import LoadedFunction, load, split_spec
from wattloom.local.options import Options

SUITE: Final = "wattloom.suite"
SEED: Final = 1
"""Of the arguments of the suite's functions."""
HOW: Final = "module:function, file.py:function, a file of another language or a function of the suite, with arguments "


class Target(msgspec.Struct, frozen=True):
    """One function to profile."""

    name: str
    """As it stands in journals, so that what ordinary runs tell is of the same function."""
    words: str
    """As it was named."""
    function: Callable[..., Any]
    """What an executor is given."""
    args: tuple[Any, ...] = ()
    options: Options = Options()
    python: bool = True
    """Else it is timed from outside, call by call."""


def targets(words: Sequence[str]) -> list[Target]:
    """All that were named; none: those of the suite that can run here. InputError says what is wrong with which."""
    found = [_target(each) for each in words or usual()]
    names = [each.name for each in found]
    for target in found:
        if names.count(target.name) > 1:
            raise InputError("functions", f"{target.words}: {target.name} is there twice")
    return found


def usual() -> tuple[str, ...]:
    """What is profiled if nobody says what."""
    suite = _suite()
    return () if suite is None else tuple(suite.ready())


def _suite() -> Any:
    """None: it is not there."""
    return None if find_spec(SUITE) is None else import_module(SUITE)


def _target(words: str) -> Target:
    named, given, text = words.partition("=")
    args = _arguments(words, text) if given else ()
    suite = _suite()
    if suite is not None and named in suite.NAMES:
        work = suite.function(named)
        return _made(named, words, work.function, args or work.args(SEED))
    path, _ = split_spec(named)
    if path.is_file() and path.suffix != ".py":
        return _made("", words, load(named), args)
    return _made("", words, NamedFunction(*_module(named)), args)


def _made(name: str, words: str, function: Callable[..., Any], args: tuple[Any, ...]) -> Target:
    if isinstance(function, LoadedFunction):
        options, file = function.__wattloom__
        return Target(name or function.name, words, file, args, options, python=False)
    return Target(name or name_of(function), words, function, args)


def _module(named: str) -> tuple[str, str]:
    """`module:function` and the folder to find it in."""
    file, colon, function = named.rpartition(":")
    if not (file and colon and function):
        raise InputError(named, f"must be {HOW}as in module:function=[1]")
    if not file.endswith(".py"):
        return named, os.getcwd()
    path = Path(file)
    if not path.is_file():
        raise InputError(named, f"there is no file {file}")
    return f"{path.stem}:{function}", str(path.resolve().parent)


def _arguments(words: str, text: str) -> tuple[Any, ...]:
    try:
        return tuple(msgspec.json.decode(text.encode(), type=list[Any]))
    except (*UNREADABLE, UnicodeEncodeError) as problem:
        raise InputError(words, f"arguments must be a JSON list, as in [1, 2]: {problem}") from problem
