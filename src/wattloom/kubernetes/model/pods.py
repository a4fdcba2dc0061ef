"""Pods as the engine's tasks.

Owns which task a pod is: its name, its function, what it needs and where it may go. Pods that cannot be followed are
told as `Unsupported`. Wishes are ignored on purpose: preferred affinity, `ScheduleAnyway`, `PreferNoSchedule`, image
locality, a nominated node. Knows neither the API server nor the engine's state.
"""

import re
from typing import Final

import msgspec

from wattloom.bounds import MOST_CORES, MOST_RULES
from wattloom.errors import InputError
from wattloom.kubernetes.model.annotations import PodAnnotations, annotated_function, annotations_of
from wattloom.kubernetes.model.objects import Pod, PodAffinityTerm, SpreadConstraint
from wattloom.kubernetes.model.requests import Asked, asked_by, held_by
from wattloom.kubernetes.model.selectors import affinity_term, expressions, in_order, node_terms, ports, tolerations
from wattloom.kubernetes.model.storage_cache import StorageCache
from wattloom.kubernetes.model.unsupported import POD_OWN_LABELS, Unsupported, unsupported
from wattloom.kubernetes.model.volumes import volume_terms
from wattloom.units import MILLI
from wattloom.workload.constraints import AffinityTerm, Constraints, Expression, Labels, NodeTerm, Spread
from wattloom.workload.requirements import Requirements
from wattloom.workload.task import Task
from wattloom.workload.task_problem import task_problem

_CRON_RUN: Final = re.compile(r"-\d{8,10}$")
"""What a CronJob adds to its own name for a job: the minute it was due."""
ENDED: Final = frozenset({"Succeeded", "Failed"})
NO_RULES: Final = Constraints()
MOST_CPU: Final = MOST_CORES * MILLI - 1
"""Millicores: the most that the engine takes."""
AMOUNTS: Final = "spec.containers.resources"


def task_of(pod: Pod, storage: StorageCache) -> Task | Unsupported:
    """A pod without a node, as a task to be placed."""
    wrong = unsupported(pod)
    if wrong is not None:
        return wrong
    annotations = annotations_of(pod)
    if isinstance(annotations, Unsupported):
        return annotations
    volumes = volume_terms(pod, storage) if pod.spec.volumes else ()
    if isinstance(volumes, Unsupported):
        return volumes
    try:
        asked = asked_by(pod)
    except InputError as error:
        return Unsupported(AMOUNTS, error.problem)
    task = _task(pod, asked, _constraints(pod, volumes, storage), annotations)
    return _out_of_bounds(task) or task


def found_of(pod: Pod, storage: StorageCache) -> Task:
    """A pod on a node, whoever put it there: what it takes, and what it keeps away from others.

    Nothing is unsupported here. Where its anti-affinity selects by a label that is not looked at, that condition is
    left out: it then keeps more pods away than it must, and never too few."""
    annotations = annotations_of(pod)
    host_ports = ports(pod.spec.containers, pod.spec.init_containers)
    anti_affinity = tuple(_without_own_labels(each) for each in _affinity_terms(pod, _anti_affinity(pod), storage))
    if len(anti_affinity) > MOST_RULES // 2:
        # Too many to be told apart: it keeps everybody away, in each kind of domain.
        keys = dict.fromkeys(each.key for each in anti_affinity)
        anti_affinity = tuple(AffinityTerm(key, ()) for key in keys)[: MOST_RULES // 2]
    constraints = Constraints(ports=host_ports[: MOST_RULES // 2], anti_affinity=anti_affinity)
    try:
        held = held_by(pod)
    except InputError:  # nobody has that much, and kube-scheduler's own count of it comes round to anything
        held = Asked(0, 0, (("pods", 1),))
    if held.cpu > MOST_CPU:
        held = msgspec.structs.replace(held, cpu=MOST_CPU)
    return _task(pod, held, constraints, PodAnnotations() if isinstance(annotations, Unsupported) else annotations)


def task_id(pod: Pod) -> str:
    """Names can come back, as with stateful sets; with a part of the uid they do not."""
    return f"{pod.metadata.namespace}/{pod.metadata.name}#{pod.metadata.uid[:8]}"


def gates(pod: Pod) -> bool:
    """Whether somebody still holds the pod back from scheduling."""
    return bool(pod.spec.scheduling_gates)


def ended(pod: Pod) -> bool:
    """Whether it takes no part of its node any more."""
    return pod.status.phase in ENDED


def function_of(pod: Pod) -> str:
    """The function that an annotation names. Else pods of one controller are one: its namespace and name, without what
    tells its generations apart."""
    named = annotated_function(pod)
    if isinstance(named, str):
        return named
    meta = pod.metadata
    owner = next((each for each in meta.owner_references if each.controller), None)
    name = meta.name if owner is None else owner.name
    if owner is not None and owner.kind == "ReplicaSet":
        name = name.removesuffix(f"-{meta.labels.get('pod-template-hash', '')}")
    elif owner is not None and owner.kind == "Job":
        name = _CRON_RUN.sub("", name)
    return f"{meta.namespace}/{name}"


def _task(pod: Pod, asked: Asked, constraints: Constraints, annotations: PodAnnotations) -> Task:
    return Task(
        id=task_id(pod),
        function=function_of(pod),
        requirements=Requirements(
            cpu=asked.cpu / MILLI,
            memory=asked.memory,
            resources=asked.resources,
            constraints=None if constraints == NO_RULES else constraints,
            task_labels=_labels(pod),
            namespace=pod.metadata.namespace,
        ),
        priority=pod.spec.priority or 0,
        energy_weight=annotations.energy_weight,
        deadline_s=annotations.deadline_s,
        defer_s=annotations.defer_s,
    )


def _out_of_bounds(task: Task) -> Unsupported | None:
    """What the engine would refuse."""
    wrong = task_problem(task)
    if wrong is None:
        return None
    part, words = wrong[0].removeprefix("requirements."), wrong[1]
    amount = part in ("cpu", "memory") or part.startswith("resources")
    return Unsupported(AMOUNTS if amount else "spec", f"{part} {words}")


def _labels(pod: Pod) -> Labels:
    return tuple(sorted(pair for pair in pod.metadata.labels.items() if pair[0] not in POD_OWN_LABELS))


# -- where it may go -------------------------------------------------------------------------------------------------


def _constraints(pod: Pod, volumes: tuple[tuple[NodeTerm, ...], ...], storage: StorageCache) -> Constraints:
    spec = pod.spec
    affinity = spec.affinity
    required = affinity.node_affinity.required if affinity is not None and affinity.node_affinity is not None else None
    return Constraints(
        selector=tuple(sorted(spec.node_selector.items())),
        terms=None if required is None else node_terms(required),
        volumes=volumes,
        tolerations=tolerations(spec.tolerations) if spec.tolerations else (),
        ports=ports(spec.containers, spec.init_containers),
        spread=_spreads(pod) if spec.topology_spread_constraints else (),
        affinity=_affinity_terms(pod, _affinity(pod), storage),
        anti_affinity=_affinity_terms(pod, _anti_affinity(pod), storage),
    )


def _spreads(pod: Pod) -> tuple[Spread, ...]:
    constraints = pod.spec.topology_spread_constraints
    return tuple(_spread(each, pod) for each in constraints if each.when_unsatisfiable == "DoNotSchedule")


def _spread(constraint: SpreadConstraint, pod: Pod) -> Spread:
    selector = expressions(constraint.label_selector)
    if selector is not None:
        labels = pod.metadata.labels
        same = [Expression(key, "In", (labels[key],)) for key in constraint.match_label_keys if key in labels]
        # kube-scheduler counts nobody where the selector is empty, so that the rule only asks for the label.
        selector = in_order((*selector, *same)) or None
    return Spread(
        key=constraint.topology_key,
        most=constraint.max_skew,
        selector=selector,
        least_domains=constraint.min_domains,
        honor_affinity=constraint.node_affinity_policy != "Ignore",
        honor_taints=constraint.node_taints_policy == "Honor",
    )


def _affinity(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    affinity = pod.spec.affinity
    return () if affinity is None or affinity.pod_affinity is None else affinity.pod_affinity.required


def _anti_affinity(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    affinity = pod.spec.affinity
    return () if affinity is None or affinity.pod_anti_affinity is None else affinity.pod_anti_affinity.required


def _affinity_terms(pod: Pod, terms: tuple[PodAffinityTerm, ...], storage: StorageCache) -> tuple[AffinityTerm, ...]:
    return tuple(affinity_term(term, pod.metadata.namespace, storage) for term in terms)


def _without_own_labels(each: AffinityTerm) -> AffinityTerm:
    if each.selector is None or not any(one.key in POD_OWN_LABELS for one in each.selector):
        return each
    kept = tuple(one for one in each.selector if one.key not in POD_OWN_LABELS)
    return AffinityTerm(each.key, kept, each.namespaces)
