"""What the scheduler says while it runs: who leads, that it ends, and that the API server is gone, each once."""

import logging
from pathlib import Path
from typing import Any

import pytest
from tests.beds.kubernetes import Api, ControlPlane, eventually
from tests.kubernetes.running import Replica, cut_off, nodes, scheduling, starting

from wattloom.kubernetes.client.api import Api as Client
from wattloom.kubernetes.client.credentials import Fixed
from wattloom.kubernetes.client.reading import Metadata, Unreadable
from wattloom.kubernetes.client.reflector import Reflector
from wattloom.kubernetes.client.target import Target
from wattloom.kubernetes.model.kinds import NODES
from wattloom.kubernetes.model.objects import Node
from wattloom.kubernetes.options import LeaseLost
from wattloom.kubernetes.state.informers import Informer

SHORT: dict[str, Any] = {"lease_s": 3.0, "renew_s": 2.0, "retry_s": 0.2}
OUTAGE = "wattloom.kubernetes.client.api"


def lines(caplog: pytest.LogCaptureFixture, name: str = "wattloom", least: int = logging.INFO) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name.startswith(name) and each.levelno >= least]


def test_a_standby_says_who_leads(plane: ControlPlane, api: Api, space: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "wattloom")
    pair: dict[str, Any] = {"leader_elect": True, "lease_namespace": space, "http": ""}
    with scheduling(plane, identity="first", **pair):
        standby = starting(plane, identity="second", **pair)
        try:
            eventually(lambda: "second stands by; first leads" in lines(caplog))
        finally:
            standby.stop()
    said = lines(caplog)
    assert said.count("second stands by; first leads") == 1
    assert [each for each in said if each.endswith("has ended")] == ["second has ended", "first has ended"]


@pytest.mark.parametrize("elected", ["--leader-elect", "--no-leader-elect"])
def test_the_last_line_says_that_it_has_ended(
    elected: str, plane: ControlPlane, api: Api, space: str, tmp_path: Path
) -> None:
    words = (elected, "--namespace", space, "--http", "", "--identity", "only")
    replica = Replica(plane, tmp_path / "said", *words)
    try:
        eventually(lambda: replica.says("only decides from now on"), 60)
    finally:
        assert replica.end() == 0
    assert (tmp_path / "said").read_text().splitlines()[-1].endswith("only has ended")


def test_that_the_api_server_is_gone_is_said_once_for_all_kinds_of_objects(
    plane: ControlPlane, api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    with scheduling(plane) as running:
        reflectors = running.scheduler.state.reflectors
        caplog.set_level(logging.INFO, "wattloom")
        caplog.clear()
        begun = {each: each.counts.failures for each in reflectors}
        with cut_off(running):
            eventually(
                lambda: all(each.counts.failures > begun[each] + 1 for each in reflectors if each.synced.is_set())
            )
            assert len(lines(caplog, OUTAGE)) == 1
            assert "the API server is not heard" in lines(caplog, OUTAGE)[0]
        eventually(lambda: len(lines(caplog, OUTAGE)) == 2, 90)
        eventually(lambda: all(each.failing_s == 0.0 for each in reflectors), 90)
        nodes(api, "n1")
        eventually(lambda: len(running.scheduler.state.nodes.objects) == 1)
        assert [each.split(":")[0] for each in lines(caplog, OUTAGE)] == [
            "the API server is not heard",
            "the API server is heard again",
        ]


def test_a_leader_without_an_api_server_says_that_and_not_who_leads(
    plane: ControlPlane, api: Api, space: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "wattloom")
    running = starting(plane, leader_elect=True, lease_namespace=space, http="", **SHORT)
    try:
        eventually(lambda: running.scheduler.deciding_now)
        caplog.clear()
        with cut_off(running):
            lost = running.wait()
    finally:
        running.stop()
    assert isinstance(lost, LeaseLost)
    assert "the lease wattloom-scheduler is lost: not renewed for 2 s (" in str(lost)
    assert str(lost).endswith("; another replica may lead now")
    assert len(lines(caplog, "wattloom.kubernetes.client.leader_election", logging.WARNING)) <= 3


def test_how_to_install_our_own_kind_is_said_as_it_is_typed(
    plane: ControlPlane, api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    with scheduling(plane):
        pass
    command = "`wattloom kubernetes manifests --what crd | kubectl apply -f -`"
    assert f"machineprofiles.wattloom.dev are not known to this cluster: {command}" in caplog.text


@pytest.mark.parametrize(("namespace", "named"), [("", "real"), ("shop", "shop/real")])
def test_an_object_without_a_namespace_has_no_slash(
    namespace: str, named: str, caplog: pytest.LogCaptureFixture
) -> None:
    reflector = Reflector(
        Client(Target("http://127.0.0.1:1", Fixed())), NODES, Informer[Node](lambda node, there: None)
    )
    reflector._broken(Unreadable(Metadata(name="real", namespace=namespace), "it is odd"))
    assert f"nodes {named} cannot be read: it is odd" in caplog.text
