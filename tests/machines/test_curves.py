import subprocess
import sys

import pytest

from wattloom.machines.curve_estimate import curve
from wattloom.machines.curves import curve_error, match_of, with_curve
from wattloom.machines.machine import Machine
from wattloom.machines.processors import SAME_FAMILY, SAME_MODEL, kind_of, known_processors, relations
from wattloom.machines.profile import MachineProfile


def bare(name: str, cores: int, threads: int | None = None) -> MachineProfile:
    return MachineProfile(name, "x86_64", cores, threads or 2 * cores, 1)


def test_a_processor_with_published_results_has_its_own_figures_per_core() -> None:
    known = known_processors()["epyc-9654"]
    profile = with_curve(bare("epyc-9654", 192), sockets=2, virtual=False)
    assert profile.watts[0][1] == pytest.approx(2 * known.idle_w, rel=0.01)
    assert Machine(profile).full_watts == pytest.approx(2 * known.full_w, rel=0.01)
    assert "SPECpower results with this processor" in profile.source
    assert match_of(profile).by == "processor"


def test_a_guest_that_is_shown_the_model_has_its_share_of_it() -> None:
    known = known_processors()["epyc-7763"]
    guest = with_curve(bare("epyc-7763", 4, 4), sockets=1, virtual=True)
    assert guest.name == "epyc-7763-4vcpu"
    assert Machine(guest).full_watts == pytest.approx(4 * 0.5 * known.full_w / known.cores)
    assert curve_error(guest) > curve_error(with_curve(bare("epyc-7763", 4), 1, False))


def test_a_model_nobody_published_is_told_from_its_family() -> None:
    profile = with_curve(bare("xeon-gold-6430", 64), sockets=2, virtual=False)
    assert match_of(profile).by == "family"
    assert "sapphire-rapids" in profile.source
    assert 300.0 < Machine(profile).full_watts < 900.0
    assert match_of(profile).spread == SAME_FAMILY


def test_the_family_tells_more_than_the_kind() -> None:
    """Each model since 2010 left out once: how far its watts at full load are off."""
    by_family, by_kind = [], []
    for name, known in known_processors().items():
        told = relations(name, known.cores, without=name)
        if told.by == "family" and known.years[0] >= 2010:
            kind = kind_of(name)
            by_family.append(abs(told.idle_w + told.active_w - known.full_w) / known.full_w)
            by_kind.append(abs(known.cores * (kind.idle_w + kind.active_w) - known.full_w) / known.full_w)
    assert len(by_family) > 100
    assert sorted(by_family)[len(by_family) // 2] < 0.6 * sorted(by_kind)[len(by_kind) // 2]


@pytest.mark.parametrize("name", ["epyc-9654", "xeon-e5-2690", "xeon-gold-6430"])
def test_the_schedulers_curve_of_an_unmeasured_machine_is_the_one_the_command_tells(name: str) -> None:
    machine = Machine(with_curve(bare(name, 32, 32), sockets=1, virtual=False))
    told = curve(machine.watts(0), machine.full_watts, cpu=name)
    ours = [machine.watts(load * 320) for load in told.loads]
    assert ours == pytest.approx(told.watts, rel=0.01)


def test_the_spread_grows_with_the_distance_from_what_was_measured() -> None:
    here = with_curve(bare("xeon-gold-5218", 32, 64), 2, False)
    assert match_of(here).by == "catalogue"
    spreads = [
        match_of(one).spread for one in (here, with_curve(bare("xeon-gold-6430", 32), 1, False), bare("power9", 8, 8))
    ]
    assert spreads[0] == SAME_MODEL
    assert spreads == sorted(spreads)


def test_a_guest_has_its_share_of_the_curve_the_command_tells_of_a_package() -> None:
    known = known_processors()["epyc-7763"]
    guest = Machine(with_curve(bare("epyc-7763", 4, 4), sockets=1, virtual=True))
    told = curve(cpu="epyc-7763")
    assert told.provenance == guest.profile.provenance == "estimated"
    ours = [guest.watts(load * 40) for load in told.loads]
    assert ours == pytest.approx([watts * 4 * 0.5 / known.cores for watts in told.watts])


def test_a_processor_nobody_knows_has_a_curve_that_rises_from_the_figures_of_its_kind() -> None:
    kind = kind_of("power9")
    machine = Machine(with_curve(bare("power9", 8, 8), sockets=1, virtual=False))
    watts = [machine.watts(load) for load in range(0, 8001, 100)]
    assert watts == sorted(watts)
    assert (watts[0], watts[-1]) == pytest.approx((8 * kind.idle_w, 8 * (kind.idle_w + kind.active_w)))
    assert "no processor" in machine.profile.source


def test_a_machine_without_a_meter_is_known_without_numpy() -> None:
    program = (
        "import sys; from wattloom.machines.this_machine import this_machine\n"
        "from wattloom.machines.curves import with_curve; from wattloom.machines.profile import MachineProfile\n"
        "this_machine(); with_curve(MachineProfile('epyc-9654', 'x86_64', 96, 192, 1), 1, False)\n"
        "assert 'wattloom.machines.curve_model' in sys.modules and 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
