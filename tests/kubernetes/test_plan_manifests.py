"""A plan as manifests: what they ask for, and that a real API server takes them."""

import re

import pytest
import yaml
from tests.beds.kubernetes.applying import PATHS
from tests.beds.kubernetes.client import Api

from wattloom.errors import InputError
from wattloom.kubernetes.publishing.plan_manifests import as_yaml, manifests, name_of
from wattloom.planning.plan import Assignment, Demand, Plan, Server

PLAN = Plan(
    policy="energy-aware",
    goal="energy",
    objective=1.0,
    assignments=(
        Assignment("shop.images:Thumbnail", "arm-1", 12.0, 3, 5.0, 5.0),
        Assignment("zip", "arm-1", 4.0, 2, 5.0, 3.0, "wasm"),
        Assignment("zip", "x86", 4.0, 1, 5.0, 4.0),
        Assignment("nobody-calls", "x86", 0.0, 0, 0.0, 4.0),
        Assignment("wide", "x86", 1.0, 4, 5.0, 1.0),
    ),
    servers=(
        Server(name="arm-1", machine="arm", cores=8, arch="aarch64"),
        Server(name="x86", machine="x86", cores=8, arch="x86_64"),
    ),
    demand=(
        Demand(function="shop.images:Thumbnail", rate=12.0, memory=256 << 20, labels={"disk": "ssd"}),
        Demand(function="wide", rate=1.0, cpu=2.0),
    ),
)


def test_each_function_on_a_server_has_as_many_replicas_as_cores_and_a_node() -> None:
    made = manifests(PLAN, "registry/{function}:1", "shop")
    assert [each["spec"]["replicas"] for each in made] == [3, 2, 1, 2]
    first = made[0]["spec"]["template"]["spec"]
    (container,) = first["containers"]
    assert container["image"] == "registry/shop-images-thumbnail:1"
    assert container["resources"]["requests"] == {"cpu": "1", "memory": str(256 << 20)}
    assert container["resources"]["limits"] == container["resources"]["requests"]
    (term,) = first["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchFields"] == [{"key": "metadata.name", "operator": "In", "values": ["arm-1"]}]
    assert {each["key"]: each["values"] for each in term["matchExpressions"]} == {
        "disk": ["ssd"], "kubernetes.io/arch": ["arm64"],
    }  # fmt: skip
    assert made[0]["metadata"]["annotations"]["wattloom.dev/plan"] == PLAN.digest
    assert made[3]["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "2"


@pytest.mark.parametrize("function", ["f", "A.B:c", "ü" * 80, "-", "x" * 200, "node.js/handler"])
def test_every_name_is_one_that_a_deployment_may_have(function: str) -> None:
    name = name_of(Assignment(function, "server", 1.0, 1, None, 1.0))
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name)
    assert len(name) <= 63


def test_two_functions_never_have_the_same_name() -> None:
    one, other = (Assignment(name, "server", 1.0, 1, None, 1.0) for name in ("a.b", "a-b"))
    assert name_of(one) != name_of(other)


def test_the_image_is_the_users_to_name() -> None:
    with pytest.raises(InputError, match="--image"):
        manifests(PLAN, "")


def test_an_api_server_takes_them(api: Api, space: str) -> None:
    objects = list(yaml.safe_load_all(as_yaml(manifests(PLAN, "registry/{function}:1", space))))
    made = [
        api.post(f"{PATHS['Deployment'].format(space)}?dryRun=All&fieldValidation=Strict", each) for each in objects
    ]
    assert [each["spec"]["replicas"] for each in made] == [3, 2, 1, 2]
    assert made[0]["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"] == "1"
