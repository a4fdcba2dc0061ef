"""Claimed volumes: where they let a pod go, and which of them we leave to kube-scheduler."""

from typing import Any

import msgspec
import pytest

from wattloom.kubernetes.model.objects import Pod
from wattloom.kubernetes.model.storage_cache import StorageCache
from wattloom.kubernetes.model.storage_objects import (
    CSIDriver,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from wattloom.kubernetes.model.unsupported import Unsupported
from wattloom.kubernetes.model.volumes import volume_terms
from wattloom.workload.constraints import Expression, NodeTerm

BOUND = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
ZONE, FORMER = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"


def storage(
    volume: dict[str, Any] | None = None, claim: dict[str, Any] | None = None, labels: dict[str, str] | None = None
) -> StorageCache:
    known = StorageCache()
    metadata = {"name": "c", "namespace": "shop", **BOUND, **(claim or {}).pop("metadata", {})}
    body = {"metadata": metadata, "spec": {"volumeName": "v", **(claim or {})}}
    known.claims["shop", "c"] = msgspec.convert(body, PersistentVolumeClaim)
    body = {"metadata": {"name": "v", "labels": labels or {}}, "spec": volume or {}}
    known.volumes["v"] = msgspec.convert(body, PersistentVolume)
    return known


def pod(*volumes: dict[str, Any]) -> Pod:
    claimed = {"name": "d", "persistentVolumeClaim": {"claimName": "c"}}
    meta = {"name": "p", "namespace": "shop", "uid": "u1"}
    return msgspec.convert({"metadata": meta, "spec": {"volumes": list(volumes) or [claimed]}}, Pod)


def refused(known: StorageCache, given: Pod | None = None) -> Unsupported:
    found = volume_terms(given or pod(), known)
    assert isinstance(found, Unsupported)
    return found


def found(known: StorageCache) -> tuple[tuple[NodeTerm, ...], ...]:
    terms = volume_terms(pod(), known)
    assert not isinstance(terms, Unsupported)
    return terms


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": list(terms)}}}


DISK = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
NAME = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}


def test_a_bound_volume_goes_where_its_node_affinity_lets_it() -> None:
    assert volume_terms(pod(), storage(affinity(DISK))) == ((NodeTerm((Expression("disk", "In", ("ssd",)),)),),)
    assert volume_terms(pod(), storage()) == ()


def test_kube_scheduler_does_not_look_at_names_in_a_volumes_affinity_and_neither_do_we() -> None:
    assert volume_terms(pod(), storage(affinity({**DISK, **NAME}))) == volume_terms(pod(), storage(affinity(DISK)))
    assert volume_terms(pod(), storage(affinity(DISK, NAME))) == ()


def test_zones_of_a_volume_bind_nodes_that_have_zones_at_all() -> None:
    (terms,) = found(storage(labels={ZONE: "a__b"}))
    assert terms[0] == NodeTerm((Expression(ZONE, "In", ("a", "b")),))
    assert {each.key for each in terms[1].labels} >= {ZONE, FORMER}
    assert {each.operator for each in terms[1].labels} == {"DoesNotExist"}


def test_the_former_name_of_the_zone_is_looked_for_under_the_present_one_too() -> None:
    (terms,) = found(storage(labels={FORMER: "a"}))
    assert NodeTerm((Expression(FORMER, "DoesNotExist"), Expression(ZONE, "In", ("a",)))) in terms


def test_zones_that_cannot_be_read_are_passed_over() -> None:
    assert volume_terms(pod(), storage(labels={ZONE: "a__"})) == ()


@pytest.mark.parametrize(
    ("known", "word"),
    [
        (StorageCache(), "does not exist yet"),
        (storage(claim={"volumeName": ""}), "not bound yet"),
        (storage(claim={"metadata": {"annotations": {}}}), "not bound yet"),
        (storage(claim={"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), "being deleted"),
    ],
)
def test_a_claim_that_is_not_ready_is_waited_for(known: StorageCache, word: str) -> None:
    wrong = refused(known)
    assert wrong.passing
    assert word in wrong.message


def test_a_claim_whose_volume_is_gone_is_waited_for() -> None:
    known = storage()
    known.volumes.clear()
    assert "does not exist" in refused(known).message


def test_a_claim_that_waits_for_its_pod_is_left_to_kube_scheduler() -> None:
    known = storage(claim={"volumeName": "", "storageClassName": "late"})
    body = {"metadata": {"name": "late"}, "volumeBindingMode": "WaitForFirstConsumer"}
    known.classes["late"] = msgspec.convert(body, StorageClass)
    wrong = refused(known)
    assert not wrong.passing
    assert "WaitForFirstConsumer" in wrong.message


def test_claims_for_one_pod_alone_and_old_kinds_of_volumes_are_left_to_kube_scheduler() -> None:
    assert "ReadWriteOncePod" in refused(storage(claim={"accessModes": ["ReadWriteOncePod"]})).message
    assert "awsElasticBlockStore" in refused(storage({"awsElasticBlockStore": {"volumeID": "x"}})).message


def test_a_driver_with_a_limit_anywhere_or_a_say_about_nodes_is_left_to_kube_scheduler() -> None:
    known = storage({"csi": {"driver": "disk.example.com"}})
    assert volume_terms(pod(), known) == ()
    driver = {"metadata": {"name": "disk.example.com"}, "spec": {"preventPodSchedulingIfMissing": True}}
    known.csi_drivers["disk.example.com"] = msgspec.convert(driver, CSIDriver)
    assert "nodes without it" in refused(known).message
    drivers = [{"name": "disk.example.com", "allocatable": {"count": 25}}]
    known.csi_nodes["n1"] = msgspec.convert({"metadata": {"name": "n1"}, "spec": {"drivers": drivers}}, CSINode)
    assert "limits" in refused(known).message


def test_a_kubelet_without_drivers_writes_null_and_limits_nothing() -> None:
    known = storage({"csi": {"driver": "disk.example.com"}})
    known.csi_nodes["n1"] = msgspec.json.decode(b'{"metadata":{"name":"n1"},"spec":{"drivers":null}}', type=CSINode)
    assert volume_terms(pod(), known) == ()


def test_the_claim_of_an_ephemeral_volume_must_be_the_pods_own() -> None:
    ephemeral = pod({"name": "scratch", "ephemeral": {}})
    known = storage(affinity(DISK), labels={ZONE: "a"})
    known.claims["shop", "p-scratch"] = known.claims["shop", "c"]
    assert "not made for this pod" in refused(known, ephemeral).message
    owner = {"metadata": {"ownerReferences": [{"kind": "Pod", "name": "p", "uid": "u1", "controller": True}]}}
    known.claims["shop", "p-scratch"] = storage(claim=owner).claims["shop", "c"]
    assert volume_terms(ephemeral, known) == ((NodeTerm((Expression("disk", "In", ("ssd",)),)),),)
