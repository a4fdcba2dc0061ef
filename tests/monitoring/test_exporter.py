"""The exporter as its callers meet it: HTTP, tokens, TLS, its end, its cost; and OpenTelemetry."""

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.metering.scripted import Scripted
from tests.metering.trees import machine
from tests.monitoring.scripted import ScriptedCensus

from wattloom.errors import InputError, MissingExtra
from wattloom.monitoring.accountant import Accountant
from wattloom.monitoring.cgroup_names import Place
from wattloom.monitoring.exporter import LIMITS, Exporter
from wattloom.monitoring.top_processes import Detail
from wattloom.serving.access import Access, check_access
from wattloom.serving.address import Address, parse_address
from wattloom.serving.pages import metrics_text

HERE = Address("127.0.0.1", 0)
TOKEN = "a-token-of-enough-length"
ID = "ab" * 32


class Machine:
    """A scripted machine: one container, one unit, one guest."""

    def __init__(self, policy: Any = "node") -> None:
        self.census, self.meter = ScriptedCensus(), Scripted()
        self.accountant = Accountant(
            self.census, self.meter, machine(provenance="measured"), node="n1", policy=policy, own_pid=99
        )
        self.census.start(1, Place("/system.slice/ssh.service", unit="ssh.service"))
        self.census.start(2, Place(f"/docker/{ID}", ID, "docker"))
        self.census.start(3, Place("/machine/guest", vm="guest", unit="x.scope"))
        self.now = time.monotonic()
        self.accountant.sample(self.now)

    def second(self, joules: float, *ran: float) -> None:
        self.now += 1.0
        self.meter.joules += joules
        for pid, seconds in enumerate(ran, start=1):
            self.census.run(pid, seconds)
        self.accountant.sample(self.now)


def fetch(exporter: Exporter, path: str = "/metrics", token: str = "", accept: str = "") -> tuple[int, str]:
    request = urllib.request.Request(f"http://{exporter.address}{path}")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    request.add_header("Accept", accept)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def values(text: str, name: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(sample.labels[label] for label in sorted(sample.labels)): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name
    }


def total(text: str, name: str) -> float:
    return sum(values(text, name).values())


@pytest.fixture
def here() -> Machine:
    return Machine()


def test_the_parts_add_up_to_the_node(here: Machine) -> None:
    here.second(40.0, 0.5, 0.25, 0.125)
    with Exporter(here.accountant, HERE, interval_s=60) as exporter:
        text = fetch(exporter)[1]
    parts = ("container", "unit", "vm", "idle", "overhead", "unattributed")
    whole = sum(total(text, f"wattloom_{part}_energy_joules_total") for part in parts)
    assert whole == total(text, "wattloom_node_energy_joules_total") == 40.0
    assert values(text, "wattloom_node_energy_joules_total").keys() == {("scripted", "n1", "measured", "wall")}
    assert values(text, "wattloom_container_energy_joules_total").keys() == {(ID, "docker", "n1", "", "active")}


def test_shared_joules_have_a_series_of_their_own() -> None:
    here = Machine("pro-rata")
    here.second(40.0, 0.5, 0.5)
    with Exporter(here.accountant, HERE, interval_s=60) as exporter:
        found = values(fetch(exporter)[1], "wattloom_unit_energy_joules_total")
    assert found == {("n1", "active", "ssh.service"): 15.0, ("n1", "shared", "ssh.service"): 5.0}


def test_single_processes_are_not_shown_unless_asked_for(here: Machine) -> None:
    here.second(40.0, 0.5, 0.25)
    with Exporter(here.accountant, HERE, interval_s=60) as exporter:
        assert "wattloom_process_energy" not in fetch(exporter)[1]


def test_so_many_processes_as_asked_for_have_series_and_the_rest_is_one(here: Machine) -> None:
    exporter = Exporter(here.accountant, HERE, interval_s=60, detail=Detail(2, 0.1))
    for pid in range(4, 50):
        here.census.start(pid)
    with exporter:
        before = 0.0
        for turn in range(5):
            here.second(90.0, 0.5, 0.3, *([0.02] * 40))
            exporter._take(here.accountant.sample(here.now))
            found = values(fetch(exporter)[1], "wattloom_process_energy_joules_total")
            assert len(found) == 3
            other = next(value for labels, value in found.items() if "other" in labels)
            assert other >= before, turn
            before = other
    assert {labels[-1] for labels in found} == {"1", "2", ""}
    entities = here.accountant.sample(here.now).totals.entities_j
    assert sum(found.values()) == pytest.approx(entities)


def test_a_silent_meter_is_said_to_be_silent_and_counts_stay(here: Machine) -> None:
    here.second(40.0, 0.5)
    here.meter.problem = "unplugged"
    here.second(0.0, 0.5)
    with Exporter(here.accountant, HERE, interval_s=60) as exporter:
        status, text = fetch(exporter)
        health = fetch(exporter, "/healthz")
    assert (status, health) == (200, (200, "ok\n"))
    assert total(text, "wattloom_meter_up") == 0.0
    assert total(text, "wattloom_node_energy_joules_total") == 40.0
    assert "wattloom_node_power_watts" not in text


def test_openmetrics_is_spoken_to_those_who_ask_for_it(here: Machine) -> None:
    with Exporter(here.accountant, HERE, interval_s=60) as exporter:
        text = fetch(exporter, accept="application/openmetrics-text; version=1.0.0")[1]
    assert text.endswith("# EOF\n")


def test_pages_that_are_not_there_are_not_found(here: Machine) -> None:
    with Exporter(here.accountant, HERE, interval_s=60) as exporter:
        assert fetch(exporter, "/nothing")[0] == 404
        assert "metrics" in fetch(exporter, "/")[1]


def test_looking_that_has_ended_is_not_well(here: Machine) -> None:
    exporter = Exporter(here.accountant, HERE, access=Access(TOKEN), interval_s=0.05)
    here.census.sample = None  # type: ignore[method-assign,assignment]
    before = threading.excepthook
    threading.excepthook = lambda _: None
    try:
        with exporter:
            limit = time.monotonic() + 10
            while not exporter.failure and time.monotonic() < limit:
                time.sleep(0.02)
            assert fetch(exporter, "/healthz", token=TOKEN) == (503, exporter.failure)
            assert fetch(exporter, "/healthz") == (503, "not well\n")  # why, is not for everybody
        assert "TypeError" in exporter.failure
    finally:
        threading.excepthook = before


def test_an_exporter_that_was_never_started_can_be_stopped(here: Machine) -> None:
    exporter = Exporter(here.accountant, HERE, interval_s=60)
    exporter.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((exporter.address.host, exporter.address.port), timeout=5)


# -- who may ask -------------------------------------------------------------------------------------------------------


def test_addresses_that_others_can_reach_need_a_token_and_encryption(tmp_path: Path) -> None:
    far = parse_address("0.0.0.0:9909")
    with pytest.raises(InputError, match="give a token"):
        check_access(far, Access())
    with pytest.raises(InputError, match="give a certificate"):
        check_access(far, Access(TOKEN))
    check_access(far, Access(TOKEN), insecure=True)
    check_access(far, Access(TOKEN, tmp_path / "x.pem"))
    with pytest.raises(InputError, match="at least 16"):
        check_access(far, Access("short"), insecure=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "[::1]", "localhost"])
def test_loopback_needs_neither(host: str) -> None:
    check_access(parse_address(f"{host}:9909"), Access())


@pytest.mark.parametrize("text", ["9909", "host", "host:", "host:99999", "host:x"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="HOST:PORT"):
        parse_address(text)


def test_a_token_is_asked_for_and_a_wrong_one_is_refused(here: Machine) -> None:
    with Exporter(here.accountant, HERE, access=Access(TOKEN), interval_s=60) as exporter:
        assert fetch(exporter)[0] == 401
        assert fetch(exporter, token=TOKEN + "x")[0] == 401
        assert fetch(exporter, token=TOKEN)[0] == 200
        assert fetch(exporter, "/healthz")[0] == 200


def test_tls_is_spoken_with_a_certificate_and_one_who_does_not_hurts_nobody(here: Machine, tmp_path: Path) -> None:
    pem = tmp_path / "node.pem"
    words = f"req -x509 -newkey rsa:2048 -nodes -keyout {pem} -out {tmp_path}/c.pem -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=IP:127.0.0.1"]
    made = subprocess.run(["openssl", *words.split(), *names], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("NOT TESTED: TLS. The program openssl is missing (Debian: apt-get install openssl).")
    access = Access(TOKEN, tmp_path / "c.pem", pem)
    with Exporter(here.accountant, HERE, access=access, interval_s=60) as exporter:
        with pytest.raises(OSError, match=r".*"):
            urllib.request.urlopen(f"http://{exporter.address}/healthz", timeout=5)
        trusting = ssl.create_default_context(cafile=str(tmp_path / "c.pem"))
        with urllib.request.urlopen(f"https://{exporter.address}/healthz", timeout=20, context=trusting) as answer:
            assert answer.read() == b"ok\n"


def test_a_certificate_that_is_none_is_refused_in_words(here: Machine, tmp_path: Path) -> None:
    (tmp_path / "x.pem").write_text("nothing")
    with pytest.raises(InputError, match="cannot be used"):
        Exporter(here.accountant, HERE, access=Access(TOKEN, tmp_path / "x.pem"))


def test_an_address_in_use_is_refused_in_words(here: Machine) -> None:
    with Exporter(here.accountant, HERE, interval_s=60) as exporter, pytest.raises(InputError, match="is taken"):
        Exporter(Machine().accountant, exporter.address)


def is_open(caller: socket.socket) -> bool:
    caller.settimeout(0.1)
    try:
        return bool(caller.recv(1))
    except TimeoutError:
        return True
    except OSError:
        return False


def test_callers_that_say_nothing_do_not_pile_up(here: Machine) -> None:
    with Exporter(here.accountant, HERE, interval_s=60) as exporter:
        address = (exporter.address.host, exporter.address.port)
        threads = threading.active_count()
        silent = [socket.create_connection(address) for _ in range(LIMITS.callers + 10)]
        assert fetch(exporter, "/healthz") == (200, "ok\n")
        assert threading.active_count() == threads
        assert sum(is_open(each) for each in silent) < LIMITS.callers
        for each in silent:
            each.close()
        limit = time.monotonic() + 20
        while time.monotonic() < limit:
            try:
                assert fetch(exporter, "/healthz") == (200, "ok\n")
                return
            except OSError:
                time.sleep(0.1)
        pytest.fail("nobody is let in any more")


def test_the_other_kind_of_loopback_works_too(here: Machine) -> None:
    try:
        exporter = Exporter(here.accountant, parse_address("[::1]:0"), interval_s=60)
    except InputError as problem:
        pytest.skip(f"NOT TESTED: IPv6. This machine has none: {problem}")
    with exporter:
        assert fetch(exporter, "/healthz") == (200, "ok\n")


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Any]:
    """Starts `wattloom exporter`; gives the process and where it listens."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: str, **environ: str) -> tuple[subprocess.Popen[str], str]:
        line = [sys.executable, "-W", "error", "-m", "wattloom.cli.main", "exporter", "--listen", "127.0.0.1:0", *words]
        own = os.environ | {"XDG_STATE_HOME": str(tmp_path)} | environ
        process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True, env=own)
        started.append(process)
        assert process.stderr is not None
        said = process.stderr.readline()
        assert said.startswith("http://"), said + process.stderr.read()
        return process, said.partition("/metrics")[0]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_answers_and_ends_cleanly(number: int, command: Any) -> None:
    process, url = command("--meter", "estimate", "--node", "here", "--interval", "0.2")
    limit = time.monotonic() + 30
    joules = 0.0
    while joules <= 0.0 and time.monotonic() < limit:
        time.sleep(0.2)
        text = urllib.request.urlopen(f"{url}/metrics", timeout=20).read().decode()
        joules = values(text, "wattloom_node_energy_joules_total")[("estimate", "here", "estimated", "wall")]
    assert joules > 0.0
    assert total(text, "wattloom_exporter_cpu_seconds_total") > 0.0
    guests = values(text, "wattloom_vm_energy_joules_total")
    outside = sum(joules for (container, *_), joules in guests.items() if not container)
    parts = ("container", "unit", "idle", "overhead", "unattributed")
    whole = sum(total(text, f"wattloom_{part}_energy_joules_total") for part in parts) + outside
    assert whole == pytest.approx(joules, rel=1e-12)
    process.send_signal(number)
    assert process.wait(20) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--listen", "0.0.0.0:0"), "give a token"),
        (("--listen", "nowhere"), "must be HOST:PORT"),
        (("--listen", ":0", "--token-file", "/dev/null"), "is empty"),
        (("--meter", "nonsense"), "'nonsense' is not known"),
    ],
)
def test_what_cannot_be_is_refused_in_words(words: tuple[str, ...], said: str) -> None:
    line = [sys.executable, "-m", "wattloom.cli.main", "exporter", *words]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert said in done.stderr


def test_the_dashboard_is_printed_as_it_ships() -> None:
    line = [sys.executable, "-m", "wattloom.cli.main", "exporter", "--dashboard"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout)["uid"] == "wattloom"


# -- OpenTelemetry -----------------------------------------------------------------------------------------------------


class Collector(HTTPServer):
    """Takes OTLP over HTTP and keeps what it was sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Taking)
        self.requests: list[tuple[str, Any, dict[str, str]]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Taking(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            import gzip

            body = gzip.decompress(body)
        self.server.requests.append(  # type: ignore[attr-defined]
            (self.path, ExportMetricsServiceRequest.FromString(body), dict(self.headers))
        )
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.shutdown()
    made.server_close()


def attributes(holder: Any) -> dict[str, str]:
    return {each.key: each.value.string_value for each in holder.attributes}


def test_metrics_are_sent_by_otlp_as_the_usual_variables_say(command: Any, collector: Collector) -> None:
    process, _ = command(
        *("--meter", "estimate", "--node", "here", "--interval", "0.2"),
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
        OTEL_EXPORTER_OTLP_HEADERS="x-key=secret",
        OTEL_SERVICE_NAME="my-node",
        OTEL_RESOURCE_ATTRIBUTES="site=lab",
        OTEL_METRIC_EXPORT_INTERVAL="300",
    )
    limit = time.monotonic() + 30
    while len(collector.requests) < 3 and time.monotonic() < limit:
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    path, sent, headers = collector.requests[-1]
    assert path == "/v1/metrics"
    assert {name.lower(): value for name, value in headers.items()}["x-key"] == "secret"
    resource = sent.resource_metrics[0]
    assert attributes(resource.resource)["service.name"] == "my-node"
    assert attributes(resource.resource)["site"] == "lab"
    metrics = {metric.name: metric for metric in resource.scope_metrics[0].metrics}
    node = metrics["wattloom.node.energy"]
    assert (node.unit, node.sum.is_monotonic) == ("J", True)
    point = node.sum.data_points[0]
    assert point.as_double > 0.0
    assert attributes(point) == {"node": "here", "meter": "estimate", "quantity": "wall", "provenance": "estimated"}
    parts = ("entities", "idle", "overhead", "unattributed")
    whole = sum(metrics[f"wattloom.{part}.energy"].sum.data_points[0].as_double for part in parts)
    assert whole == pytest.approx(point.as_double)


def test_a_collector_that_is_not_there_does_not_keep_the_exporter_from_ending(command: Any) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        process, metrics = command(
            *("--meter", "estimate", "--interval", "0.2"),
            OTEL_EXPORTER_OTLP_ENDPOINT=url,
            OTEL_METRIC_EXPORT_INTERVAL="300",
        )
        time.sleep(1.0)
        assert urllib.request.urlopen(f"{metrics}/healthz", timeout=20).read() == b"ok\n"
        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        assert process.wait(30) == 0
        assert time.monotonic() - began < 9.0


@pytest.mark.parametrize("switch", [{"OTEL_SDK_DISABLED": "true"}, {"OTEL_METRICS_EXPORTER": "none"}])
def test_opentelemetry_can_be_switched_off(switch: dict[str, str], collector: Collector) -> None:
    from wattloom.monitoring.otel import send_metrics

    assert send_metrics(lambda: pytest.fail("asked"), {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url} | switch) is None
    assert send_metrics(lambda: pytest.fail("asked"), {}) is None


def test_without_the_extra_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from wattloom.monitoring.otel import send_metrics

    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.metric_exporter", None)
    with pytest.raises(MissingExtra, match=r"pip install 'wattloom\[otel\]'"):
        send_metrics(lambda: pytest.fail("asked"), {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"})


def test_a_protocol_that_is_not_spoken_is_refused_in_words() -> None:
    from wattloom.monitoring.otel import send_metrics

    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    with pytest.raises(InputError, match="http/protobuf"):
        send_metrics(lambda: pytest.fail("asked"), environ)


# -- cost --------------------------------------------------------------------------------------------------------------


def test_a_scrape_of_a_thousand_processes_is_quick(here: Machine) -> None:
    for pid in range(100, 1100):
        here.census.start(pid, Place(f"/docker/{pid:064x}", f"{pid:064x}", "docker"))
    exporter = Exporter(here.accountant, HERE, interval_s=60, detail=Detail(100, 0.0))
    for pid in range(100, 1100):
        here.census.run(pid, 0.001)
    here.second(100.0)
    exporter._take(here.accountant.sample(here.now))
    best = 1.0
    for _ in range(5):
        began = time.thread_time()
        body, _ = metrics_text(exporter.presented)
        best = min(best, time.thread_time() - began)
    assert body.count(b"wattloom_container_energy") == 1000 + 1 + 2
    assert best < 0.05
    exporter.stop()
