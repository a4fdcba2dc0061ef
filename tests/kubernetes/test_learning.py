"""How long pods run is learned from those that succeed, by the scheduler and by the extender, on a real API server."""

from collections.abc import Callable
from time import monotonic, sleep
from typing import Any

import pytest
from tests.beds.kubernetes import Api, ControlPlane, add_pods, eventually, fake_pod
from tests.kubernetes.extending import Extending, extending
from tests.kubernetes.running import CURVE, PROFILE, Running, all_bound, nodes, pods

from wattloom.energy.used import Used

JOBS = ("job-0", "job-1", "job-2")
"""As many as it takes to tell."""
RUN_S = 0.5


def enter(api: Api, space: str, phase: str) -> None:
    """What a kubelet says of its pods."""
    for name in JOBS:
        api.patch(f"/api/v1/namespaces/{space}/pods/{name}/status", {"status": {"phase": phase}})


def succeed_after_three_seconds(api: Api, space: str) -> None:
    """As a kubelet writes it on their containers, however long it was to be seen."""
    times = {"startedAt": "2026-01-01T10:00:00Z", "finishedAt": "2026-01-01T10:00:03Z"}
    ran = {"terminated": {"exitCode": 0, "reason": "Completed", **times}}
    told = {"name": "main", "image": "none", "imageID": "", "ready": False, "restartCount": 0, "state": ran}
    for name in JOBS:
        body = {"status": {"phase": "Succeeded", "containerStatuses": [told]}}
        api.patch(f"/api/v1/namespaces/{space}/pods/{name}/status", body)


def run_to_the_end(api: Api, space: str, seen_running: Callable[[], bool]) -> float:
    """Seconds that they ran at most."""
    begun = monotonic()
    enter(api, space, "Running")
    eventually(seen_running)
    sleep(RUN_S)
    enter(api, space, "Succeeded")
    return monotonic() - begun


def learned(running: Running | Extending) -> dict[str, Used]:
    """By function."""
    runtimes = running.part.driver.engine.ledger.predictor
    found: dict[str, Used] = running.call(lambda: {key[0]: used for key, used in runtimes.measured().items()})
    return found


def kept(running: Running | Extending) -> int:
    """Pods that the reflector keeps."""
    reflectors: list[Any] = running.part.state.reflectors
    return int(running.call(lambda: sum(len(each) for each in reflectors if each.resource.plural == "pods")))


def test_the_scheduler_learns_how_long_pods_ran(running: Running, api: Api, space: str) -> None:
    nodes(api, "n1", annotations={PROFILE: CURVE})
    pods(api, space, *JOBS)
    all_bound(api, space)
    by_uid = running.scheduler.state.pods.by_uid

    def seen_running() -> bool:
        return bool(running.call(lambda: all(each.running_since is not None for each in by_uid.values())))

    eventually(lambda: len(by_uid) == len(JOBS))
    most_s = run_to_the_end(api, space, seen_running)
    found = eventually(lambda: learned(running))
    assert RUN_S <= found[f"{space}/job"].mean_s <= most_s + 5.0
    assert running.call(lambda: not by_uid and not running.scheduler.driver.engine.ledger.tasks)
    assert kept(running) == 0


def test_the_extender_learns_how_long_pods_ran(plane: ControlPlane, api: Api, space: str) -> None:
    nodes(api, "n1", annotations={PROFILE: CURVE})
    with extending(plane) as running:
        add_pods(api, space, [fake_pod(name, node="n1") for name in JOBS])
        by_uid = running.extender.state.loads.pods.by_uid

        def seen_running() -> bool:
            return bool(running.call(lambda: all(each.running_since is not None for each in by_uid.values())))

        eventually(lambda: len(by_uid) == len(JOBS))
        most_s = run_to_the_end(api, space, seen_running)
        found = eventually(lambda: learned(running))
        assert RUN_S <= found[f"{space}/job"].mean_s <= most_s + 5.0
        assert running.call(lambda: not by_uid and not running.extender.driver.engine.ledger.tasks)
        assert kept(running) == 0


@pytest.mark.parametrize("seen_running", [False, True])
def test_the_scheduler_learns_the_times_that_are_written_on_containers(
    running: Running, api: Api, space: str, seen_running: bool
) -> None:
    nodes(api, "n1", annotations={PROFILE: CURVE})
    pods(api, space, *JOBS)
    all_bound(api, space)
    if seen_running:
        enter(api, space, "Running")
    succeed_after_three_seconds(api, space)
    assert eventually(lambda: learned(running))[f"{space}/job"].mean_s == 3.0


def test_the_extender_learns_the_times_that_are_written_on_containers_of_pods_that_ran_before_it_too(
    plane: ControlPlane, api: Api, space: str
) -> None:
    nodes(api, "n1", annotations={PROFILE: CURVE})
    add_pods(api, space, [fake_pod(name, node="n1") for name in JOBS])
    enter(api, space, "Running")
    with extending(plane) as running:
        assert kept(running) == len(JOBS)
        succeed_after_three_seconds(api, space)
        assert eventually(lambda: learned(running))[f"{space}/job"].mean_s == 3.0


def test_the_extender_learns_nothing_of_pods_that_ran_before_it_without_these_times(
    plane: ControlPlane, api: Api, space: str
) -> None:
    nodes(api, "n1", annotations={PROFILE: CURVE})
    add_pods(api, space, [fake_pod(name, node="n1") for name in JOBS])
    enter(api, space, "Running")
    with extending(plane) as running:
        assert kept(running) == len(JOBS)
        enter(api, space, "Succeeded")
        eventually(lambda: not running.call(lambda: dict(running.extender.state.loads.pods.by_uid)))
        assert learned(running) == {}


def test_pods_that_ended_are_not_kept_however_they_change(plane: ControlPlane, api: Api, space: str) -> None:
    nodes(api, "n1", annotations={PROFILE: CURVE})
    add_pods(api, space, [fake_pod(name, node="n1") for name in JOBS])
    enter(api, space, "Succeeded")
    with extending(plane) as running:
        for name in JOBS:
            api.patch(f"/api/v1/namespaces/{space}/pods/{name}", {"metadata": {"labels": {"seen": "yes"}}})
        add_pods(api, space, [fake_pod("lives", node="n1")])
        eventually(lambda: kept(running) == 1)  # told after all the others
        assert running.call(lambda: len(running.extender.state.loads.pods.by_uid)) == 1
