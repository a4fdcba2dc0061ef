"""Quantities as types: joules and watts do not mix.

Owns the unit types and the few conversions between them. Knows nothing else.
Inside the engine CPU is counted in whole millicores, memory in bytes and device shares in thousandths, so that
taking something and giving it back restores the very same number.
"""

from typing import NewType

Seconds = NewType("Seconds", float)
Watts = NewType("Watts", float)
Joules = NewType("Joules", float)

MILLI = 1000
MEGA = 1e6
MIB = 1024 * 1024
GIB = 1024 * MIB
JOULES_PER_WATT_HOUR = 3600.0


def millicores(cores: float) -> int:
    """Cores as whole millicores, rounded to the nearest."""
    return round(cores * MILLI)
