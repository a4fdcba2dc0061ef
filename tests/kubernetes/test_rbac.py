"""The shipped roles are enough, and no more than enough, for all that the scheduler does."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kubernetes.running import Replica, nodes, pods, scheduling, told

from wattloom.kubernetes import kinds
from wattloom.kubernetes.manifests import NAMESPACE, manifest, names
from wattloom.kubernetes.resource import Resource
from wattloom.testing.kubernetes import Api, ApiRefused, ControlPlane, eventually
from wattloom.testing.kubernetes.fleet import add_namespace

PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
}


def objects(what: str, **options: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(manifest(what, **options)))


def apply(api: Api, body: dict[str, Any]) -> None:
    api.post(PATHS[body["kind"]].format(body["metadata"].get("namespace", "")), body)


def test_the_api_server_takes_every_manifest_as_it_is_printed(make_plane: Callable[..., ControlPlane]) -> None:
    plane = make_plane()
    for body in objects("all", image="registry.example/wattloom:1"):
        apply(plane.api, body)
    made = plane.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/wattloom-scheduler")
    assert made["spec"]["replicas"] == 2
    container = made["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "registry.example/wattloom:1"
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_another_namespace_is_used_throughout() -> None:
    text = manifest("all", namespace="energy")
    assert NAMESPACE not in text
    assert {body["metadata"].get("namespace", "energy") for body in yaml.safe_load_all(text)} == {"energy"}
    assert set(names()) >= {"namespace", "crd", "rbac", "deployment"}


def rules(api: Api) -> list[dict[str, Any]]:
    role = api.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/wattloom-scheduler")
    found: list[dict[str, Any]] = role["rules"]
    return found


def test_it_works_with_exactly_the_shipped_roles_and_with_one_less_it_says_which(
    make_plane: Callable[..., ControlPlane], tmp_path: Path
) -> None:
    plane = make_plane()
    api = plane.api
    for body in (*objects("namespace"), *objects("crd"), *objects("rbac")):
        apply(api, body)
    space = add_namespace(api, "roles")
    nodes(api, "n1")
    account = plane.kubeconfig_of(plane.access_of_account(NAMESPACE, "wattloom-scheduler"), "scheduler")
    with scheduling(plane, account, leader_elect=True, lease_namespace=NAMESPACE) as running:
        pods(api, space, "one")
        pods(api, space, "big", cpu="64")
        eventually(lambda: running.scheduler.counts.bindings == {"bound": 1})
        told(api, space, "one", "Scheduled", "Successfully assigned")
        told(api, space, "big", "FailedScheduling", "too small")
        eventually(lambda: running.scheduler.conditions.written == 1)
        failures = [each.failure for each in running.scheduler.state.reflectors if each.failure is not None]
        assert failures == []
        assert running.scheduler.teller.dropped == 0
    mine = Api(plane.access_of_account(NAMESPACE, "wattloom-scheduler"))
    for refused in (f"/api/v1/namespaces/{space}/secrets", f"/api/v1/namespaces/{space}/configmaps"):
        with pytest.raises(ApiRefused, match="forbidden"):
            mine.get(refused)
    without_nodes(api)
    replica = Replica(plane, tmp_path / "said", "--namespace", NAMESPACE, "--http", "", kubeconfig=account)
    assert replica.process.wait(60) == 1
    said = replica.said.read_text()
    assert 'cannot list resource "nodes"' in said
    assert "wattloom kubernetes manifests --what rbac" in said


def without_nodes(api: Api) -> None:
    kept = [rule | {"resources": [each for each in rule["resources"] if each != "nodes"]} for rule in rules(api)]
    api.patch("/apis/rbac.authorization.k8s.io/v1/clusterroles/wattloom-scheduler", {"rules": kept})


def test_the_role_grants_nothing_that_the_scheduler_does_not_ask_for() -> None:
    roles = [body for body in objects("rbac") if body["kind"] == "ClusterRole"]
    granted = {
        (group, resource, verb)
        for rule in roles[0]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert granted == asked_for()


def asked_for() -> set[tuple[str, str, str]]:
    followed = [each for each in vars(kinds).values() if isinstance(each, Resource)]
    reads = {(each.group, each.plural, verb) for each in followed for verb in ("list", "watch")}
    return reads | {
        ("", "pods", "get"),
        ("", "pods/binding", "create"),
        ("", "pods/status", "patch"),
        ("", "nodes/status", "patch"),
        ("events.k8s.io", "events", "create"),
        ("events.k8s.io", "events", "patch"),
    }
