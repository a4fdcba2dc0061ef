"""How long a pod ran.

Owns the choice between the two who can say it: the times that the node has written on the pod's containers, and what
was seen here, which is longer by what the news of its end took, and shorter by the news of its beginning.
"""

from datetime import datetime
from typing import Final

from wattloom.bounds import LONGEST_S
from wattloom.kubernetes.model.objects import ContainerStatus, Pod

HALF_A_SECOND: Final = 0.5
"""Times are written in whole seconds: who began and ended in the same one ran for about so long, at most."""


def ran_s(pod: Pod, seen_s: float | None) -> float | None:
    """Seconds from the first start of its containers to their last end, of a pod that has succeeded.

    None: nobody knows, or it was stopped, so that it did not run to its end. A container that was restarted has only
    its last run written on it: then, and where times are missing, `seen_s` counts (None: its beginning was not seen).
    Whole seconds are too short as often as too long, so that the mean of several runs is right."""
    if pod.metadata.deletion_timestamp is not None:
        return None
    written = _written(pod.status.container_statuses)
    if written is None:
        return seen_s if seen_s is None or seen_s <= LONGEST_S else None
    return written or min(HALF_A_SECOND, seen_s if seen_s is not None else HALF_A_SECOND)


def _written(statuses: tuple[ContainerStatus, ...]) -> float | None:
    """By the clock of its node. Init containers and sidecars are not among them."""
    runs = [run for each in statuses if (run := each.state.terminated) is not None and not each.restart_count]
    if not runs or len(runs) < len(statuses):
        return None
    try:
        start = min(datetime.fromisoformat(run.started_at or "") for run in runs)
        end = max(datetime.fromisoformat(run.finished_at or "") for run in runs)
        seconds = (end - start).total_seconds()
    except (TypeError, ValueError):  # no time, or with a time zone here and without one there
        return None
    return seconds if 0.0 <= seconds <= LONGEST_S else None
