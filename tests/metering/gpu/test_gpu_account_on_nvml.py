"""The account of devices on the real binding: who used which joules of two GPUs."""

import pytest
from tests.metering.gpu.silicon import LOST, NOT_SUPPORTED, Gpu, Silicon, User

from wattloom.attribution.gpu import DeviceUsage
from wattloom.attribution.gpu_account import GpuAccount
from wattloom.machines.profile import MachineProfile
from wattloom.metering.nvml import for_machine

IDLE_W = (40.0, 20.0)


@pytest.fixture
def account(nvidia: Silicon) -> GpuAccount:
    """Two GPUs that have been idle for a while."""
    nvidia.gpus = [Gpu("GPU-a", busy=0), Gpu("GPU-b", busy=0)]
    nvidia.write()
    made = GpuAccount(for_machine(MachineProfile("a machine", "x86_64", cores=1, threads=1, memory=1)))
    for second in range(4):
        goes_on(nvidia, IDLE_W)
        made.sample(float(second))
    return made


def goes_on(silicon: Silicon, watts: tuple[float, float]) -> None:
    """One second at these powers."""
    for gpu, drawn in zip(silicon.gpus, watts, strict=True):
        gpu.energy += round(drawn * 1e3)
    silicon.write()


def joules(usage: DeviceUsage) -> dict[int, float]:
    return {pid: round(paid, 3) for pid, (paid, _) in usage.processes.items()}


def test_several_processes_on_several_gpus_pay_for_what_they_ran(nvidia: Silicon, account: GpuAccount) -> None:
    nvidia.gpus[0].busy, nvidia.gpus[1].busy = 90, 50
    nvidia.users = [
        User(10, 0, 60, stamp=9),
        User(11, 0, 30, stamp=9),
        User(12, 0, memory=20 << 30),
        User(10, 1, 50, stamp=9),
    ]
    goes_on(nvidia, (220.0, 120.0))
    first, second = account.sample(4.0)
    assert joules(first) == {10: 120.0, 11: 60.0}
    assert joules(second) == {10: 100.0}
    for usage, idle in ((first, 40.0), (second, 20.0)):
        paid = sum(share for share, _ in usage.processes.values())
        assert usage.idle_j == pytest.approx(idle)
        assert usage.meter_j == usage.idle_j + usage.unattributed_j + paid


def test_a_gpu_that_is_lost_costs_nobody_anything_until_it_is_back(nvidia: Silicon, account: GpuAccount) -> None:
    nvidia.gpus[1].handle_rc = LOST
    nvidia.users = [User(10, 0, 60, stamp=9), User(10, 1, 60, stamp=9)]
    goes_on(nvidia, (140.0, 120.0))
    (usage,) = account.sample(4.0)
    assert (usage.device, joules(usage)) == ("GPU-a", {10: 100.0})
    nvidia.gpus[1].handle_rc = 0
    goes_on(nvidia, (40.0, 120.0))
    _, back = account.sample(5.0)
    assert (back.meter_j, back.problem) == (None, "the device's count broke off")


def test_on_a_card_cut_into_instances_memory_is_the_key(nvidia: Silicon, account: GpuAccount) -> None:
    gpu = nvidia.gpus[0]
    gpu.instances, gpu.busy_rc, gpu.state_rc = 2, NOT_SUPPORTED, NOT_SUPPORTED
    nvidia.users = [User(10, 0, memory=3 << 30, instance=0), User(11, 0, memory=1 << 30, instance=1)]
    goes_on(nvidia, (240.0, 20.0))
    usage = account.sample(4.0)[0]
    assert (joules(usage), usage.key) == ({10: 150.0, 11: 50.0}, "memory")
    assert usage.processes[11][1] > 50.0, "so poor a key that it may be all or nothing"
