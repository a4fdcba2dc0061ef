"""Which machine a node is: what it draws and what it may draw.

Owns the order of the sources: a `MachineProfile` object, the node's annotation, the catalogue by its processor. Where
a source is there but wrong, the node is of unknown power, and the problem is told; the next source is not tried, so
that a mistake cannot make a node look cheap. What is strange and still can be used is told too.
"""

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Final, Literal

import msgspec

from wattloom.bounds import MOST_WATTS, out_of_bounds
from wattloom.errors import InputError
from wattloom.kubernetes.model import objects
from wattloom.kubernetes.model.processors import (
    ARCHITECTURES,
    arch_of,
    by_processor,
    cpus_of,
    unknown_machine,
    unknown_model,
)
from wattloom.kubernetes.model.profile_selectors import ProfileSelectors, read
from wattloom.machines.catalogue import MachineEntry
from wattloom.machines.profile import MachineProfile

ANNOTATION: Final = "wattloom.dev/machine-profile"
MILLIWATTS: Final = "wattloom.dev/milliwatts"
"""The node's extended resource for what it may draw."""
API_VERSION: Final = "wattloom.dev/v1alpha1"


class ProfileSpec(MachineEntry, frozen=True, kw_only=True, omit_defaults=True):
    """The spec of a `MachineProfile`, and the annotation: a machine as the catalogue has it, and for which nodes."""

    cores: int
    arch: str = ""
    """As the node or the catalogue calls it; left out: the node's own. A node of another one is of unknown power."""
    threads: int | None = None
    node_name: str = ""
    selector: objects.LabelSelector | None = None
    """Which nodes it is for, if none is named."""
    cap_w: float | None = None
    """A limit on the draw of each such node."""


def _camel(field: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), field)


AS_WRITTEN: Final = {field: _camel(field) for field in ProfileSpec.__struct_fields__}
"""By our names of fields, those in an object."""
AS_OURS: Final = {written: field for field, written in AS_WRITTEN.items()}


class Found(msgspec.Struct, frozen=True):
    """The machine a node is taken for."""

    machine: MachineProfile
    by: Literal["object", "annotation", "processor", "nothing"]
    cap_w: float | None = None
    problem: str = ""
    """What is wrong with the source there is. Empty: nothing."""
    odd: tuple[str, ...] = ()
    """What can hardly be meant, and is done nevertheless."""


class Profiles:
    """All `MachineProfile` objects, ready to be asked."""

    def __init__(
        self, given: Iterable[objects.MachineProfile] = (), machines: dict[str, MachineProfile] | None = None
    ) -> None:
        """`machines`: those of earlier looks, by what they are. Equal profiles are one machine, named by the first."""
        self.problems: dict[str, str] = {}
        """By name: profiles of which not even the nodes they are for can be read."""
        self._selectors: Final = ProfileSelectors()
        self._machines: Final = machines if machines is not None else {}
        self._known: dict[tuple[str, str, int | None], Found] = {}
        """What was found before, by profile, architecture and number of CPUs: many nodes may be of one."""
        for each in sorted(given, key=lambda one: one.metadata.name):
            try:
                self._selectors.add(each)
            except InputError as error:
                self.problems[each.metadata.name] = str(error)

    def of(self, node: objects.Node) -> Found:
        """The machine of this node."""
        chosen = self._selectors.at(node)
        annotation = node.metadata.annotations.get(ANNOTATION)
        if chosen is not None:
            return self._by_object(node, chosen)
        if annotation is not None:
            return _found(node, annotation.encode(), "", "annotation", f"metadata.annotations[{ANNOTATION}]")
        machine = by_processor(node)
        if machine is not None:
            return Found(machine, "processor")
        told = unknown_model(node)
        return Found(unknown_machine(node), "nothing", odd=(told,) if told else ())

    def _by_object(self, node: objects.Node, chosen: objects.MachineProfile) -> Found:
        name = chosen.metadata.name
        like = name, arch_of(node), cpus_of(node)
        known = self._known.get(like)
        if known is not None:
            return known
        found = _found(node, bytes(chosen.spec), name, "object", f"MachineProfile {name}: spec")
        if not found.problem:
            found = self._known[like] = self._shared(found)
        return found

    def _shared(self, found: Found) -> Found:
        """Thousands of nodes with profiles of their own are few machines to the engine, if they are equal."""
        digest = found.machine.name.rpartition("-")[2]
        known = self._machines.setdefault(digest, found.machine)
        same = msgspec.structs.replace(found.machine, name=known.name) == known
        return msgspec.structs.replace(found, machine=known) if same else found


def milliwatts(found: Found) -> int | None:
    """What the node may draw: its cap, else its TDP, else its full draw. None: not known."""
    machine = found.machine
    full = machine.watts[-1][1] if machine.watts else None
    limits = [watts for watts in (found.cap_w, machine.tdp_w, full) if watts is not None]
    return round(limits[0] * 1_000) if limits else None


def published(
    machine: MachineProfile, *, node_name: str = "", labels: dict[str, str] | None = None
) -> dict[str, object]:
    """A `MachineProfile` object of a machine that was measured here, for one node or for nodes with these labels."""
    spec = ProfileSpec(
        cores=machine.cores,
        arch=machine.arch,
        node_name=node_name,
        selector=objects.LabelSelector(match_labels=labels) if labels else None,
        threads=machine.threads,
        cores_watts=list(machine.watts) or None,
        **machine.figures(),
    )
    name = node_name or machine.name
    body = {"apiVersion": API_VERSION, "kind": "MachineProfile", "metadata": {"name": name}}
    return {**body, "spec": {AS_WRITTEN[field]: value for field, value in msgspec.to_builtins(spec).items()}}


def read_spec(text: bytes) -> ProfileSpec:
    """A spec as it stands in an object. Ours are no names of fields there."""
    given = read(text, dict[str, msgspec.Raw])
    for field in given:
        if field not in AS_OURS:
            raise InputError("", f"Object contains unknown field `{field}`")
    return read(msgspec.json.encode({AS_OURS[field]: value for field, value in given.items()}), ProfileSpec)


def _found(node: objects.Node, text: bytes, name: str, by: Literal["object", "annotation"], field: str) -> Found:
    try:
        found = _machine(node, read_spec(text), name, by)
    except InputError as error:
        return Found(unknown_machine(node), by, problem=_as_written(f"{field}{error.field}: {error.problem}", field))
    odd = tuple(f"{field}{each}" for each in _odd(found, cpus_of(node)))
    return msgspec.structs.replace(found, odd=odd) if odd else found


def _as_written(words: str, field: str) -> str:
    """`.cores_watts` is `.coresWatts` in an object. What comes before, in `field`, was not written by us."""
    return field + re.sub(r"\b[a-z]+(_[a-z]+)+\b", lambda each: AS_WRITTEN.get(each[0], each[0]), words[len(field) :])


def _odd(found: Found, cpus: int | None) -> list[str]:
    """What can hardly be meant, by field. The same words for all nodes of that size, so that they are said once."""
    machine, odd = found.machine, []
    if not machine.watts:
        odd.append(": has neither coresWatts nor loadWatts, so the power of its nodes is unknown")
    idle_w = machine.watts[0][1] if machine.watts else 0.0
    for name, limit_w in (("capW", found.cap_w), ("tdpW", machine.tdp_w)):
        if limit_w is not None and limit_w < idle_w:
            odd.append(f".{name}: {limit_w:g} W are less than the {idle_w:g} W of an idle node")
    if cpus is not None and cpus < machine.cores:
        odd.append(f".cores: {machine.cores} are more than the {cpus} CPUs of a node")
    if cpus is not None and cpus > machine.threads:
        odd.append(f".threads: {machine.threads} are fewer than the {cpus} CPUs of a node")
    return odd


def _machine(node: objects.Node, spec: ProfileSpec, name: str, by: Literal["object", "annotation"]) -> Found:
    """Its name carries a digest of what it says: a profile that changed is another machine to the engine."""
    arch = ARCHITECTURES.get(spec.arch, spec.arch) or arch_of(node)
    if arch != arch_of(node):
        raise InputError(".arch", f"is {spec.arch}, but the node says that it is {arch_of(node)}")
    if spec.cap_w is not None and not 0.0 < spec.cap_w <= MOST_WATTS:
        raise InputError(".cap_w", out_of_bounds(spec.cap_w, MOST_WATTS, " W") or "must be positive, not 0")
    said = {field: getattr(spec, field) for field in MachineEntry.__struct_fields__}
    entry = MachineEntry(**{**said, "arch": arch})
    digest = sha256(msgspec.json.encode(entry)).hexdigest()[:6]
    machine = entry.profile(f"{name or 'annotated'}-{digest}", "")
    if machine.watts and machine.watts[-1][0] < machine.cores:
        ends = f"ends at {machine.watts[-1][0]:g} of {machine.cores} cores"
        raise InputError(".cores_watts", f"{ends}: a curve goes from 0 to all of them")
    return Found(machine, by, spec.cap_w)
