"""Everything a server can do wrong: unknown with a reason, in bounded time, and the meter goes on when it is mended."""

import time
from collections.abc import Callable, Iterator

import pytest
from tests.metering.network.programs import free_port
from tests.metering.network.rigs import WEB_RIGS
from tests.metering.network.server import Fault, Server, page

from wattloom.energy.forecast import Unknown
from wattloom.metering.kepler import KeplerSettings, KeplerSource
from wattloom.metering.pdu import PduSettings, PduSource
from wattloom.metering.polled import Polled
from wattloom.metering.prometheus import PrometheusSettings, PrometheusSource
from wattloom.metering.protocol import Sample
from wattloom.metering.scaphandre import ScaphandreSource
from wattloom.metering.source import Source, SourceProblem
from wattloom.metering.web import Http

FAULTS: dict[Fault, str] = {
    "reset": "broke off the connection",
    "html": "web page|no number|not JSON|no energy|does not answer",
    "garbage": "",
    "503": "503|out of service|does not answer|refuses|cannot reach",
    "401": "401|user and password",
    "elsewhere": "sends us on to http://elsewhere.example: set that address",
    "huge": "more than 16 MB",
}


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(lambda request: page("")) as made:
        yield made


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", ["scaphandre", "kepler-new", "prometheus-watts", "pcp", "redfish", "pdu-watts"])
def test_a_fault_is_unknown_with_a_reason_and_passes(name: str, fault: Fault, server: Server) -> None:
    rig = WEB_RIGS[name](server, {}, name)
    server._server.answer = rig.answer
    meter = rig.meter()
    assert meter.available() is None
    server.fail(fault)
    problem = meter.available() or ""
    assert problem
    words = FAULTS[fault]
    assert not words or any(word in problem for word in words.split("|")), problem
    assert isinstance(meter.read(rig.now), Unknown)
    server.fail("")
    assert meter.available() is None
    assert isinstance(meter.read(rig.now), Sample)
    rig.close()


@pytest.mark.parametrize("fault", ["hang", "drip"])
def test_a_server_that_never_comes_to_an_end_is_left_after_the_time_limit(fault: Fault, server: Server) -> None:
    server.fail(fault)
    http = Http(server.url, timeout_s=0.6)
    began = time.monotonic()
    with pytest.raises(SourceProblem, match="has not answered within"):
        http.get()
    assert 0.5 < time.monotonic() - began < 3.0
    http.close()


def test_a_server_that_is_not_there_and_then_comes_is_found(server: Server) -> None:
    port = free_port()
    source = ScaphandreSource(f"http://127.0.0.1:{port}/metrics")
    meter = Polled(source)
    assert "is it running?" in (meter.available() or "")
    with Server(lambda request: page("scaph_host_energy_microjoules 5000000\n"), port=port):
        assert meter.available() is None
    assert meter.available() is not None


def test_a_connection_that_the_server_has_closed_meanwhile_is_made_again(server: Server) -> None:
    http = Http(server.url)
    http.get()
    kept = http._connection
    assert kept is not None
    assert kept.sock is not None
    kept.sock.shutdown(2)
    assert http.get().status == 200
    http.close()


def test_a_redirect_within_the_same_server_is_followed() -> None:
    def answer(request: object) -> tuple[int, dict[str, str], bytes]:
        path = getattr(request, "path", "")
        return (308, {"Location": "/b/"}, b"") if path == "/a" else page("42" if path == "/b/" else "no")

    with Server(answer) as server:
        http = Http(f"{server.url}/a")
        assert http.get().body == b"42"
        http.close()


SECRET = "s3cr3t-word"


@pytest.mark.parametrize(
    "make",
    [
        lambda url: PrometheusSource(PrometheusSettings(url, "x", token=SECRET)),
        lambda url: PduSource(PduSettings(url, "a", user="u", password=SECRET)),
        lambda url: PduSource(PduSettings(url.replace("//", f"//u:{SECRET}@") + f"/page?key={SECRET}", "a")),
        lambda url: KeplerSource(KeplerSettings(url.replace("//", f"//u:{SECRET}@"))),
    ],
)
def test_no_message_holds_a_password_a_token_or_a_query(make: Callable[[str], Source], server: Server) -> None:
    for fault in FAULTS:
        if fault != "huge":
            server.fail(fault)
            source = make(server.url)
            with pytest.raises(SourceProblem) as problem:
                source.ask()
            source.close()
            assert SECRET not in str(problem.value)
    assert any(SECRET in str(asked.headers) or "authorization" in asked.headers or asked.body for asked in server.asked)
