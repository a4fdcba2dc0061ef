import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.metering.network.bmc import Controller
from tests.metering.network.programs import tool
from tests.metering.network.server import Server

from wattloom.metering.polled import Polled
from wattloom.metering.redfish import RedfishSettings, RedfishSource
from wattloom.metering.source import Joules, SourceProblem, Watts

Serve = Callable[..., Server]


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[Server] = []

    def start(controller: Controller, tls: Path | None = None) -> Server:
        servers.append(Server(controller.answer, tls))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def source() -> Iterator[Callable[..., RedfishSource]]:
    made: list[RedfishSource] = []

    def make(server: Server, **settings: Any) -> RedfishSource:
        made.append(RedfishSource(RedfishSettings(server.url, **settings)))
        return made[-1]

    yield make
    for each in made:
        each.close()


Make = Callable[..., RedfishSource]


@pytest.mark.parametrize(("metrics", "power"), [(True, False), (False, True), (True, True)])
def test_power_is_found_on_the_new_page_and_on_the_old_one(
    serve: Serve, source: Make, metrics: bool, power: bool
) -> None:
    assert source(serve(Controller(metrics=metrics, power=power))).ask() == [Watts(180.0)]


def test_joules_go_before_watts_and_kilowatt_hours_come_last(serve: Serve, source: Make) -> None:
    controller = Controller()
    controller.joules, controller.kilowatt_hours = 5e6, 2.0
    assert source(serve(controller)).ask() == [Joules({"energy": 5e6})]
    controller.joules = None
    assert source(serve(controller)).ask() == [Watts(180.0)]
    controller.watts, controller.power = None, False
    assert source(serve(controller)).ask() == [Joules({"energy": 7.2e6})]


@pytest.mark.parametrize("watts", [None, 0.0])
def test_a_controller_that_does_not_know_is_no_zero(serve: Serve, source: Make, watts: float | None) -> None:
    controller = Controller()
    controller.watts = watts
    with pytest.raises(SourceProblem, match="shows no power"):
        source(serve(controller)).ask()


def test_one_of_several_chassis_must_be_named(serve: Serve, source: Make) -> None:
    server = serve(Controller(chassis=("blade1", "blade2")))
    with pytest.raises(SourceProblem, match=r"blade1, blade2.*redfish\.chassis"):
        source(server).ask()
    with pytest.raises(SourceProblem, match="no chassis 'blade9'"):
        source(server, chassis="blade9").ask()
    assert source(server, chassis="blade2").ask() == [Watts(180.0)]


def locked(sessions: bool = True) -> Controller:
    controller = Controller(sessions=sessions)
    controller.user, controller.password = "reader", "open-sesame"
    return controller


def test_a_session_is_opened_once_and_ended_when_we_leave(serve: Serve, source: Make) -> None:
    controller = locked()
    asking = source(serve(controller), user="reader", password="open-sesame")
    for _ in range(3):
        assert asking.ask() == [Watts(180.0)]
    assert (controller.signed_in, len(controller.tokens)) == (1, 1)
    asking.close()
    assert not controller.tokens


def test_a_meter_that_is_dropped_ends_its_session(serve: Serve) -> None:
    controller = locked()
    meter = Polled(RedfishSource(RedfishSettings(serve(controller).url, user="reader", password="open-sesame")))
    assert meter.available() is None
    assert controller.tokens
    del meter
    assert not controller.tokens


def test_a_session_that_ran_out_is_opened_again(serve: Serve, source: Make) -> None:
    controller = locked()
    asking = source(serve(controller), user="reader", password="open-sesame")
    asking.ask()
    controller.tokens.clear()
    assert asking.ask() == [Watts(180.0)]
    assert controller.signed_in == 2


def test_a_controller_without_sessions_is_asked_with_user_and_password(serve: Serve, source: Make) -> None:
    assert source(serve(locked(sessions=False)), user="reader", password="open-sesame").ask() == [Watts(180.0)]


def test_a_wrong_password_is_said_and_never_shown(serve: Serve, source: Make) -> None:
    server = serve(locked())
    for settings in ({"user": "reader", "password": "guess"}, {}):
        with pytest.raises(SourceProblem) as refused:
            source(server, **settings).ask()
        assert "401" in str(refused.value)
        assert "guess" not in str(refused.value)


# -- certificates ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Signed by itself, with a name that is not its address: as controllers come from the factory."""
    openssl, path = tool("openssl", "openssl"), tmp_path_factory.mktemp("tls") / "bmc.pem"
    make = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=idrac"]
    subprocess.run([*make, "-keyout", str(path), "-out", f"{path}.cert"], check=True, capture_output=True)
    path.write_text(path.read_text() + Path(f"{path}.cert").read_text())
    return path


def test_a_certificate_that_nobody_vouches_for_is_refused_with_the_way_out(
    serve: Serve, source: Make, certificate: Path
) -> None:
    with pytest.raises(SourceProblem, match=r"not trusted.*\nset `certificate`"):
        source(serve(Controller(), certificate)).ask()


def test_the_very_certificate_is_trusted_whatever_its_name(serve: Serve, source: Make, certificate: Path) -> None:
    server = serve(Controller(), certificate)
    assert source(server, certificate=f"{certificate}.cert").ask() == [Watts(180.0)]
    assert source(server, certificate="any").ask() == [Watts(180.0)]


def test_another_certificate_is_not_trusted_in_its_place(
    serve: Serve, source: Make, certificate: Path, tmp_path: Path
) -> None:
    authorities = ssl.get_default_verify_paths().cafile or "/etc/ssl/certs/ca-certificates.crt"
    other = tmp_path / "other.pem"
    other.write_text(Path(authorities).read_text())
    with pytest.raises(SourceProblem, match="not trusted"):
        source(serve(Controller(), certificate), certificate=str(other)).ask()
    with pytest.raises(SourceProblem, match="no certificate file"):
        source(serve(Controller(), certificate), certificate=str(tmp_path / "none.pem")).ask()
