"""Where a pod's claimed volumes let it go.

Owns what bound volumes say: their node affinity and the zones in their labels. Claims that are not bound yet, that
only one pod may use, or whose driver limits or forbids nodes are told as unsupported.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from wattloom.kubernetes.model.objects import Pod, Volume
from wattloom.kubernetes.model.selectors import node_terms
from wattloom.kubernetes.model.storage_cache import StorageCache
from wattloom.kubernetes.model.storage_objects import PersistentVolume, PersistentVolumeClaim
from wattloom.kubernetes.model.unsupported import Unsupported
from wattloom.workload.constraints import Expression, NodeTerm

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
FORMER: Final = {"failure-domain.beta.kubernetes.io/zone": ZONE, "failure-domain.beta.kubernetes.io/region": REGION}
"""Names that zones and regions had before, and still have on old volumes and nodes."""
ZONE_LABELS: Final = (*FORMER, ZONE, REGION)
_NO_ZONE: Final = NodeTerm(tuple(Expression(key, "DoesNotExist") for key in sorted(ZONE_LABELS)))
"""A node without any zone or region takes volumes of every zone."""
Terms = tuple[NodeTerm, ...]


def volume_terms(pod: Pod, storage: StorageCache) -> tuple[Terms, ...] | Unsupported:
    """For each volume that restricts: one of the terms must hold."""
    found: set[Terms] = set()
    for number, volume in enumerate(pod.spec.volumes):
        if volume.persistent_volume_claim is None and volume.ephemeral is None:
            continue
        field = f"spec.volumes[{number}]"
        bound = _bound(pod, volume, storage, field)
        if isinstance(bound, Unsupported):
            return bound
        wrong = _driver(bound, storage, field)
        if wrong is not None:
            return wrong
        found.update(_node_affinity(bound))
        if volume.persistent_volume_claim is not None:  # kube-scheduler does not ask for the zone of ephemeral ones
            found.update(_zones(bound.metadata.labels))
    return tuple(sorted(found, key=repr))


def _bound(pod: Pod, volume: Volume, storage: StorageCache, field: str) -> PersistentVolume | Unsupported:
    """The persistent volume behind a volume of the pod."""
    source = volume.persistent_volume_claim
    name = source.claim_name if source is not None else f"{pod.metadata.name}-{volume.name}"
    claim = storage.claims.get((pod.metadata.namespace, name))
    if claim is None:
        return Unsupported(field, f"claim {name} does not exist yet", passing=True)
    if source is None and not _owned(claim, pod):
        return Unsupported(field, f"claim {name} was not made for this pod", passing=True)
    return _ready(claim) or _volume_of(claim, storage, field)


def _volume_of(claim: PersistentVolumeClaim, storage: StorageCache, field: str) -> PersistentVolume | Unsupported:
    name = claim.metadata.name
    if not claim.spec.volume_name or BIND_COMPLETED not in claim.metadata.annotations:
        return _unbound(claim, storage, field)
    if "ReadWriteOncePod" in claim.spec.access_modes:
        return Unsupported(field, f"claim {name} is for one pod alone (ReadWriteOncePod), which is not looked at")
    volume = storage.volumes.get(claim.spec.volume_name)
    if volume is None:
        missing = f"claim {name} is bound to {claim.spec.volume_name}, which does not exist"
        return Unsupported(field, missing, passing=True)
    return volume


def _ready(claim: PersistentVolumeClaim) -> Unsupported | None:
    name = claim.metadata.name
    if claim.status.phase == "Lost":
        return Unsupported("spec.volumes", f"claim {name} has lost its volume", passing=True)
    if claim.metadata.deletion_timestamp is not None:
        return Unsupported("spec.volumes", f"claim {name} is being deleted", passing=True)
    return None


def _unbound(claim: PersistentVolumeClaim, storage: StorageCache, field: str) -> Unsupported:
    storage_class = storage.classes.get(claim.spec.storage_class_name or "")
    waits = storage_class is not None and storage_class.volume_binding_mode == "WaitForFirstConsumer"
    if waits and not claim.spec.volume_name:
        why = "is bound only when its pod has a node (WaitForFirstConsumer), which is not implemented"
        return Unsupported(field, f"claim {claim.metadata.name} {why}")
    return Unsupported(field, f"claim {claim.metadata.name} is not bound yet", passing=True)


def _owned(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    return any(owner.controller and owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references)


def _driver(volume: PersistentVolume, storage: StorageCache, field: str) -> Unsupported | None:
    """What the volume's storage would have kube-scheduler look at, beyond where it is."""
    kind = volume.spec.in_tree()
    if kind:
        return Unsupported(
            field, f"volume {volume.metadata.name} is of kind {kind}, whose translation is not implemented"
        )
    driver = volume.spec.csi.driver if volume.spec.csi is not None else ""
    if not driver:
        return None
    if storage.limits(driver):
        return Unsupported(field, f"driver {driver} limits how many volumes a node has, which is not counted")
    known = storage.csi_drivers.get(driver)
    if known is not None and known.spec.prevent_pod_scheduling_if_missing:
        return Unsupported(field, f"driver {driver} keeps pods from nodes without it, which is not looked at")
    return None


def _node_affinity(volume: PersistentVolume) -> Iterator[Terms]:
    """kube-scheduler looks only at the labels of nodes here, so that a term about names alone holds everywhere."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return
    for term, read in zip(affinity.required.node_selector_terms, node_terms(affinity.required), strict=True):
        if term.match_fields and not term.match_expressions and read.fields:
            return
    yield tuple(NodeTerm(read.labels) for read in node_terms(affinity.required))


def _zones(labels: Mapping[str, str]) -> Iterator[Terms]:
    for key in ZONE_LABELS:
        if key in labels:
            zones = tuple(sorted({zone.strip() for zone in labels[key].split("__")}))
            if "" not in zones:  # kube-scheduler passes over what it cannot read
                yield tuple(_in_zones(key, zones))


def _in_zones(key: str, zones: tuple[str, ...]) -> Iterator[NodeTerm]:
    yield NodeTerm((Expression(key, "In", zones),))
    if key in FORMER:
        yield NodeTerm((Expression(key, "DoesNotExist"), Expression(FORMER[key], "In", zones)))
    yield _NO_ZONE
