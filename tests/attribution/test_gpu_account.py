import pytest

from wattloom.attribution.gpu_account import GpuAccount, IdleWatts
from wattloom.energy.forecast import Provenance, Unknown
from wattloom.metering.devices import DeviceMeter, DeviceProcess, DeviceReading
from wattloom.metering.protocol import Quantity, Sample


class Devices:
    """A device meter that says what it is told."""

    name = "told"
    summary = "what a test says"
    quantity: Quantity = "device"
    provenance: Provenance = "measured"
    model_error = 0.4

    def __init__(self) -> None:
        self.counts: dict[str, Sample | Unknown] = {}
        self.busy: dict[str, float | None] = {}
        self.users: list[DeviceProcess] = []

    def available(self) -> str | None:
        return None

    def read(self, now: float) -> Sample | Unknown:
        return Unknown("nobody asks")

    def devices(self, now: float) -> tuple[DeviceReading, ...]:
        return tuple(
            DeviceReading(at, uuid, "GPU", "nvidia", count, utilisation=self.busy.get(uuid), limit_w=300.0)
            for at, (uuid, count) in enumerate(self.counts.items())
        )

    def processes(self, now: float) -> tuple[DeviceProcess, ...]:
        return tuple(self.users)


def told(now: float, joules: float, epoch: int = 0) -> Sample:
    return Sample(now, joules, 0.1, epoch=epoch)


def test_it_satisfies_the_protocol() -> None:
    assert isinstance(Devices(), DeviceMeter)


def test_idle_is_learned_when_nothing_runs_and_then_kept_from_those_who_run() -> None:
    meter = Devices()
    account = GpuAccount(meter)
    for second in range(4):
        meter.counts["a"], meter.busy["a"] = told(second, 40.0 * second), 0.0
        account.sample(float(second))
    meter.counts["a"], meter.busy["a"] = told(4.0, 120.0 + 240.0), 0.8
    meter.users = [DeviceProcess(1, "a", 0.6), DeviceProcess(2, "a", 0.2), DeviceProcess(3, "a", 0.0, 1 << 30)]
    (usage,) = account.sample(4.0)
    assert usage.idle_j == pytest.approx(40.0)
    assert {pid: round(joules) for pid, (joules, _) in usage.processes.items()} == {1: 150, 2: 50}


def test_devices_are_apart() -> None:
    meter = Devices()
    account = GpuAccount(meter)
    meter.counts = {"a": told(0.0, 0.0), "b": told(0.0, 0.0)}
    assert account.sample(0.0) == ()
    meter.counts = {"a": told(1.0, 100.0), "b": Unknown("it is lost")}
    meter.users = [DeviceProcess(1, "a", 0.5), DeviceProcess(1, "b", 0.5)]
    (usage,) = account.sample(1.0)
    assert (usage.device, usage.meter_j) == ("a", 100.0)


def test_a_device_that_was_silent_keeps_its_interval_open_and_what_ran_in_it() -> None:
    meter = Devices()
    account = GpuAccount(meter)
    meter.counts["a"] = told(0.0, 0.0)
    account.sample(0.0)
    meter.counts["a"], meter.users = Unknown("busy"), [DeviceProcess(1, "a", 0.8)]
    assert account.sample(1.0) == ()
    meter.counts["a"], meter.users = told(2.0, 300.0), [DeviceProcess(2, "a", 0.4)]
    (usage,) = account.sample(2.0)
    assert (usage.seconds, usage.meter_j) == (2.0, 300.0)
    first, second = usage.processes[1][0], usage.processes[2][0]
    assert first == pytest.approx(2.0 * second)


def test_a_count_that_broke_off_has_no_joules_and_the_next_interval_counts() -> None:
    meter = Devices()
    account = GpuAccount(meter)
    for now, joules, epoch in ((0.0, 0.0, 0), (1.0, 7000.0, 1)):
        meter.counts["a"] = told(now, joules, epoch)
        closed = account.sample(now)
    assert (closed[0].meter_j, closed[0].problem) == (None, "the device's count broke off")
    meter.counts["a"] = told(2.0, 7100.0, 1)
    assert account.sample(2.0)[0].meter_j == 100.0


def test_idle_that_was_never_seen_is_a_share_of_the_limit_with_a_wide_spread() -> None:
    idle = IdleWatts()
    assert idle.watts(300.0) == pytest.approx((39.0, 11.7))
    idle.learn(200.0, 0.9)
    assert idle.watts(300.0)[0] == pytest.approx(39.0)
    idle.learn(25.0, 0.1)
    assert idle.watts(300.0)[0] == 25.0, "never more than the least that was drawn"
    assert idle.watts(None)[0] == 25.0
    idle.learn(24.0, 0.0)
    assert idle.watts(300.0) == (24.0, 0.0)


def test_a_device_that_idles_at_more_while_a_context_is_held_is_learned_anew() -> None:
    idle = IdleWatts()
    for watts in (9.0, *[60.0] * 10):
        idle.learn(watts, 0.0)
    assert idle.watts(250.0) == (60.0, 0.0)


def test_a_busy_interval_that_looked_quiet_at_its_end_does_not_make_idle_dearer() -> None:
    idle = IdleWatts()
    for watts in (40.0, 40.0, 180.0, 40.0):
        idle.learn(watts, 0.0)
    assert idle.watts(250.0) == (40.0, 0.0)


def test_a_counter_that_was_not_brought_up_to_date_does_not_make_idle_nothing() -> None:
    meter = Devices()
    account = GpuAccount(meter)
    for second, joules in enumerate((0.0, 40.0, 80.0, 80.0, 160.0)):
        meter.counts["a"], meter.busy["a"] = told(second, joules), 0.0
        closed = account.sample(float(second))
    assert closed[0].idle_j == pytest.approx(40.0)
