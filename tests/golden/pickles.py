"""Pickles as journals hold them, made by the code before the redesign: `python -m tests.golden.pickles` prints them.

Owns which objects are pickled, by the names that modules had. It runs on the old code, whose output is `pickles.json`,
and on that of today, where former names import with a warning.
"""

import base64
import json
import pickle
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).with_name("pickles.json")


def main() -> None:
    print(json.dumps({name: base64.b64encode(pickle.dumps(made, 4)).decode() for name, made in objects()}, indent=1))


def objects() -> Iterator[tuple[str, Any]]:
    """What callers send to workers, and what these send back."""
    many, named = import_module("wattloom.local.many"), import_module("wattloom.local.named")
    yield "a chunk of calls", many.Many(len, 2)
    yield "its results", many.Results([1], ValueError("two"), "Traceback")
    yield "a function by its name", named.NamedFunction("posixpath:basename", "/")
    yield "a command", import_module("wattloom.local.command").Command(["ls"])
    yield "a command that failed", import_module("wattloom.local.command").CommandFailed(3, "it failed")
    for name in ("tasks", "functions", "logs", "prune"):
        yield f"wattloom.{name}", getattr(import_module("wattloom.journal.questions"), name)
    yield "wattloom.machines", import_module("wattloom.cluster.listing").machines
    yield "an input error", import_module("wattloom.errors").InputError("cpu", "must be above 0")
    yield "an executor that is lost", import_module("wattloom.local.errors").ExecutorLost("it has ended")
    yield "a full journal", import_module("wattloom.journal.errors").JournalFull(Path("work.journal"), "disk full")
    yield "a meter that hangs", import_module("wattloom.metering.patience").NoAnswer("no answer for 5 s")


def unpickled(name: str) -> Any:
    """The object of the code of then, made by the classes of today."""
    kept: dict[str, str] = json.loads(FILE.read_text())
    return pickle.loads(base64.b64decode(kept[name]))


def names() -> list[str]:
    return list(json.loads(FILE.read_text()))


if __name__ == "__main__":
    main()
