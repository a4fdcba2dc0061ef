"""Bags of real functions in real workers: what is kept, what is said, what goes on."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from wattloom.affinity.bags import Lots
from wattloom.affinity.running import waited_s, without_waiting
from wattloom.affinity.seen import read_bags
from wattloom.affinity.taking import FunctionsRequest, Taken, bags_path, own_path, profile_functions
from wattloom.affinity.targets import targets
from wattloom.affinity.timed import Timing
from wattloom.errors import InputError, WattloomError
from wattloom.machines.this_machine import this_machine
from wattloom.profiling.profiler import Step
from wattloom.workload.function_profile import read_function_profiles

HERE = "tests.affinity.functions"
SHORT, LONGER = f"{HERE}:short", f"{HERE}:longer=[40000]"
LOTS = Lots(bags=2, size=4, least=2)


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, beds_are_found: None) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def taken(*functions: str, **more: Any) -> tuple[Taken, list[str], list[Step]]:
    said: list[str] = []
    steps: list[Step] = []
    request = msgspec.structs.replace(FunctionsRequest(functions, LOTS, 0.3), **more)
    found = profile_functions(request, lambda: "2026-11-18T10:00:00+00:00", steps.append, said.append)
    return found, said, steps


def test_bags_of_real_functions_give_rows_that_are_found_again() -> None:
    found, said, steps = taken(SHORT, LONGER)
    assert said == []
    assert found.path == own_path()
    stored = read_function_profiles(own_path())
    assert stored == found.profiles
    rows = {row.function: row for row in stored.rows}
    short, longer = rows[f"{HERE}.short"], rows[f"{HERE}.longer"]
    assert {row.machine for row in stored.rows} == {this_machine().name}
    assert short.per_core_s.value > 20.0 * longer.per_core_s.value
    assert short.joules is not None
    assert longer.joules is not None
    assert short.joules.value < longer.joules.value / 10.0
    assert (short.bags, longer.bags) == (2, 2)
    assert short.executions > longer.executions > 0
    assert short.cold_start_s is not None
    assert 0.02 < short.cold_start_s < 30.0
    assert short.memory > 5_000_000
    assert "2 bags of 2" in short.source
    assert steps[-1].total == 4


def test_seconds_are_those_of_a_core_of_its_own_also_for_one_that_waits() -> None:
    found, _, _ = taken(f"{HERE}:sleeps=[0.02]", SHORT, seconds=0.5)
    row = found.profiles.by_pair[f"{HERE}.sleeps", this_machine().name]
    assert 35.0 < row.per_core_s.value <= 50.0


def test_a_function_that_does_not_work_is_said_and_the_others_go_on() -> None:
    found, said, _ = taken(SHORT, f"{HERE}:raises", LONGER)
    assert said == [f"{HERE}:raises is left out: ValueError: no such thing"]
    assert sorted(found.profiles.functions) == [f"{HERE}.longer", f"{HERE}.short"]


def test_a_function_that_kills_its_worker_in_a_bag_is_said_and_the_others_go_on(tmp_path: Path) -> None:
    found, said, _ = taken(SHORT, f'{HERE}:crashes_later=["{tmp_path / "times"}"]')
    assert any("crashes_later crashed, the others went on" in words for words in said)
    short = found.profiles.by_pair[f"{HERE}.short", this_machine().name]
    assert short.bags == 2


def test_if_nothing_works_nothing_is_written() -> None:
    with pytest.raises(WattloomError, match="none of the functions works"):
        taken(f"{HERE}:raises")
    assert not own_path().exists()


def test_bags_that_are_there_are_not_run_again_unless_fresh() -> None:
    first, _, _ = taken(SHORT)
    again, _, steps = taken(SHORT)
    assert again.news is False
    assert steps == []
    assert again.profiles == first.profiles
    fresh, _, _ = taken(SHORT, fresh=True)
    assert fresh.news
    assert fresh.bags.bags != first.bags.bags


def test_other_functions_are_added_to_the_file_and_do_not_replace_it() -> None:
    taken(SHORT)
    found, _, _ = taken(LONGER)
    assert sorted(found.profiles.functions) == [f"{HERE}.longer", f"{HERE}.short"]


def test_what_is_unfinished_is_not_gone_on_with_by_another_command() -> None:
    first, _, _ = taken(SHORT)
    path = bags_path(own_path(), this_machine().name)
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(read_bags(path), finished="")))
    with pytest.raises(InputError, match="was begun with another functions and is not finished; --fresh begins anew"):
        taken(LONGER)
    assert read_function_profiles(own_path()) == first.profiles


def test_a_virtual_node_has_the_speed_and_the_power_of_another_machine() -> None:
    here, _, _ = taken(LONGER)
    there, _, _ = taken(LONGER, machine="cortex-a53-rpi3b")
    rows = there.profiles.by_pair
    slow, fast = rows[f"{HERE}.longer", "cortex-a53-rpi3b"], rows[f"{HERE}.longer", this_machine().name]
    assert fast == here.profiles.rows[0]
    assert slow.per_core_s.value < fast.per_core_s.value / 2.0
    assert slow.provenance == "modelled"
    assert "on a virtual node, by its speed" in slow.source


@pytest.mark.parametrize(
    ("functions", "more", "words"),
    [
        (("json:dumps=1",), {}, "arguments must be a JSON list"),
        (("nowhere.py:f",), {}, "there is no file nowhere.py"),
        (("dumps",), {}, "must be module:function"),
        ((SHORT, SHORT), {}, "is there twice"),
        ((), {"lots": Lots(bags=1, size=1, least=2)}, "need [0-9]+ bags, not 1"),
        ((SHORT,), {"machine": "cray-1"}, "not in the catalogue"),
        ((SHORT,), {"nodes": Path("nodes.toml")}, "--machine says which"),
        ((SHORT,), {"output": Path("/nowhere/at/all.json")}, "there is no folder"),
        ((SHORT,), {"lots": Lots(bags=1, size=1, least=2)}, "need 2 bags, not 1"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_run(
    functions: tuple[str, ...], more: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        taken(*functions, **more)
    assert not own_path().parent.exists() or not list(own_path().parent.glob("*.json"))


def test_a_file_of_something_else_is_not_written_over(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"mine": 1}')
    with pytest.raises(InputError, match="mine"):
        taken(SHORT, output=other)
    assert other.read_text() == '{"mine": 1}'


KILLED = """
import sys
from pathlib import Path
from wattloom.affinity.bags import Lots
from wattloom.affinity.taking import FunctionsRequest, profile_functions
request = FunctionsRequest((sys.argv[1],), Lots(bags=12, size=1, least=2), 0.1)
profile_functions(request, lambda: "2026-11-18T10:00:00+00:00")
"""


def test_after_kill_9_it_goes_on_with_the_bags_that_are_missing() -> None:
    path = bags_path(own_path(), this_machine().name)
    with subprocess.Popen([sys.executable, "-c", KILLED, SHORT], env=os.environ) as program:
        end = time.monotonic() + 60.0
        while time.monotonic() < end and (not path.exists() or len(read_bags(path).bags) < 2):
            time.sleep(0.05)
        program.send_signal(signal.SIGKILL)
    kept = read_bags(path).bags
    assert 2 <= len(kept) < 12
    assert not own_path().exists(), "nothing half-written"
    found, _, steps = taken(SHORT, lots=Lots(bags=12, size=1, least=2), seconds=0.1)
    assert found.bags.bags[: len(kept)] == kept
    assert len(found.bags.bags) == 12
    assert found.profiles.rows[0].bags == 12
    assert not any("alone" in step.words and step.done == 1 for step in steps)


def test_a_full_disk_is_said_and_what_was_there_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _, _ = taken(SHORT)
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    from wattloom.affinity import taking
    from wattloom.profiling.storing import StoreError, store

    def full(path: Path, content: bytes) -> None:
        """The disk is full from the second bag on."""
        if content.count(b'"number"') >= 2:
            with open("/dev/full", "wb", buffering=0) as device:
                try:
                    device.write(content)
                except OSError as problem:
                    raise StoreError(f"{path}: cannot be written: {problem.strerror}") from problem
        store(path, content)

    monkeypatch.setattr(taking, "store", full)
    with pytest.raises(StoreError, match="1 bags that were run before are safe; make room"):
        taken(LONGER)
    assert read_function_profiles(own_path()) == first.profiles
    assert len(read_bags(bags_path(own_path(), this_machine().name)).bags) == 1


BUSY_JS = """
exports.handler = (milliseconds) => {
  const end = process.cpuUsage().user / 1000 + milliseconds;
  let rounds = 0;
  while (process.cpuUsage().user / 1000 < end) { for (let i = 0; i < 1000; i++) rounds += i; }
  return rounds;
};
"""


def test_a_function_of_another_language_is_timed_call_by_call(tmp_path: Path) -> None:
    if shutil.which("node") is None:
        pytest.skip("no node here (Debian: nodejs)")
    (tmp_path / "busy.js").write_text(BUSY_JS)
    found, said, _ = taken(f"{tmp_path}/busy.js:handler=[20]", SHORT, seconds=1.0)
    assert said == []
    row = found.profiles.by_pair["busy.js:handler", this_machine().name]
    assert 25.0 < row.per_core_s.value < 65.0
    assert row.joules is not None
    assert row.cold_start_s is not None
    assert row.cold_start_s > 0.02


def test_what_a_call_waited_for_a_core_is_taken_out_of_its_time() -> None:
    timing = without_waiting(Timing(1, 0.0, 2.0, 0.0, 0, False), 0.25)
    assert (timing.seconds, timing.waited_s) == (1.5, 0.5)


def test_of_a_process_with_many_threads_the_waiting_of_the_busiest_counts() -> None:
    before = {("1", "1"): (5.0, 1.0), ("1", "2"): (0.0, 3.0)}
    after = {("1", "1"): (7.0, 1.5), ("1", "2"): (0.1, 9.0), ("2", "2"): (1.0, 0.25)}
    assert waited_s(before, after) == pytest.approx(0.75)


def test_functions_of_the_suite_are_known_by_their_names() -> None:
    found, said, _ = taken("matrix-native-python", "zip-python")
    assert said == []
    assert sorted(found.profiles.functions) == ["matrix-native-python", "zip-python"]
    assert set(found.profiles.functions) <= {each.name for each in targets(())}, "and are taken if none is named"
