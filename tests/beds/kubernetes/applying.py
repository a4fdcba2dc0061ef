"""Manifests applied to an API server, as `kubectl apply --server-side` would: what is there already is put right.

Owns where objects of each kind are.
"""

from collections.abc import Iterable
from typing import Any, Final

import yaml
from tests.beds.kubernetes.client import Api

APPLY: Final = "application/apply-patch+yaml"
OWNER: Final = "wattloom-test-bed"
PATHS: Final = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
}


def apply(api: Api, manifest: str | Iterable[dict[str, Any]]) -> list[Any]:
    """Apply every object of a YAML text, or every body given, in its order; what the API server made of each."""
    bodies = yaml.safe_load_all(manifest) if isinstance(manifest, str) else manifest
    return [api.patch(_path(body), body, APPLY) for body in bodies]


def _path(body: dict[str, Any]) -> str:
    about = body["metadata"]
    path = PATHS[body["kind"]].format(about.get("namespace", "default"))
    return f"{path}/{about['name']}?fieldManager={OWNER}&force=true"
