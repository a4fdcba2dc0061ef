"""Governors and frequencies are set, and put back whatever happens. The kernel's files are a tree on disk."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from wattloom.errors import InputError
from wattloom.profiling import frequency
from wattloom.profiling.frequency import FrequencyError, Saved, Setting, apply, mhz, restore, saved, settings, writable
from wattloom.profiling.restoring import BOOT_ID, FILE, _guard, left_behind, put_back
from wattloom.profiling.storing import Busy, alone

PATIENCE_S = 30.0
CHANGES = """
import sys, time
from pathlib import Path
from wattloom.profiling.frequency import Setting, apply
from wattloom.profiling.restoring import put_back
from wattloom.profiling.profiler import signals_raise
system, folder = Path(sys.argv[1]), Path(sys.argv[2])
with signals_raise(), put_back(folder, system):
    apply(Setting("khz=800000", khz=800000), system)
    apply(Setting("governor=performance", governor="performance"), system)
    print("changed", flush=True)
    time.sleep(60)
"""


class CpuFreq:
    """Two groups of CPUs whose frequencies are set apart."""

    def __init__(self, system: Path) -> None:
        self.system = system
        for group in ("policy0", "policy2"):
            folder = system / "cpufreq" / group
            folder.mkdir(parents=True)
            self.write(group, "scaling_available_governors", "performance powersave userspace")
            self.write(group, "scaling_governor", "powersave")
            self.write(group, "cpuinfo_min_freq", "400000")
            self.write(group, "cpuinfo_max_freq", "3600000" if group == "policy0" else "3000000")
            self.write(group, "scaling_min_freq", "500000")
            self.write(group, "scaling_max_freq", "2500000")
            self.write(group, "scaling_setspeed", "<unsupported>")

    def write(self, group: str, file: str, text: str) -> None:
        (self.system / "cpufreq" / group / file).write_text(f"{text}\n")

    def now(self) -> list[tuple[str, str, str]]:
        names = ("scaling_governor", "scaling_min_freq", "scaling_max_freq")
        groups = sorted((self.system / "cpufreq").iterdir())
        return [tuple((group / name).read_text().strip() for name in names) for group in groups]  # type: ignore[misc]


BEFORE = [("powersave", "500000", "2500000")] * 2
CHANGED = [("performance", "800000", "800000")] * 2


@pytest.fixture
def tree(tmp_path: Path) -> CpuFreq:
    return CpuFreq(tmp_path / "cpu")


def test_words_become_settings_that_all_cpus_can_do(tree: CpuFreq) -> None:
    assert [each.name for each in settings("governors", tree.system)] == ["governor=performance", "governor=powersave"]
    assert [each.name for each in settings("min,max", tree.system)] == ["khz=400000", "khz=3000000"]
    assert settings("1200000, performance", tree.system) == [
        Setting("khz=1200000", khz=1200000),
        Setting("governor=performance", governor="performance"),
    ]


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("3600000", "not between 400000 and 3000000"),
        ("ondemand", "neither governors"),
        ("userspace", "neither"),
        (",", "give"),
    ],
)
def test_what_cannot_be_set_is_refused_before_anything_is(tree: CpuFreq, wanted: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        settings(wanted, tree.system)
    assert tree.now() == BEFORE


def test_a_machine_without_cpufreq_is_told_exactly_that(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no cpufreq here \(.*policy\* does not exist\)"):
        settings("min,max", tmp_path)


def test_a_setting_is_on_all_cpus(tree: CpuFreq) -> None:
    apply(Setting("", khz=800000), tree.system)
    assert tree.now() == [("powersave", "800000", "800000")] * 2
    apply(Setting("", governor="performance"), tree.system)
    assert tree.now() == CHANGED


def bounds_never_cross(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> list[tuple[str, str]]:
    """Do the change; the kernel would refuse a lower bound above the upper one at any moment of it."""
    written: list[tuple[str, str]] = []
    plain = frequency._put

    def write(path: Path, text: str) -> None:
        plain(path, text)
        if path.name in ("scaling_min_freq", "scaling_max_freq"):
            low, high = (int((path.parent / f"scaling_{end}_freq").read_text()) for end in ("min", "max"))
            assert low <= high, f"{path} {text}"
        written.append((path.name, text))

    with monkeypatch.context() as patched:
        patched.setattr(frequency, "_put", write)
        change()
    return written


@pytest.mark.parametrize("khz", [400000, 450000, 2500000, 3000000])
def test_the_lower_bound_never_passes_the_upper_one(tree: CpuFreq, khz: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved(tree.system)
    assert bounds_never_cross(monkeypatch, lambda: apply(Setting("", khz=khz), tree.system))
    assert bounds_never_cross(monkeypatch, lambda: restore(before, tree.system))
    assert tree.now() == BEFORE


def test_a_kernel_that_does_not_take_it_is_noticed(tree: CpuFreq, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Path.read_text

    def read(path: Path, errors: str | None = None) -> str:
        return "700000\n" if path.name == "scaling_max_freq" else plain(path, errors=errors)

    monkeypatch.setattr(Path, "read_text", read)
    with pytest.raises(FrequencyError, match="was told '800000' and says '700000'"):
        apply(Setting("", khz=800000), tree.system)


def test_what_cannot_be_written_is_said_to_need_root(tree: CpuFreq) -> None:
    governor = tree.system / "cpufreq" / "policy0" / "scaling_governor"
    governor.unlink()
    governor.mkdir()  # even the superuser cannot write to it
    assert "scaling_governor cannot be written" in writable(tree.system)
    assert "needs root" in writable(tree.system)


def test_writing_what_is_there_changes_nothing(tree: CpuFreq) -> None:
    assert writable(tree.system) == ""
    assert tree.now() == BEFORE


def test_the_mean_frequency_of_some_cpus(tree: CpuFreq) -> None:
    assert mhz([0, 1], tree.system) is None
    for cpu, khz in ((0, 1000000), (1, 3000000)):
        (tree.system / f"cpu{cpu}" / "cpufreq").mkdir(parents=True)
        (tree.system / f"cpu{cpu}" / "cpufreq" / "scaling_cur_freq").write_text(f"{khz}\n")
    assert mhz([0, 1], tree.system) == 2000.0


# -- put back ----------------------------------------------------------------------------------------------------------


def test_after_the_block_all_is_as_before(tree: CpuFreq, tmp_path: Path) -> None:
    with put_back(tmp_path, tree.system):
        assert (tmp_path / FILE).exists()
        apply(Setting("", khz=800000), tree.system)
    assert tree.now() == BEFORE
    assert not (tmp_path / FILE).exists()


def test_after_an_exception_too(tree: CpuFreq, tmp_path: Path) -> None:
    with pytest.raises(FrequencyError, match="did not take 'nonsense'"), put_back(tmp_path, tree.system):
        _change_and_fail(tree)
    assert tree.now() == BEFORE


def _change_and_fail(tree: CpuFreq) -> None:
    apply(Setting("", governor="performance"), tree.system)
    raise FrequencyError("the kernel did not take 'nonsense'")


@pytest.fixture
def changer(tree: CpuFreq, tmp_path: Path) -> "Iterator[subprocess.Popen[str]]":
    """A real process that has changed the frequencies and would take its time."""
    command = [sys.executable, "-c", CHANGES, str(tree.system), str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "changed\n"
    assert tree.now() == CHANGED
    yield process
    process.kill()
    process.communicate()


def wait_for(what: Callable[[], bool]) -> None:
    begin = time.monotonic()
    while not what():
        assert time.monotonic() - begin < PATIENCE_S, "waited in vain"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_whatever_ends_the_process_all_is_put_back(
    tree: CpuFreq, tmp_path: Path, changer: "subprocess.Popen[str]", number: signal.Signals
) -> None:
    changer.send_signal(number)
    changer.wait(PATIENCE_S)
    wait_for(lambda: not (tmp_path / FILE).exists())
    assert tree.now() == BEFORE


def test_if_the_guard_is_killed_too_the_next_run_puts_it_back(
    tree: CpuFreq, tmp_path: Path, changer: "subprocess.Popen[str]"
) -> None:
    children = Path(f"/proc/{changer.pid}/task/{changer.pid}/children").read_text().split()
    assert len(children) == 1, "the guard"
    os.kill(int(children[0]), signal.SIGKILL)
    changer.kill()
    changer.wait(PATIENCE_S)
    assert tree.now() == CHANGED
    assert left_behind(tmp_path, system=tree.system) == "frequencies that a killed run had left changed were put back"
    assert tree.now() == BEFORE
    assert left_behind(tmp_path) == ""


def test_nobody_else_begins_before_the_guard_has_put_things_back(tree: CpuFreq, tmp_path: Path) -> None:
    with alone(tmp_path) as lock:
        read, write = os.pipe()
        (tmp_path / FILE).write_bytes(msgspec.json.encode(saved(tree.system)))
        guard = _guard(tmp_path / FILE, read, lock, tree.system)
        os.close(read)
    with pytest.raises(Busy), alone(tmp_path, patience_s=0.1):
        pass
    os.close(write)  # as if we had been killed
    guard.wait(PATIENCE_S)
    with alone(tmp_path):
        assert not (tmp_path / FILE).exists()


def test_after_a_reboot_nothing_is_put_back(tree: CpuFreq, tmp_path: Path, changer: "subprocess.Popen[str]") -> None:
    kept = (tmp_path / FILE).read_bytes()
    changer.kill()
    wait_for(lambda: not (tmp_path / FILE).exists())
    tree.write("policy0", "scaling_governor", "performance")
    (tmp_path / FILE).write_bytes(kept)
    (tmp_path / "boot_id").write_text("another\n")
    assert "restarted since" in left_behind(tmp_path, tmp_path / "boot_id")
    assert tree.now()[0][0] == "performance", "the system's own choice"
    assert not (tmp_path / FILE).exists()


def test_a_damaged_file_of_what_was_before_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"{")
    with pytest.raises(FrequencyError, match="cannot be put back"):
        left_behind(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x/scaling_governor", "powersave"),
        ("cpufreq/policy0/../../../target", "powersave"),
        ("cpufreq/policy0/scaling_available_governors", "powersave"),
        ("/cpufreq/policy0/scaling_governor", "powersave"),
        ("cpufreq/policyX/scaling_governor", "powersave"),
        ("cpufreq/policy0/scaling_governor\n", "powersave"),
        ("cpufreq/policy0/scaling_governor", "* * * * * root id"),
        ("cpufreq/policy0/scaling_max_freq", "1\n2"),
        ("cpufreq/policy0/scaling_max_freq", ""),
    ],
)
def test_a_file_of_what_was_before_says_nothing_but_governors_and_frequencies(
    tree: CpuFreq, tmp_path: Path, name: str, value: str
) -> None:
    good = saved(tree.system, BOOT_ID.read_text().strip())
    wrong = msgspec.structs.replace(good, files=good.files | {name: value})
    (tmp_path / FILE).write_bytes(msgspec.json.encode(wrong))
    tree.write("policy0", "scaling_governor", "performance")
    before = files_below(tmp_path)
    with pytest.raises(FrequencyError, match="frequencies are not put back by it"):
        left_behind(tmp_path, system=tree.system)
    assert restore(wrong, tree.system), "by the guard"
    assert files_below(tmp_path) == before


def files_below(folder: Path) -> dict[str, str]:
    return {str(path): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_frequencies_are_put_back_where_the_kernel_has_them_and_nowhere_else(tree: CpuFreq, tmp_path: Path) -> None:
    for root in (str(tmp_path), f"{tree.system}/x/..", "/"):
        wrong = msgspec.structs.replace(saved(tree.system, BOOT_ID.read_text().strip()), root=root)
        (tmp_path / FILE).write_bytes(msgspec.json.encode(wrong))
        with pytest.raises(FrequencyError, match="is of "):
            left_behind(tmp_path, system=tree.system)


def test_frequencies_are_written_through_no_link(tree: CpuFreq, tmp_path: Path) -> None:
    target, file = tmp_path / "target", tree.system / "cpufreq" / "policy0" / "scaling_governor"
    before: Saved = saved(tree.system)
    target.write_text("precious")
    file.unlink()
    file.symlink_to(target)
    assert restore(before, tree.system)
    with pytest.raises(FrequencyError):
        apply(Setting("", governor="performance"), tree.system)
    assert target.read_text() == "precious"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can play two users")
def test_a_file_of_what_was_before_that_somebody_else_wrote_is_not_believed(tree: CpuFreq, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(msgspec.json.encode(saved(tree.system, BOOT_ID.read_text().strip())))
    os.chown(tmp_path / FILE, 54322, 54322)
    with pytest.raises(FrequencyError, match="belongs to user 54322"):
        left_behind(tmp_path, system=tree.system)
    os.chown(tmp_path / FILE, 0, 0)
    os.chown(tmp_path, 54322, 54322)
    with pytest.raises(FrequencyError, match="belongs to user 54322"):
        left_behind(tmp_path, system=tree.system)
