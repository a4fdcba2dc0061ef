"""A total of joules and the parts it is made of.

Owns the split and its sum. The parts always add up to the total because the total is their sum.
"""

import msgspec

from wattloom.units import JOULES_PER_WATT_HOUR, Joules


class EnergySplit(msgspec.Struct, frozen=True):
    """Joules by what they were spent on."""

    active: Joules = Joules(0.0)
    """Above idle, because work ran."""
    idle: Joules = Joules(0.0)
    """Nodes that were awake, with or without work: the floor of their curve."""
    sleep: Joules = Joules(0.0)
    wake: Joules = Joules(0.0)
    scheduler: Joules = Joules(0.0)
    """The scheduler's own decisions."""

    @property
    def total(self) -> Joules:
        return Joules(self.active + self.idle + self.sleep + self.wake + self.scheduler)

    def watt_hours(self) -> dict[str, float]:
        """Total and parts in Wh, as the commands print them."""
        parts = {name: getattr(self, name) / JOULES_PER_WATT_HOUR for name in self.__struct_fields__}
        return {"total": sum(parts.values()), **parts}
