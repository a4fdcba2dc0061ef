"""Profiles are taken with real loads; only the silicon that counts the joules is simulated."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from tests.metering.trees import ProcTree
from tests.profiling.made import needs_stress_ng
from tests.profiling.silicon import EACH_W, IDLE_W, Silicon
from tests.profiling.test_frequency import BEFORE, CpuFreq

from wattloom.machines.own_profile import read_profile
from wattloom.machines.profile_curve import machine_profile
from wattloom.machines.profile_file import CpuProfile, Level
from wattloom.machines.this_machine import allowed_cpus
from wattloom.profiling.bench import Terms
from wattloom.profiling.profiler import MeterLost, Step, Tell
from wattloom.profiling.storing import Busy, StoreError, alone, store
from wattloom.profiling.taking import Place, ProfileRequest, profile_cpu

THREADS = len(allowed_cpus() or [0])
PATIENCE_S = 60.0
QUICK = Terms(seconds=0.5, settle_s=0.0, attempts=2)
SETTLING = Terms(seconds=0.5, settle_s=2.0, window_s=0.5, tolerance=0.2, attempts=2)
DATE = "2026-11-16T10:00:00+00:00"


class Rig:
    """A chip, a quiet machine around it, and a place for files."""

    def __init__(self, folder: Path, chip: Silicon) -> None:
        self.chip, self.file = chip, folder / "p.json"
        quiet = ProcTree(folder / "proc")  # others' work on this machine is not what is tried
        self.place = Place(system=folder / "cpu", classes=folder, proc=quiet.root, folder=folder / "own", every_s=0.05)
        self.steps: list[Step] = []
        self.tell: Tell = self.steps.append

    def take(self, **request: object) -> CpuProfile:
        wanted = msgspec.structs.replace(
            ProfileRequest(levels="1", stressors="matrix", output=self.file, builtin=True, terms=QUICK), **request
        )
        return profile_cpu(wanted, self.chip.meter, lambda: DATE, self.tell, self.place)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with Silicon(tmp_path) as chip:
        yield Rig(tmp_path, chip)


def watts(level: Level) -> float:
    assert level.power is not None, level.problem
    return level.power.watts


@needs_stress_ng
@pytest.mark.skipif(THREADS < 2, reason="NOT TRIED: two levels. This machine lets us use one CPU only")
def test_watts_and_work_of_every_level_stand_in_the_file(rig: Rig) -> None:
    found = rig.take(levels="1,2", stressors="integer", builtin=False, terms=SETTLING)
    assert read_profile(rig.file) == found
    assert [(each.stressor, each.level) for each in found.levels] == [("integer", 1), ("integer", 2)]
    for each in found.levels:
        assert watts(each) == pytest.approx(IDLE_W + EACH_W * each.level, rel=0.2)
        assert each.ops_per_s is not None
        assert len(each.cpus) == each.level
        assert 0.0 < each.settle_s < 2.5
    assert [each.when for each in found.idle] == ["first", "last"]
    idle = found.idle_power("", "first")
    assert idle is not None
    assert idle.watts == pytest.approx(IDLE_W, rel=0.1)
    assert (found.meter.provenance, found.meter.quantity) == ("measured", "package")
    assert found.method.tool.startswith("stress-ng ")
    assert found.finished == DATE
    if THREADS == 2:
        assert machine_profile(found).problem() is None


def test_progress_says_what_is_done_and_how_long_it_takes(rig: Rig) -> None:
    rig.take()
    assert rig.steps[0].words == "idle, first"
    assert rig.steps[-1].done == rig.steps[-1].total == 3
    assert any(0.1 < step.left_s < 60.0 for step in rig.steps)
    assert rig.steps[-1].left_s == 0.0


def test_what_is_known_is_not_measured_again(rig: Rig) -> None:
    first = rig.take()
    before = rig.file.stat().st_mtime_ns
    assert rig.take() == first
    assert rig.file.stat().st_mtime_ns == before
    more = rig.take(stressors="matrix,integer")
    assert more.levels[0] == first.levels[0]
    assert [each.stressor for each in more.levels] == ["matrix", "integer"]
    assert rig.take(fresh=True).levels[0] != first.levels[0]


# -- interruptions -----------------------------------------------------------------------------------------------------

TAKES_A_PROFILE = """
import sys
from pathlib import Path
from tests.profiling.test_taking import DATE, QUICK
from wattloom.metering.powercap import Powercap
from wattloom.profiling.taking import Place, ProfileRequest, profile_cpu
folder = Path(sys.argv[1])
place = Place(folder / "cpu", folder, folder / "proc", folder / "own", 0.05)
request = ProfileRequest("1", "matrix,integer,kmeans", "min", folder / "p.json", False, True, QUICK)
profile_cpu(request, Powercap(folder / "powercap"), lambda: DATE, lambda step: None, place)
"""


def wait_for(what: Callable[[], bool]) -> None:
    begin = time.monotonic()
    while not what():
        assert time.monotonic() - begin < PATIENCE_S, "waited in vain"
        time.sleep(0.02)


def levels_in(file: Path) -> int:
    return len(read_profile(file).levels) if file.exists() else 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_after_an_interruption_it_goes_on_where_it_stopped(tmp_path: Path, number: signal.Signals) -> None:
    root = Path(__file__).parents[2]
    tree = CpuFreq(tmp_path / "cpu")
    with Silicon(tmp_path) as chip:
        rig = Rig(tmp_path, chip)
        process = subprocess.Popen(
            [sys.executable, "-c", TAKES_A_PROFILE, str(tmp_path)],
            env=os.environ | {"PYTHONPATH": str(root)},
            stderr=subprocess.DEVNULL,
        )
        wait_for(lambda: levels_in(rig.file) >= 1)
        assert tree.now() == [("powersave", "400000", "400000")] * 2
        process.send_signal(number)
        process.wait(PATIENCE_S)
        wait_for(lambda: tree.now() == BEFORE)
        kept = read_profile(rig.file)
        assert not kept.finished
        assert 1 <= len(kept.levels) < 3
        whole = rig.take(stressors="matrix,integer,kmeans", frequencies="min")
    assert whole.levels[: len(kept.levels)] == kept.levels
    assert [(each.stressor, each.setting) for each in whole.levels] == [
        *(("matrix", "khz=400000"), ("integer", "khz=400000"), ("kmeans", "khz=400000"))
    ]
    assert whole.finished
    assert tree.now() == BEFORE


def test_a_sweep_measures_each_setting_and_puts_back_what_was(rig: Rig, tmp_path: Path) -> None:
    tree = CpuFreq(tmp_path / "cpu")
    seen: set[str] = set()

    def watch(step: Step) -> None:
        if step.words.startswith("matrix"):
            seen.add(tree.now()[0][0])

    rig.tell = watch
    found = rig.take(frequencies="governors")
    assert found.settings == ["governor=performance", "governor=powersave"]
    assert seen == {"performance", "powersave"}
    assert [each.setting for each in found.idle if each.when == "first"] == found.settings
    assert (found.machine.governor, tree.now()) == ("powersave", BEFORE)


def test_a_meter_that_is_lost_leaves_the_level_unknown_and_the_rest_safe(rig: Rig) -> None:
    first = rig.take()
    rig.chip.lose()
    with pytest.raises(MeterLost, match=r"powercap does not work any more: .*2 levels are kept"):
        rig.take(stressors="matrix,integer")
    kept = read_profile(rig.file)
    assert kept.levels[0] == first.levels[0]
    assert kept.levels[1].power is None
    assert kept.levels[1].problem
    assert kept.levels[1].attempts == QUICK.attempts, "it was tried again before that"


def test_a_level_that_was_unknown_is_measured_by_the_next_run(rig: Rig) -> None:
    found = rig.take()
    unknown = msgspec.structs.replace(found.levels[0], power=None, problem="the meter's count broke off")
    store(rig.file, msgspec.json.encode(msgspec.structs.replace(found, levels=(unknown,))))
    assert rig.take().levels[0].power is not None


def test_work_of_others_is_noticed_and_the_level_repeated(rig: Rig) -> None:
    here = os.sched_getaffinity(0)
    spinning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    quiet, rig.place = rig.place, msgspec.structs.replace(rig.place, proc=Path("/proc"))
    try:
        found = rig.take()
    finally:
        spinning.kill()
        spinning.wait()
    assert here == os.sched_getaffinity(0)
    assert found.levels[0].attempts == QUICK.attempts
    assert found.levels[0].other_cores > 0.1
    assert found.disturbed(found.levels[0])
    rig.place = quiet
    again = rig.take()
    assert again.levels[0] != found.levels[0], "a second run tries the disturbed ones again"
    assert again.sound(again.levels[0])
    assert again.finished


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("NOT TRIED: a full disk. Only the superuser can mount a small one")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_on_a_full_disk_what_was_measured_before_is_safe(rig: Rig, small_disk: Path) -> None:
    rig.file = small_disk / "p.json"
    rig.take()

    def fill(step: Step) -> None:
        if step.words.startswith("integer") and os.statvfs(small_disk).f_bavail:
            with suppress(OSError), (small_disk / "filler").open("ab", buffering=0) as filler:
                filler.write(b"x" * 100_000)

    rig.tell = fill
    with pytest.raises(StoreError, match=r"No space left on device\. 1 levels .* are safe there"):
        rig.take(stressors="matrix,integer")
    assert levels_in(rig.file) == 1
    assert sorted(each.name for each in small_disk.iterdir()) == ["filler", "p.json"], "no part is left behind"
    (small_disk / "filler").unlink()
    rig.tell = rig.steps.append
    assert len(rig.take(stressors="matrix,integer").levels) == 2


def test_only_one_profile_is_taken_at_a_time(rig: Rig) -> None:
    with alone(rig.place.profiles), pytest.raises(Busy, match="another profile is being taken"):
        rig.take()
