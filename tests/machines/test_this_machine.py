import os
from pathlib import Path

import pytest

from wattloom.energy.forecast import Provenance
from wattloom.machines.catalogue import machines
from wattloom.machines.curves import FUNCTIONS_DIFFER, curve_error
from wattloom.machines.machine import Machine
from wattloom.machines.processors import ANY, KINDS, kind_of
from wattloom.machines.profile import MachineProfile
from wattloom.machines.this_machine import allowed_cpus, slug, this_machine

KIB = 1024


class Described:
    """A machine as /proc and the control groups describe it."""

    def __init__(self, folder: Path) -> None:
        self.proc, self.cgroups = folder / "proc", folder / "cgroup"
        (self.proc / "self").mkdir(parents=True)
        self.cgroups.mkdir()
        (self.proc / "meminfo").write_text("MemTotal:       1048576 kB\nMemFree:  5 kB\n")
        self.allow("0-7")
        self.group("0::/\n")

    def cpus(self, model: str, sockets: int, cores: int, threads: int, flags: str = "fpu") -> None:
        """`cores` per socket, `threads` per core."""
        blocks = [
            f"processor\t: {number}\nmodel name\t: {model}\nphysical id\t: {number // (cores * threads)}\n"
            f"core id\t\t: {number % (cores * threads) // threads}\nflags\t\t: {flags}\n"
            for number in range(sockets * cores * threads)
        ]
        (self.proc / "cpuinfo").write_text("\n".join(blocks))
        self.allow(f"0-{sockets * cores * threads - 1}")

    def allow(self, cpus: str) -> None:
        (self.proc / "self" / "status").write_text(f"Name:\tx\nCpus_allowed_list:\t{cpus}\nThreads: 1\n")

    def group(self, text: str) -> None:
        (self.proc / "self" / "cgroup").write_text(text)

    def setting(self, path: str, text: str) -> None:
        (self.cgroups / path).parent.mkdir(parents=True, exist_ok=True)
        (self.cgroups / path).write_text(text)

    def profile(self) -> MachineProfile:
        profile = this_machine(self.proc, self.cgroups)
        assert profile.problem() is None, profile.problem()
        return profile


@pytest.fixture
def box(tmp_path: Path) -> Described:
    return Described(tmp_path)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("Intel(R) Xeon(R) CPU E5-2699 v4 @ 2.20GHz", "xeon-e5-2699v4"),
        ("Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz", "xeon-platinum-8380"),
        ("Intel(R) Xeon(R) CPU           X5670  @ 2.93GHz", "xeon-x5670"),
        ("Intel(R) Xeon(R) E-2288G CPU @ 3.70GHz", "xeon-e-2288g"),
        ("AMD EPYC 7763 64-Core Processor", "epyc-7763"),
        ("12th Gen Intel(R) Core(TM) i5-1240P", "core-i5-1240p"),
        ("AMD Ryzen 7 7840U w/ Radeon 780M Graphics", "ryzen-7-7840u-w-radeon-780m-graphics"),
        ("", "unknown-cpu"),
    ],
)
def test_the_name_is_written_as_the_catalogue_writes_it(model: str, name: str) -> None:
    assert slug({"model name": model}) == name


def test_arm_processors_are_known_by_their_part() -> None:
    assert slug({"CPU implementer": "0x41", "CPU part": "0xd0c"}) == "neoverse-n1"


def test_a_machine_of_the_catalogue_has_its_curve_but_its_own_memory(box: Described) -> None:
    box.cpus("Intel(R) Xeon(R) Gold 5218 CPU @ 2.30GHz", sockets=2, cores=16, threads=2)
    profile, known = box.profile(), machines()["xeon-gold-5218-2s"]
    assert (profile.name, profile.cores, profile.threads) == ("xeon-gold-5218-2s", 32, 64)
    assert profile.watts == known.watts
    assert profile.memory == 1048576 * KIB
    assert profile.provenance == "modelled", "measured, but on another specimen"


def test_a_part_of_a_catalogue_machine_has_that_part_of_its_curve(box: Described) -> None:
    box.cpus("Intel(R) Xeon(R) Gold 5218 CPU @ 2.30GHz", sockets=2, cores=16, threads=2)
    box.allow("0-15")
    profile, known = box.profile(), machines()["xeon-gold-5218-2s"]
    assert (profile.cores, profile.threads) == (8, 16)
    assert Machine(profile).full_watts == pytest.approx(Machine(known).full_watts / 4)
    assert "8 of 32 cores" in profile.source


def test_another_machine_is_estimated_from_its_relations_per_core(box: Described) -> None:
    box.cpus("AMD EPYC 9999 8-Core Processor", sockets=1, cores=4, threads=2)
    profile, kind = box.profile(), kind_of("epyc")
    assert (profile.name, profile.cores, profile.threads, profile.provenance) == ("epyc-9999", 4, 8, "estimated")
    assert profile.watts[0] == pytest.approx((0.0, 4 * kind.idle_w))
    assert Machine(profile).full_watts == pytest.approx(4 * (kind.idle_w + kind.active_w))
    assert "SPECpower" in profile.source


def test_a_virtual_cpu_is_half_a_core_and_less_sure(box: Described) -> None:
    box.cpus("AMD EPYC", sockets=1, cores=8, threads=1)
    bare = box.profile()
    box.cpus("AMD EPYC", sockets=1, cores=8, threads=1, flags="fpu hypervisor")
    guest = box.profile()
    assert guest.name == "epyc-8vcpu"
    assert Machine(guest).full_watts == pytest.approx(Machine(bare).full_watts / 2)
    assert curve_error(guest) > curve_error(bare)


@pytest.mark.parametrize(
    ("group", "path", "setting", "threads"),
    [
        ("0::/a/b\n", "a/b/cpu.max", "300000 100000\n", 3),
        ("0::/a/b\n", "a/cpu.max", "250000 100000\n", 2),
        ("0::/a/b\n", "a/b/cpu.max", "max 100000\n", 8),
        ("0::/a/b\n", "a/b/cpu.max", "50000 100000\n", 1),
        ("0::/not/there\n", "cpu.max", "400000 100000\n", 4),
        ("3:cpu,cpuacct:/a\n", "cpu/a/cpu.cfs_quota_us", "200000\n", 2),
        ("3:cpu,cpuacct:/a\n", "cpu/a/cpu.cfs_quota_us", "-1\n", 8),
    ],
)
def test_control_groups_bound_the_cpus(box: Described, group: str, path: str, setting: str, threads: int) -> None:
    box.cpus("AMD EPYC 7763 64-Core Processor", sockets=1, cores=4, threads=2)
    box.group(group)
    box.setting(path, setting)
    profile = box.profile()
    assert (profile.threads, profile.cores) == (threads, min(threads, 4))


def test_control_groups_bound_the_memory(box: Described) -> None:
    box.cpus("x", 1, 8, 1)
    box.group("0::/a\n")
    box.setting("a/memory.max", "1000000\n")
    assert box.profile().memory == 1_000_000


def test_the_kernels_list_of_allowed_cpus_is_read(box: Described) -> None:
    box.allow("0-2,5,7-8")
    assert allowed_cpus(box.proc) == frozenset({0, 1, 2, 5, 7, 8})
    assert allowed_cpus(box.proc / "nowhere") is None


def test_a_kernel_that_tells_nothing_still_gives_a_valid_profile(tmp_path: Path) -> None:
    profile = this_machine(tmp_path, tmp_path)
    assert profile.problem() is None
    assert (profile.name, profile.cores) == ("unknown-cpu", 1)


def test_this_very_machine_has_a_valid_profile_with_a_curve() -> None:
    profile = this_machine()
    assert profile.problem() is None
    assert Machine(profile).knows_power
    assert 1 <= profile.threads <= len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("epyc-7763", "AMD servers"),
        ("xeon-gold-6330", "Intel servers of 2019"),
        ("xeon-e5-2680v3", "Intel servers of 2010"),
        ("xeon-e-2388g", "up to 8 cores"),
        ("core-i7-8550u", "up to 8 cores"),
        ("neoverse-n1", "Ampere"),
        ("power9", "servers of 2017"),
    ],
)
def test_relations_are_found_by_the_name(name: str, words: str) -> None:
    assert words in kind_of(name).kind


def test_a_better_known_curve_is_surer_but_functions_still_differ() -> None:
    def error(provenance: Provenance, name: str = "epyc-7763") -> float:
        return curve_error(MachineProfile(name, "x86_64", 1, 1, 1, provenance=provenance))

    assert FUNCTIONS_DIFFER < error("measured") < error("modelled") < error("estimated") < error("estimated", "power9")
    assert max(kind.spread for kind in KINDS) < ANY.spread
