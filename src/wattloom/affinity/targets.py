"""What is profiled: functions by their names, with the arguments they are called with.

Owns the words and what they mean. `module:function`, `file.py:function`; arguments behind `=` as a JSON list.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from wattloom.errors import InputError
from wattloom.local.functions import name_of
from wattloom.local.import_path import NamedFunction


class Target(msgspec.Struct, frozen=True):
    """One function to profile."""

    name: str
    """As it stands in journals, so that what ordinary runs tell is of the same function."""
    words: str
    """As it was named."""
    function: Callable[..., Any]
    args: tuple[Any, ...] = ()


def targets(words: Sequence[str]) -> list[Target]:
    """All that were named. InputError says what is wrong with which."""
    found = [_target(each) for each in words]
    names = [each.name for each in found]
    for target in found:
        if names.count(target.name) > 1:
            raise InputError("functions", f"{target.words}: {target.name} is there twice")
    return found


def _target(words: str) -> Target:
    named, given, text = words.partition("=")
    args = _arguments(words, text) if given else ()
    function = NamedFunction(*_module(named))
    return Target(name_of(function), words, function, args)


def _module(named: str) -> tuple[str, str]:
    """`module:function` and the folder to find it in."""
    file, colon, function = named.rpartition(":")
    if not (file and colon and function):
        raise InputError(named, "must be module:function or file.py:function, with arguments as in module:function=[1]")
    if not file.endswith(".py"):
        return named, os.getcwd()
    path = Path(file)
    if not path.is_file():
        raise InputError(named, f"there is no file {file}")
    return f"{path.stem}:{function}", str(path.resolve().parent)


def _arguments(words: str, text: str) -> tuple[Any, ...]:
    try:
        return tuple(msgspec.json.decode(text.encode(), type=list[Any]))
    except (msgspec.DecodeError, UnicodeEncodeError) as problem:
        raise InputError(words, f"arguments must be a JSON list, as in [1, 2]: {problem}") from problem
