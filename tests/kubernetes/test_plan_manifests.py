"""A plan as manifests: what they ask for, and that a real API server takes them."""

import re
from pathlib import Path

import msgspec
import pytest
import yaml
from tests.beds.kubernetes.applying import PATHS
from tests.beds.kubernetes.client import Api

from wattloom.errors import InputError
from wattloom.kubernetes.model.objects import Pod
from wattloom.kubernetes.model.pods import task_of
from wattloom.kubernetes.model.storage_cache import StorageCache
from wattloom.kubernetes.publishing.plan_manifests import as_yaml, manifests, name_of
from wattloom.planning.plan import Assignment, Demand, Plan, Server
from wattloom.planning.plan_store import keep_plan
from wattloom.policies.loading import load_policy
from wattloom.scheduling import events as ev
from wattloom.testing.builders import ARM, LINEAR
from wattloom.testing.harness import Harness
from wattloom.workload.task import Task

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


def test_pods_of_the_manifests_are_in_the_plan_that_they_were_written_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By joules alone everything would go to `arm-1`, which draws a fifth."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    h = Harness(new_policy=lambda: load_policy("planned")).node("arm-1", ARM).node("x86", LINEAR)
    h.tell(ev.PlanChanged(h.time, keep_plan(msgspec.structs.replace(PLAN, demand=()))))
    wide = manifests(PLAN, "image")[3]["spec"]["template"]
    wide["spec"].pop("affinity")  # so that it is the plan that decides, and not the manifest
    template = {**wide, "metadata": {**wide["metadata"], "name": "p", "namespace": "shop", "uid": "12345678"}}
    task = task_of(msgspec.convert(template, Pod), StorageCache())
    assert isinstance(task, Task)
    assert task.function == "wide"
    assert task.requirements is not None
    needs = msgspec.structs.replace(task.requirements, resources=())  # these nodes count no pods
    task = msgspec.structs.replace(task, requirements=needs)
    h.function("wide", seconds={"linear": 1.0, "arm": 1.0})
    h.tell(ev.TaskSubmitted(h.time, task))
    assert h.where(task.id) == "x86"


def test_a_function_that_no_pod_can_be_annotated_with_is_refused() -> None:
    wrong = msgspec.structs.replace(PLAN, assignments=(Assignment("x" * 257, "x86", 1.0, 1, 5.0, 3.0),))
    with pytest.raises(InputError, match="annotated"):
        manifests(wrong, "image")


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
