from math import hypot

import pytest
from msgspec.structs import replace

from wattloom.attribution.sharing import CLOCK_S, Charged, Pool, Price, charge, price_of
from wattloom.energy.grains import GRAIN_J, to_grain
from wattloom.energy.measured import Energy
from wattloom.units import Joules

PRICE = Price(idle_j=10.0, active_j=40.0, busy_s=2.0, joules=20.0, spread=0.5)


def spread_of(cpu_s: float, price: Price = PRICE, model_error: float = 0.3, pool: Pool | None = None) -> float:
    charged = Charged()
    charge([("a", "f", cpu_s)], pool or Pool(), lambda _: replace(price, error=model_error), charged)
    return charged.tasks["a"][1]


def test_the_price_is_what_is_above_idle_over_the_busy_seconds() -> None:
    price = price_of(50.0, 0.0, 10.0, 1.0, busy_s=2.0, ran_s=1.0, tick_s=0.0)
    assert (price.idle_j, price.joules, price.spread) == pytest.approx((10.0, 20.0, 0.0))


def test_the_meters_steps_and_the_kernels_ticks_make_the_price_less_sure() -> None:
    exact = price_of(50.0, 0.0, 10.0, 1.0, 2.0, 1.0, 0.0)
    coarse = price_of(50.0, 3.0, 10.0, 1.0, 2.0, 1.0, 0.1)
    assert coarse.joules == exact.joules
    assert coarse.spread == pytest.approx(hypot(3.0, 20.0 * 0.1) / 2.0)


def test_an_interval_with_nothing_above_idle_is_not_surely_free() -> None:
    price = price_of(10.0, 1.0, 10.0, 1.0, 2.0, 1.0, 0.01)
    assert price.joules == 0.0
    assert spread_of(1.0, price) == pytest.approx(0.5)


def test_the_spread_of_a_call_is_the_models_error_and_the_prices_and_the_clocks() -> None:
    assert spread_of(1.5) == pytest.approx(1.5 * hypot(20.0 * 0.3, 0.5) + 20.0 * CLOCK_S)
    assert spread_of(1.5, model_error=0.6) > 1.9 * spread_of(1.5, model_error=0.3)


def test_a_call_shorter_than_its_clock_can_tell_is_mostly_spread() -> None:
    assert spread_of(CLOCK_S / 10.0) > 20.0 * CLOCK_S / 10.0


def test_over_several_intervals_the_models_error_adds_up_and_the_meters_averages_out() -> None:
    pool = Pool()
    for _ in range(9):
        pool.add(1.0, PRICE)
    only_meter = spread_of(9.0, model_error=0.0, pool=pool)
    assert only_meter == pytest.approx(0.5 * 9.0**0.5, rel=1e-3)
    pool.add(9.0, Price(0.0, 0.0, 1.0, 20.0, 0.0, error=0.3))
    assert spread_of(9.0, model_error=0.3, pool=pool) == pytest.approx(9.0 * 20.0 * 0.3, rel=1e-3)


def test_a_part_of_a_pool_has_its_part_of_the_joules_and_leaves_the_rest() -> None:
    pool = Pool()
    pool.add(4.0, PRICE)
    assert pool.take(1.0)[0] == pytest.approx(20.0)
    assert (pool.seconds, pool.joules) == pytest.approx((3.0, 60.0))
    assert pool.take(100.0)[0] == pytest.approx(60.0)
    assert (pool.seconds, pool.joules, pool.variance) == (0.0, 0.0, 0.0)


def test_functions_are_summed_apart_even_when_their_calls_alternate() -> None:
    charged = Charged()
    charge([("a", "f", 1.0), ("b", "g", 2.0), ("c", "f", 3.0)], Pool(), lambda _: PRICE, charged)
    assert charged.functions["f"] == pytest.approx((2, 80.0, 400.0 + 3600.0))
    assert charged.functions["g"] == pytest.approx((1, 40.0, 1600.0))
    assert charged.joules == pytest.approx(120.0)


def test_whole_grains_add_up_exactly_even_in_large_sums() -> None:
    parts = [to_grain(0.1 * number) for number in range(10_000)]
    assert sum(parts) == sum(round(part / GRAIN_J) for part in parts) * GRAIN_J


@pytest.mark.parametrize(
    ("joules", "spread", "text"),
    [
        (1.24, 0.31, "1.24 ± 0.31 J (estimated)"),
        (0.00123, 0.0004, "1.23 ± 0.40 mJ (estimated)"),
        (12345.0, 2000.0, "12.3 ± 2.0 kJ (estimated)"),
        (456.0, 12.0, "456 ± 12 J (estimated)"),
        (0.0, 0.0, "0.00 ± 0.00 J (estimated)"),
    ],
)
def test_energy_reads_well(joules: float, spread: float, text: str) -> None:
    assert str(Energy(Joules(joules), Joules(spread), "estimated")) == text
