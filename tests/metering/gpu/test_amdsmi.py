import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.metering.gpu.silicon import AMD_NOT_SUPPORTED, AMD_UNIT_UJ, VARIABLE, Gpu, Silicon, User

from wattloom.energy.forecast import Unknown
from wattloom.machines.profile import MachineProfile
from wattloom.metering.amdsmi import for_machine, misfit
from wattloom.metering.device_meter import DriverMeter
from wattloom.metering.protocol import Sample
from wattloom.units import GIB

MACHINE = MachineProfile("a machine", "x86_64", cores=1, threads=1, memory=1)


def meter() -> DriverMeter:
    return for_machine(MACHINE)


def joules(made: DriverMeter, now: float) -> float:
    sample = made.read(now)
    assert isinstance(sample, Sample), sample
    return sample.joules


def three(silicon: Silicon) -> None:
    """HIP counts them in another order than the driver."""
    names = ("a", "b", "c")
    silicon.gpus = [
        Gpu(f"GPU-{name * 16}", "AMD Instinct MI210", architecture=104, hip=hip)
        for name, hip in zip(names, (2, 0, 1), strict=True)
    ]
    silicon.write()


def uuids(made: DriverMeter) -> str:
    return "".join(device.uuid[4] for device in made.devices(0.0))


def test_joules_are_steps_of_the_accumulator_times_their_size(amd: Silicon) -> None:
    made = meter()
    assert joules(made, 0.0) == 0.0
    amd.gpus[0].energy += 10_000_000
    amd.write()
    assert joules(made, 1.0) == pytest.approx(10.0 * AMD_UNIT_UJ)


@pytest.mark.parametrize("how", ["not supported", "zero", "all ones"])
def test_a_card_without_an_accumulator_is_counted_by_its_power(amd: Silicon, how: str) -> None:
    amd.gpus[0].energy = {"not supported": 7, "zero": 0, "all ones": 2**64 - 1}[how]
    amd.gpus[0].energy_rc = AMD_NOT_SUPPORTED if how == "not supported" else 0
    amd.write()
    made = meter()
    joules(made, 0.0)
    assert joules(made, 2.0) == pytest.approx(200.0)
    assert made.devices(2.0)[0].source == "power"


def test_a_reading_tells_what_the_driver_tells(amd: Silicon) -> None:
    (device,) = meter().devices(0.0)
    assert (device.watts, device.utilisation, device.limit_w, device.temperature_c) == (100.0, 0.4, 300.0, 51)
    assert (device.memory_used, device.memory_total) == (GIB, 32 * GIB)
    assert (device.kind, device.name, device.uuid) == ("amd", "AMD Instinct MI210", "GPU-00000000000000a0")


def test_what_the_driver_does_not_tell_is_none_and_the_joules_stand(amd: Silicon) -> None:
    amd.gpus[0].state_rc = amd.gpus[0].power_rc = AMD_NOT_SUPPORTED
    amd.write()
    (device,) = meter().devices(0.0)
    assert (device.watts, device.utilisation, device.limit_w, device.memory_used) == (None, None, None, None)
    assert isinstance(device.count, Sample)


def test_a_gpu_that_tells_nothing_is_unknown_and_takes_no_other_with_it(amd: Silicon) -> None:
    three(amd)
    amd.gpus[1].energy_rc = amd.gpus[1].power_rc = AMD_NOT_SUPPORTED
    amd.write()
    made = meter()
    assert [isinstance(device.count, Unknown) for device in made.devices(0.0)] == [True, False, False]
    assert "does not tell its energy" in (made.available() or "")


@pytest.mark.parametrize(
    ("code", "words"), [(34, "modprobe amdgpu"), (10, "render,video"), (8, "in time"), (77, "AMD SMI status 77")]
)
def test_a_driver_that_cannot_be_opened_says_why(amd: Silicon, code: int, words: str) -> None:
    amd.driver_rc = code
    amd.write()
    assert words in (meter().available() or "")
    assert meter().devices(0.0) == ()


def test_a_library_of_another_release_than_the_binding_is_not_used(amd: Silicon) -> None:
    amd.major = 24
    amd.write()
    assert "pip install /opt/rocm/share/amd_smi" in (meter().available() or "")
    assert isinstance(meter().read(0.0), Unknown)


@pytest.mark.parametrize(
    ("binding", "library", "fits"),
    [
        ("7.0.2", 26, True),
        ("6.4.1", 25, True),
        ("7.0.2", 25, False),
        ("25.3.0+3ba8c8d", 25, True),
        ("25.3.0", 26, False),
        ("8.0.0", 31, True),
        ("7.0.2", None, True),
        ("odd", 3, True),
    ],
)
def test_bindings_carry_the_number_of_rocm_or_of_the_library(binding: str, library: int | None, fits: bool) -> None:
    assert (misfit(binding, library) == "") is fits


def test_a_binding_that_stumbles_over_one_gpu_takes_no_other_with_it(amd: Silicon) -> None:
    three(amd)
    amd.gpus[0].uuid = "GPU-not-hexadecimal"
    amd.write()
    made = meter()
    assert "binding failed: ValueError" in (made.available() or "")
    assert sum(isinstance(device.count, Unknown) for device in made.devices(0.0)) == 1


# -- which devices ---------------------------------------------------------------------------------------------------


def test_devices_have_the_numbers_that_hip_gives_them(amd: Silicon) -> None:
    three(amd)
    assert [(device.index, device.uuid[4]) for device in meter().devices(0.0)] == [(0, "b"), (1, "c"), (2, "a")]


@pytest.mark.parametrize(
    ("rocr", "hip", "left"),
    [
        ("0", None, "b"),
        (None, "2", "a"),
        ("0,1", None, "bc"),
        ("2,1", "0", "a"),
        ("GPU-aaaaaaaaaaaaaaaa", None, "a"),
        ("1,2", "1", "a"),
    ],
)
def test_the_masks_of_rocm_say_which_are_ours_one_after_the_other(
    amd: Silicon, monkeypatch: pytest.MonkeyPatch, rocr: str | None, hip: str | None, left: str
) -> None:
    three(amd)
    for variable, mask in (("ROCR_VISIBLE_DEVICES", rocr), ("HIP_VISIBLE_DEVICES", hip)):
        if mask is not None:
            monkeypatch.setenv(variable, mask)
    assert uuids(meter()) == left


def test_cuda_visible_devices_stands_for_hip_s_where_that_is_not_set(
    amd: Silicon, monkeypatch: pytest.MonkeyPatch
) -> None:
    three(amd)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert uuids(meter()) == "c"
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "0")
    assert uuids(meter()) == "b"


# -- processes -------------------------------------------------------------------------------------------------------


def shares(made: DriverMeter, now: float) -> dict[int, float | None]:
    return {process.pid: process.utilisation for process in made.processes(now)}


def test_compute_work_is_known_by_the_units_it_fills(amd: Silicon) -> None:
    amd.users = [User(10, held=26), User(11, held=0), User(12)]
    amd.write()
    assert shares(meter(), 0.0) == {10: 0.25, 11: 0.0, 12: None}


def test_graphics_work_is_known_by_the_time_it_ran_since_the_last_call(amd: Silicon) -> None:
    amd.users = [User(10, ran_ns=5_000_000_000), User(11, ran_ns=1, held=52)]
    amd.write()
    made = meter()
    assert shares(made, 0.0) == {10: None, 11: 0.5}, "nothing is known of the time before the first look"
    amd.users[0].ran_ns += 1_500_000_000
    amd.write()
    assert shares(made, 2.0) == {10: 0.75, 11: 0.5}
    assert shares(made, 4.0) == {10: 0.0, 11: 0.5}


def test_memory_of_processes_is_the_device_s(amd: Silicon) -> None:
    amd.users = [User(10, memory=123)]
    amd.write()
    assert [process.memory_bytes for process in meter().processes(0.0)] == [123]


# -- another process -------------------------------------------------------------------------------------------------

LIST = "from wattloom.metering.amdsmi import for_machine; m = for_machine(None); print(m.available(), m.read(0.0))"


def listed(environment: dict[str, str]) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", LIST], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return ran.stdout


def test_the_binding_finds_the_library_as_it_would_find_the_real_one(amd: Silicon, amdsmi_so: Path) -> None:
    out = listed({"LD_LIBRARY_PATH": str(amdsmi_so.parent), VARIABLE: str(amd.path)})
    assert out.startswith("None Sample(")


def test_without_the_library_it_says_what_is_missing_and_the_binding_prints_nothing(amd: Silicon) -> None:
    out = listed({"LD_LIBRARY_PATH": ""})
    if out.startswith(("None", "device")):
        pytest.skip("this machine has AMD's library, so its absence is NOT TESTED here")
    assert out.startswith("AMD's library libamd_smi.so is not there")


def test_a_library_that_lacks_a_function_does_not_fit(amd: Silicon, amdsmi_so: Path, tmp_path: Path) -> None:
    empty = tmp_path / "old"
    empty.mkdir()
    subprocess.run(["cc", "-shared", "-o", str(empty / "libamd_smi.so"), "-x", "c", "/dev/null"], check=True)
    assert "does not fit" in listed({"LD_LIBRARY_PATH": str(empty)})


def test_without_the_binding_it_says_what_to_install(amd: Silicon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    assert "pip install 'wattloom[amd]'" in (meter().available() or "")
