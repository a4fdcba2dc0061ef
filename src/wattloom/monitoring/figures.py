"""How the metrics' figures are read off a snapshot: labels and a value for each.

Owns nothing but that. Pure. Which metric has which is the catalogue's, `metrics`.
"""

from collections.abc import Callable, Iterator
from typing import Final

from wattloom.monitoring.snapshot import Entity, Kind, Snapshot
from wattloom.monitoring.top_processes import Prominent

Labels = tuple[str, ...]
Figure = tuple[Labels, float]
Figures = Callable[[Snapshot, Prominent], Iterator[Figure]]
OTHER: Final = "other"
"""What stands for all that have no series of their own."""


# -- the node ----------------------------------------------------------------------------------------------------------


def node_joules(shown: Snapshot, _: Prominent) -> Iterator[Figure]:
    yield (shown.node, shown.quantity, shown.provenance, shown.meter), shown.totals.meter_j


def of_totals(field: str) -> Figures:
    def figures(shown: Snapshot, _: Prominent) -> Iterator[Figure]:
        yield (shown.node,), getattr(shown.totals, field)

    return figures


def node_watts(shown: Snapshot, _: Prominent) -> Iterator[Figure]:
    parts = {
        "entities": shown.last.entities_j,
        "idle": shown.last.idle_j,
        "overhead": shown.last.overhead_j,
        "unattributed": shown.last.unattributed_j,
    }
    for part, joules in parts.items() if not shown.problem else ():
        if (watts := shown.watts(joules)) is not None:
            yield (shown.node, part), watts


def meter_up(shown: Snapshot, _: Prominent) -> Iterator[Figure]:
    yield (shown.node, shown.meter), 0.0 if shown.problem else 1.0


def of_shown(field: str) -> Figures:
    def figures(shown: Snapshot, _: Prominent) -> Iterator[Figure]:
        yield (shown.node,), float(getattr(shown, field))

    return figures


# -- who used it -------------------------------------------------------------------------------------------------------


def labels_of(kind: Kind, each: Entity) -> Labels:
    if kind == "container":
        return each.key, each.engine, each.pod
    if kind == "vm":
        return each.key, each.container
    return (each.key,)


def joules_of(kind: Kind) -> Figures:
    """Active and shared joules of each; of those that are long gone, one sum."""
    blank = {"container": ("", ""), "vm": ("",)}.get(kind, ())

    def figures(shown: Snapshot, _: Prominent) -> Iterator[Figure]:
        bears = shown.policy != "node"
        for each in shown.of(kind):
            labels = (shown.node, *labels_of(kind, each))
            yield (*labels, "active"), each.active_j
            if bears:
                yield (*labels, "shared"), each.shared_j
        if shown.gone.get(kind):
            yield (shown.node, OTHER, *blank, "gone"), shown.gone[kind]

    return figures


def cpu_seconds(kind: Kind) -> Figures:
    def figures(shown: Snapshot, _: Prominent) -> Iterator[Figure]:
        for each in shown.of(kind):
            yield (shown.node, *labels_of(kind, each)), each.cpu_s

    return figures


def process_joules(shown: Snapshot, prominent: Prominent) -> Iterator[Figure]:
    """Those that have a series; all others are in one."""
    for each, joules in prominent.processes:
        yield (shown.node, str(each.pid), each.name, each.container, each.key), joules
    if prominent.other_j is not None:
        yield (shown.node, "", OTHER, "", OTHER), prominent.other_j


# -- tasks and devices -------------------------------------------------------------------------------------------------


def task_figures(field: str) -> Figures:
    def figures(shown: Snapshot, _: Prominent) -> Iterator[Figure]:
        for task in shown.tasks:
            yield (task.function, task.node, task.device), float(getattr(task, field))

    return figures


def device_figures(field: str) -> Figures:
    def figures(shown: Snapshot, _: Prominent) -> Iterator[Figure]:
        for device in shown.devices:
            value = getattr(device, field)
            if value is not None:
                yield (shown.node, device.uuid, device.name, device.kind), float(value)

    return figures


def device_users(shown: Snapshot, _: Prominent) -> Iterator[Figure]:
    for device in shown.devices:
        for user in device.users:
            yield (shown.node, device.uuid, user.container, user.pod, user.name), user.joules


def device_up(shown: Snapshot, _: Prominent) -> Iterator[Figure]:
    for device in shown.devices:
        yield (shown.node, device.uuid, device.name, device.kind), 0.0 if device.problem else 1.0
