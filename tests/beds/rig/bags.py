"""Bags on the rig in real time: the ordinary command's way, real workers, the ordinary meter on the rig's counters.

Owns the functions that are run and how their true E and W are found: every execution says what it has burnt.
"""

import os
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
from tests.beds.rig.conditions import Conditions
from tests.beds.rig.functions import FUNCTIONS, Burnt, join
from tests.beds.rig.rig import Rig
from tests.beds.rig.virtual_bags import Truth

from wattloom.affinity.bags import Lots
from wattloom.affinity.taking import FunctionsRequest, Taken, profile_functions

HERE = "tests.beds.rig.bags"


def frugal(cpu_s: float, folder: str) -> None:
    _note(FUNCTIONS[0](cpu_s), folder)


def plain(cpu_s: float, folder: str) -> None:
    _note(FUNCTIONS[1](cpu_s), folder)


def hungry(cpu_s: float, folder: str) -> None:
    _note(FUNCTIONS[2](cpu_s), folder)


def blazing(cpu_s: float, folder: str) -> None:
    _note(FUNCTIONS[3](cpu_s), folder)


NAMES = ("frugal", "plain", "hungry", "blazing")


def _note(burnt: Burnt, folder: str) -> None:
    with open(Path(folder) / str(os.getpid()), "ab") as file:
        file.write(msgspec.json.encode(burnt) + b"\n")


def run(
    cpu_s: float, lots: Lots, seconds: float, conditions: Conditions, folder: Path
) -> "tuple[Taken, dict[str, Truth]]":
    """Take bags of the rig's four functions, and say what they truly come to."""
    burnt = folder / "burnt"
    burnt.mkdir()
    words = tuple(f'{HERE}:{name}=[{cpu_s}, "{burnt}"]' for name in NAMES)
    request = FunctionsRequest(words, lots, seconds, output=folder / "functions.json")
    with Rig(conditions) as rig:
        how: dict[str, Any] = {"meter": rig.meter(), "initializer": join, "initargs": (rig.slots,)}
        taken = profile_functions(request, lambda: "", **how)
        truth = rig.stop()
    calls: dict[int, list[Burnt]] = {}
    for file in burnt.iterdir():
        for line in file.read_bytes().splitlines():
            call = msgspec.json.decode(line, type=Burnt)
            if call.worker in truth.workers:
                calls.setdefault(call.function, []).append(call)
    return taken, {
        f"{HERE}.{name}": Truth(
            1.0 / fmean(call.cpu_ended - call.cpu_began for call in calls[number]),
            fmean(truth.joules(call) for call in calls[number]),
        )
        for number, name in enumerate(NAMES)
        if calls.get(number)
    }


def error(said: float | None, true: float) -> float:
    """Relative; what is not known is as wrong as can be."""
    return inf if said is None else abs(said / true - 1.0)
