"""What the scheduler answers by HTTP: health, metrics, and why, to those who may ask."""

import asyncio
import re
import socket
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families
from tests.beds.kubernetes import Api, ControlPlane, eventually
from tests.beds.kubernetes.fleet import add_namespace
from tests.kubernetes.running import (
    CHEAP,
    CURVE,
    PROFILE,
    Running,
    all_bound,
    ask,
    bind,
    nodes,
    pods,
    scheduling,
    starting,
    told,
)

from wattloom.cli.main import cli
from wattloom.errors import InputError
from wattloom.kubernetes.client import event_loop
from wattloom.kubernetes.metrics import METRICS
from wattloom.kubernetes.scheduler.answering import Answering
from wattloom.serving.address import parse_address
from wattloom.serving.pages import Answered, Asked
from wattloom.serving.places import Limits
from wattloom.serving.server import page_server

RUNS = {"annotations": {"wattloom.dev/runtime-seconds": "10"}}


def port_of(running: Running) -> int:
    server = running.scheduler.server
    assert server is not None
    return server.port


def why(port: int, pod: str) -> tuple[int, str]:
    return _why(pod, "--scheduler", f"http://127.0.0.1:{port}")


def _why(*words: str) -> tuple[int, str]:
    # As wide as the table, so that no word is broken.
    result = CliRunner(env={"COLUMNS": "220"}).invoke(cli, ["why", *words])
    return result.exit_code, result.output


def test_health_metrics_and_why_of_pods_that_went_and_wait(plane: ControlPlane, api: Api, tmp_path: Path) -> None:
    space = add_namespace(api, "asked")
    nodes(api, "dear-1", "dear-2", annotations={PROFILE: CURVE})
    nodes(api, "cheap", annotations={PROFILE: CHEAP})
    options: dict[str, Any] = {"http": "127.0.0.1:0", "log": tmp_path / "decisions.log"}
    with scheduling(plane, **options) as running:
        port = port_of(running)
        pods(api, space, "went", cpu="2", **RUNS)
        all_bound(api, space)
        pods(api, space, "waits", cpu="9")
        told(api, space, "waits", "FailedScheduling", "Insufficient cpu")
        assert ask(port, "/healthz") == (200, "ok\n")
        assert ask(port, "/readyz") == (200, "leader\n")
        code, text = why(port, f"{space}/went")
        assert code == 0
        assert re.search(
            rf"s after the scheduler's start, least-joules sent {space}/went#\w+ \({space}/went\) to cheap", text
        )
        assert re.search(r"cheap .* 10.00 s, 10.00 W more, 100.0 J .* taken", text)
        assert re.search(r"dear-1 and 1 alike .* 10.00 s, 25.00 W more, 250.0 J .* fits, but costs more", text)
        code, text = why(port, f"{space}/waits")
        assert code == 0
        assert re.search(r"waits#\w+ still waits: no node that is here could take it, even when empty", text)
        assert why(port, f"{space}/nobody")[0] == 1
        status, text = ask(port, "/why?pod=--log=/x")
        assert status == 404
        assert "--log=/x" in text, "a name is a name, whatever it looks like"
        metrics = ask(port, "/metrics")[1]
        check_metrics(metrics)
    code, text = _why(f"{space}/went", "--log", str(tmp_path / "decisions.log"))
    assert code == 0
    assert "to cheap" in text


def check_metrics(text: str) -> None:
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families.keys() == {metric.name for metric in METRICS}
    values = {(s.name, *s.labels.values()): s.value for family in families.values() for s in family.samples}
    assert values["wattloom_kubernetes_bindings_total", "bound"] == 1
    assert values["wattloom_kubernetes_pods_pending", "queued"] == 1
    assert values["wattloom_kubernetes_nodes", "known"] == 3
    assert values["wattloom_kubernetes_leading",] == 1
    assert values["wattloom_kubernetes_decision_seconds_count",] == 2
    assert values["wattloom_kubernetes_creation_to_bind_seconds_count",] == 1
    assert values["wattloom_kubernetes_contradictions_total",] == 0


def test_without_a_log_the_decision_is_remembered_and_waiting_is_explained(plane: ControlPlane, api: Api) -> None:
    space = add_namespace(api, "unlogged")
    nodes(api, "n1", annotations={PROFILE: CURVE})
    with scheduling(plane, http="127.0.0.1:0") as running:
        pods(api, space, "went", **RUNS)
        all_bound(api, space)
        pods(api, space, "waits", cpu="9")
        told(api, space, "waits", "FailedScheduling", "Insufficient cpu")
        code, text = why(port_of(running), f"{space}/went")
        assert code == 0
        assert re.search(
            r"was placed on n1 .* s after the scheduler's start\. More is known to a scheduler that runs with --log",
            text,
        )
        code, text = why(port_of(running), f"{space}/waits")
        assert code == 0
        assert "too small for the task even when empty: cpu (node-too-small)" in text


def test_nobody_there_is_said_with_what_to_do() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        code, text = why(free.getsockname()[1], "default/web")
    assert code == 2
    assert "kubectl -n wattloom-system port-forward deploy/wattloom-scheduler 10262" in text


def own_address() -> str:
    """An address of this machine that is not loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("THIS MACHINE HAS NO ADDRESS BUT LOOPBACK: give it a network to try who may ask from elsewhere")
        return str(probe.getsockname()[0])


@pytest.mark.parametrize(
    ("token", "header", "status"),
    [("", "", 401), ("a-token-of-16-or-more", "", 401), ("a-token-of-16-or-more", "a-token-of-16-or-more", 200)],
)
def test_from_elsewhere_only_health_is_open_and_the_rest_needs_the_token(token: str, header: str, status: int) -> None:
    async def page(asked: Asked) -> Answered:
        return Answered(200, "text/plain", b"here\n")

    async def tried() -> tuple[int, int, int]:
        server = page_server(":0", {"/healthz": page}, {"/metrics": page}, token=token)
        await server.start()
        headers = {"Authorization": f"Bearer {header}"} if header else {}
        answers = [
            await asyncio.to_thread(ask, server.port, "/healthz", own_address()),
            await asyncio.to_thread(ask, server.port, "/metrics", own_address(), **headers),
            await asyncio.to_thread(ask, server.port, "/metrics", **headers),
        ]
        await server.stop()
        return answers[0][0], answers[1][0], answers[2][0]

    # A proxy beside it delivers from loopback what comes from anywhere.
    assert event_loop.run(tried()) == (200, status, status)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_where_only_this_machine_can_come_everything_may_be_asked(host: str) -> None:
    async def page(asked: Asked) -> Answered:
        return Answered(200, "text/plain", b"here\n")

    async def tried() -> tuple[int, str]:
        server = page_server(f"{host}:0", {}, {"/metrics": page}, token="a-token-of-16-or-more")
        await server.start()
        try:
            return await asyncio.to_thread(ask, server.port, "/metrics")
        finally:
            await server.stop()

    assert event_loop.run(tried()) == (200, "here\n")


def test_a_page_that_fails_is_an_answer_and_a_word_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def page(asked: Asked) -> Answered:
        raise RuntimeError("the page's own mistake")

    async def tried() -> tuple[int, str]:
        server = page_server("127.0.0.1:0", {}, {"/metrics": page})
        await server.start()
        try:
            return await asyncio.to_thread(ask, server.port, "/metrics")
        finally:
            await server.stop()

    assert event_loop.run(tried())[0] == 500
    assert "the page's own mistake" in caplog.text


def test_garbage_is_answered_or_left() -> None:
    async def tried() -> list[bytes]:
        server = page_server("127.0.0.1:0", {}, {}, limits=Limits(request_s=0.5))
        await server.start()
        answers = []
        for sent in (
            b"what?\r\n\r\n",
            b"POST / HTTP/1.1\r\n\r\n",
            b"GET /none HTTP/1.1\r\n\r\n",
            b"x" * 40_000,
            b"\r\n\r\n",
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(sent)
            try:
                answers.append((await reader.read()).partition(b"\r\n")[0])
            except ConnectionResetError:
                answers.append(b"")
            writer.close()
        await server.stop()
        return answers

    bad = b"HTTP/1.1 400 Bad Request"
    found = event_loop.run(tried())
    assert found[:3] == [bad, bad, b"HTTP/1.1 404 Not Found"]
    assert found[4] == b""  # nothing was asked
    assert found[3] in (bad, b"")  # the rest of it may undo the answer


@pytest.mark.parametrize("wrong", ["", "here", "host:", "host:99999", "host:http"])
def test_a_wrong_address_is_said(wrong: str) -> None:
    with pytest.raises(InputError, match="must be HOST:PORT"):
        parse_address(wrong)


def test_whose_option_is_wrong_is_said() -> None:
    with pytest.raises(InputError) as error:
        parse_address("here", "listen")
    assert error.value.field == "listen"
    with pytest.raises(InputError) as error:
        page_server("here", {}, {}, field="listen")
    assert error.value.field == "listen"


def test_an_address_without_a_host_is_every_address_also_of_ipv6(loop: str) -> None:
    async def page(asked: Asked) -> Answered:
        return Answered(200, "text/plain", b"here\n")

    async def tried() -> dict[str, tuple[int, str]]:
        with socket.socket() as free:
            free.bind(("", 0))
            port = free.getsockname()[1]
        server = page_server(f":{port}", {"/healthz": page}, {"/metrics": page})
        await server.start()
        assert server.port == port
        hosts = ["127.0.0.1", "[::1]"] if has_ipv6() else ["127.0.0.1"]
        try:
            return {host: await asyncio.to_thread(ask, port, "/healthz", host) for host in hosts}
        finally:
            await server.stop()

    answers = event_loop.run(tried())
    assert set(answers.values()) == {(200, "here\n")}
    if "[::1]" not in answers:
        pytest.skip("THIS MACHINE HAS NO IPV6: give it some to try that probes over it are answered")


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def test_why_a_pod_is_not_before_the_engine_is_said_as_it_is(running: Running, api: Api, space: str) -> None:
    """Gated, not followed, or only not yet at its turn."""
    scheduler = running.scheduler
    pods(api, space, "gated", spec={"schedulingGates": [{"name": "example.com/gate"}]})
    pods(api, space, "absurd", cpu="2000000")
    told(api, space, "absurd", "FailedScheduling", "1000000 cores")
    running.call(scheduler.scheduling.queue.close)
    pods(api, space, "next")

    async def asked(name: str) -> str:
        answer = await Answering(scheduler)._why(Asked("/why", {"pod": f"{space}/{name}"}, ""))
        return answer.body.decode()

    def said(name: str) -> str:
        return str(asyncio.run(asked(name)))

    eventually(lambda: len(scheduler.state.pods.by_uid) == 3)
    assert "its turn has not come yet" in said("next")
    assert "it is gated by example.com/gate" in said("gated")
    assert "1000000 cores" in said("absurd")


def test_that_a_pod_is_gated_is_an_answer_and_no_error(plane: ControlPlane, api: Api, space: str) -> None:
    with scheduling(plane, http="127.0.0.1:0") as running:
        pods(api, space, "gated", spec={"schedulingGates": [{"name": "example.com/gate"}]})
        eventually(lambda: len(running.scheduler.state.pods.by_uid) == 1)
        said = f"{space}/gated is not being scheduled: it is gated by example.com/gate.\n"
        assert why(port_of(running), f"{space}/gated") == (0, said)


@pytest.mark.parametrize("logged", [True, False])
def test_a_pod_that_was_bound_before_says_where_it_is(
    logged: bool, plane: ControlPlane, api: Api, space: str, tmp_path: Path
) -> None:
    nodes(api, "n1")
    pods(api, space, "old")
    bind(api, space, "old", "n1")
    log: dict[str, Any] = {"log": tmp_path / "decisions.log"} if logged else {}
    with scheduling(plane, http="127.0.0.1:0", **log) as running:
        code, text = why(port_of(running), f"{space}/old")
    assert code == 0
    assert re.search(rf"^{space}/old#\w+ was found on n1: it was decided before the log began, or by another", text)


def test_every_metric_is_in_the_reference_with_its_labels() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "kubernetes.md").read_text()
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `wattloom_kubernetes_")]
    listed = {row[0].strip("| `"): (row[1], row[2].replace("`", "").strip()) for row in rows}
    assert listed == {metric.full_name: (metric.kind, ", ".join(metric.labels)) for metric in METRICS}


def test_a_standby_says_that_it_stands_by(plane: ControlPlane, api: Api) -> None:
    space = add_namespace(api, "pair")
    pair: dict[str, Any] = {"leader_elect": True, "lease_namespace": space, "http": "127.0.0.1:0"}
    with scheduling(plane, identity="first", **pair):
        standby = starting(plane, identity="second", **pair)
        election = standby.scheduler.election
        assert election is not None
        try:
            eventually(lambda: standby.scheduler.state.synced and election.holder == "first")
            assert ask(port_of(standby), "/readyz") == (200, "standby\n")
            assert ask(port_of(standby), "/why?pod=a/b") == (503, "this replica stands by; first leads: ask there\n")
        finally:
            standby.stop()


def test_wishes_that_no_policy_of_ours_follows_are_told_in_the_event(running: Running, api: Api, space: str) -> None:
    nodes(api, "n1", annotations={PROFILE: CURVE})
    pods(api, space, "later", annotations={"wattloom.dev/defer-seconds": "60", "wattloom.dev/deadline-seconds": "90"})
    words = "wattloom.dev/defer-seconds and wattloom.dev/deadline-seconds had no effect: least-joules holds no pod back"
    told(api, space, "later", "Scheduled", words)
