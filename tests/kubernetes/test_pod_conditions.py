"""The condition on pods that wait: as kube-scheduler writes it, and never on a pod that is bound."""

import time
from typing import Any

from tests.beds.kubernetes import Api, eventually
from tests.kubernetes.running import Running, nodes, nodes_of, pods, told


def condition(api: Api, space: str, pod: str) -> dict[str, Any]:
    found = api.get(f"/api/v1/namespaces/{space}/pods/{pod}")["status"].get("conditions", [])
    return next((each for each in found if each["type"] == "PodScheduled"), {})


def test_a_pod_that_waits_has_the_words_of_its_event_as_its_condition(running: Running, api: Api, space: str) -> None:
    nodes(api, "n1", cpu="1")
    pods(api, space, "big", cpu="2")
    event = told(api, space, "big", "FailedScheduling", "Insufficient cpu")
    has = eventually(lambda: condition(api, space, "big"))
    assert (has["status"], has["reason"], has["message"]) == ("False", "Unschedulable", event)
    assert has["lastTransitionTime"]


def test_other_words_replace_it_and_the_time_of_its_transition_stays(running: Running, api: Api, space: str) -> None:
    pods(api, space, "big", cpu="2")
    first = eventually(lambda: condition(api, space, "big"))
    assert first["message"] == "no nodes available to schedule pods"
    time.sleep(1.1)
    nodes(api, "n1", cpu="1")
    eventually(lambda: "Insufficient cpu" in condition(api, space, "big")["message"])
    assert condition(api, space, "big")["lastTransitionTime"] == first["lastTransitionTime"]


def test_it_is_written_once_for_the_same_words(running: Running, api: Api, space: str) -> None:
    nodes(api, "n1", cpu="1")
    pods(api, space, "big", cpu="2")
    eventually(lambda: condition(api, space, "big"))
    time.sleep(2.5)
    assert running.scheduler.conditions.written == 1


def test_a_pod_that_is_bound_after_all_is_scheduled_by_its_condition_too(
    running: Running, api: Api, space: str
) -> None:
    pods(api, space, "one")
    eventually(lambda: condition(api, space, "one"))
    nodes(api, "n1")
    eventually(lambda: nodes_of(api, space)["one"])
    assert condition(api, space, "one")["status"] == "True"


def test_a_condition_that_comes_after_the_binding_is_not_written(running: Running, api: Api, space: str) -> None:
    """The pod is bound by somebody else while the condition is on its way: it is for a state that is no more."""
    conditions = running.scheduler.conditions
    send = conditions._send
    sent: list[Any] = []

    async def after_a_binding(pod: Any, wanted: Any) -> None:
        if not sent:
            sent.append(pod)
            body = {"metadata": {"name": "one"}, "target": {"kind": "Node", "name": "elsewhere"}}
            api.post(f"/api/v1/namespaces/{space}/pods/one/binding", body)
        await send(pod, wanted)

    running.call(lambda: setattr(conditions, "_send", after_a_binding))
    pods(api, space, "one")
    eventually(lambda: sent and nodes_of(api, space)["one"])
    time.sleep(1.0)
    assert condition(api, space, "one")["status"] == "True"
    assert conditions.written == 0


def test_gated_pods_are_left_alone(running: Running, api: Api, space: str) -> None:
    pods(api, space, "gated", spec={"schedulingGates": [{"name": "example.com/quota"}]})
    pods(api, space, "free")
    eventually(lambda: condition(api, space, "free"))
    assert condition(api, space, "gated")["reason"] == "SchedulingGated"
    api.patch(f"/api/v1/namespaces/{space}/pods/gated", {"spec": {"schedulingGates": None}})
    eventually(lambda: condition(api, space, "gated")["reason"] == "Unschedulable")


def test_what_another_scheduler_is_needed_for_asks_for_no_more_nodes(running: Running, api: Api, space: str) -> None:
    nodes(api, "n1")
    claims = {"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}
    late = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "late"}}]}
    pods(api, space, "odd", spec=claims)
    pods(api, space, "late", spec=late)
    has = eventually(lambda: condition(api, space, "odd"))
    assert has["reason"] == "SchedulerError"
    assert has["message"].startswith("spec.resourceClaims: ")
    assert eventually(lambda: condition(api, space, "late"))["reason"] == "Unschedulable"
