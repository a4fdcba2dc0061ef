"""Run times with a margin, which users may set."""

from typing import ClassVar

import msgspec

from wattloom.energy.forecast import RunTime, Unknown
from wattloom.machines.machine import Machine
from wattloom.prediction.table import Table
from wattloom.setting_groups import Positive
from wattloom.units import Seconds
from wattloom.workload.function import Function, Variant


class MarginSettings(msgspec.Struct, frozen=True):
    margin: Positive = 1.0
    """Factor on every run time."""


class Margin(Table):
    name: ClassVar[str] = "outside-margin"
    summary: ClassVar[str] = "run times of the table, so many times as long"
    options: ClassVar[dict[str, str]] = {"margin": "factor on every run time (default 1)"}

    def __init__(self, settings: MarginSettings) -> None:
        super().__init__()
        self.margin = settings.margin

    def expect(self, function: Function, variant: Variant, machine: Machine, size: int = 0) -> RunTime | Unknown:
        run = super().expect(function, variant, machine, size)
        if not isinstance(run, RunTime):
            return run
        return RunTime(Seconds(run.seconds * self.margin), Seconds(run.spread * self.margin), run.provenance)
