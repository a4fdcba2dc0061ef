"""What nodes may draw, on the nodes: written where it differs, by the scheduler and by the extender."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import msgspec
import pytest
import yaml
from click.testing import CliRunner
from tests.beds.kubernetes import Api, ControlPlane, add_nodes, eventually, fake_node, fake_pod
from tests.beds.kubernetes.applying import apply
from tests.beds.kubernetes.processes import Process, free_ports
from tests.kubernetes.conftest import PROFILES
from tests.kubernetes.extending import curve, extending
from tests.kubernetes.live import client, eventually_so
from tests.kubernetes.running import PROFILE, ask, scheduling
from tests.profiling.made import cpu_profile

from wattloom.cli.kubernetes import kubernetes
from wattloom.errors import InputError, WattloomError
from wattloom.kubernetes.client import event_loop
from wattloom.kubernetes.manifests import NAMESPACE, manifest
from wattloom.kubernetes.model.kinds import NODES
from wattloom.kubernetes.model.objects import Node
from wattloom.kubernetes.model.profiles import MILLIWATTS, Profiles
from wattloom.kubernetes.publishing.watts import AT_ONCE, WattsPublisher
from wattloom.machines.profile_file import encode_profile

RIGHTS = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding")
"""What an account is made of. The others of the same name are for the cluster itself, or for kube-scheduler."""


def watts(api: Api, node: str) -> list[str | None]:
    """In its capacity, and in what may be given out."""
    status = api.get(f"/api/v1/nodes/{node}")["status"]
    return [status[part].get(MILLIWATTS) for part in ("capacity", "allocatable")]


def annotate(api: Api, node: str, profile: str | None) -> None:
    api.patch(f"/api/v1/nodes/{node}", {"metadata": {"annotations": {PROFILE: profile}}})


def test_the_extender_publishes_what_nodes_may_draw_and_keeps_it_true(plane: ControlPlane, api: Api) -> None:
    bodies = {"full": curve(150), "tdp": curve(150, tdpW=120.5), "cap": curve(150, tdpW=120.5, capW=99.25)}
    add_nodes(api, [fake_node(name, annotations={PROFILE: text}) for name, text in bodies.items()])
    add_nodes(api, [fake_node("unknown")])
    with extending(plane, publish_watts=True) as running:
        eventually(lambda: watts(api, "full") == ["150k", "150k"])
        eventually(lambda: watts(api, "tdp") == ["120500", "120500"])
        eventually(lambda: watts(api, "cap") == ["99250", "99250"])
        assert watts(api, "unknown") == [None, None]
        annotate(api, "full", curve(175))
        eventually(lambda: watts(api, "full") == ["175k", "175k"])
        annotate(api, "tdp", None)
        eventually(lambda: watts(api, "tdp") == [None, None])
        assert running.call(lambda: running.extender.publisher.written) == 5
    with extending(plane, publish_watts=True) as running:  # what is right is not written again
        annotate(api, "unknown", curve(60))
        eventually(lambda: watts(api, "unknown") == ["60k", "60k"])
        assert running.call(lambda: running.extender.publisher.written) == 1


def test_while_pods_are_being_placed_few_are_written(
    plane: ControlPlane, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every write wakes all who watch nodes; nobody waits for this one. A pause that never ends shows how many."""
    monkeypatch.setattr("wattloom.kubernetes.publishing.watts.BUSY_PAUSE_S", 3600.0)
    monkeypatch.setattr("wattloom.kubernetes.publishing.watts.PAUSE_S", 0.0)
    names = [f"n{number}" for number in range(10)]
    bodies = add_nodes(api, [fake_node(name, annotations={PROFILE: curve(150)}) for name in names])
    there = {body["metadata"]["name"]: msgspec.convert(body, Node) for body in bodies}

    async def live(busy: bool, writes: int) -> list[str]:
        async with client(plane) as ours:
            publisher = WattsPublisher(ours, there.get, lambda name: Profiles().of(there[name]), busy=lambda: busy)
            for name in names:
                publisher.changed(name)
            running = asyncio.create_task(publisher.run())
            await eventually_so(lambda: publisher.written == writes)
            for _ in range(30):  # meanwhile whoever does not pause goes on
                await ours.get(NODES, "n0")
            running.cancel()
            await asyncio.wait([running])
            assert (publisher.written, publisher.failed) == (writes, 0)
        return [name for name in names if watts(api, name) == ["150k", "150k"]]

    assert event_loop.run(live(True, AT_ONCE)) == names[:AT_ONCE]
    assert event_loop.run(live(False, 10)) == names


def test_the_extender_is_busy_while_it_is_asked(plane: ControlPlane, api: Api) -> None:
    add_nodes(api, [fake_node("n1")])
    listen = f"127.0.0.1:{free_ports(1)[0]}"
    with extending(plane, listen) as running:
        assert not running.call(running.extender.publisher._busy)
        question = json.dumps({"Pod": fake_pod("one"), "NodeNames": ["n1"]}).encode()

        def asked() -> bool:
            with urlopen(f"http://{listen}/filter", question, timeout=30) as answer:
                assert answer.status == 200
            return bool(running.call(running.extender.publisher._busy))

        eventually(asked)  # more than once only where the machine took longer than that counts


def test_the_scheduler_publishes_them_too_unless_told_not_to(plane: ControlPlane, api: Api) -> None:
    add_nodes(api, [fake_node("n1", annotations={PROFILE: curve(150)})])
    with scheduling(plane, publish_watts=False) as running:
        eventually(lambda: running.call(lambda: running.scheduler.state.nodes.knows("n1")))
        assert running.call(lambda: len(running.scheduler.publisher)) == 0
    assert watts(api, "n1") == [None, None]
    with scheduling(plane):
        eventually(lambda: watts(api, "n1") == ["150k", "150k"])


def test_who_may_not_write_says_so_and_goes_on(plane: ControlPlane, api: Api, caplog: pytest.LogCaptureFixture) -> None:
    account = _installed(plane, api, without="nodes/status")
    add_nodes(api, [fake_node("n1", annotations={PROFILE: curve(150)})])
    with extending(plane, kubeconfig=account, publish_watts=True) as running:
        eventually(lambda: "patch on nodes/status" in caplog.text)
        assert running.call(lambda: running.extender.publisher.failed) >= 1
        assert running.call(lambda: running.extender.state.synced)


def test_the_extender_needs_no_more_than_its_shipped_role(plane: ControlPlane, profiles: Api) -> None:
    account = _installed(plane, profiles)
    add_nodes(profiles, [fake_node("n1", annotations={PROFILE: curve(150)})])
    with extending(plane, kubeconfig=account, publish_watts=True) as running:
        eventually(lambda: watts(profiles, "n1") == ["150k", "150k"])
        assert not any(each.failure for each in running.extender.state.reflectors)


def test_an_account_that_may_not_read_is_told_what_is_missing(plane: ControlPlane, api: Api) -> None:
    nobody = plane.kubeconfig_of(plane.access_of_user("nobody"), "nobody")
    with pytest.raises(WattloomError, match="manifests --what extender"), extending(plane, kubeconfig=nobody):
        pass


def _installed(plane: ControlPlane, api: Api, without: str = "") -> Path:
    """The account of the manifest with exactly its role; `without` one of the resources."""
    bodies = [*yaml.safe_load_all(manifest("namespace")), *yaml.safe_load_all(manifest("extender"))]
    ours = (NAMESPACE, "wattloom-extender", "wattloom-extender-publisher")
    own = [body for body in bodies if body["metadata"]["name"] in ours]
    for body in own:
        if body["kind"] == "ClusterRole":
            body["rules"] = [rule for rule in body["rules"] if without not in rule["resources"]]
    apply(api, [body for body in own if body["kind"] in RIGHTS])
    return plane.kubeconfig_of(plane.access_of_account(NAMESPACE, "wattloom-extender"), "extender")


def test_the_command_serves_until_it_is_ended(plane: ControlPlane, api: Api, tmp_path: Path) -> None:
    add_nodes(api, [fake_node("n1", annotations={PROFILE: curve(150)}), fake_node("n2")])
    listen, http = free_ports(2)
    program = [sys.executable, "-m", "wattloom.cli.main", "kubernetes", "extender"]
    words = ["--kubeconfig", str(plane.kubeconfig), "--listen", f"127.0.0.1:{listen}", "--http", f"127.0.0.1:{http}"]
    process = Process("extender", [*program, *words, "--log-format", "json"], tmp_path / "said")
    process.start()
    try:
        eventually(lambda: ask(http, "/readyz") == (200, "ok\n"), 60)
        eventually(lambda: watts(api, "n1") == ["150k", "150k"])
        shown = ask(http, "/metrics")[1]
        assert 'wattloom_kubernetes_nodes{power="known"} 1.0' in shown
        assert 'wattloom_extender_watts_published_total{result="written"} 1.0' in shown
        assert ask(http, "/healthz") == (200, "ok\n")
    finally:
        code = process.stop(30.0)
    assert code == 0
    lines = [json.loads(line)["message"] for line in (tmp_path / "said").read_text().splitlines()]
    assert any("in step with the cluster: 2 nodes" in line for line in lines)


# -- profiles ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "node7.json"
    path.write_bytes(encode_profile(cpu_profile()))
    return path


def command(plane: ControlPlane, *words: str) -> Any:
    return CliRunner().invoke(kubernetes, ["profile", *words, "--kubeconfig", str(plane.kubeconfig)])


def test_a_profile_is_published_as_an_object_and_counts(plane: ControlPlane, profiles: Api, file: Path) -> None:
    add_nodes(profiles, [fake_node("node7")])
    for cap in ("80", "90"):  # a second time it replaces the first
        made = command(plane, "node7", str(file), "--cap", cap)
        assert (made.exit_code, made.output) == (0, "Published: MachineProfile node7.\n")
    spec = profiles.get(f"{PROFILES}/node7")["spec"]
    assert (spec["nodeName"], spec["capW"], len(spec["coresWatts"]) > 1) == ("node7", 90, True)
    with extending(plane, publish_watts=True) as running:
        eventually(lambda: watts(profiles, "node7") == ["90k", "90k"])
        assert running.call(lambda: not running.extender.state.nodes.problems)


def test_a_profile_is_published_as_an_annotation(plane: ControlPlane, api: Api, file: Path) -> None:
    add_nodes(api, [fake_node("node7")])
    made = command(plane, "node7", str(file), "--as-annotation", "--json")
    assert made.exit_code == 0
    assert json.loads(made.stdout)["where"] == f"annotation {PROFILE} of node node7"
    with extending(plane) as running:
        node = running.call(lambda: running.extender.driver.engine.ledger.view.nodes()["node7"])
        assert node.cls.machine.knows_power


def test_what_cannot_be_published_is_told_in_words(plane: ControlPlane, api: Api, file: Path) -> None:
    missing = command(plane, "nowhere", str(file))
    assert isinstance(missing.exception, InputError)
    assert "there is no node 'nowhere'" in str(missing.exception)
    add_nodes(api, [fake_node("node7", cpu="256")])
    unknown = command(plane, "node7", str(file))
    assert "--as-annotation does without" in str(unknown.exception)
    odd = command(plane, "node7", str(file), "--as-annotation")
    assert "the node has 256 CPUs" in odd.output
    assert isinstance(command(plane, "node7", str(file), "--cap", "0").exception, InputError)
    low = command(plane, "node7", str(file), "--as-annotation", "--cap", "3")
    assert "the cap of 3 W is less than the 20 W that it draws idle" in low.output
    add_nodes(api, [fake_node("small", cpu="2")])
    assert "the node has 2 CPUs" in command(plane, "small", str(file), "--as-annotation").output


def test_watts_that_nobody_measured_are_published_with_a_warning(plane: ControlPlane, api: Api, tmp_path: Path) -> None:
    add_nodes(api, [fake_node("node7")])
    file = tmp_path / "estimated.json"
    file.write_bytes(encode_profile(cpu_profile(provenance="estimated")))
    made = command(plane, "node7", str(file), "--as-annotation")
    assert (made.exit_code, made.stderr) == (0, "Warning: its watts are estimated, not measured.\n")


def test_an_annotation_takes_the_place_of_the_object_that_was_published_before(
    plane: ControlPlane, profiles: Api, file: Path
) -> None:
    add_nodes(profiles, [fake_node("node7"), fake_node("node8")])
    command(plane, "node8", str(file))
    command(plane, "node7", str(file), "--cap", "80")
    made = command(plane, "node7", str(file), "--as-annotation", "--cap", "90")
    assert (made.exit_code, made.output) == (0, f"Published: annotation {PROFILE} of node node7.\n")
    assert [each["metadata"]["name"] for each in profiles.items(PROFILES)] == ["node8"]
    with extending(plane, publish_watts=True):
        eventually(lambda: watts(profiles, "node7") == ["90k", "90k"])


@pytest.mark.parametrize(
    ("name", "aim", "as_annotation"),
    [
        ("somebodys", {"nodeName": "node7"}, True),
        ("node7", {"selector": {"matchLabels": {"kubernetes.io/hostname": "node7"}}}, True),
        ("a-somebodys", {"nodeName": "node7"}, False),
    ],
)
def test_an_object_of_somebody_else_that_counts_instead_is_left_and_told(
    plane: ControlPlane, profiles: Api, file: Path, name: str, aim: dict[str, Any], as_annotation: bool
) -> None:
    add_nodes(profiles, [fake_node("node7")])
    spec = {**json.loads(curve(150)), **aim}
    body = {"apiVersion": "wattloom.dev/v1alpha1", "kind": "MachineProfile", "metadata": {"name": name}, "spec": spec}
    profiles.post(PROFILES, body)
    made = command(plane, "node7", str(file), *(["--as-annotation"] if as_annotation else []))
    assert made.exit_code == 0
    assert made.stderr == f"Warning: MachineProfile {name} is for this node too and counts instead.\n"
    assert profiles.get(f"{PROFILES}/{name}")["spec"]["coresWatts"] == [[0, 50], [8, 150]]
