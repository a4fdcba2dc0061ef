"""A machine's own profile is found and used, if it is of this machine and was measured."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.profiling.made import cpu_profile

from wattloom.machines.own_profile import boost, profile_path
from wattloom.machines.profile import MachineProfile
from wattloom.machines.profile_file import CpuProfile, encode_profile
from wattloom.machines.this_machine import slug, this_identity, this_machine
from wattloom.metering.estimate import Estimate
from wattloom.profiling.taking import Place, own_path


class Box:
    """A machine on disk: four cores with two threads each, and an id."""

    def __init__(self, folder: Path) -> None:
        self.proc, self.cgroups, self.profiles = folder / "proc", folder / "cgroup", folder / "profiles"
        self.machine_id = folder / "machine-id"
        (self.proc / "self").mkdir(parents=True)
        self.profiles.mkdir()
        self.machine_id.write_text("0123456789abcdef\n")
        (self.proc / "meminfo").write_text("MemTotal: 1048576 kB\n")
        (self.proc / "self" / "cgroup").write_text("0::/\n")
        self.cpus("AMD EPYC 9999 4-Core Processor")

    def cpus(self, model: str, allowed: str = "0-7") -> None:
        blocks = [
            f"processor\t: {cpu}\nmodel name\t: {model}\nphysical id\t: 0\ncore id\t: {cpu // 2}\nmicrocode\t: 0x1\n"
            for cpu in range(8)
        ]
        (self.proc / "cpuinfo").write_text("\n".join(blocks))
        (self.proc / "self" / "status").write_text(f"Cpus_allowed_list:\t{allowed}\n")

    def identity(self) -> Any:
        return this_identity(self.proc, self.cgroups, system=self.proc / "none", machine_id=self.machine_id)

    def profile(self, **changes: Any) -> CpuProfile:
        return cpu_profile(machine=self.identity(), **changes)

    def put(self, profile: CpuProfile) -> Path:
        here = self.identity()
        path = profile_path(slug({"model name": here.model}), here.machine_id, self.profiles)
        path.write_bytes(encode_profile(profile))
        return path

    def here(self) -> MachineProfile:
        found = this_machine(self.proc, self.cgroups, profiles=self.profiles, machine_id=self.machine_id)
        assert found.problem() is None
        return found


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def test_a_measured_profile_becomes_the_curve_with_its_quantity(box: Box) -> None:
    before = box.here()
    path = box.put(box.profile(work=lambda level: 4500.0 * min(level, 4) + 900.0 * max(0, level - 4)))
    after = box.here()
    assert (before.provenance, before.quantity) == ("estimated", "wall")
    assert (after.provenance, after.quantity) == ("measured", "package")
    assert after.watts[-1] == (8.0, 100.0)
    assert after.speed == pytest.approx(1.866)
    assert after.smt_slowdown == pytest.approx(4500.0 / (4 * 5400.0 / 8))
    assert str(path) in after.source
    assert (after.name, after.memory) == (before.name, before.memory)


def test_the_estimate_then_gives_package_joules_and_is_surer(box: Box) -> None:
    vague = Estimate(box.here())
    box.put(box.profile())
    sure = Estimate(box.here())
    assert (vague.quantity, sure.quantity) == ("wall", "package")
    assert sure.provenance == "estimated", "busy time on a curve stays an estimate"
    assert sure.model_error < vague.model_error


def test_of_an_estimated_profile_only_the_work_is_used(box: Box) -> None:
    before = box.here()
    box.put(box.profile(provenance="estimated", work=lambda level: 4500.0 * min(level, 4)))
    after = box.here()
    assert (after.watts, after.provenance, after.source) == (before.watts, before.provenance, before.source)
    assert after.speed == pytest.approx(1.866)


@pytest.mark.parametrize(
    "changes", [{"model": "AMD EPYC 1"}, {"machine_id": "other"}, {"arch": "vax"}, {"virtual": True}, {"cores": 2}]
)
def test_a_profile_of_another_machine_is_left_alone(box: Box, changes: dict[str, Any]) -> None:
    before = box.here()
    other = msgspec.structs.replace(box.identity(), **changes)
    levels = cpu_profile(machine=other)
    box.put(levels)
    assert box.here() == before


def test_a_kernel_or_governor_of_later_is_no_other_machine(box: Box) -> None:
    later = msgspec.structs.replace(box.identity(), kernel="99", governor="x", microcode="y")
    box.put(cpu_profile(machine=later))
    assert box.here().provenance == "measured"


def test_a_process_that_may_use_a_part_has_that_part_of_the_curve(box: Box) -> None:
    box.put(box.profile())
    box.cpus("AMD EPYC 9999 4-Core Processor", allowed="0-3")
    part = box.here()
    assert (part.cores, part.threads) == (2, 4)
    assert part.watts[-1] == (4.0, 50.0)


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b"[]"])
def test_a_damaged_profile_is_as_good_as_none(box: Box, content: bytes) -> None:
    before = box.here()
    box.put(box.profile()).write_bytes(content)
    assert box.here() == before


def test_an_unfinished_profile_has_no_curve_to_give(box: Box) -> None:
    before = box.here()
    whole = box.profile()
    box.put(msgspec.structs.replace(whole, levels=whole.levels[:5], finished=""))
    assert box.here().watts == before.watts


def test_two_machines_of_one_model_have_files_of_their_own(box: Box) -> None:
    first = box.put(box.profile())
    box.machine_id.write_text("another\n")
    assert box.put(box.profile()) != first
    assert "0123456789abcdef" not in first.read_text(), "the system's id is nobody's business"


def test_the_place_is_in_the_state_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert own_path(Place()).parent == tmp_path / "wattloom" / "profiles"


def test_boost_is_read_from_either_driver(tmp_path: Path) -> None:
    assert boost(tmp_path) is None
    (tmp_path / "intel_pstate").mkdir()
    (tmp_path / "intel_pstate" / "no_turbo").write_text("1\n")
    assert boost(tmp_path) is False
    (tmp_path / "cpufreq").mkdir()
    (tmp_path / "cpufreq" / "boost").write_text("1\n")
    assert boost(tmp_path) is True
