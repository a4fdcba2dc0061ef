"""What a host writes, as its guest reads it: ours and Scaphandre's, over a clock that is not the host's."""

import os
from pathlib import Path

import pytest

from wattloom.energy.forecast import Unknown
from wattloom.errors import InputError
from wattloom.metering.host_share import FILE, RANGE_UJ, HostShare, Shared
from wattloom.metering.protocol import Sample
from wattloom.monitoring.vm_shares import VmShares, folder_name
from wattloom.testing.meter_conformance import CHECKS, Check, check_name

AHEAD_S = -4000.0
"""The guest's clock against the host's."""


class Host:
    """A host that writes once a second; also the conformance kit's source."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.time_s = 5000.0
        self.joules = 1000.0
        self.runs = 0
        self._begin()

    def _begin(self) -> None:
        self.runs += 1
        self.shares = VmShares(self.folder, Shared("", f"run-{self.runs}", 0, 0.0, every_s=1.0))
        self.write()

    def write(self) -> None:
        assert self.shares.write({"web": self.joules}, self.time_s, 1.7e9 + self.time_s) == []

    # -- the kit's source -----------------------------------------------------------------------------------------

    def meter(self) -> HostShare:
        return HostShare(self.folder / "web")

    def spend(self, seconds: float) -> float:
        self.time_s += seconds
        self.joules += 20.0 * seconds
        self.write()
        return 20.0 * seconds

    def fail(self) -> None:
        os.rename(self.folder / "web", self.folder / "away")

    def mend(self) -> None:
        os.rename(self.folder / "away", self.folder / "web")

    def near_wrap(self) -> bool:
        self.joules = (RANGE_UJ - 1000) * 1e-6
        self.write()
        return True

    def restart(self) -> None:
        self.joules = 0.0
        self.shares.close()
        self._begin()

    def jump(self) -> None:
        self.joules += 1e9
        self.time_s += 0.001
        self.write()


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.mark.parametrize("check", CHECKS, ids=check_name)
def test_the_conformance_kit(check: Check, tmp_path_factory: pytest.TempPathFactory) -> None:
    check(lambda: Host(tmp_path_factory.mktemp("host")))


def good(found: Sample | Unknown) -> Sample:
    assert isinstance(found, Sample), found
    return found


def test_a_reading_has_the_time_at_which_the_host_wrote_on_the_guests_clock(host: Host) -> None:
    meter = host.meter()
    good(meter.read(host.time_s + AHEAD_S + 0.01))
    host.spend(1.0)
    late = good(meter.read(host.time_s + AHEAD_S + 0.7))
    assert late.time == pytest.approx(host.time_s + AHEAD_S + 0.01)


def test_between_two_writings_the_last_reading_stands(host: Host) -> None:
    meter = host.meter()
    first = good(meter.read(1000.0))
    assert meter.read(1000.5) == first


def test_a_host_that_stops_writing_is_stale_and_not_zero(host: Host) -> None:
    meter = host.meter()
    good(meter.read(1000.0))
    assert "stale" in str(meter.read(1030.0))


def test_a_host_that_was_started_again_breaks_the_count_off(host: Host) -> None:
    meter = host.meter()
    before = good(meter.read(1000.0))
    host.restart()
    assert meter.read(1001.0) == Unknown("the host's count began anew: it was started again")
    host.spend(1.0)
    after = good(meter.read(1002.0))
    assert after.epoch > before.epoch


def test_scaphandres_bare_counter_is_read_too(tmp_path: Path) -> None:
    tree = tmp_path / "intel-rapl:0"
    tree.mkdir()
    (tree / "energy_uj").write_text("5000000")
    meter = HostShare(tmp_path)
    assert meter.available() is None
    os.utime(tree / "energy_uj", (1e9, 1e9))
    first = good(meter.read(1000.0))
    (tree / "energy_uj").write_text("15000000")
    os.utime(tree / "energy_uj", (1e9 + 5, 1e9 + 5))
    second = good(meter.read(1005.0))
    assert second.joules - first.joules == pytest.approx(10.0)


def test_a_clock_that_was_set_back_does_not_hold_a_bare_counter_up(tmp_path: Path) -> None:
    tree = tmp_path / "intel-rapl:0"
    tree.mkdir()
    written, meter = 1e9, HostShare(tmp_path)
    for second in range(20):
        (tree / "energy_uj").write_text(f"{5_000_000 * second}")
        written += 1.0 if second != 10 else -3600.0
        os.utime(tree / "energy_uj", (written, written))
        found = good(meter.read(1000.0 + second))
        assert (found.time, found.epoch) == (1000.0 + second, 0)
        assert found.joules == pytest.approx(5.0 * second)


def test_time_that_the_host_knows_nothing_of_breaks_the_count_off(host: Host) -> None:
    meter = host.meter()
    before = good(meter.read(1000.0))
    host.shares.begin_anew("after a gap")
    host.spend(1.0)
    assert isinstance(meter.read(1001.0), Unknown)
    host.spend(1.0)
    assert good(meter.read(1002.0)).epoch > before.epoch


def test_without_a_share_both_sides_are_told_what_to_do(tmp_path: Path) -> None:
    said = HostShare(tmp_path).available()
    assert said is not None
    assert "wattloom meter export --vms" in said
    assert "host_share" in said


@pytest.mark.parametrize("text", ["", "{", "[]", '{"guest": 3}', "nonsense"])
def test_a_file_that_is_no_share_is_unknown_with_its_name(host: Host, text: str) -> None:
    (host.folder / "web" / FILE).write_text(text)
    found = host.meter().read(1000.0)
    assert isinstance(found, Unknown)
    assert FILE in found.reason


# -- the host's side ---------------------------------------------------------------------------------------------------


def test_a_guest_that_is_gone_has_no_figures_left_and_still_its_folder(host: Host) -> None:
    host.shares.write({"web": 1.0, "db": 2.0}, 1.0, 1.0)
    host.shares.write({"db": 3.0}, 2.0, 2.0)
    assert list((host.folder / "web").iterdir()) == []
    assert (host.folder / "db" / FILE).exists()
    host.shares.close()
    assert list((host.folder / "db").iterdir()) == []


@pytest.mark.parametrize("name", ["../../etc", "a/b", "..", ".", "", "naïve guest\n"])
def test_no_name_leads_out_of_the_folder(name: str) -> None:
    plain = folder_name(name)
    assert plain
    assert "/" not in plain
    assert plain.strip(".")


def test_both_layouts_have_the_same_figure(host: Host) -> None:
    tree = host.folder / "web" / "intel-rapl:0"
    assert int((tree / "energy_uj").read_text()) == 1_000_000_000
    assert (tree / "name").read_text() == "package-0\n"
    assert int((tree / "max_energy_range_uj").read_text()) == RANGE_UJ


def test_a_figure_that_was_told_never_falls(host: Host) -> None:
    host.joules -= 5.0
    host.write()
    assert int((host.folder / "web" / "intel-rapl:0" / "energy_uj").read_text()) == 1_000_000_000


def test_a_second_export_into_the_same_folder_is_refused(host: Host) -> None:
    with pytest.raises(InputError, match="another export writes into"):
        VmShares(host.folder, Shared("", "run", 0, 0.0, every_s=1.0))
    host.shares.close()
    assert not (host.folder / ".lock").exists()
    VmShares(host.folder, Shared("", "run", 0, 0.0, every_s=1.0)).close()
