"""A forecast of what a task will cost somewhere, or Unknown with the reason.

Owns the two types and nothing else. There is no number for an unknown: code that ranks must say what it does then.
"""

from typing import Literal

import msgspec

from wattloom.units import Joules, Seconds, Watts

Provenance = Literal["measured", "modelled", "estimated"]


class RunTime(msgspec.Struct, frozen=True, gc=False):
    """How long a function takes alone on one kind of machine."""

    seconds: Seconds
    spread: Seconds = Seconds(0.0)
    """One standard deviation."""
    provenance: Provenance = "estimated"


class Unknown(msgspec.Struct, frozen=True, gc=False, tag_field="forecast", tag="unknown"):
    """There is no figure, and why."""

    reason: str


class Forecast(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="forecast", tag="known"):
    """What a task is expected to take and to cost on a node at its present load."""

    seconds: Seconds
    """Run time there, with the neighbours that are there now."""
    watts: Watts
    """How much more the node draws because of it."""
    joules: Joules
    """watts times seconds."""
    spread_s: Seconds = Seconds(0.0)
    """One standard deviation of the seconds, as far as runs have shown it."""
    provenance: Provenance = "estimated"
