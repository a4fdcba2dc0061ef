"""A pytest plug-in: a budget of joules for a test, or for a block in it.

Owns the marker `max_joules` and the fixture `joules`. pytest finds it by itself where Wattloom is installed; a test
that uses neither pays nothing for it.

    @pytest.mark.max_joules(5)
    def test_a_whole_test() -> None: ...

    def test_a_block(joules: JouleBudget) -> None:
        with joules(at_most=0.5) as measured:
            resize("cat.png")
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from wattloom.monitoring.measuring import Measurement

MARKER = "max_joules"


class JouleBudget:
    """Called with a budget, gives a block that fails the test if it took more."""

    @contextmanager
    def __call__(self, at_most: float, *, meter: str = "auto") -> "Generator[Measurement]":
        from wattloom.monitoring.measuring import Measurement

        with Measurement(meter) as measured:
            yield measured
        _check(measured, at_most, "the block")


@pytest.fixture
def joules() -> JouleBudget:
    """`with joules(at_most=2.0): ...` fails the test if the block takes more joules above idle."""
    return JouleBudget()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{MARKER}(joules, meter='auto'): fail the test if it takes more joules above idle than this"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    marker = item.get_closest_marker(MARKER)
    if marker is None:
        return (yield)
    budget, meter = _arguments(*marker.args, **marker.kwargs)
    from wattloom.monitoring.measuring import Measurement

    with Measurement(meter) as measured:
        outcome = yield
    _check(measured, budget, "the test")
    return outcome


def _arguments(joules: object = None, meter: str = "auto") -> tuple[float, str]:
    if isinstance(joules, bool) or not isinstance(joules, (int, float)) or not joules > 0.0:
        raise pytest.UsageError(f"{MARKER}: give the budget in joules, a number above 0, as in {MARKER}(2.5)")
    return float(joules), meter


def _check(measured: "Measurement", at_most: float, what: str) -> None:
    """An unknown figure is no permission: it fails, and says why."""
    from wattloom.energy.measured import Energy

    energy = measured.energy
    if not isinstance(energy, Energy):
        pytest.fail(f"{what} has a budget of {at_most:g} J, but its joules are unknown: {energy.reason}", pytrace=False)
    elif energy.joules > at_most:
        pytest.fail(f"{what} took {energy}, more than its budget of {at_most:g} J", pytrace=False)
