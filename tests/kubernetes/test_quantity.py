"""Quantities: exact, in billionths, rounded as Kubernetes rounds."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattloom.errors import InputError
from wattloom.kubernetes.model.quantity import MOST, NANO, milli, nanos, value

TENS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
TWOS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
numbers = st.tuples(st.integers(0, 10**12), st.text("0123456789", max_size=12))


@pytest.mark.parametrize(
    ("text", "thousandths", "ones"),
    [
        ("0", 0, 0),
        ("1", 1_000, 1),
        ("500m", 500, 1),
        ("100.5m", 101, 1),
        ("0.1m", 1, 1),
        ("1n", 1, 1),
        ("1500u", 2, 1),
        ("1e3", 1_000_000, 1_000),
        ("1E3", 1_000_000, 1_000),
        ("12e-1", 1_200, 2),
        ("1E", 10**21, 10**18),
        ("2Gi", 2**31 * 1_000, 2**31),
        ("1.5Gi", 3 * 2**29 * 1_000, 3 * 2**29),
        ("0.5Ki", 512_000, 512),
        (".5", 500, 1),
        ("5.", 5_000, 5),
        ("+3", 3_000, 3),
        ("-1.5", -1_500, -2),
        ("128974848000m", 128_974_848_000, 128_974_848),
        ("0.0000000001", 1, 1),
    ],
)
def test_a_quantity_is_rounded_away_from_zero_and_only_at_the_end(text: str, thousandths: int, ones: int) -> None:
    assert milli(nanos(text)) == thousandths
    assert value(nanos(text)) == ones


@given(numbers, st.sampled_from(sorted(TENS)))
def test_decimal_suffixes_are_exact_down_to_billionths(number: tuple[int, str], suffix: str) -> None:
    whole, fraction = number
    exact = Fraction(int(f"{whole}{fraction}"), 10 ** len(fraction)) * Fraction(10) ** TENS[suffix]
    assert nanos(f"{whole}.{fraction}{suffix}") == ceil(exact * NANO)


@given(numbers, st.sampled_from(sorted(TWOS)))
def test_binary_suffixes_are_exact_up_to_the_largest_number(number: tuple[int, str], suffix: str) -> None:
    whole, fraction = number
    exact = Fraction(int(f"{whole}{fraction}"), 10 ** len(fraction)) * 2 ** TWOS[suffix]
    assert nanos(f"{whole}.{fraction}{suffix}") == min(ceil(exact * NANO), MOST * NANO)


@given(st.integers(0, 10**6), st.integers(-9, 9))
def test_an_exponent_is_a_suffix_too(number: int, exponent: int) -> None:
    assert nanos(f"{number}e{exponent}") == number * 10 ** (9 + exponent)


@pytest.mark.parametrize(
    "text", ["", ".", "m", "1.2.3", "1 Gi", "1gi", "1Mib", "1e", "0x10", "1_000", "1e9999", "٣", "-"]
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="quantity"):
        nanos(text)
