"""The extender inside a real kube-scheduler: pods land where the policy says, and watts are kept."""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.beds.kubernetes import Api, ControlPlane, Part, add_nodes, add_pods, eventually, fake_node, fake_pod
from tests.beds.kubernetes.processes import Process, free_ports
from tests.kubernetes.conftest import programs_or_skip
from tests.kubernetes.extending import curve, extending
from tests.kubernetes.running import PROFILE, all_bound, ask, nodes_of, told

from wattloom.cli.kubernetes import kubernetes
from wattloom.kubernetes.extender.answers import ALL
from wattloom.kubernetes.extender.config import scheduler_config
from wattloom.serving.access import server_encryption

DEAR, CHEAP = curve(250), curve(90)


def write_config(plane: ControlPlane, name: str, text: str) -> str:
    """What the command prints, with what a test needs beside it."""
    kubeconfig = plane.folder / "kubeconfigs" / "kube-scheduler.yaml"
    path = plane.folder / f"{name}.yaml"
    connection = f"clientConnection: {{kubeconfig: {kubeconfig}, qps: 5000, burst: 5000}}"
    retries = "podInitialBackoffSeconds: 1\npodMaxBackoffSeconds: 1"
    path.write_text(f"{text}{connection}\nleaderElection: {{leaderElect: false}}\n{retries}\n")
    return str(path)


@pytest.fixture(scope="module")
def listen() -> str:
    """Where kube-scheduler asks."""
    return f"127.0.0.1:{free_ports(1)[0]}"


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane, listen: str) -> Iterator[ControlPlane]:
    """The shared control plane with a kube-scheduler that asks there."""
    programs_or_skip("kube-scheduler")
    config = write_config(control_plane, "extended", scheduler_config(listen))
    control_plane.start_part(Part.SCHEDULER, {"config": config})
    yield control_plane
    control_plane.stop_part(Part.SCHEDULER)


def nodes(api: Api, profiles: dict[str, str | None], **options: Any) -> None:
    add_nodes(api, [fake_node(name, annotations={PROFILE: p} if p else {}, **options) for name, p in profiles.items()])


def pods(api: Api, space: str, number: int, name: str = "", **options: Any) -> None:
    add_pods(api, space, [fake_pod(f"{name or space}-{one}", **options) for one in range(number)])


def test_pods_go_to_the_nodes_that_draw_least_for_them(plane: ControlPlane, listen: str, api: Api, space: str) -> None:
    nodes(api, {"a-dear": DEAR, "b-cheap": CHEAP, "c-unknown": None, "d-cheap": CHEAP})
    with extending(plane, listen) as running:
        pods(api, space, 30, cpu="200m")
        where = Counter(all_bound(api, space).values())
        assert running.answered("filter", "chosen") == 30
        assert running.answered("prioritize", "chosen") == 0  # with one node left kube-scheduler asks nothing more
        eventually(lambda: running.call(lambda: running.extender.state.loads.assumed == 0))
        assert running.call(lambda: len(running.extender.state.loads.pods.by_uid)) == 30
    assert set(where) <= {"b-cheap", "d-cheap"}


def test_the_command_answers_kube_scheduler(
    plane: ControlPlane, listen: str, api: Api, space: str, tmp_path: Path
) -> None:
    """As a process of its own: the loop, the start and the listening are those that users get."""
    nodes(api, {"a-dear": DEAR, "b-cheap": CHEAP})
    http = free_ports(1)[0]
    words = ["--kubeconfig", str(plane.kubeconfig), "--listen", listen, "--http", f"127.0.0.1:{http}"]
    program = [sys.executable, "-m", "wattloom.cli.main", "kubernetes", "extender", *words]
    process = Process("extender", program, tmp_path / "extender.log")
    process.start()
    try:
        eventually(lambda: ask(http, "/readyz")[0] == 200, 60)
        pods(api, space, 20, cpu="200m")
        assert set(all_bound(api, space).values()) == {"b-cheap"}
        assert 'wattloom_extender_calls_total{result="chosen",verb="filter"} 20.0' in ask(http, "/metrics")[1]
    finally:
        process.stop()


def test_kube_scheduler_starts_with_nothing_but_what_the_command_prints(
    plane: ControlPlane, listen: str, api: Api, space: str
) -> None:
    nodes(api, {"a-dear": DEAR, "b-cheap": CHEAP})
    words = ["--listen", listen, "--scheduler-kubeconfig", str(plane.folder / "kubeconfigs" / "kube-scheduler.yaml")]
    printed = plane.folder / "printed.yaml"
    printed.write_text(CliRunner().invoke(kubernetes, ["extender", "--print-config", *words]).output)
    plane.stop_part(Part.SCHEDULER)
    try:
        plane.start_part(Part.SCHEDULER, {"config": str(printed)})
        with extending(plane, listen) as running:
            pods(api, space, 3)
            assert set(all_bound(api, space).values()) == {"b-cheap"}
            assert running.answered("filter", "chosen") == 3
    finally:
        plane.stop_part(Part.SCHEDULER)
        plane.start_part(Part.SCHEDULER, {"config": str(plane.folder / "extended.yaml")})


def test_a_burst_is_spread_evenly_though_the_watch_comes_late(
    plane: ControlPlane, listen: str, api: Api, space: str
) -> None:
    nodes(api, {f"n{one}": CHEAP for one in range(8)})
    with extending(plane, listen, policy="spread"):
        pods(api, space, 80, cpu="50m")
        where = Counter(all_bound(api, space).values())
    assert len(where) == 8
    assert max(where.values()) - min(where.values()) <= 1, where


def test_every_policy_that_can_work_here_places_all_pods(
    plane: ControlPlane, listen: str, api: Api, space: str
) -> None:
    nodes(api, {"n1": DEAR, "n2": CHEAP, "n3": None})
    for policy in ("pack", "round-robin", "random", "weighted", "marginal-energy", "arch-first", "fifo"):
        with extending(plane, listen, policy=policy) as running:
            pods(api, space, 6, name=f"{space}-{policy}")
            all_bound(api, space)
            assert running.answered("filter", "chosen") == 6
            assert running.answered("filter", "error") == 0


def test_a_nodes_cap_is_kept_and_the_owner_is_told(plane: ControlPlane, listen: str, api: Api, space: str) -> None:
    """50 W idle and 25 W a core: 100 W are two cores."""
    nodes(api, {"n1": curve(250, capW=100.0)})
    with extending(plane, listen):
        pods(api, space, 5, cpu="500m")
        eventually(lambda: sum(map(bool, nodes_of(api, space).values())) == 4)
        left = next(name for name, node in nodes_of(api, space).items() if not node)
        told(api, space, left, "FailedScheduling", "1 node.s. would draw more than their cap")
        placed = next(name for name, node in nodes_of(api, space).items() if node)
        api.delete(f"/api/v1/namespaces/{space}/pods/{placed}", gracePeriodSeconds=0)
        assert eventually(lambda: nodes_of(api, space)[left], 60) == "n1"


def test_a_pod_that_was_refused_too_early_is_asked_about_again(
    plane: ControlPlane, listen: str, api: Api, space: str
) -> None:
    """The extender is made to see the deletion only after kube-scheduler has asked because of it."""
    nodes(api, {"n1": curve(250, capW=80.0)})
    with extending(plane, listen) as running:
        pods(api, space, 1, name=f"{space}-old", cpu="1")
        all_bound(api, space)
        pods(api, space, 1, name=f"{space}-new", cpu="1")
        eventually(lambda: running.answered("filter", "refused") >= 1)
        loads = running.extender.state.loads
        late, loads.deleted = loads.deleted, lambda pod: held.append(pod)  # type: ignore[method-assign]
        held: list[Any] = []
        before = running.answered("filter", "refused")
        api.delete(f"/api/v1/namespaces/{space}/pods/{space}-old-0", gracePeriodSeconds=0)
        eventually(lambda: held and running.answered("filter", "refused") > before)
        loads.deleted = late  # type: ignore[method-assign]
        running.call(lambda: late(held[0]))
        eventually(lambda: nodes_of(api, space) == {f"{space}-new-0": "n1"}, 30)
        assert running.call(lambda: running.extender.nudge.given) >= 1


def test_the_clusters_cap_is_kept_in_a_burst(plane: ControlPlane, listen: str, api: Api, space: str) -> None:
    """Four nodes idle at 200 W in all; 5 W a core: 220 W are four cores, eight pods."""
    nodes(api, {f"n{one}": CHEAP for one in range(4)})
    with extending(plane, listen, cap_w=220.0) as running:
        pods(api, space, 20, cpu="500m")
        eventually(lambda: sum(map(bool, nodes_of(api, space).values())) == 8)
        eventually(lambda: running.answered("filter", "refused") >= 12)
        before = running.answered("filter", "refused")
        pods(api, space, 1, name=f"{space}-more", cpu="500m")
        eventually(lambda: running.answered("filter", "refused") > before)
        assert sum(map(bool, nodes_of(api, space).values())) == 8
        left = next(name for name, node in nodes_of(api, space).items() if not node)
        told(api, space, left, "FailedScheduling", "above its power cap")


def test_stated_wishes_of_a_pod_still_count(plane: ControlPlane, listen: str, api: Api, space: str) -> None:
    nodes(api, {"n1": CHEAP, "n2": CHEAP})
    nodes(api, {"n3": CHEAP}, labels={"disk": "ssd"})
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    wish = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term}]}
    with extending(plane, listen) as running:
        pods(api, space, 3, spec={"affinity": {"nodeAffinity": wish}})
        assert set(all_bound(api, space).values()) == {"n3"}
        assert running.answered("prioritize", "chosen") == 3


def test_with_all_nodes_kept_scores_still_lead_to_the_cheap_ones(
    plane: ControlPlane, listen: str, api: Api, space: str
) -> None:
    nodes(api, {"n1": DEAR, "n2": CHEAP, "n3": DEAR})
    with extending(plane, listen, keep=ALL) as running:
        pods(api, space, 10)
        assert set(all_bound(api, space).values()) == {"n2"}
        assert running.answered("prioritize", "chosen") == 10


def test_kube_scheduler_goes_on_when_the_extender_dies_in_a_burst(
    plane: ControlPlane, listen: str, api: Api, space: str
) -> None:
    nodes(api, {f"n{one}": CHEAP for one in range(4)})
    with extending(plane, listen) as running:
        pods(api, space, 150, cpu="50m")
        eventually(lambda: running.answered("filter", "chosen") > 20)
    all_bound(api, space, 120)
    with extending(plane, listen) as running:  # and asks again when there is one
        pods(api, space, 3, name=f"{space}-after")
        all_bound(api, space)
        assert running.answered("filter", "chosen") == 3


def test_callers_are_known_by_certificate_or_by_token(plane: ControlPlane, listen: str, api: Api, space: str) -> None:
    nodes(api, {"n1": DEAR, "n2": CHEAP})
    authority = plane.authority
    served, caller = authority.server("extender", ["IP:127.0.0.1"]), authority.client("kube-scheduler", [])
    for client_ca, token in ((str(authority.own.certificate), ""), ("", "a-long-enough-token")):
        text = scheduler_config(listen, encrypted=True, client_ca=bool(client_ca), token=bool(token))
        text = text.replace("/etc/kubernetes/wattloom/ca.crt", str(authority.own.certificate))
        text = text.replace("/etc/kubernetes/wattloom/client.crt", str(caller.certificate))
        text = text.replace("/etc/kubernetes/wattloom/client.key", str(caller.key)).replace("TOKEN", token)
        plane.stop_part(Part.SCHEDULER)
        plane.start_part(Part.SCHEDULER, {"config": write_config(plane, "encrypted", text)})
        try:
            encryption = server_encryption(str(served.certificate), str(served.key), client_ca)
            with extending(plane, listen, encryption=encryption, token=token) as running:
                pods(api, space, 3, name=f"{space}-{'token' if token else 'certificate'}")
                assert set(all_bound(api, space).values()) == {"n2"}
                assert running.answered("filter", "chosen") == 3
        finally:
            plane.stop_part(Part.SCHEDULER)
            plane.start_part(Part.SCHEDULER, {"config": str(plane.folder / "extended.yaml")})
