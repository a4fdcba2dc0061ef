"""Logs and journals that earlier code wrote are read, replayed and explained as they were."""

import pytest
from tests.golden import readings
from tests.golden.comparing import lost

from wattloom.history.log import READABLE, Log


@pytest.mark.parametrize("name", readings.names())
def test_a_log_says_what_it_said(name: str) -> None:
    before = readings.recorded()[name]
    assert "\n".join(lost(before, readings.said(name))) == ""


def test_everything_that_is_kept_is_recorded() -> None:
    assert set(readings.recorded()) == set(readings.names())


def test_every_version_of_the_format_is_kept() -> None:
    kept = [(path.name, Log(path).header.wattloom_log) for path in sorted(readings.LOGS.glob("v*.log"))]
    assert all(name.startswith(f"v{version}-") for name, version in kept)
    assert {version for _, version in kept} == set(READABLE)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({"a": [1.0, {"b": 2}]}, {"a": [1.0, {"b": 2, "new": 3}], "more": 4}, []),
        ({"a": 0.1}, {"a": 0.1 + 2e-17}, ["a 0.1 -> 0.10000000000000002"]),
        ({"a": [1, 2]}, {"a": [1]}, ["a [1, 2] -> [1]"]),
        ({"a": {"b": None}}, {"a": {}}, ["a.b None -> 'nothing'"]),
    ],
)
def test_what_is_lost_is_found_and_what_is_new_is_not(before: object, after: object, said: list[str]) -> None:
    assert list(lost(before, after)) == said
