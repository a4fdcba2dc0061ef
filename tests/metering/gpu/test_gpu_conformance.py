"""Both makers' meters, each with a counter and with power alone, keep the rules of every meter."""

import os
from itertools import count
from pathlib import Path

import pytest
from tests.metering.gpu.silicon import (
    AMD_NOT_SUPPORTED,
    AMD_UNIT_UJ,
    LOST,
    NO_PERMISSION,
    NOT_SUPPORTED,
    VARIABLE,
    Gpu,
    Silicon,
)

from wattloom.machines.profile import MachineProfile
from wattloom.metering import amdsmi, nvml
from wattloom.metering.choosing import choose_meter
from wattloom.metering.device_meter import DriverMeter
from wattloom.metering.devices import DeviceMeter
from wattloom.testing.meter_conformance import CHECKS, Check, check_name

AMD_NO_PERMISSION, AMD_IO_ERROR = 10, 12
NUMBERS = count()
ANY_MACHINE = MachineProfile("a machine", "x86_64", cores=1, threads=1, memory=1)


class GpuRig:
    """Two GPUs of one maker at 150 W and 50 W. Several rigs may be there at once: that which acts is the machine's."""

    unit_j = 1e-3
    lost = LOST
    forbidden = NO_PERMISSION
    name = "nvml"

    def __init__(self) -> None:
        path = Path(os.environ[VARIABLE]).parent / f"silicon-{next(NUMBERS)}"
        self.silicon = Silicon(path, [Gpu(watts=150.0), Gpu("GPU-1", watts=50.0)])
        self.silicon.maker = "nvidia" if self.name == "nvml" else "amd"
        self._frozen_s = 0.0
        self._frozen = False
        self._change()

    def meter(self) -> DriverMeter:
        self._change()
        return for_machine_named(self.name)

    def spend(self, seconds: float) -> float:
        if self._frozen:
            self._frozen_s += seconds
        else:
            self._count(seconds)
        return sum(gpu.watts for gpu in self.silicon.gpus) * seconds

    def fail(self) -> None:
        self._code(self.lost)

    def forbid(self) -> None:
        self._code(self.forbidden)

    def mend(self) -> None:
        self._frozen = False
        self._count(self._frozen_s)
        self._frozen_s = 0.0
        self._code(0)

    def near_wrap(self) -> bool:
        return False

    def restart(self) -> bool:
        for gpu in self.silicon.gpus:
            gpu.energy = 10
        self._change()
        return True

    def jump(self) -> None:
        self.silicon.gpus[1].energy += round(1e6 / self.unit_j)
        self._change()

    def _count(self, seconds: float) -> None:
        for gpu in self.silicon.gpus:
            gpu.energy += round(gpu.watts * seconds / self.unit_j)
        self._change()

    def _code(self, code: int) -> None:
        for gpu in self.silicon.gpus:
            gpu.handle_rc = code
        self._change()

    def _change(self) -> None:
        os.environ[VARIABLE] = str(self.silicon.path)
        self.silicon.write()


class CountingRig(GpuRig):
    """Cards with a counter, which stands still only if the driver hangs."""

    def freeze(self) -> None:
        self._frozen = True


class NvidiaPowerRig(GpuRig):
    """Cards before Volta, which do not count."""

    def __init__(self) -> None:
        super().__init__()
        for gpu in self.silicon.gpus:
            gpu.energy_rc = NOT_SUPPORTED
        self._change()

    def spend(self, seconds: float) -> float:
        self.mend()
        self.silicon.gpus[1].watts = 50.0
        return super().spend(seconds)

    def restart(self) -> bool:
        """Power has no beginning, but a card that is reset is lost for a moment."""
        self.fail()
        return False

    def jump(self) -> None:
        self.silicon.gpus[1].watts = 1e5
        self._change()


class AmdRig(CountingRig):
    unit_j = AMD_UNIT_UJ * 1e-6
    lost = AMD_IO_ERROR
    forbidden = AMD_NO_PERMISSION
    name = "amdsmi"

    def __init__(self) -> None:
        super().__init__()
        for number, gpu in enumerate(self.silicon.gpus):
            gpu.uuid, gpu.hip = f"GPU-00000000000000a{number}", number
        self._change()


class AmdPowerRig(NvidiaPowerRig):
    lost = AMD_IO_ERROR
    forbidden = AMD_NO_PERMISSION
    name = "amdsmi"

    def __init__(self) -> None:
        super().__init__()
        for number, gpu in enumerate(self.silicon.gpus):
            gpu.uuid, gpu.hip, gpu.energy_rc = f"GPU-00000000000000a{number}", number, AMD_NOT_SUPPORTED
        self._change()


def for_machine_named(name: str) -> DriverMeter:
    return nvml.for_machine(ANY_MACHINE) if name == "nvml" else amdsmi.for_machine(ANY_MACHINE)


@pytest.mark.parametrize("check", CHECKS, ids=check_name)
@pytest.mark.parametrize("rig", [CountingRig, NvidiaPowerRig])
def test_nvml(rig: type[GpuRig], check: Check, nvidia: Silicon) -> None:
    check(rig)


@pytest.mark.parametrize("check", CHECKS, ids=check_name)
@pytest.mark.parametrize("rig", [AmdRig, AmdPowerRig])
def test_amdsmi(rig: type[GpuRig], check: Check, amd: Silicon) -> None:
    check(rig)


def test_the_entry_points_give_device_meters_and_these_never_stand_in_for_the_machine_s(nvidia: Silicon) -> None:
    assert isinstance(for_machine_named("nvml"), DeviceMeter)
    assert choose_meter(ANY_MACHINE, "nvml").quantity == "device"
    assert choose_meter(ANY_MACHINE).quantity != "device"
