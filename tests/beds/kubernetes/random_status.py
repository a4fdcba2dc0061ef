"""Random statuses of placed pods, as kubelets write them while they resize pods in place."""

from random import Random

from tests.beds.kubernetes.random_pods import Body


def resized(random: Random, pod: Body) -> Body:
    """What the node has granted, what is in force there, and what it refuses."""
    told = [_container_status(random, each) for each in pod["spec"]["containers"] if random.random() < 0.8]
    status: Body = {"phase": "Running", "containerStatuses": told}
    if random.random() < 0.4:
        reason = random.choice(("Infeasible", "Deferred"))
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    if random.random() < 0.2:
        status["allocatedResources"] = {"cpu": random.choice(("1", "6"))}
    if random.random() < 0.2:
        status["resources"] = {"requests": {"cpu": random.choice(("2", "7"))}}
    return status


def _container_status(random: Random, container: Body) -> Body:
    told: Body = {"name": container["name"], "image": "", "imageID": "", "ready": True, "restartCount": 0}
    if random.random() < 0.7:
        told["allocatedResources"] = {"cpu": random.choice(("10m", "2", "5")), "memory": "1Gi"}
    if random.random() < 0.7:
        told["resources"] = {"requests": {"cpu": random.choice(("10m", "3", "4"))}}
    return told
