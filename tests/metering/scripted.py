"""A meter whose readings a test writes."""

from wattloom.energy.forecast import Provenance, Unknown
from wattloom.metering.protocol import Quantity, Sample


class Scripted:
    """Says what it was told; counts what it was given."""

    name = "scripted"
    summary = "what the test says"
    quantity: Quantity = "wall"
    provenance: Provenance = "measured"
    model_error = 0.0

    def __init__(self) -> None:
        self.joules = 0.0
        self.epoch = 0
        self.problem = ""
        self.resolution_j = 1e-9

    def available(self) -> str | None:
        return self.problem or None

    def read(self, now: float) -> Sample | Unknown:
        if self.problem:
            return Unknown(self.problem)
        return Sample(now, self.joules, self.resolution_j, epoch=self.epoch)
