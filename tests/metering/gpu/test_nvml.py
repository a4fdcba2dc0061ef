import os
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest
from tests.metering.gpu.silicon import (
    AMPERE,
    HOPPER,
    LOST,
    NO_PERMISSION,
    NOT_SUPPORTED,
    VARIABLE,
    VOLTA,
    Gpu,
    Silicon,
    User,
)

from wattloom.energy.forecast import Unknown
from wattloom.machines.profile import MachineProfile
from wattloom.metering.device_meter import DriverMeter
from wattloom.metering.devices import DeviceReading
from wattloom.metering.nvml import NvmlDriver, for_machine
from wattloom.metering.patient_driver import PatientDriver
from wattloom.metering.protocol import Sample, zones

MACHINE = MachineProfile("a machine", "x86_64", cores=1, threads=1, memory=1)


def meter() -> DriverMeter:
    return for_machine(MACHINE)


def joules(made: DriverMeter, now: float) -> float:
    sample = made.read(now)
    assert isinstance(sample, Sample), sample
    return sample.joules


def reason(made: DriverMeter, now: float) -> str:
    answer = made.read(now)
    assert isinstance(answer, Unknown), answer
    return answer.reason


def four(silicon: Silicon) -> None:
    silicon.gpus = [Gpu(f"GPU-{letter * 8}-0000", watts=100.0 + 50 * at) for at, letter in enumerate("abcd")]
    silicon.write()


def spend(silicon: Silicon, *millijoules: int) -> None:
    for gpu, rise in zip(silicon.gpus, millijoules, strict=True):
        gpu.energy += rise
    silicon.write()


def uuids(made: DriverMeter) -> list[str]:
    return [device.uuid[4:5] for device in made.devices(0.0)]


# -- joules ----------------------------------------------------------------------------------------------------------


def test_the_count_is_the_sum_over_all_devices_and_each_has_its_own(nvidia: Silicon) -> None:
    four(nvidia)
    made = meter()
    assert joules(made, 0.0) == 0.0
    spend(nvidia, 1000, 2000, 3000, 4000)
    assert joules(made, 1.0) == pytest.approx(10.0)
    counts = [device.count for device in made.devices(1.0)]
    assert [count.joules for count in counts if isinstance(count, Sample)] == pytest.approx([1.0, 2.0, 3.0, 4.0])
    assert [zone.joules for zone in zones(made)] == pytest.approx([1.0, 2.0, 3.0, 4.0])


def test_the_driver_loaded_again_is_a_new_epoch(nvidia: Silicon) -> None:
    made = meter()
    before = made.read(0.0)
    nvidia.gpus[0].energy = 17
    nvidia.write()
    assert "went backwards" in reason(made, 1.0)
    spend(nvidia, 3000)
    after = made.read(2.0)
    assert isinstance(before, Sample)
    assert isinstance(after, Sample)
    assert after.epoch > before.epoch
    assert after.joules == pytest.approx(3.0)


def test_the_driver_gone_for_a_while_is_a_new_epoch_although_the_counter_rose(nvidia: Silicon) -> None:
    made = meter()
    before = made.read(0.0)
    nvidia.driver_rc = 9
    nvidia.write()
    assert "modprobe nvidia" in reason(made, 1.0)
    nvidia.driver_rc = 0
    spend(nvidia, 5000)
    after = made.read(2.0)
    assert isinstance(before, Sample)
    assert isinstance(after, Sample)
    assert after.epoch > before.epoch


def test_a_card_before_volta_is_counted_by_its_power(nvidia: Silicon) -> None:
    nvidia.gpus[0].energy_rc = NOT_SUPPORTED
    nvidia.write()
    made = meter()
    joules(made, 0.0)
    assert joules(made, 2.0) == pytest.approx(200.0)
    nvidia.gpus[0].watts = 200.0
    nvidia.write()
    assert joules(made, 4.0) == pytest.approx(500.0)
    assert made.devices(4.0)[0].source == "power"


def open_after_a_step(silicon: Silicon, architecture: int, name: str) -> tuple[float, float]:
    """What a reading leaves open just after the power has changed, and the lag."""
    silicon.gpus = [Gpu(name=name, architecture=architecture, energy_rc=NOT_SUPPORTED)]
    silicon.write()
    made = meter()
    made.read(0.0)
    silicon.gpus[0].watts = 300.0
    silicon.write()
    sample = made.read(0.1)
    assert isinstance(sample, Sample)
    return sample.resolution_j, made.devices(0.1)[0].lag_s


def test_power_that_is_an_average_is_late_and_leaves_more_open(nvidia: Silicon) -> None:
    sharp, no_lag = open_after_a_step(nvidia, VOLTA, "Tesla V100")
    ga100, ga100_lag = open_after_a_step(nvidia, AMPERE, "NVIDIA A100-SXM4-40GB")
    small, small_lag = open_after_a_step(nvidia, AMPERE, "NVIDIA RTX A1000")
    blunt, lag = open_after_a_step(nvidia, AMPERE, "NVIDIA A40")
    hopper, hopper_lag = open_after_a_step(nvidia, HOPPER, "NVIDIA H100")
    assert (no_lag, ga100_lag, lag, small_lag, hopper_lag) == (0.0, 0.0, 0.5, 0.5, 0.5)
    assert sharp == ga100
    assert blunt == hopper == small
    assert blunt > 5 * sharp


# -- failures --------------------------------------------------------------------------------------------------------


def test_one_lost_gpu_takes_no_other_with_it(nvidia: Silicon) -> None:
    four(nvidia)
    made = meter()
    joules(made, 0.0)
    nvidia.gpus[2].handle_rc = LOST
    spend(nvidia, 1000, 2000, 3000, 4000)
    counts = [device.count for device in made.devices(1.0)]
    assert [isinstance(count, Unknown) for count in counts] == [False, False, True, False]
    assert "fallen off the bus" in reason(made, 1.0)
    assert "device 2" in reason(made, 1.0)
    assert "device 2" in (made.available() or "")


def test_a_gpu_that_was_lost_and_comes_back_begins_a_new_epoch(nvidia: Silicon) -> None:
    four(nvidia)
    made = meter()
    first = made.read(0.0)
    nvidia.gpus[2].handle_rc = LOST
    nvidia.write()
    made.read(1.0)
    nvidia.gpus[2].handle_rc = 0
    nvidia.write()
    again = made.read(2.0)
    assert isinstance(first, Sample)
    assert isinstance(again, Sample)
    assert again.epoch > first.epoch


def test_a_gpu_that_was_lost_from_the_beginning_is_shown_as_unknown(nvidia: Silicon) -> None:
    four(nvidia)
    nvidia.gpus[1].handle_rc = LOST
    nvidia.write()
    made = meter()
    assert "fallen off the bus" in (made.available() or "")
    assert [isinstance(device.count, Unknown) for device in made.devices(0.0)] == [False, True, False, False]
    nvidia.gpus[1].handle_rc = 0
    nvidia.write()
    assert made.available() is None
    assert isinstance(made.read(1.0), Sample)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (9, "modprobe nvidia"),
        (18, "different versions"),
        (NO_PERMISSION, "/dev/nvidia*"),
        (12, "libnvidia-ml.so.1 is not there"),
        (999, "does not know itself"),
        (77, "NVML error 77"),
    ],
)
def test_a_driver_that_cannot_be_opened_says_why(nvidia: Silicon, code: int, words: str) -> None:
    nvidia.driver_rc = code
    nvidia.write()
    made = meter()
    assert words in (made.available() or "")
    assert words in reason(made, 0.0)
    assert made.devices(0.0) == ()
    assert made.processes(0.0) == ()


def test_a_driver_that_hangs_keeps_nobody_and_its_counter_covers_the_gap(nvidia: Silicon) -> None:
    made = DriverMeter("nvml", "hangs", PatientDriver(NvmlDriver(), wait_s=0.2), 0.4)
    before = made.read(0.0)
    nvidia.hang_s = 1.5
    nvidia.write()
    began = monotonic()
    assert "did not answer within 0.2 s" in reason(made, 1.0)
    assert "has not answered for" in reason(made, 2.0)
    assert [isinstance(device.count, Unknown) for device in made.devices(2.0)] == [True]
    assert monotonic() - began < 1.4, "nobody waited for the driver"
    nvidia.hang_s = 0.0
    spend(nvidia, 7000)
    after = made.read(3.0)
    while isinstance(after, Unknown) and monotonic() - began < 30.0:
        sleep(0.1)
        after = made.read(3.0)
    assert isinstance(before, Sample)
    assert isinstance(after, Sample)
    assert after.joules == pytest.approx(7.0)
    assert after.epoch == before.epoch


def test_a_gpu_that_tells_neither_energy_nor_power_is_unknown(nvidia: Silicon) -> None:
    nvidia.gpus[0].energy_rc = nvidia.gpus[0].power_rc = NOT_SUPPORTED
    nvidia.write()
    assert "does not tell its energy" in reason(meter(), 0.0)


def test_a_machine_without_gpus_says_so(nvidia: Silicon) -> None:
    nvidia.gpus = []
    nvidia.write()
    assert "shows no GPU" in (meter().available() or "")


# -- the rest of a reading -------------------------------------------------------------------------------------------


def test_a_reading_tells_what_the_driver_tells(nvidia: Silicon) -> None:
    (device,) = meter().devices(0.0)
    assert (device.watts, device.utilisation, device.limit_w, device.temperature_c) == (100.0, 0.4, 300.0, 51)
    assert (device.memory_used, device.memory_total) == (1 << 30, 32 << 30)
    assert (device.kind, device.name, device.index) == ("nvidia", "Tesla V100-SXM2-32GB", 0)


def test_what_the_driver_does_not_tell_is_none_and_the_joules_stand(nvidia: Silicon) -> None:
    nvidia.gpus[0].state_rc = NOT_SUPPORTED
    nvidia.write()
    (device,) = meter().devices(0.0)
    assert (device.utilisation, device.limit_w, device.memory_used, device.temperature_c) == (None, None, None, None)
    assert isinstance(device.count, Sample)


# -- which devices ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mask", "left"),
    [
        ("0,2", "ac"),
        ("3, 1", "bd"),
        ("GPU-cccccccc-0000", "c"),
        ("GPU-dd,0", "ad"),
        ("1,9,0", "b"),
        ("1,1", "b"),
    ],
)
def test_cuda_visible_devices_says_which_are_ours(
    nvidia: Silicon, monkeypatch: pytest.MonkeyPatch, mask: str, left: str
) -> None:
    four(nvidia)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", mask)
    made = meter()
    assert uuids(made) == list(left)
    made.read(0.0)
    spend(nvidia, 1000, 1000, 1000, 1000)
    assert joules(made, 1.0) == pytest.approx(len(left))


@pytest.mark.parametrize("mask", ["", "-1", "none", "GPU-"])
def test_a_mask_that_hides_all_is_named(nvidia: Silicon, monkeypatch: pytest.MonkeyPatch, mask: str) -> None:
    four(nvidia)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", mask)
    assert f"CUDA_VISIBLE_DEVICES={mask} leaves none of the 4" in (meter().available() or "")


def test_numbers_in_a_mask_are_doubtful_where_cards_differ(nvidia: Silicon, monkeypatch: pytest.MonkeyPatch) -> None:
    nvidia.gpus = [Gpu("GPU-1", "Tesla T4"), Gpu("GPU-2", "NVIDIA H100")]
    nvidia.write()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert "CUDA_DEVICE_ORDER" in meter().devices(0.0)[0].note
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    assert meter().devices(0.0)[0].note == ""


# -- processes -------------------------------------------------------------------------------------------------------


def shares(made: DriverMeter, now: float) -> dict[int, float | None]:
    return {process.pid: process.utilisation for process in made.processes(now)}


def test_processes_have_their_share_since_the_last_call(nvidia: Silicon) -> None:
    nvidia.users = [User(10, busy=60, stamp=100), User(11, busy=20, stamp=100), User(12)]
    nvidia.write()
    made = meter()
    assert shares(made, 0.0) == {10: 0.6, 11: 0.2, 12: 0.0}
    nvidia.users[1].busy, nvidia.users[1].stamp = 50, 200
    nvidia.write()
    assert shares(made, 1.0) == {10: 0.0, 11: 0.5, 12: 0.0}, "the sample of process 10 is an old one"
    assert shares(made, 1.0) == {10: 0.0, 11: 0.5, 12: 0.0}, "asked again for the same time"
    assert shares(made, 2.0) == {10: 0.0, 11: 0.0, 12: 0.0}


def test_several_samples_of_one_process_are_averaged_and_nonsense_is_left_out(nvidia: Silicon) -> None:
    nvidia.users = [
        User(10, busy=60, stamp=100),
        User(10, busy=20, stamp=101, memory=0),
        User(11, busy=9999, stamp=101),
    ]
    nvidia.write()
    assert shares(meter(), 0.0) == {10: pytest.approx(0.4), 11: 0.0}


def test_a_process_that_ended_in_between_is_known_by_its_share(nvidia: Silicon) -> None:
    nvidia.users = [User(10, busy=60, stamp=100, memory=0)]
    nvidia.write()
    (process,) = meter().processes(0.0)
    assert (process.pid, process.utilisation, process.memory_bytes) == (10, 0.6, None)


@pytest.mark.parametrize("code", [NOT_SUPPORTED, NO_PERMISSION])
def test_shares_that_the_driver_does_not_tell_are_unknown(nvidia: Silicon, code: int) -> None:
    nvidia.users = [User(10, busy=60, stamp=100, memory=7)]
    nvidia.gpus[0].busy_rc = code
    nvidia.write()
    (process,) = meter().processes(0.0)
    assert (process.utilisation, process.memory_bytes) == (None, 7)


def test_processes_are_of_their_devices(nvidia: Silicon) -> None:
    four(nvidia)
    nvidia.users = [User(10, 0, 60, stamp=100), User(10, 3, 10, stamp=100), User(11, 3, 30, stamp=100)]
    nvidia.write()
    found = [(process.device[4], process.pid, process.utilisation) for process in meter().processes(0.0)]
    assert found == [("a", 10, 0.6), ("d", 10, 0.1), ("d", 11, 0.3)]


# -- MIG -------------------------------------------------------------------------------------------------------------


def cut(silicon: Silicon) -> DeviceReading:
    four(silicon)
    silicon.gpus[1].instances, silicon.gpus[1].busy_rc = 3, NOT_SUPPORTED
    silicon.users = [User(10, 1, memory=5, instance=0), User(11, 1, memory=6, instance=2)]
    silicon.write()
    return meter().devices(0.0)[1]


def test_of_a_card_cut_into_instances_the_whole_is_counted_and_its_processes_are_those_of_the_parts(
    nvidia: Silicon,
) -> None:
    device = cut(nvidia)
    assert "3 instances" in device.note
    assert isinstance(device.count, Sample)
    processes = [(process.pid, process.memory_bytes, process.utilisation) for process in meter().processes(0.0)]
    assert processes == [(10, 5, None), (11, 6, None)]


def test_who_may_use_an_instance_counts_its_card(nvidia: Silicon, monkeypatch: pytest.MonkeyPatch) -> None:
    cut(nvidia)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-2-bbbbbbbb-0000")
    assert uuids(meter()) == ["b"]


# -- another process -------------------------------------------------------------------------------------------------

LIST = "from wattloom.metering.nvml import for_machine; m = for_machine(None); print(m.available(), m.read(0.0))"


def listed(environment: dict[str, str]) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", LIST], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return ran.stdout


def test_the_binding_finds_the_library_as_it_would_find_the_real_one(nvidia: Silicon, nvml_so: Path) -> None:
    out = listed({"LD_LIBRARY_PATH": str(nvml_so.parent), VARIABLE: str(nvidia.path)})
    assert out.startswith("None Sample(")


def test_without_the_library_it_says_what_is_missing(nvidia: Silicon) -> None:
    out = listed({"LD_LIBRARY_PATH": ""})
    if out.startswith(("None", "device")):
        pytest.skip("this machine has NVIDIA's library, so its absence is NOT TESTED here")
    assert "libnvidia-ml.so.1 is not there" in out


def test_without_the_binding_it_says_what_to_install(nvidia: Silicon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert "pip install 'wattloom[nvidia]'" in (meter().available() or "")
