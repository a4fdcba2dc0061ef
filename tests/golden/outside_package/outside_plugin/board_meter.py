"""The meter of the how-to: a board whose driver shows a counter of microjoules that wraps at 32 bits."""
# mypy: ignore-errors

import os
from pathlib import Path

from wattloom.cluster.profile import MachineProfile
from wattloom.energy.forecast import Unknown
from wattloom.metering.count import Limits
from wattloom.metering.counters import Counters, Raw
from wattloom.metering.protocol import Sample


class BoardMeter:
    """The whole board, as its power chip counts it."""

    name = "outside-board"
    summary = "the board's power chip"
    quantity = "wall"
    provenance = "measured"
    model_error = 0.4  # functions differ in joules per CPU second; the kit asks, since nobody else can know

    def __init__(self, file: Path = Path("/sys/class/hwmon/hwmon0/energy1_input")) -> None:
        self._file = file
        # More than 100 W cannot be; a count that stands still for 5 s is not at work. One step is a microjoule.
        self._counters = Counters(Limits(most_w=100.0, still_s=5.0), joules=1e-6, update_s=0.01)

    def available(self) -> str | None:
        try:
            int(self._file.read_text())
        except PermissionError:
            return f"{self._file} may not be read by this user\nuntil the next boot: sudo chmod a+r {self._file}"
        except (OSError, ValueError) as problem:
            return f"there is no counter in {self._file} ({problem})\nload the board's driver"
        return None

    def read(self, now: float) -> Sample | Unknown:
        refusal = self._counters.refusal(now)  # time ran backwards
        if refusal is not None:
            return refusal
        try:
            value = int(self._file.read_text())
        except (OSError, ValueError) as failure:
            return Unknown(f"{self._file} cannot be read: {failure}")
        return self._counters.read(now, {"board": Raw(value, most=2**32 - 1)})


def for_machine(profile: MachineProfile) -> BoardMeter:
    return BoardMeter(Path(os.environ.get("OUTSIDE_BOARD", "/nowhere/energy1_input")))
