"""Numbers as people read them.

Owns how figures are rounded and written, in tables of the terminal and of the report alike.
"""

import re
from typing import Final

LONG_NAME: Final = 22


def figure(value: float) -> str:
    """About four digits that matter; next to nothing is said to be so."""
    size = abs(value)
    if 0.0 < size < 0.001:
        return "<0.001" if value > 0.0 else ">-0.001"
    if size >= 1000.0:
        return f"{value:,.0f}"
    if size >= 100.0:
        return f"{value:.1f}"
    if size >= 1.0:
        return f"{value:.2f}"
    return f"{value:.3g}" if value else "0"


def spread(value: float, deviation: float, seeds: int) -> str:
    """A mean, with one standard deviation where there are several runs."""
    return figure(value) if seeds == 1 else f"{figure(value)} ± {figure(deviation)}"


def percent(share: float) -> str:
    """A share with its sign: +12.3%."""
    return f"{share:+.1%}"


def plural(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def short(policy: str) -> str:
    """A policy's name for an axis or a column: no folders, and long ones on two lines."""
    name = re.sub(r"[^,:=]*/", "", policy)
    return name.replace(":", ":\n", 1) if len(name) > LONG_NAME else name
