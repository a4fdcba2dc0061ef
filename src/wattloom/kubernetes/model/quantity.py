"""Kubernetes quantities as exact whole numbers.

Owns how `1500m`, `2Gi` or `1e3` is read. Counts in billionths, the finest step Kubernetes keeps, and rounds up where
it does.
"""

import re
from functools import lru_cache
from typing import Final

from wattloom.errors import InputError

NANO: Final = 1_000_000_000
"""Billionths in one."""
MOST: Final = 2**63 - 1
"""What a quantity with a binary suffix is cut down to, and the most that Kubernetes can count."""
LONGEST_EXPONENT: Final = 3
LONGEST_NUMBER: Final = 1_000
"""Digits. The API server takes more, and so does nothing that could be had."""
_FORM: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]+))?")
_TENS: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_TWOS: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


@lru_cache(maxsize=65_536)
def nanos(text: str) -> int:
    """The quantity in billionths; finer ones are rounded away from zero."""
    found = _FORM.fullmatch(text)
    if found is None or not (found[2] or found[3]):
        raise InputError("quantity", f"must be a number with a suffix such as 500m, 2Gi or 1e3, not {text!r}")
    sign, whole, fraction, suffix, exponent = found.groups(default="")
    if len(whole) + len(fraction) > LONGEST_NUMBER:
        raise InputError("quantity", f"has more than {LONGEST_NUMBER:,} digits")
    if len(exponent.lstrip("+-")) > LONGEST_EXPONENT:
        raise InputError("quantity", f"has an exponent that is too large: {text!r}")
    binary = suffix in _TWOS
    digits = int((whole + fraction) or "0") << (_TWOS[suffix] if binary else 0)
    tens = 9 - len(fraction) + (0 if binary else int(exponent) if exponent else _TENS[suffix])
    size: int = digits * 10**tens if tens >= 0 else -(-digits // 10**-tens)
    if binary:
        size = min(size, MOST * NANO)
    return -size if sign == "-" else size


def milli(amount: int) -> int:
    """Billionths in thousandths, rounded away from zero."""
    return _rounded(amount, NANO // 1_000)


def value(amount: int) -> int:
    """Billionths in ones, rounded away from zero."""
    return _rounded(amount, NANO)


def _rounded(amount: int, step: int) -> int:
    return -(-amount // step) if amount >= 0 else amount // step
