"""The same table from ordinary runs: journals of this machine, logs of the simulator."""

from pathlib import Path

import pytest
from tests.affinity.functions import longer, short
from tests.affinity.test_exchange import row, table

import wattloom
from wattloom.affinity.online import from_journals, known_profiles, together
from wattloom.machines.this_machine import this_machine
from wattloom.workload.function_profile import encode_function_profiles

pytestmark = pytest.mark.usefixtures("beds_are_found")
NAME = "tests.affinity.functions"
GOLDEN = Path(__file__).parents[1] / "golden" / "logs"


def test_a_journal_tells_e_and_w_without_any_bag(tmp_path: Path) -> None:
    journal = tmp_path / "work.journal"
    for _ in range(2):
        with wattloom.Executor(2, journal=journal, meter="estimate") as executor:
            calls = [executor.submit(longer, 60_000) for _ in range(8)] + [executor.submit(short) for _ in range(4)]
            joules = [call.energy for call in calls]
    assert all(isinstance(each, wattloom.Energy) for each in joules)
    rows = from_journals([journal]).by_pair
    found = rows[f"{NAME}.longer", this_machine().name]
    assert (found.executions, found.bags, found.provenance) == (16, 0, "estimated")
    assert found.source == "16 calls in 2 runs (local)"
    assert 1.0 < found.per_core_s.value < rows[f"{NAME}.short", this_machine().name].per_core_s.value
    assert found.per_core_s.low < found.per_core_s.value < found.per_core_s.high
    assert found.joules is not None
    seconds = {each.task: each.seconds for each in wattloom.tasks(journal, limit=None)}
    assert len(seconds) == 24


def test_calls_that_keep_several_cores_busy_count_for_all_of_them(tmp_path: Path) -> None:
    journal = tmp_path / "work.journal"
    with wattloom.Executor(2, journal=journal, meter="off") as executor:
        executor.submit(longer, 60_000).result()
        wide = wattloom.function(cpu=2.0)(longer)
        executor.submit(wide, 60_000).result()
    both = from_journals([journal]).rows[0]
    listed = wattloom.tasks(journal, limit=None)
    core_s = sum((each.seconds or 0.0) * cores for each, cores in zip(listed, (2.0, 1.0), strict=True)) / 2.0
    assert both.per_core_s.value == pytest.approx(1.0 / core_s)
    assert both.joules is None, "without a meter nothing is known, which is not nothing"


def test_a_log_of_the_simulator_tells_e_by_machine(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    wattloom.simulate("hsc-cpu", policy="spread", log=log)
    found = from_journals([log])
    assert found.rows
    assert all(each.source.endswith("(simulation)") for each in found.rows)
    assert found.problem() is None


def test_a_log_of_kubernetes_tells_e_now_and_w_once_it_has_joules() -> None:
    found = from_journals([GOLDEN / "kubernetes-spread.log"])
    assert len(found.rows) == 3
    assert {each.source.rpartition(" ")[2] for each in found.rows} == {"(kubernetes)"}
    assert all(each.joules is None for each in found.rows)


def test_where_bags_and_calls_agree_both_count_and_the_source_names_both() -> None:
    bag, calls = row("f", "a", 10.0), row("f", "a", 10.4, 2.1, 40)
    both = together(table(bag, row("g", "a")), table(calls, row("h", "a")))
    found = both.by_pair["f", "a"]
    assert 10.0 < found.per_core_s.value < 10.4
    assert found.executions == 45
    assert found.per_core_s.high - found.per_core_s.low < bag.per_core_s.high - bag.per_core_s.low
    assert sorted(both.functions) == ["f", "g", "h"]


def test_where_they_do_not_enough_calls_are_right_and_few_are_not() -> None:
    bag = row("f", "a", 10.0)
    assert together(table(bag), table(row("f", "a", 20.0, executions=29))).rows == (bag,)
    changed = together(table(bag), table(row("f", "a", 20.0, executions=30))).rows[0]
    assert changed.per_core_s.value == 20.0
    assert "said otherwise" in changed.source


def test_without_a_file_journals_are_all_that_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path = tmp_path / "functions.json"
    assert known_profiles(path).rows == ()
    path.write_bytes(encode_function_profiles(table(row("f", "a"))))
    assert known_profiles(path).rows == (row("f", "a"),)
