"""A machine's profile, published for a node of the cluster: as a `MachineProfile` object, or as its annotation.

Owns these two writes and what can be said against them beforehand. What stands in a profile is `profiles`' business.
"""

from contextlib import suppress
from typing import Any, Final

import msgspec

from wattloom.bounds import MOST_WATTS
from wattloom.errors import InputError, WattloomError
from wattloom.kubernetes.client.api import Api
from wattloom.kubernetes.client.errors import Forbidden, NotFound
from wattloom.kubernetes.model import kinds, objects
from wattloom.kubernetes.model.processors import arch_of, cpus_of
from wattloom.kubernetes.model.profile_selectors import ProfileSelectors, named_node
from wattloom.kubernetes.model.profiles import ANNOTATION, published
from wattloom.machines.profile import MachineProfile

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
    if cap_w is not None and not 0.0 < cap_w <= MOST_WATTS:
        raise InputError("cap", f"must be a positive number of watts, at most {MOST_WATTS:g}, not {cap_w}")
    found = await _node(api, node)
    body: dict[str, Any] = published(machine, node_name=node)
    spec: dict[str, Any] = body["spec"]
    if cap_w is not None:
        spec["capW"] = cap_w
    if as_annotation:
        del spec["nodeName"]
        text = msgspec.json.encode(spec).decode()
        await api.patch(kinds.NODES, {"metadata": {"annotations": {ANNOTATION: text}}}, node)
        await _remove_object(api, found)
        where = f"annotation {ANNOTATION} of node {node}"
    else:
        await _object(api, body, node)
        where = f"MachineProfile {node}"
    other = await _counting(api, found)
    odd = _odd(found, machine, cap_w)
    if other is not None and (as_annotation or other.metadata.name != node):
        odd.append(f"MachineProfile {other.metadata.name} is for this node too and counts instead")
    return Published(node, where, "; ".join(odd), spec)


async def _node(api: Api, name: str) -> objects.Node:
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


async def _remove_object(api: Api, node: objects.Node) -> None:
    """The one that we publish for this node. One with its name that is for others too is not it any more."""
    name = node.metadata.name
    with suppress(NotFound, Forbidden, InputError):  # if it is left it counts, which is told
        there = await api.get(kinds.PROFILES, name)
        if named_node(there) == name:
            await api.delete(kinds.PROFILES, name, uid=there.metadata.uid)


async def _counting(api: Api, node: objects.Node) -> objects.MachineProfile | None:
    """The object that counts for the node. None: there is none, or we may not see them."""
    try:
        there = await api.list(kinds.PROFILES)
    except (NotFound, Forbidden):
        return None
    selectors = ProfileSelectors()
    for each in sorted(there.items, key=lambda one: one.metadata.name):
        with suppress(InputError):  # nobody's, as the scheduler says
            selectors.add(each)
    return selectors.at(node)


def _odd(node: objects.Node, machine: MachineProfile, cap_w: float | None) -> list[str]:
    arch, cpus, odd = arch_of(node), cpus_of(node), []
    if arch != machine.arch:
        odd.append(f"the profile is of {machine.arch}, the node of {arch}")
    if cpus is not None and not machine.cores <= cpus <= machine.threads:
        size = f"{machine.cores} cores with {machine.threads} threads"
        odd.append(f"the node has {cpus} CPUs, the machine that was profiled {size}")
    if machine.provenance != "measured":
        odd.append(f"its watts are {machine.provenance}, not measured")
    if cap_w is not None and machine.watts and cap_w < machine.watts[0][1]:
        odd.append(f"the cap of {cap_w:g} W is less than the {round(machine.watts[0][1], 1):g} W that it draws idle")
    return odd
