"""Function profiles and their file."""

from pathlib import Path

import msgspec
import pytest

from wattloom.errors import InputError
from wattloom.workload.function_profile import (
    Figure,
    FunctionProfile,
    FunctionProfiles,
    encode_function_profiles,
    exact,
    read_function_profiles,
)


def row(**changed: object) -> FunctionProfile:
    start = FunctionProfile(function="f", machine="m", per_core_s=Figure(10.0, 9.0, 11.0), joules=exact(2.0))
    return msgspec.structs.replace(start, **changed)


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    table = FunctionProfiles((row(), row(machine="n", joules=None)))
    (tmp_path / "p.json").write_bytes(encode_function_profiles(table))
    assert read_function_profiles(tmp_path / "p.json") == table


def test_of_several_builds_the_one_that_costs_least_is_taken_and_unknown_is_never_cheap() -> None:
    table = FunctionProfiles((row(variant="a", joules=None), row(variant="b"), row(variant="c", joules=exact(1.0))))
    assert table.by_pair["f", "m"].variant == "c"


def test_newer_rows_take_the_place_of_older_ones_of_the_same_build() -> None:
    table = FunctionProfiles((row(), row(variant="wasm"))).merged([row(executions=7)])
    assert [(each.variant, each.executions) for each in table.rows] == [("", 7), ("wasm", 0)]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (row(per_core_s=exact(0.0)), "per_core_s"),
        (row(per_core_s=Figure(float("nan"), 0.0, 1.0)), "per_core_s"),
        (row(per_core_s=Figure(1.0, 2.0, 3.0)), "per_core_s"),
        (row(joules=exact(-1.0)), "joules"),
        (row(joules=exact(float("inf"))), "joules"),
        (row(cold_start_s=-1.0), "cold_start_s"),
        (row(function=""), "function"),
        (row(executions=-1), "executions"),
    ],
)
def test_a_figure_that_cannot_be_is_named(tmp_path: Path, wrong: FunctionProfile, field: str) -> None:
    found = FunctionProfiles((wrong,)).problem()
    assert found is not None
    assert found[0] == f"rows[0].{field}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "p.json"),
        ('{"rows": [{"function": "f"}]}', "rows\\[0\\]"),
        ('{"rows": [], "wattloom_function_profiles": 9}', "wattloom_function_profiles"),
        ('{"rows": 1}', "rows"),
    ],
)
def test_a_file_that_is_wrong_is_named_with_its_field(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(InputError, match=said):
        read_function_profiles(tmp_path / "p.json")
