"""Matrices between machines: what is merged, and what is refused."""

from pathlib import Path

import pytest

from wattloom.affinity.exchange import imported, selected
from wattloom.errors import InputError
from wattloom.workload.function_profile import (
    Figure,
    FunctionProfile,
    FunctionProfiles,
    encode_function_profiles,
    exact,
)


def row(function: str, machine: str, e: float = 10.0, w: float | None = 2.0, executions: int = 5) -> FunctionProfile:
    joules = None if w is None else Figure(w, 0.9 * w, 1.1 * w)
    return FunctionProfile(
        function=function,
        machine=machine,
        per_core_s=Figure(e, 0.9 * e, 1.1 * e),
        joules=joules,
        executions=executions,
    )


def table(*rows: FunctionProfile) -> FunctionProfiles:
    return FunctionProfiles(rows)


def put(path: Path, *rows: FunctionProfile) -> Path:
    path.write_bytes(encode_function_profiles(table(*rows)))
    return path


def test_rows_of_other_machines_and_functions_are_added(tmp_path: Path) -> None:
    merged, news = imported(table(row("f", "a")), [put(tmp_path / "b.json", row("f", "b"), row("g", "a"))])
    assert [(each.function, each.machine) for each in news] == [("f", "b"), ("g", "a")]
    assert len(merged.rows) == 3


def test_of_two_that_agree_the_one_with_more_executions_stays(tmp_path: Path) -> None:
    more = row("f", "a", 10.5, executions=50)
    assert imported(table(row("f", "a")), [put(tmp_path / "b.json", more)])[0].rows == (more,)
    assert imported(table(more), [put(tmp_path / "b.json", row("f", "a"))])[1] == []


@pytest.mark.parametrize(
    ("other", "words"), [(row("f", "a", 20.0), "E of 20/s"), (row("f", "a", w=3.0, executions=99), "W of 3 J")]
)
def test_what_cannot_both_be_true_is_refused_by_name_and_nothing_is_imported(
    other: FunctionProfile, words: str, tmp_path: Path
) -> None:
    file = put(tmp_path / "b.json", row("g", "b"), other)
    with pytest.raises(InputError, match=f"b.json: f on a: {words}.*nothing was imported"):
        imported(table(row("f", "a")), [file])
    assert imported(table(row("f", "a")), [file], replace=True)[0].by_pair["f", "a"] == other


def test_two_files_that_contradict_each_other_are_refused_too(tmp_path: Path) -> None:
    files = [put(tmp_path / "b.json", row("f", "b")), put(tmp_path / "c.json", row("f", "b", 30.0))]
    with pytest.raises(InputError, match=r"c\.json: f on b"):
        imported(table(), files)


def test_joules_that_are_not_known_contradict_nothing(tmp_path: Path) -> None:
    merged, _ = imported(table(row("f", "a", w=None)), [put(tmp_path / "b.json", row("f", "a", executions=9))])
    assert merged.rows[0].joules is not None


def test_only_what_was_named_is_exported() -> None:
    both = table(row("f", "a"), row("g", "a"), row("f", "b"))
    assert len(selected(both).rows) == 3
    assert selected(both, ["a"], ["f"]).rows == (row("f", "a"),)
    with pytest.raises(InputError, match="c has no profile; there are a, b"):
        selected(both, ["c"])


def test_a_figure_without_a_spread_is_no_lie(tmp_path: Path) -> None:
    plain = FunctionProfile(function="f", machine="a", per_core_s=exact(10.0), executions=1)
    assert imported(table(row("f", "a")), [put(tmp_path / "b.json", plain)])[1] == []
