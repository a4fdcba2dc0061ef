"""Which machine a node is: what it draws and what it may draw.

Owns the order of the sources: a `MachineProfile` object, the node's annotation, the catalogue by its processor. Where
a source is there but wrong, the node is of unknown power, and the problem is told; the next source is not tried, so
that a mistake cannot make a node look cheap.
"""

from collections.abc import Iterable
from hashlib import sha256
from typing import Final, Literal, TypeVar

import msgspec

from wattloom.cluster.catalogue import MachineEntry
from wattloom.cluster.matching import selects
from wattloom.cluster.profile import MachineProfile
from wattloom.energy.forecast import Provenance
from wattloom.errors import InputError
from wattloom.kubernetes import objects
from wattloom.kubernetes.processors import by_processor, unknown_machine
from wattloom.kubernetes.selectors import expressions

ANNOTATION: Final = "wattloom.dev/machine-profile"
MILLIWATTS: Final = "wattloom.dev/milliwatts"
"""The node's extended resource for what it may draw."""
API_VERSION: Final = "wattloom.dev/v1alpha1"
Read = TypeVar("Read")


class ProfileSpec(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """The spec of a `MachineProfile`, and the annotation: a machine as the catalogue has it, and for which nodes."""

    cores: int
    arch: str = ""
    """Left out: the node's own."""
    node_name: str = ""
    selector: objects.LabelSelector | None = None
    """Which nodes it is for, if none is named."""
    threads: int | None = None
    memory_gib: float = 0.0
    cores_watts: list[tuple[float, float]] | None = None
    load_watts: list[float] | None = None
    smt_slowdown: float = 1.5
    speed: float = 1.0
    tdp_w: float | None = None
    sleep_w: float | None = None
    wake_s: float = 0.0
    wake_j: float = 0.0
    provenance: Provenance = "estimated"
    quantity: str = "wall"
    source: str = ""
    cap_w: float | None = None
    """A limit on the draw of each such node."""


class _Aim(msgspec.Struct, frozen=True, rename="camel"):
    """Which nodes a profile is for, readable even where the rest is not."""

    node_name: str = ""
    selector: objects.LabelSelector | None = None


class Found(msgspec.Struct, frozen=True):
    """The machine a node is taken for."""

    machine: MachineProfile
    by: Literal["object", "annotation", "processor", "nothing"]
    cap_w: float | None = None
    problem: str = ""
    """What is wrong with the source there is. Empty: nothing."""


class Profiles:
    """All `MachineProfile` objects, ready to be asked."""

    def __init__(self, given: Iterable[objects.MachineProfile] = ()) -> None:
        self.problems: dict[str, str] = {}
        """By name: profiles of which not even the nodes they are for can be read."""
        self._aims: list[tuple[_Aim, objects.MachineProfile]] = []
        for each in sorted(given, key=lambda one: one.metadata.name):
            try:
                self._aims.append((_read(bytes(each.spec), _Aim), each))
            except InputError as error:
                self.problems[each.metadata.name] = str(error)

    def of(self, node: objects.Node) -> Found:
        """The machine of this node."""
        chosen = self._chosen(node)
        annotation = node.metadata.annotations.get(ANNOTATION)
        if chosen is not None:
            name = chosen.metadata.name
            return _found(node, bytes(chosen.spec), name, "object", f"MachineProfile {name}: spec")
        if annotation is not None:
            return _found(node, annotation.encode(), "", "annotation", f"metadata.annotations[{ANNOTATION}]")
        machine = by_processor(node)
        return Found(unknown_machine(node), "nothing") if machine is None else Found(machine, "processor")

    def _chosen(self, node: objects.Node) -> objects.MachineProfile | None:
        """The one that names the node, else the one whose selector has the most conditions, else the first by name."""
        best: objects.MachineProfile | None = None
        most = 0
        for aim, each in self._aims:
            if aim.node_name:
                if aim.node_name == node.metadata.name:
                    return each
                continue
            wanted = expressions(aim.selector)
            if wanted and len(wanted) > most and selects(wanted, node.metadata.labels):
                best, most = each, len(wanted)
        return best


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
        smt_slowdown=machine.smt_slowdown,
        speed=machine.speed,
        tdp_w=machine.tdp_w,
        sleep_w=machine.sleep_w,
        wake_s=machine.wake_s,
        wake_j=machine.wake_j,
        provenance=machine.provenance,
        quantity=machine.quantity,
        source=machine.source,
    )
    name = node_name or machine.name
    body = {"apiVersion": API_VERSION, "kind": "MachineProfile", "metadata": {"name": name}}
    return {**body, "spec": msgspec.to_builtins(spec)}


def _found(node: objects.Node, text: bytes, name: str, by: Literal["object", "annotation"], field: str) -> Found:
    try:
        return _machine(node, _read(text, ProfileSpec), name, by)
    except InputError as error:
        path = f"{field}{_as_written(error.field)}"
        return Found(unknown_machine(node), by, problem=f"{path}: {error.problem}")


def _as_written(field: str) -> str:
    """`.cores_watts` is `.coresWatts` in an object."""
    first, *rest = field.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _machine(node: objects.Node, spec: ProfileSpec, name: str, by: Literal["object", "annotation"]) -> Found:
    """Its name carries a digest of what it says: a profile that changed is another machine to the engine."""
    if spec.cap_w is not None and not 0.0 < spec.cap_w < float("inf"):
        raise InputError(".cap_w", f"must be positive, not {spec.cap_w}")
    bare = unknown_machine(node)
    entry = MachineEntry(
        arch=spec.arch or bare.arch,
        cores=spec.cores,
        threads=spec.threads,
        memory_gib=spec.memory_gib,
        cores_watts=spec.cores_watts,
        load_watts=spec.load_watts,
        smt_slowdown=spec.smt_slowdown,
        speed=spec.speed,
        tdp_w=spec.tdp_w,
        sleep_w=spec.sleep_w,
        wake_s=spec.wake_s,
        wake_j=spec.wake_j,
        provenance=spec.provenance,
        quantity=spec.quantity,
        source=spec.source,
    )
    digest = sha256(msgspec.json.encode(entry)).hexdigest()[:6]
    return Found(entry.profile(f"{name or 'annotated'}-{digest}", ""), by, spec.cap_w)


def _read(text: bytes, form: type[Read]) -> Read:
    try:
        return msgspec.json.decode(text, type=form)
    except msgspec.DecodeError as error:
        raise InputError("", str(error)) from None
