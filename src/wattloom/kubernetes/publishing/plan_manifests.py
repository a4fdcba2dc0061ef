"""A plan as manifests: a Deployment for each function on each server, with as many replicas as it has cores.

Owns their form. A replica asks for one core (of a function that keeps several busy, for those), and goes to the node
that is named like the plan's server. Requests are limits too, so that a kubelet with the static CPU manager gives each
replica cores of its own. What is in the container is the user's: the image is named by him.
"""

import re
from hashlib import blake2b
from math import ceil
from typing import Any, Final

from wattloom.errors import InputError, MissingExtra
from wattloom.kubernetes.model.annotations import FUNCTION, LONGEST_FUNCTION, is_function_name
from wattloom.planning.plan import Assignment, Demand, Plan

LONGEST: Final = 63
"""Of a name that is also a label."""
ARCHITECTURES: Final = {
    "x86_64": "amd64",
    "aarch64": "arm64",
    "riscv64": "riscv64",
    "ppc64le": "ppc64le",
    "s390x": "s390x",
}
MEMORY: Final = 128 << 20
"""Bytes of a replica of which the plan says nothing: without any, cores would not be its own."""
PLAN: Final = "wattloom.dev/plan"
WORDS: Final = re.compile(r"[^a-z0-9]+")


def manifests(plan: Plan, image: str, namespace: str = "default") -> list[dict[str, Any]]:
    """One Deployment for each assignment. `{function}` in the image's name is the function."""
    if not image:
        raise InputError("image", "is needed: what runs in the containers, as in --image registry/{function}:1")
    for each in plan.assignments:
        if not is_function_name(each.function):
            words = f"must have 1 to {LONGEST_FUNCTION} characters that can be printed: pods are annotated with it"
            raise InputError(f"functions.{each.function[:40]!r}", words)
    demand = {each.function: each for each in plan.demand}
    archs = {each.name: each.arch for each in plan.servers}
    made = [
        _deployment(each, demand.get(each.function), archs, plan.digest, image, namespace) for each in plan.assignments
    ]
    return [each for each in made if each["spec"]["replicas"]]


def as_yaml(objects: list[dict[str, Any]]) -> str:
    """All of them in one stream, as `kubectl apply -f` takes it."""
    try:
        import yaml
    except ImportError as problem:
        raise MissingExtra("writing manifests", "kubernetes") from problem
    text: str = yaml.safe_dump_all(objects, sort_keys=False, width=110)
    return text


def name_of(part: Assignment) -> str:
    """A name that a Deployment may have: the function's and the server's, as far as they are such; never the same for
    two of them."""
    plain = WORDS.sub("-", f"{part.function}-{part.server}-{part.variant}".lower()).strip("-")
    mark = blake2b(f"{part.function}\0{part.server}\0{part.variant}".encode(), digest_size=3).hexdigest()
    return f"{plain[: LONGEST - len(mark) - 1].strip('-') or 'function'}-{mark}"


def _deployment(
    part: Assignment, wanted: Demand | None, archs: dict[str, str], digest: str, image: str, namespace: str
) -> dict[str, Any]:
    name = name_of(part)
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "wattloom"}
    notes = {FUNCTION: part.function, PLAN: digest, "wattloom.dev/rate": f"{part.rate:g}"}
    cpu = 1.0 if wanted is None else wanted.cpu
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": labels, "annotations": notes},
        "spec": {
            "replicas": ceil(part.cores / cpu - 1e-9),
            "selector": {"matchLabels": {"app.kubernetes.io/name": name}},
            "template": {
                "metadata": {"labels": dict(labels), "annotations": dict(notes)},  # no anchors in YAML
                "spec": {
                    "affinity": {"nodeAffinity": _affinity(part, wanted, archs.get(part.server, ""))},
                    "containers": [_container(part, wanted, cpu, image)],
                },
            },
        },
    }


def _container(part: Assignment, wanted: Demand | None, cpu: float, image: str) -> dict[str, Any]:
    memory = wanted.memory if wanted is not None and wanted.memory else MEMORY
    needs = {"cpu": f"{round(cpu * 1000)}m" if cpu % 1.0 else str(int(cpu)), "memory": str(memory)}
    environment = [{"name": "WATTLOOM_FUNCTION", "value": part.function}]
    if part.variant:
        environment.append({"name": "WATTLOOM_VARIANT", "value": part.variant})
    return {
        "name": "function",
        "image": image.replace("{function}", WORDS.sub("-", part.function.lower()).strip("-")),
        "env": environment,
        "resources": {"requests": needs, "limits": dict(needs)},
    }


def _affinity(part: Assignment, wanted: Demand | None, arch: str) -> dict[str, Any]:
    """The node by its name; labels and architecture too, so that a node of that name that is another is not taken."""
    labels = {} if wanted is None else dict(wanted.labels)
    if arch in ARCHITECTURES:
        labels["kubernetes.io/arch"] = ARCHITECTURES[arch]
    term: dict[str, Any] = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [part.server]}]}
    if labels:
        term["matchExpressions"] = [
            {"key": key, "operator": "In", "values": [value]} for key, value in sorted(labels.items())
        ]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
