"""The census on the kernel we run on: real processes, real clocks, real control groups."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from wattloom.monitoring.census import Census, Count
from wattloom.monitoring.cgroups import ControlGroups

LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
GROUPS = Path("/sys/fs/cgroup")
ID = f"{os.getpid():08x}" * 8
"""Of this worker of the test run alone."""
BURN = "import time; end = time.process_time() + {}\nwhile time.process_time() < end: pass"


@pytest.fixture
def census() -> Census:
    made = Census()
    made.sample()
    return made


def burn(seconds: float) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-S", "-c", BURN.format(seconds) + "\ntime.sleep(60)"])


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def seconds_of(count: Count, pid: int) -> float:
    return sum(seconds for process, seconds in count.used if process.pid == pid)


def test_a_burner_is_seen_with_its_name_and_its_seconds(census: Census) -> None:
    process = burn(0.3)
    try:
        found, limit = 0.0, time.monotonic() + 30
        while found < 0.3 and time.monotonic() < limit:
            time.sleep(0.05)
            found += seconds_of(census.sample(), process.pid)
        time.sleep(0.2)
        found += seconds_of(census.sample(), process.pid)
        assert found == pytest.approx(time.clock_gettime((~process.pid << 3) | 2), abs=1e-6)
        assert census.living[process.pid].name.startswith("python")
        assert "process_time" in census.living[process.pid].command
        assert census.living[process.pid].parent == os.getpid()
    finally:
        end(process)


def test_a_pid_that_the_kernel_gives_again_is_another_process(census: Census) -> None:
    if not os.access(LAST_PID, os.W_OK):
        pytest.skip("NOT TESTED: a real PID used twice. Writing /proc/sys/kernel/ns_last_pid needs root.")
    for _ in range(20):  # somebody else may take the number in between
        old = subprocess.Popen(["sleep", "60"])
        census.sample()
        before = census.living[old.pid]
        time.sleep(0.05)  # the kernel tells starts in steps of 10 ms
        end(old)
        LAST_PID.write_text(str(old.pid - 1))
        new = subprocess.Popen(["sleep", "61"])
        if new.pid == old.pid:
            break
        end(new)
    else:
        pytest.skip("NOT TESTED: a real PID used twice. This machine starts processes too fast to get one again.")
    try:
        count = census.sample()
        assert before in count.ended
        assert census.living[new.pid] is not before
        assert census.living[new.pid].key != before.key
        assert seconds_of(count, new.pid) == pytest.approx(census.living[new.pid].used_s)
    finally:
        end(new)


def test_a_child_that_waits_to_be_waited_for_is_counted_once(census: Census) -> None:
    """A zombie is still listed, and its clock still told; only then does its time become its parent's."""
    child = subprocess.Popen([sys.executable, "-S", "-c", BURN.format(0.3)])
    limit = time.monotonic() + 30
    while Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < limit
        time.sleep(0.05)
    assert seconds_of(census.sample(), child.pid) >= 0.3
    child.wait()
    end_s = time.process_time() + 0.02
    while time.process_time() < end_s:
        pass
    own = census.living[os.getpid()].name
    assert sum(each.cpu_s for each in census.sample().exited if each.parent == own) < 0.1


def test_forgotten_directories_are_recognised(census: Census) -> None:
    drop = Path("/proc/sys/vm/drop_caches")
    if not os.access(drop, os.W_OK):
        pytest.skip("NOT TESTED: directories of /proc that the kernel forgot. Writing drop_caches needs root.")
    before = census.living[1]
    drop.write_text("2")
    census.sample()
    assert census.living[1] is before


def test_a_thousand_short_lived_processes_show_as_what_their_parent_waited_for(census: Census) -> None:
    script = "for i in $(seq 250); do /bin/true; done; sleep 60"
    storm = [subprocess.Popen(["sh", "-c", script]) for _ in range(4)]
    parents = {each.pid for each in storm}
    try:
        whole, limit = 0.0, time.monotonic() + 60
        while time.monotonic() < limit:
            time.sleep(0.1)
            count = census.sample()
            whole += sum(each.cpu_s for each in count.exited if each.parent == "sh")
            whole += sum(seconds for process, seconds in count.used if process.name == "true")
            done = [each for each in census.living.values() if each.name == "sleep" and each.parent in parents]
            if len(done) == len(storm):
                break
        for _ in range(5):
            whole += sum(each.cpu_s for each in census.sample().exited if each.parent == "sh")
        waited_for = sum(children_s(each.pid) for each in storm)
        assert waited_for > 0.2
        assert whole == pytest.approx(waited_for, rel=0.3)
    finally:
        for each in storm:
            end(each)


def children_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / 100


def roots() -> dict[str, tuple[Path, Path]]:
    """By version: what the census is told is the root, and where groups are made."""
    first = [folder for folder in (GROUPS / "cpuacct", GROUPS / "cpu,cpuacct") if folder.is_dir()]
    second = [folder for folder in (GROUPS, GROUPS / "unified") if (folder / "cgroup.controllers").exists()]
    found = {"1": (GROUPS, first[0])} if first else {}
    return found | ({"2": (second[0], second[0])} if second else {})


@pytest.fixture(params=["1", "2"])
def version(request: pytest.FixtureRequest) -> tuple[Path, Path]:
    if request.param not in roots():
        pytest.skip(f"NOT TESTED: real control groups of version {request.param}. This machine has none mounted.")
    return roots()[request.param]


@pytest.fixture
def grouped(version: tuple[Path, Path]) -> Census:
    """A census that reads one of the two versions."""
    made = Census(groups=ControlGroups(version[0]))
    made.sample()
    return made


@pytest.fixture
def container(version: tuple[Path, Path]) -> Iterator[Path]:
    """A control group with the name that docker gives."""
    place = version[1] / "docker" / ID
    try:
        place.mkdir(parents=True)
    except OSError as problem:
        pytest.skip(f"NOT TESTED: a real control group. One cannot be made here ({problem}); that needs root.")
    yield place
    for pid in (place / "cgroup.procs").read_text().split():
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    for _ in range(50):
        with suppress(OSError):
            place.rmdir()
            break
        time.sleep(0.05)
    with suppress(OSError):
        place.parent.rmdir()


def test_a_real_control_group_counts_those_that_came_and_went_in_it(grouped: Census, container: Path) -> None:
    script = f"echo $$ > {container}/cgroup.procs; sleep 0.5; for i in $(seq 150); do /bin/true; done; exec sleep 60"
    process = subprocess.Popen(["sh", "-c", script])
    try:
        used = unseen = 0.0
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            time.sleep(0.1)
            count = grouped.sample()
            used += sum(seconds for each, seconds in count.used if each.place.container == ID)
            unseen += sum(each.cpu_s for each in count.exited if each.place.container == ID)
            if (
                grouped.living.get(process.pid) is not None
                and Path(f"/proc/{process.pid}/comm").read_text() == "sleep\n"
            ):
                break
        for _ in range(2):
            unseen += sum(each.cpu_s for each in grouped.sample().exited if each.place.container == ID)
        assert grouped.living[process.pid].place.container == ID
        counted = grouped._groups.used_s(f"/docker/{ID}")
        assert counted is not None
        assert unseen > 0.0
        assert used + unseen == pytest.approx(counted, rel=0.25)
        assert used + unseen <= counted * 1.02 + 0.002
    finally:
        end(process)


def test_a_removed_control_group_does_no_harm(grouped: Census, container: Path) -> None:
    script = f"echo $$ > {container}/cgroup.procs; exec sleep 60"
    process = subprocess.Popen(["sh", "-c", script])
    limit = time.monotonic() + 20
    while time.monotonic() < limit:
        grouped.sample()
        found = grouped.living.get(process.pid)
        if found is not None and found.place.container == ID:
            break
        time.sleep(0.05)
    assert grouped.living[process.pid].place.container == ID
    end(process)
    container.rmdir()
    for _ in range(6):
        assert ID not in {each.place.container for each in grouped.sample().exited}
    container.mkdir()


def test_a_look_at_many_processes_opens_no_files_of_theirs(census: Census) -> None:
    """What makes it cheap: the list and the clocks; not a file for each."""
    many = [subprocess.Popen(["sleep", "60"]) for _ in range(100)]
    try:
        for _ in range(5):
            census.sample()
        kernel = census._kernel
        opened: list[int] = []
        original = kernel.text
        kernel.text = lambda pid, file: (opened.append(pid), original(pid, file))[1]  # type: ignore[method-assign,func-returns-value]
        for _ in range(3):
            census.sample()
        assert len({pid for pid in opened if pid in {each.pid for each in many}}) <= 10
    finally:
        for each in many:
            end(each)


HIDING = """
import os, sys, time
from wattloom.monitoring.census import Census
os.setgid(65534), os.setuid(65534)
census = Census()
census.sample()
end = time.process_time() + 0.05
while time.process_time() < end: pass
count = census.sample()
print(count.living, count.hidden, any(process.pid == os.getpid() for process, _ in count.used))
"""


@pytest.mark.parametrize(("hidden", "mode"), [("files", 1), ("processes", 2)])
def test_where_others_are_hidden_we_see_what_we_may(hidden: str, mode: int) -> None:
    """/proc mounted with hidepid, and a user who is not root."""
    script = f'mount -t proc -o hidepid={mode} proc /proc && exec "{sys.executable}" -c "$0"'
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, HIDING], capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"NOT TESTED: a /proc that hides. Mounting one needs root: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    living, unreadable, own = done.stdout.split()
    assert own == "True"
    if hidden == "files":
        assert int(unreadable) > 1
    else:
        assert (int(living), int(unreadable)) == (1, 0)
