"""A power strip whose daemon shows a counter in a file, and wants a key."""

from pathlib import Path
from typing import Literal

import msgspec

from wattloom.energy.forecast import Provenance, Unknown
from wattloom.machines.profile import MachineProfile
from wattloom.metering.configured import not_set_up
from wattloom.metering.count import Limits
from wattloom.metering.counters import Counters, Raw
from wattloom.metering.protocol import Quantity, Sample
from wattloom.setting_groups import Credential, FilePath, Positive, Receiver

STEPS = {"microjoules": 1e-6, "joules": 1.0}


class StripSettings(msgspec.Struct, frozen=True):
    """Where the strip is, and who asks."""

    file: FilePath = ""
    """Where its daemon shows the counter."""
    unit: Literal["microjoules", "joules"] = "microjoules"
    """What one step of it is."""
    most_w: Positive = 100.0
    """More than so many watts cannot be."""
    daemon: Receiver = ""
    """Who is asked to show it."""
    api_key: Credential = ""
    """What the daemon wants to hear."""


class StripMeter:
    """One outlet."""

    name = "outside-strip"
    summary = "an outlet of a strip"
    quantity: Quantity = "wall"
    provenance: Provenance = "measured"
    model_error = 0.4

    def __init__(self, settings: StripSettings) -> None:
        self._settings = settings
        limits = Limits(most_w=settings.most_w, still_s=5.0)
        self._counters: Counters[str] = Counters(limits, joules=STEPS[settings.unit], update_s=0.01)

    def available(self) -> str | None:
        if not self._settings.file:
            return not_set_up("outside-strip", "file", "/run/strip/counter")
        if self._settings.daemon and not self._settings.api_key:
            return f"{self._settings.daemon} wants a key"
        try:
            int(Path(self._settings.file).read_text())
        except (OSError, ValueError) as problem:
            return f"there is no counter in {self._settings.file} ({problem})\nstart the strip's daemon"
        return None

    def read(self, now: float) -> Sample | Unknown:
        refusal = self._counters.refusal(now)
        if refusal is not None:
            return refusal
        try:
            value = int(Path(self._settings.file).read_text())
        except (OSError, ValueError) as failure:
            return Unknown(f"{self._settings.file} cannot be read: {failure}")
        return self._counters.read(now, {"strip": Raw(value, most=2**32 - 1)})


def for_machine(profile: MachineProfile, settings: StripSettings) -> StripMeter:
    return StripMeter(settings)
