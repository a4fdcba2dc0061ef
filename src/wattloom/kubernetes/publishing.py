"""A machine's profile, published for a node of the cluster: as a `MachineProfile` object, or as its annotation.

Owns these two writes and what can be said against them beforehand. What stands in a profile is `profiles`' business.
"""

from typing import Any, Final

import msgspec

from wattloom.cluster.profile import MachineProfile
from wattloom.errors import InputError, WattloomError
from wattloom.kubernetes import kinds
from wattloom.kubernetes.api import Api
from wattloom.kubernetes.errors import NotFound
from wattloom.kubernetes.objects import Node
from wattloom.kubernetes.processors import unknown_machine
from wattloom.kubernetes.profiles import ANNOTATION, published

OWNER: Final = "wattloom"
"""Who the API server notes as the writer."""


class Published(msgspec.Struct, frozen=True):
    """Where a profile is now, and what its reader should know."""

    node: str
    where: str
    warning: str
    """Empty: nothing is odd."""
    spec: dict[str, Any]


async def publish(
    api: Api, machine: MachineProfile, node: str, *, as_annotation: bool = False, cap_w: float | None = None
) -> Published:
    """Write the profile for this node, over what was there before."""
    if cap_w is not None and not 0.0 < cap_w < float("inf"):
        raise InputError("cap", f"must be a positive number of watts, not {cap_w}")
    found = await _node(api, node)
    body: dict[str, Any] = published(machine, node_name=node)
    spec: dict[str, Any] = body["spec"]
    if cap_w is not None:
        spec["capW"] = cap_w
    if as_annotation:
        del spec["nodeName"]
        text = msgspec.json.encode(spec).decode()
        await api.patch(kinds.NODES, {"metadata": {"annotations": {ANNOTATION: text}}}, node)
        where = f"annotation {ANNOTATION} of node {node}"
    else:
        await _object(api, body, node)
        where = f"MachineProfile {node}"
    return Published(node, where, _odd(found, machine), spec)


async def _node(api: Api, name: str) -> Node:
    try:
        return await api.get(kinds.NODES, name)
    except NotFound:
        raise InputError("node", f"there is no node {name!r} in this cluster: `kubectl get nodes`") from None


async def _object(api: Api, body: dict[str, Any], name: str) -> None:
    try:
        await api.patch(kinds.PROFILES, body, name, how="apply", owner=OWNER)
    except NotFound:
        raise WattloomError(
            "MachineProfiles are not known to this cluster: `wattloom kubernetes manifests --what crd`, applied,"
            " makes them known, and --as-annotation does without them"
        ) from None


def _odd(node: Node, machine: MachineProfile) -> str:
    there = unknown_machine(node)
    if there.arch != machine.arch:
        return f"the profile is of {machine.arch}, the node of {there.arch}"
    if there.threads > machine.threads:
        return f"the node has {there.threads} CPUs, the machine that was profiled {machine.threads}"
    return ""
