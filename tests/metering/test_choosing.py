from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from threading import Barrier, Event
from time import monotonic

import pytest
from tests.metering.scripted import Scripted
from tests.metering.trees import machine

from wattloom.errors import InputError
from wattloom.machines.profile import MachineProfile
from wattloom.metering import choosing
from wattloom.metering.choosing import choose_meter, meters
from wattloom.metering.probing import problems
from wattloom.metering.protocol import Meter, Quantity
from wattloom.settings import SettingsError

Install = Callable[..., None]
HERE = "tests.metering.test_choosing"
ASKED: list[Meter] = []


def works(profile: MachineProfile) -> Meter:
    return Scripted()


def package(profile: MachineProfile) -> Meter:
    meter = Scripted()
    meter.name, meter.quantity = "a-package", "package"
    return meter


def slow_plug(profile: MachineProfile) -> Meter:
    meter = Slow()
    meter.name = "bmc"
    return meter


class Slow(Scripted):
    period_s = 1.0


class Device(Scripted):
    name = "gpu"
    quantity: Quantity = "device"


class Named(Scripted):
    name = "old-figures"
    only_named = True


def device(profile: MachineProfile) -> Meter:
    return Device()


def named(profile: MachineProfile) -> Meter:
    return Named()


def asks_badly(profile: MachineProfile) -> Meter:
    class Asks(Scripted):
        def available(self) -> str | None:
            raise ConnectionError("no route")

    return Asks()


def host_share(profile: MachineProfile) -> Meter:
    """What a host writes that has no meter itself."""
    meter = Slow()
    meter.name, meter.quantity, meter.provenance = "host-share", "share", "estimated"
    return meter


def costly(profile: MachineProfile) -> Meter:
    class Costly(Slow):
        def available(self) -> str | None:
            ASKED.append(self)
            return None

    return Costly()


def locked(profile: MachineProfile) -> Meter:
    meter = Scripted()
    meter.problem = "the file is root's: chmod it"
    return meter


def explodes(profile: MachineProfile) -> Meter:
    raise RuntimeError("no driver")


def no_meter(profile: MachineProfile) -> object:
    return "not a meter"


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    def put(**entries: str) -> None:
        found = [EntryPoint(name, value, choosing.GROUP) for name, value in entries.items()]
        monkeypatch.setattr(choosing, "entry_points", lambda group: [entry for entry in found if entry.group == group])

    return put


ESTIMATE = "wattloom.metering.estimate:for_machine"
POWERCAP = "wattloom.metering.powercap:for_machine"


def test_what_is_measured_is_better_than_an_estimate(install: Install) -> None:
    install(estimate=ESTIMATE, plug=f"{HERE}:works")
    assert choose_meter(machine()).name == "scripted"


def test_the_plug_is_better_than_the_package(install: Install) -> None:
    install(package=f"{HERE}:package", plug=f"{HERE}:works")
    assert choose_meter(machine()).quantity == "wall"


def test_for_calls_a_fresh_package_is_better_than_a_plug_that_is_read_once_a_second(install: Install) -> None:
    install(package=f"{HERE}:package", bmc=f"{HERE}:slow_plug", estimate=ESTIMATE)
    assert choose_meter(machine()).name == "a-package"
    assert [info.name for info in meters(machine()) if info.used] == ["package"]


def test_for_totals_the_plug_is_better_however_slow(install: Install) -> None:
    install(package=f"{HERE}:package", bmc=f"{HERE}:slow_plug", estimate=ESTIMATE)
    assert choose_meter(machine(), purpose="totals").name == "bmc"


def test_a_slow_meter_is_better_than_an_estimate(install: Install) -> None:
    install(bmc=f"{HERE}:slow_plug", estimate=ESTIMATE)
    assert choose_meter(machine()).name == "bmc"


@pytest.mark.parametrize("function", ["device", "named"])
def test_devices_and_what_is_to_be_named_are_never_taken_for_the_machine(install: Install, function: str) -> None:
    install(only=f"{HERE}:{function}")
    assert choose_meter(machine()).name == "estimate"
    assert choose_meter(machine(), "only").name in ("gpu", "old-figures")
    assert not any(info.used for info in meters(machine()))


def test_no_more_meters_are_asked_than_need_be(install: Install) -> None:
    install(package=f"{HERE}:package", costly=f"{HERE}:costly")
    ASKED.clear()
    assert choose_meter(machine()).name == "a-package"
    assert not ASKED
    install(package=f"{HERE}:locked", costly=f"{HERE}:costly")
    choose_meter(machine())
    assert len(ASKED) == 1


def test_a_meter_that_fails_when_asked_does_not_take_the_others_down(install: Install) -> None:
    install(estimate=ESTIMATE, bad=f"{HERE}:asks_badly")
    assert choose_meter(machine()).name == "estimate"
    (info,) = [info for info in meters(machine()) if info.name == "bad"]
    assert "ConnectionError: no route" in info.problem


def test_a_meter_that_hangs_when_asked_is_left_behind_and_the_others_do_not_wait_for_it() -> None:
    never = Event()

    class Hangs(Scripted):
        def available(self) -> str | None:
            never.wait()
            return None

    began = monotonic()
    found = problems({"a": Hangs(), "b": Scripted(), "c": Hangs(), "d": Scripted()}, within_s=0.5)
    assert monotonic() - began < 5.0
    assert found["b"] == found["d"] == ""
    assert found["a"] == found["c"] == "it did not say within 0.5 s whether it works: it hangs"
    never.set()


def test_meters_are_asked_side_by_side() -> None:
    together = Barrier(4, timeout=20.0)

    class Waits(Scripted):
        def available(self) -> str | None:
            together.wait()
            return None

    assert problems({name: Waits() for name in "abcd"}) == dict.fromkeys("abcd", "")


def test_a_meter_that_does_not_work_here_is_passed_over(install: Install) -> None:
    install(estimate=ESTIMATE, locked=f"{HERE}:locked", explodes=f"{HERE}:explodes", wrong=f"{HERE}:no_meter")
    assert choose_meter(machine()).name == "estimate"


def test_all_are_listed_with_why_not(install: Install) -> None:
    names = {"works": "works", "locked": "locked", "explodes": "explodes", "wrong": "no_meter", "gone": "nowhere"}
    install(**{name: f"{HERE}:{function}" for name, function in names.items()})
    problems = {info.name: info.problem for info in meters(machine())}
    assert list(problems) == sorted(names)
    assert problems["works"] == ""
    assert "chmod it" in problems["locked"]
    assert "RuntimeError: no driver" in problems["explodes"]
    assert "is not a meter" in problems["wrong"]
    assert "nowhere" in problems["gone"]


def test_a_meter_can_be_named_and_then_must_work(install: Install) -> None:
    install(estimate=ESTIMATE, plug=f"{HERE}:works", locked=f"{HERE}:locked")
    assert choose_meter(machine(), "estimate").name == "estimate"
    with pytest.raises(InputError, match="locked does not work here: the file is root's: chmod it"):
        choose_meter(machine(), "locked")
    with pytest.raises(InputError, match=r"'plugg' is not known; the meters are estimate, locked, plug"):
        choose_meter(machine(), "plugg")


def test_with_nothing_that_works_the_estimate_is_the_last_resort(install: Install) -> None:
    install(locked=f"{HERE}:locked")
    assert choose_meter(machine()).name == "estimate"


def test_our_own_meters_come_in_by_the_same_door(install: Install) -> None:
    install(estimate=ESTIMATE, powercap=POWERCAP)
    found = {info.name: info.provenance for info in meters(machine())}
    assert found == {"estimate": "estimated", "powercap": "measured"}


def test_our_own_meters_are_installed() -> None:
    ours = {"amd_energy", "battery", "estimate", "powercap", "recording", "smpro"}
    assert ours <= {info.name for info in meters(machine())}


def test_what_is_missing_and_how_to_allow_it_are_told_apart(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WATTLOOM_RECORDING__PATH", raising=False)
    install(recording="wattloom.metering.recording:for_machine")
    (info,) = meters(machine())
    assert info.problem == "no recording is named"
    assert info.allow.splitlines()[0].startswith("in wattloom.toml, under [recording]: path = ")


def test_of_estimates_the_hosts_goes_before_the_guests_own_and_behind_what_is_measured(install: Install) -> None:
    install(estimate=ESTIMATE, share=f"{HERE}:host_share")
    assert choose_meter(machine()).name == "host-share"
    assert choose_meter(machine(), purpose="totals").name == "host-share"
    install(estimate=ESTIMATE, share=f"{HERE}:host_share", bmc=f"{HERE}:slow_plug")
    assert choose_meter(machine()).name == "bmc"


# -- what the settings say ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["[recording", "[recordin]", "[recording]\npth = 'x'", "[local]\nmax_workers = 'x'"])
@pytest.mark.parametrize("name", ["", "estimate"])
def test_wrong_settings_are_said_wherever_a_meter_is_chosen(
    name: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    choose_meter(machine(), name)
    (tmp_path / "wattloom.toml").write_text(wrong)
    with pytest.raises(SettingsError, match=r"wattloom\.toml"):
        choose_meter(machine(), name)
    with pytest.raises(SettingsError, match=r"wattloom\.toml"):
        meters(machine())


def test_a_wrong_variable_is_said_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATTLOOM_RECORDING__PATHH", "x")
    with pytest.raises(SettingsError, match="WATTLOOM_RECORDING__PATHH: no such setting"):
        choose_meter(machine())


@pytest.fixture
def nothing_said() -> None:
    choosing._warn_once.cache_clear()


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "wattloom"]


@pytest.mark.usefixtures("nothing_said")
def test_a_meter_that_is_set_up_and_does_not_work_is_warned_of_once(
    install: Install, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("WATTLOOM_PROMETHEUS__URL", "http://127.0.0.1:9")
    install(estimate=ESTIMATE, prometheus=f"{HERE}:locked", powercap=f"{HERE}:asks_badly")
    assert choose_meter(machine()).name == choose_meter(machine()).name == "estimate"
    words = "the meter prometheus is set up but does not work here: the file is root's: chmod it; estimate is used"
    assert warned(caplog) == [words]


@pytest.mark.usefixtures("nothing_said")
def test_a_meter_that_cannot_be_made_or_is_half_set_up_is_warned_of_too(
    install: Install, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("WATTLOOM_PDU__URL", "http://127.0.0.1:9")
    monkeypatch.setenv("WATTLOOM_PROMETHEUS__URL", "http://127.0.0.1:9")
    install(estimate=ESTIMATE, pdu=f"{HERE}:explodes", prometheus="wattloom.metering.prometheus:for_machine")
    choose_meter(machine())
    pdu, prometheus = warned(caplog)
    assert "the meter pdu is set up but does not work here" in pdu
    assert "no driver" in pdu
    assert "something is missing: set WATTLOOM_PROMETHEUS__" in prometheus


@pytest.mark.usefixtures("nothing_said")
def test_nothing_is_said_of_a_meter_that_works_or_that_nobody_set_up(
    install: Install, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install(estimate=ESTIMATE, prometheus=f"{HERE}:locked")
    choose_meter(machine())
    monkeypatch.setenv("WATTLOOM_PROMETHEUS__URL", "http://127.0.0.1:9")
    install(estimate=ESTIMATE, prometheus=f"{HERE}:works")
    assert choose_meter(machine()).name == "scripted"
    assert not warned(caplog)
