"""The shipped roles are enough, and no more than enough, for all that the scheduler does."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.beds.kubernetes import Api, ApiRefused, ControlPlane, eventually
from tests.beds.kubernetes.applying import PATHS, apply
from tests.kubernetes.running import (
    CURVE,
    PROFILE,
    Replica,
    Running,
    bind,
    events_of,
    held_bindings,
    nodes,
    pods,
    scheduling,
    told,
)

from wattloom.kubernetes.client.connection import Answer, Connection
from wattloom.kubernetes.client.event_aggregator import Pod
from wattloom.kubernetes.client.pool import Pool
from wattloom.kubernetes.manifests import NAMESPACE, manifest, names

Right = tuple[str, str, str]
"""A group, a resource of it (with what is below it), and what is done to it."""
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/wattloom-scheduler"
ROLE = f"{PATHS['ClusterRole']}/wattloom-scheduler"


@pytest.mark.usefixtures("profiles")
def test_the_api_server_takes_every_manifest_as_it_is_printed(api: Api) -> None:
    *_, made = apply(api, manifest("all", image="registry.example/wattloom:1"))
    assert (made["kind"], made["spec"]["replicas"]) == ("Deployment", 2)
    container = made["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "registry.example/wattloom:1"
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    budget = api.get(f"{PATHS['PodDisruptionBudget'].format(NAMESPACE)}/wattloom-scheduler")
    assert budget["spec"]["minAvailable"] == 1
    assert api.get(f"{PATHS['NetworkPolicy'].format(NAMESPACE)}/wattloom-scheduler")["spec"]["policyTypes"] == [
        "Ingress"
    ]
    api.delete(f"{PATHS['Deployment'].format(NAMESPACE)}/wattloom-scheduler")


def test_another_namespace_is_used_throughout() -> None:
    text = manifest("all", namespace="energy")
    assert NAMESPACE not in text
    assert {body["metadata"].get("namespace", "energy") for body in yaml.safe_load_all(text)} == {"energy"}
    assert set(names()) >= {"namespace", "crd", "rbac", "deployment"}


@pytest.mark.parametrize("what", ["all", "extender"])
def test_the_right_to_write_on_nodes_is_printed_only_for_those_who_publish(what: str) -> None:
    def bodies(publish: bool) -> list[dict[str, Any]]:
        return list(yaml.safe_load_all(manifest(what, publish_watts=publish)))

    with_it, without = bodies(True), bodies(False)
    assert [body["metadata"]["name"] for body in with_it if "nodes/status" in str(body)] == [
        f"wattloom-{'scheduler' if what == 'all' else what}-publisher"
    ]
    assert "nodes/status" not in str(without)
    assert "publisher" not in str(without)
    assert "--no-publish-watts" not in str(with_it)
    assert sum("--no-publish-watts" in str(body) for body in without) == 1


def test_images_have_a_version() -> None:
    for what in ("all", "extender"):
        images = [line.strip() for line in manifest(what).splitlines() if line.strip().startswith("image:")]
        assert images
        assert all(re.fullmatch(r"image: [\w-]+:v?\d[\w.-]*", image) for image in images), images


@pytest.mark.parametrize("what", ["all", "extender"])
def test_every_pod_is_shut_in_and_only_probes_reach_it(what: str) -> None:
    bodies = list(yaml.safe_load_all(manifest(what)))
    (pods,) = (body["spec"]["template"] for body in bodies if body["kind"] == "Deployment")
    (wall,) = (body["spec"] for body in bodies if body["kind"] == "NetworkPolicy")
    assert wall["podSelector"]["matchLabels"] == pods["metadata"]["labels"]
    probed = {
        port["containerPort"]
        for container in pods["spec"]["containers"]
        for port in container.get("ports", [{"containerPort": 10259}])
    }
    assert {port["port"] for port in wall["ingress"][0]["ports"]} == probed
    assert pods["spec"]["securityContext"]["runAsNonRoot"] is True
    assert pods["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pods["spec"]["containers"]:
        held = container["securityContext"]
        assert held["readOnlyRootFilesystem"] is True
        assert held["allowPrivilegeEscalation"] is False
        assert held["capabilities"] == {"drop": ["ALL"]}


# -- what it may do, and what it does ----------------------------------------------------------------------------------


@pytest.fixture
def account(plane: ControlPlane, profiles: Api) -> Path:
    """The kubeconfig of the account that is shipped, with exactly its roles; nobody leads yet."""
    apply(profiles, "---\n".join(manifest(each) for each in ("namespace", "rbac", "publishing")))
    with suppress(ApiRefused):
        profiles.delete(LEASE)
    return plane.kubeconfig_of(plane.access_of_account(NAMESPACE, "wattloom-scheduler"), "scheduler")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> set[Right]:
    """What is asked of the API server, as its roles name it."""
    found: set[Right] = set()
    request, stream = Pool.request, Pool.stream

    async def noted_request(self: Pool, method: str, path: str, *rest: Any, **more: Any) -> Answer:
        if (right := right_for(method, path)) is not None:
            found.add(right)
        return await request(self, method, path, *rest, **more)

    async def noted_stream(self: Pool, path: str, **more: Any) -> tuple[Answer, Connection]:
        if (right := right_for("GET", path)) is not None:
            found.add((*right[:2], "watch"))
        return await stream(self, path, **more)

    monkeypatch.setattr(Pool, "request", noted_request)
    monkeypatch.setattr(Pool, "stream", noted_stream)
    return found


def right_for(method: str, path: str) -> Right | None:
    """None: no resource, such as /version."""
    root, *parts = path.partition("?")[0].strip("/").split("/")
    if root not in ("api", "apis"):
        return None
    group, parts = (parts[0], parts[2:]) if root == "apis" else ("", parts[1:])
    if parts[0] == "namespaces" and len(parts) > 2:
        parts = parts[2:]
    reading = "get" if len(parts) > 1 else "list"
    return group, "/".join((parts[0], *parts[2:])), VERBS.get(method, reading)


def granted() -> set[Right]:
    text = f"{manifest('rbac')}---\n{manifest('publishing')}"
    roles = [body for body in yaml.safe_load_all(text) if body["kind"] in ("ClusterRole", "Role")]
    return {
        (group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_it_asks_for_all_that_the_shipped_roles_grant_and_for_nothing_else(
    plane: ControlPlane, profiles: Api, space: str, account: Path, asked: set[Right]
) -> None:
    api = profiles
    nodes(api, "n1", annotations={PROFILE: CURVE})
    with scheduling(plane, account, leader_elect=True, lease_namespace=NAMESPACE) as running:
        pods(api, space, "one")
        pods(api, space, "big", cpu="64")
        told(api, space, "one", "Scheduled", "Successfully assigned")
        told(api, space, "big", "FailedScheduling", "Insufficient cpu")
        say_it_again(running, api, space, "big")
        eventually(lambda: running.scheduler.conditions.written == 1)
        eventually(lambda: running.scheduler.publisher.written == 1)
        lose_a_race(running, api, space)
        failures = [each.failure for each in running.scheduler.state.reflectors if each.failure is not None]
        assert failures == []
    assert (running.scheduler.recorder.dropped, running.scheduler.publisher.failed) == (0, 0)
    assert asked == granted()


def say_it_again(running: Running, api: Api, space: str, name: str) -> None:
    """What was told already is counted on its event, at the latest when the scheduler ends."""
    uid = api.get(f"/api/v1/namespaces/{space}/pods/{name}")["metadata"]["uid"]
    (text,) = events_of(api, space, name)
    running.call(lambda: running.scheduler.recorder.failed(Pod(space, name, uid), text))


def lose_a_race(running: Running, api: Api, space: str) -> None:
    """Another has bound the pod, to the same node: it is read to learn what became of it."""
    with held_bindings(running) as held:
        pods(api, space, "raced")
        eventually(held)
        bind(api, space, "raced", "n1")
    eventually(lambda: running.scheduler.counts.bindings == {"bound": 2})


def test_the_account_may_not_read_what_is_none_of_its_business(plane: ControlPlane, space: str, account: Path) -> None:
    mine = Api(plane.access_of_account(NAMESPACE, "wattloom-scheduler"))
    for refused in (f"/api/v1/namespaces/{space}/secrets", f"/api/v1/namespaces/{space}/configmaps"):
        with pytest.raises(ApiRefused, match="forbidden"):
            mine.get(refused)


def test_with_one_right_less_it_says_which(plane: ControlPlane, api: Api, account: Path, tmp_path: Path) -> None:
    rules = api.get(ROLE)["rules"]
    kept = [rule | {"resources": [each for each in rule["resources"] if each != "nodes"]} for rule in rules]
    api.patch(ROLE, {"rules": kept})
    mine = Api(plane.access_of_account(NAMESPACE, "wattloom-scheduler"))
    eventually(lambda: refused(mine, "/api/v1/nodes"))
    replica = Replica(plane, tmp_path / "said", "--namespace", NAMESPACE, "--http", "", kubeconfig=account)
    try:
        assert replica.wait(60) == 1
        assert replica.says('cannot list resource "nodes"')
        assert replica.says("wattloom kubernetes manifests --what rbac")
    finally:
        replica.end()
        apply(api, manifest("rbac"))


def refused(api: Api, path: str) -> bool:
    try:
        api.get(path)
    except ApiRefused as error:
        return error.status == 403
    return False
