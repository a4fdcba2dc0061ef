"""How the functions of a plan are called, by their names.

Owns what a name can mean: what the caller says (`NAME=module:function=[1]`), a function of the workload suite, a
function's file (`f.js:handler`), `module:function`, or the name that journals have (`module.function`).
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from wattloom import suite
from wattloom.affinity.targets import targets
from wattloom.errors import InputError
from wattloom.load_testing.load_generator import Call
from wattloom.local.loading import LoadedFunction

SEEDS: Final = 4
"""Inputs of each function of the suite: made before anything is driven, as making one may take longer than a call."""


def calls_of(functions: Iterable[str], said: Sequence[str] = ()) -> dict[str, Call]:
    """A way to call each function. InputError: there is none, or what was said is of no function."""
    wanted = list(dict.fromkeys(functions))
    words = dict(_said(each) for each in said)
    for name in words:
        if name not in wanted:
            raise InputError("call", f"{name} is not in the plan, which has {', '.join(wanted)}")
    return {name: _call(name, words.get(name)) for name in wanted}


def _said(text: str) -> tuple[str, str]:
    name, equals, words = text.partition("=")
    if not (name and equals and words):
        raise InputError("call", f"must be NAME=module:function or NAME=module:function=[arguments], not {text!r}")
    return name, words


def _call(name: str, words: str | None) -> Call:
    if words is not None:
        return _named(words)
    if name in suite.NAMES:
        work = suite.function(name)
        inputs = [work.args(seed) for seed in range(SEEDS)]
        return Call(_sent(work.function), lambda number: inputs[number % SEEDS])
    _refuse_more_than_a_name(name)
    if ":" in name or Path(name).is_file():
        return _named(name)
    for at in _dots(name):
        with suppress(InputError):
            return _named(f"{name[:at]}:{name[at + 1 :]}")
    raise InputError(f"functions.{name}", f"nobody knows how it is called: say --call {name}=module:function")


def _refuse_more_than_a_name(name: str) -> None:
    """A plan may be somebody else's: it names functions of ours, and gives them no arguments and no files elsewhere."""
    path = Path(name.partition(":")[0])
    if "=" in name or path.is_absolute() or ".." in path.parts:
        text = "is more than the name of a function, which is all that is taken from a plan: say --call NAME=..."
        raise InputError(f"functions.{name}", text)


def _named(words: str) -> Call:
    target = targets([words])[0]
    return Call(target.function, _always(target.args))


def _sent(function: Callable[..., Any]) -> Callable[..., Any]:
    """What an executor is given: of a function in a file, the file."""
    return function.file if isinstance(function, LoadedFunction) else function


def _always(args: tuple[Any, ...]) -> Callable[[int], tuple[Any, ...]]:
    return lambda number: args


def _dots(name: str) -> list[int]:
    """Where a module's name may end, the last first."""
    return [at for at in range(len(name) - 1, 0, -1) if name[at] == "."]
