"""What a pod asks for, as kube-scheduler counts it."""

from typing import Any

import msgspec
import pytest

from wattloom.errors import InputError
from wattloom.kubernetes.model.objects import Pod
from wattloom.kubernetes.model.requests import Asked, asked_by, held_by


def container(name: str = "main", *, always: bool = False, **amounts: str) -> dict[str, Any]:
    requests = {key.replace("_", "-"): amount for key, amount in amounts.items()}
    return {"name": name, "resources": {"requests": requests}, **({"restartPolicy": "Always"} if always else {})}


def pod(*containers: dict[str, Any], status: dict[str, Any] | None = None, **spec: Any) -> Pod:
    body = {"metadata": {"name": "p"}, "spec": {"containers": list(containers), **spec}, "status": status or {}}
    return msgspec.convert(body, Pod)


def test_containers_are_added_up_before_anything_is_rounded() -> None:
    asked = asked_by(pod(container(cpu="100.5m", memory="0.5"), container(cpu="100.5m", memory="0.5")))
    assert asked == Asked(201, 1, (("pods", 1),))


def test_a_pod_without_requests_is_one_pod_all_the_same() -> None:
    assert asked_by(pod(container())) == Asked(0, 0, (("pods", 1),))


def test_the_largest_init_container_counts_if_it_is_more_than_all_that_follow() -> None:
    inits = [container("a", cpu="2", memory="1Gi"), container("b", cpu="1", memory="5Gi")]
    asked = asked_by(pod(container(cpu="1500m", memory="2Gi"), initContainers=inits))
    assert (asked.cpu, asked.memory) == (2_000, 5 * 2**30)


def test_sidecars_stay_and_are_there_when_later_init_containers_start() -> None:
    inits = [
        container("early", cpu="3"),
        container("side", always=True, cpu="1"),
        container("late", cpu="2500m"),
    ]
    assert asked_by(pod(container(cpu="1"), initContainers=inits)).cpu == 3_500
    assert asked_by(pod(container(cpu="3"), initContainers=inits)).cpu == 4_000


def test_overhead_comes_on_top() -> None:
    asked = asked_by(pod(container(cpu="1"), overhead={"cpu": "250m", "memory": "120Mi"}))
    assert (asked.cpu, asked.memory) == (1_250, 120 * 2**20)


def test_what_the_pod_asks_for_as_a_whole_stands_in_place_of_the_sum() -> None:
    whole = {"requests": {"cpu": "4"}}
    asked = asked_by(pod(container(cpu="1", memory="1Gi"), resources=whole, overhead={"cpu": "1"}))
    assert (asked.cpu, asked.memory) == (5_000, 2**30)


def test_other_counted_resources_are_kept_by_name_and_unknown_ones_are_not() -> None:
    amounts = {"ephemeral-storage": "1Gi", "hugepages-2Mi": "4Mi", "example.com/gpu": "2", "storage": "9", "a.b/c": "0"}
    asked = asked_by(pod({"name": "main", "resources": {"requests": amounts}}))
    assert asked.resources == (
        ("ephemeral-storage", 2**30),
        ("example.com/gpu", 2),
        ("hugepages-2Mi", 2**22),
        ("pods", 1),
    )


def test_a_pod_that_is_being_resized_takes_the_most_of_wanted_granted_and_in_force() -> None:
    shrinking = {
        "containerStatuses": [
            {"name": "main", "allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "3"}}}
        ]
    }
    assert held_by(pod(container(cpu="1"), status=shrinking)).cpu == 3_000
    growing = {
        "containerStatuses": [
            {"name": "main", "allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "1"}}}
        ]
    }
    assert held_by(pod(container(cpu="4"), status=growing)).cpu == 4_000


def test_a_resize_that_the_node_cannot_do_does_not_count() -> None:
    status = {
        "containerStatuses": [
            {"name": "main", "allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "1"}}}
        ],
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
    }
    assert held_by(pod(container(cpu="40"), status=status)).cpu == 1_000


def test_a_pod_resized_as_a_whole_takes_the_most_as_well() -> None:
    status = {"resources": {"requests": {"cpu": "6"}}, "allocatedResources": {"cpu": "5"}}
    assert held_by(pod(container(cpu="1"), resources={"requests": {"cpu": "4"}}, status=status)).cpu == 6_000


def test_without_a_word_in_the_status_a_placed_pod_takes_what_it_asked_for() -> None:
    asking = pod(container(cpu="1"), status={"phase": "Running", "containerStatuses": [{"name": "main"}]})
    assert held_by(asking) == asked_by(asking)


@pytest.mark.parametrize("amounts", [{"cpu": "1e310"}, {"memory": "9" * 5_000}, {"example.com/gpu": "1e20"}])
def test_more_than_can_be_counted_is_refused_on_the_way_and_on_a_node(amounts: dict[str, str]) -> None:
    given = pod({"name": "main", "resources": {"requests": amounts}})
    for read in (asked_by, held_by):
        with pytest.raises(InputError, match=r"more than can be counted|more than 1,000 digits"):
            read(given)
