from collections.abc import Callable
from importlib.metadata import EntryPoint

import pytest
from tests.metering.scripted import Scripted
from tests.metering.trees import machine

from wattloom.cluster.profile import MachineProfile
from wattloom.errors import InputError
from wattloom.metering import choosing
from wattloom.metering.choosing import choose_meter, meters
from wattloom.metering.protocol import Meter

Install = Callable[..., None]
HERE = "tests.metering.test_choosing"


def works(profile: MachineProfile) -> Meter:
    return Scripted()


def package(profile: MachineProfile) -> Meter:
    meter = Scripted()
    meter.name, meter.quantity = "a-package", "package"
    return meter


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
    assert {"estimate", "powercap"} <= {info.name for info in meters(machine())}
