"""Devices in the snapshot: counts that never fall, users by container, and drivers that fail."""

from wattloom.energy.forecast import Provenance, Unknown
from wattloom.metering.devices import DeviceProcess, DeviceReading
from wattloom.metering.protocol import Quantity, Sample
from wattloom.monitoring.accelerators import Accelerators
from wattloom.monitoring.cgroup_names import Place
from wattloom.monitoring.process import Process
from wattloom.monitoring.snapshot import DeviceUse


class Cards:
    """A driver as the test says."""

    name, summary = "cards", "what the test says"
    quantity: Quantity = "device"
    provenance: Provenance = "measured"
    model_error = 0.1

    def __init__(self) -> None:
        self.joules: dict[str, float] = {"GPU-a": 0.0, "GPU-b": 0.0}
        self.lost: set[str] = set()
        self.epoch = 0
        self.users: tuple[DeviceProcess, ...] = ()
        self.fails = False

    def available(self) -> str | None:
        return None

    def read(self, now: float) -> Sample | Unknown:
        return Unknown("not asked")

    def devices(self, now: float) -> tuple[DeviceReading, ...]:
        if self.fails:
            raise OSError("the driver is gone")
        return tuple(self._reading(index, uuid, now) for index, uuid in enumerate(self.joules))

    def _reading(self, index: int, uuid: str, now: float) -> DeviceReading:
        count = (
            Unknown("fell off the bus")
            if uuid in self.lost
            else Sample(now, self.joules[uuid], 0.001, None, self.epoch)
        )
        return DeviceReading(index, uuid, "A100", "nvidia", count, utilisation=0.5, limit_w=100.0)

    def processes(self, now: float) -> tuple[DeviceProcess, ...]:
        return self.users


def process(pid: int, place: Place) -> Process:
    made = Process(pid, pid)
    made.place, made.name = place, f"p{pid}"
    return made


LIVING = {
    7: process(7, Place("/docker/a", "aa" * 32, "docker")),
    8: process(8, Place()),
    9: process(9, Place(vm="web")),
}


def look(shown: Accelerators, now: float) -> dict[str, DeviceUse]:
    return {each.uuid: each for each in shown(now)}


def test_users_idle_and_nobodys_are_the_devices_joules() -> None:
    cards = Cards()
    shown = Accelerators([cards], LIVING.get)
    look(shown, 0.0)
    pids = (7, 8, 9, 1234)
    cards.users = tuple(DeviceProcess(pid, "GPU-a", 0.1, 100) for pid in pids)
    for second in range(1, 5):
        cards.joules["GPU-a"] += 60.0
        found = look(shown, float(second))["GPU-a"]
        assert found.joules == 60.0 * second
        assert sum(user.joules for user in found.users) + found.idle_j + found.unattributed_j == found.joules
    owners = {(user.container[:2], user.name) for user in found.users}
    assert owners == {("aa", ""), ("", "p8"), ("", "web"), ("", "")}
    assert found.watts == 60.0


def test_a_lost_card_keeps_its_count_and_takes_no_other_with_it() -> None:
    cards = Cards()
    shown = Accelerators([cards], LIVING.get)
    look(shown, 0.0)
    cards.joules = {"GPU-a": 50.0, "GPU-b": 70.0}
    look(shown, 1.0)
    cards.lost.add("GPU-a")
    cards.joules["GPU-b"] = 140.0
    found = look(shown, 2.0)
    assert (found["GPU-a"].joules, found["GPU-a"].watts, found["GPU-a"].problem) == (50.0, None, "fell off the bus")
    assert (found["GPU-b"].joules, found["GPU-b"].problem) == (140.0, "")
    cards.lost.clear()
    cards.joules["GPU-a"] = 110.0
    assert look(shown, 3.0)["GPU-a"].joules == 110.0


def test_a_count_that_broke_off_is_unknown_time_and_no_joules() -> None:
    cards = Cards()
    shown = Accelerators([cards], LIVING.get)
    look(shown, 0.0)
    cards.joules["GPU-a"] = 50.0
    look(shown, 1.0)
    cards.epoch, cards.joules["GPU-a"] = 1, 3.0
    found = look(shown, 4.0)["GPU-a"]
    assert (found.joules, found.unknown_s) == (50.0, 3.0)


def test_a_driver_that_fails_is_said_to_and_counts_stay() -> None:
    cards = Cards()
    shown = Accelerators([cards], LIVING.get)
    look(shown, 0.0)
    cards.joules["GPU-a"] = 50.0
    look(shown, 1.0)
    cards.fails = True
    found = look(shown, 2.0)["GPU-a"]
    assert (found.joules, found.watts) == (50.0, None)
    assert "does not tell" in found.problem
