"""Pods as tasks: who they are, where they may go, and what is told of those that cannot be followed."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from wattloom.kubernetes.model.objects import Namespace, Pod
from wattloom.kubernetes.model.pods import ended, found_of, function_of, gates, task_of
from wattloom.kubernetes.model.run_time import ran_s
from wattloom.kubernetes.model.storage_cache import StorageCache
from wattloom.kubernetes.model.templates import Templates, depends_on_world
from wattloom.kubernetes.model.unsupported import Unsupported
from wattloom.kubernetes.state.functions import shared_name
from wattloom.prediction.runtimes import ENOUGH_SAMPLES
from wattloom.workload.constraints import AffinityTerm, Constraints, Expression, NodeTerm, Port, Spread, Toleration
from wattloom.workload.task import Task
from wattloom.workload.task_problem import task_problem


def pod(spec: dict[str, Any] | None = None, *, status: dict[str, Any] | None = None, **metadata: Any) -> Pod:
    meta = {"name": "p", "namespace": "shop", "uid": "12345678-9abc", **metadata}
    return msgspec.convert(
        {"metadata": meta, "spec": {"containers": [{}], **(spec or {})}, "status": status or {}}, Pod
    )


def storage(**namespaces: dict[str, str]) -> StorageCache:
    known = StorageCache()
    for name, labels in namespaces.items():
        known.namespaces[name] = msgspec.convert({"metadata": {"name": name, "labels": labels}}, Namespace)
    return known


def task(given: Pod, known: StorageCache | None = None) -> Task:
    made = task_of(given, known or StorageCache())
    assert isinstance(made, Task), made
    return made


def constraints(given: Pod, known: StorageCache | None = None) -> Constraints:
    needs = task(given, known).requirements
    assert needs is not None
    return needs.constraints or Constraints()


def refused(given: Pod, known: StorageCache | None = None) -> Unsupported:
    made = task_of(given, known or StorageCache())
    assert isinstance(made, Unsupported), made
    return made


def owned(kind: str, name: str, **metadata: Any) -> Pod:
    return pod(ownerReferences=[{"kind": kind, "name": name, "uid": "1", "controller": True}], **metadata)


def test_a_plain_pod_is_a_task_without_rules() -> None:
    requests = {"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
    made = task(pod({"containers": [requests], "priority": 2_000_001_000}, labels={"tier": "b", "app": "a"}))
    assert (made.id, made.function, made.priority) == ("shop/p#12345678", "shop/p", 2_000_001_000)
    needs = made.requirements
    assert needs is not None
    assert (needs.cpu, needs.memory, needs.resources) == (0.5, 2**30, (("pods", 1),))
    assert (needs.constraints, needs.task_labels, needs.namespace) == (None, (("app", "a"), ("tier", "b")), "shop")
    assert needs.problem() is None


@pytest.mark.parametrize(
    ("given", "function"),
    [
        (owned("ReplicaSet", "web-5d9c", labels={"pod-template-hash": "5d9c"}), "shop/web"),
        (owned("ReplicaSet", "bare-set"), "shop/bare-set"),
        (owned("Job", "nightly-29384756"), "shop/nightly"),
        (owned("Job", "import"), "shop/import"),
        (owned("StatefulSet", "db"), "shop/db"),
        (owned("DaemonSet", "agent"), "shop/agent"),
        (pod(), "shop/p"),
        (pod(ownerReferences=[{"kind": "Thing", "name": "t", "uid": "1"}]), "shop/p"),
    ],
)
def test_pods_of_one_controller_are_one_function(given: Pod, function: str) -> None:
    assert function_of(given) == function


@pytest.mark.parametrize("name", ["shop.images:Thumbnail", "zip", "resize-2", "ü" * 256])
def test_a_pod_is_the_function_that_its_annotation_names_whoever_controls_it(name: str) -> None:
    notes = {"wattloom.dev/function": name}
    for given in (pod(annotations=notes), owned("ReplicaSet", "web-5d9c", annotations=notes)):
        assert task(given).function == found_of(given, StorageCache()).function == name
        assert shared_name(function_of(given), given) == name


@pytest.mark.parametrize("name", ["", "x" * 257, "a\nb", "a\u202eb"])
def test_a_function_that_is_no_name_is_refused_and_a_pod_that_runs_is_its_controllers(name: str) -> None:
    given = owned("StatefulSet", "db", annotations={"wattloom.dev/function": name})
    wrong = refused(given)
    assert wrong.field == "metadata.annotations[wattloom.dev/function]"
    assert wrong.mistake
    assert len(wrong.message) < 250
    assert found_of(given, StorageCache()).function == "shop/db"


def test_pods_of_one_template_are_of_the_function_that_is_annotated() -> None:
    templates = Templates(StorageCache())
    for name in ("f", "g", "f"):
        made = templates.waiting(pod(annotations={"wattloom.dev/function": name}))
        assert isinstance(made, Task)
        assert made.function == name


@pytest.mark.parametrize(
    ("name", "shared"),
    [
        ("web-0", "shop/web"),
        ("web-12", "shop/web"),
        ("my-web-0", "shop/my-web"),
        ("hungry4", "shop/hungry4"),
        ("t1", "shop/t1"),
        ("web.1", "shop/web.1"),
        ("v2-a", "shop/v2-a"),
        ("web", "shop/web"),
    ],
)
def test_bare_pods_are_one_function_if_a_number_after_a_dash_tells_them_apart(name: str, shared: str) -> None:
    given = pod(name=name)
    assert shared_name(function_of(given), given) == shared


def test_pods_of_a_controller_are_not_taken_together_by_their_number() -> None:
    given = owned("Job", "import-1")
    assert shared_name(function_of(given), given) == "shop/import-1"


def test_bare_pods_that_declare_different_run_times_are_of_different_functions() -> None:
    def name(pod_name: str, seconds: str) -> str:
        given = pod(name=pod_name, annotations={"wattloom.dev/runtime-seconds": seconds})
        return shared_name(function_of(given), given)

    assert name("job-1", "10") == name("job-2", "10.0")
    assert len({name("job-1", "10"), name("job-1", "20"), name("job-1", "ten"), name("one", "10")}) == 4
    assert name("job-1", "ten") == "shop/job"
    assert name("one", "10") == "shop/one"


# -- how long they ran -----------------------------------------------------------------------------------------------


def run(start: str | None, end: str | None, **more: Any) -> dict[str, Any]:
    """What a node writes on a container that has ended."""
    times = {"startedAt": start and f"2026-01-01T{start}Z", "finishedAt": end and f"2026-01-01T{end}Z"}
    return {"name": "c", "restartCount": 0, "state": {"terminated": {"exitCode": 0, **times}}, **more}


def succeeded(*runs: dict[str, Any], **metadata: Any) -> Pod:
    return pod(status={"phase": "Succeeded", "containerStatuses": runs}, **metadata)


@pytest.mark.parametrize("seen", [None, 4.34, 2.1, 100.0])
def test_containers_own_times_say_how_long_a_pod_ran(seen: float | None) -> None:
    assert ran_s(succeeded(run("10:00:00", "10:00:03")), seen) == 3.0
    assert ran_s(succeeded(run("10:00:05", "10:00:07"), run("10:00:04", "10:00:06")), seen) == 3.0


def test_init_containers_and_sidecars_do_not_count() -> None:
    around = [run("09:00:00", "09:30:00"), run("09:00:00", "11:00:00")]
    status = {"containerStatuses": [run("10:00:00", "10:00:03")], "initContainerStatuses": around}
    assert ran_s(pod(status={"phase": "Succeeded", **status}), None) == 3.0


@pytest.mark.parametrize(("seen", "expected"), [(None, 0.5), (1.3, 0.5), (0.2, 0.2)])
def test_a_run_within_one_second_is_no_longer_than_half_of_it(seen: float | None, expected: float) -> None:
    assert ran_s(succeeded(run("10:00:00", "10:00:00")), seen) == expected


@pytest.mark.parametrize(
    "runs",
    [
        (),
        (run("10:00:00", "10:00:03", restartCount=2),),
        (run("10:00:00", "10:00:03"), run("10:00:00", "10:00:03", restartCount=1)),
        (run(None, "10:00:03"),),
        (run("10:00:00", None),),
        (run("10:00:03", "10:00:00"),),
        (run("10:00:00", "soon"),),
        ({"name": "c", "restartCount": 0, "state": {"running": {"startedAt": "2026-01-01T10:00:00Z"}}},),
        (run("10:00:00", "10:00:03"), {"name": "lost", "restartCount": 0, "state": {}}),
    ],
)
def test_where_containers_do_not_tell_their_whole_run_what_was_seen_counts(runs: tuple[dict[str, Any], ...]) -> None:
    assert ran_s(succeeded(*runs), 5.5) == 5.5
    assert ran_s(succeeded(*runs), None) is None


def test_a_pod_that_was_stopped_did_not_run_to_its_end() -> None:
    stopped = succeeded(run("10:00:00", "10:00:03"), deletionTimestamp="2026-01-01T10:00:02Z")
    assert ran_s(stopped, 5.5) is None


def test_the_reference_says_how_many_runs_it_takes_until_a_run_time_is_known() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "kubernetes-pods.md"
    assert f"It is known once {ENOUGH_SAMPLES} of its pods have run" in " ".join(page.read_text().split())


# -- what they want --------------------------------------------------------------------------------------------------


def test_pods_that_only_their_controllers_numbers_tell_apart_are_of_one_shape() -> None:
    first, second = (
        task(owned("StatefulSet", "db", labels={"app": "db", "statefulset.kubernetes.io/pod-name": name}))
        for name in ("db-0", "db-1")
    )
    assert first.requirements == second.requirements


def test_annotations_become_what_the_task_wants() -> None:
    wishes = {"energy-weight": "0.9", "deadline-seconds": "60", "defer-seconds": "5", "runtime-seconds": "12"}
    made = task(pod(annotations={f"wattloom.dev/{name}": text for name, text in wishes.items()}))
    assert (made.energy_weight, made.deadline_s, made.defer_s) == (0.9, 60.0, 5.0)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("energy-weight", "1.1"),
        ("energy-weight", "green"),
        ("energy-weight", "nan"),
        ("deadline-seconds", "0"),
        ("defer-seconds", "-1"),
        ("runtime-seconds", "inf"),
    ],
)
def test_an_annotation_that_cannot_be_read_is_named(name: str, text: str) -> None:
    wrong = refused(pod(annotations={f"wattloom.dev/{name}": text}))
    assert wrong.field == f"metadata.annotations[wattloom.dev/{name}]"
    assert repr(text) in wrong.message
    assert not wrong.passing, "more nodes would not help"
    assert wrong.message.endswith(repr(text)), "nor would another scheduler"


def test_selectors_affinity_tolerations_and_ports_become_rules() -> None:
    term = {
        "matchExpressions": [{"key": "gen", "operator": "Gt", "values": ["3"]}],
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term, {}]}}
    spec = {
        "nodeSelector": {"zone": "a", "disk": "ssd"},
        "affinity": {"nodeAffinity": required},
        "tolerations": [{"operator": "Exists"}, {"key": "k", "value": "v", "effect": "NoSchedule"}],
        "containers": [{"ports": [{"hostPort": 80}, {"containerPort": 90}]}],
        "initContainers": [
            {"restartPolicy": "Always", "ports": [{"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}]},
            {"ports": [{"hostPort": 99}]},
        ],
    }
    assert constraints(pod(spec)) == Constraints(
        selector=(("disk", "ssd"), ("zone", "a")),
        terms=(
            NodeTerm((Expression("gen", "Gt", ("3",)),), (Expression("metadata.name", "In", ("n1",)),)),
            NodeTerm(),
        ),
        tolerations=(Toleration("", "Exists"), Toleration("k", "Equal", "v", "NoSchedule")),
        ports=(Port(53, "UDP", "10.0.0.1"), Port(80)),
    )


@pytest.mark.parametrize(
    "expression",
    [
        {"key": "disk", "operator": "In", "values": ["ssd", "no such value!"]},
        {"key": "gen", "operator": "Gt", "values": ["three"]},
        {"key": "gen", "operator": "Gt", "values": ["-3"]},
        {"key": "gen", "operator": "Lt", "values": ["9223372036854775808"]},
        {"key": "gen", "operator": "In", "values": []},
    ],
)
def test_a_node_term_with_a_part_that_kubernetes_cannot_read_holds_nowhere(expression: dict[str, Any]) -> None:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    spec = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    assert constraints(pod(spec)).terms == (NodeTerm(),)


def constraint(**more: Any) -> dict[str, Any]:
    return {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **more}


def test_spreading_that_forbids_becomes_a_rule_and_a_wish_does_not() -> None:
    hard = constraint(
        labelSelector={"matchLabels": {"app": "a"}},
        minDomains=3,
        nodeAffinityPolicy="Ignore",
        nodeTaintsPolicy="Honor",
        matchLabelKeys=["version", "missing"],
    )
    spec = {"topologySpreadConstraints": [hard, {**constraint(), "whenUnsatisfiable": "ScheduleAnyway"}]}
    selector = (Expression("app", "In", ("a",)), Expression("version", "In", ("7",)))
    assert constraints(pod(spec, labels={"version": "7"})).spread == (Spread("zone", 1, selector, 3, False, True),)


def test_spreading_with_an_empty_selector_or_none_counts_nobody() -> None:
    for given in (constraint(), constraint(labelSelector={})):
        assert constraints(pod({"topologySpreadConstraints": [given]})).spread == (Spread("zone", 1, None),)


def with_affinity(kind: str, **term: Any) -> dict[str, Any]:
    terms = [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}, **term}]
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


@pytest.mark.parametrize(
    ("term", "spaces"),
    [
        ({}, ("shop",)),
        ({"namespaces": ["x", "b"]}, ("b", "x")),
        ({"namespaceSelector": {}}, ()),
        ({"namespaceSelector": {"matchLabels": {"env": "prod"}}}, ("one",)),
        ({"namespaceSelector": {"matchLabels": {"env": "prod"}}, "namespaces": ["two"]}, ("one", "two")),
    ],
)
def test_tasks_of_an_affinity_are_looked_for_in_the_namespaces_the_term_means(
    term: dict[str, Any], spaces: tuple[str, ...]
) -> None:
    known = storage(one={"env": "prod"}, two={}, shop={})
    wanted = (AffinityTerm("zone", (Expression("app", "In", ("a",)),), spaces),)
    assert constraints(pod(with_affinity("podAffinity", **term)), known).affinity == wanted
    assert constraints(pod(with_affinity("podAntiAffinity", **term)), known).anti_affinity == wanted


def test_a_namespace_selector_that_finds_no_namespace_means_nobody_rather_than_everybody() -> None:
    spec = with_affinity("podAffinity", namespaceSelector={"matchLabels": {"env": "none"}})
    assert constraints(pod(spec), storage(shop={})).affinity == (AffinityTerm("zone", None),)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"resourceClaims": [{"name": "gpu"}]}, "spec.resourceClaims"),
        ({"schedulingGroup": {"podGroupName": "g"}}, "spec.schedulingGroup"),
        ({"workloadRef": {"name": "g"}}, "spec.workloadRef"),
        ({"hostNetwork": True, "hostUsers": False}, "spec.hostUsers"),
        ({"tolerations": [{"key": "k", "operator": "Gt", "value": "1"}]}, "spec.tolerations[0].operator"),
        ({"volumes": [{}, {"gcePersistentDisk": {"pdName": "d"}}]}, "spec.volumes[1].gcePersistentDisk"),
        ({"volumes": [{"iscsi": {"iqn": "i"}}]}, "spec.volumes[0].iscsi"),
        (
            {"containers": [{"restartPolicyRules": [{"action": "RestartAllContainers"}]}]},
            "spec.containers[0].restartPolicyRules",
        ),
        (
            {"containers": [{"resources": {"requests": {"deviceclass.resource.kubernetes.io/gpu": "1"}}}]},
            "spec.containers[0].resources.requests",
        ),
        (
            {"initContainers": [{"volumeMounts": [{"bindMountOptions": ["noexec"]}]}]},
            "spec.initContainers[0].volumeMounts.bindMountOptions",
        ),
        (
            with_affinity("podAntiAffinity", labelSelector={"matchLabels": {"apps.kubernetes.io/pod-index": "0"}}),
            "spec.affinity.podAntiAffinity",
        ),
        (
            {
                "topologySpreadConstraints": [
                    constraint(labelSelector={}, matchLabelKeys=["apps.kubernetes.io/pod-index"])
                ]
            },
            "spec.topologySpreadConstraints[0]",
        ),
    ],
)
def test_what_we_do_not_implement_is_named_and_the_way_out_with_it(spec: dict[str, Any], field: str) -> None:
    wrong = refused(pod(spec))
    assert wrong.field == field
    assert not wrong.passing
    assert "extender" in wrong.message


def test_volumes_that_kube_scheduler_does_not_look_at_are_no_obstacle() -> None:
    volumes = [
        {"emptyDir": {}},
        {"csi": {"driver": "secrets"}},
        {"configMap": {"name": "c"}},
        {"hostPath": {"path": "/"}},
    ]
    assert constraints(pod({"volumes": volumes})) == Constraints()


def test_a_placed_pod_keeps_others_away_but_is_not_asked_where_it_may_be() -> None:
    spec = {
        **with_affinity("podAntiAffinity"),
        "nodeName": "n1",
        "nodeSelector": {"disk": "ssd"},
        "resourceClaims": [{"name": "gpu"}],
        "containers": [{"ports": [{"hostPort": 80}]}],
    }
    needs = found_of(pod(spec), StorageCache()).requirements
    assert needs is not None
    assert needs.constraints == Constraints(
        ports=(Port(80),), anti_affinity=(AffinityTerm("zone", (Expression("app", "In", ("a",)),), ("shop",)),)
    )


def test_a_placed_pod_that_keeps_away_single_pods_keeps_away_all_their_equals() -> None:
    labels = {"app": "a", "apps.kubernetes.io/pod-index": "0"}
    needs = found_of(
        pod(with_affinity("podAntiAffinity", labelSelector={"matchLabels": labels})), StorageCache()
    ).requirements
    assert needs is not None
    assert needs.constraints is not None
    assert needs.constraints.anti_affinity == (AffinityTerm("zone", (Expression("app", "In", ("a",)),), ("shop",)),)


def test_gates_and_ends_are_seen() -> None:
    assert gates(pod({"schedulingGates": [{"name": "g"}]}))
    assert not gates(pod())
    assert ended(pod(status={"phase": "Failed"}))
    assert not ended(pod(status={"phase": "Running"}))


# -- amounts that nobody has -------------------------------------------------------------------------------------------


def asking(**amounts: str) -> dict[str, Any]:
    requests = {name.replace("gpu", "example.com/gpu"): amount for name, amount in amounts.items()}
    return {"containers": [{"resources": {"requests": requests}}]}


@pytest.mark.parametrize(
    ("amounts", "words"),
    [
        ({"cpu": "1e310"}, "cpu is more than can be counted"),
        ({"cpu": "9" * 5_000}, "more than 1,000 digits"),
        ({"cpu": "2000000"}, "cpu must be between 0 and 1000000 cores"),
        ({"memory": "1e30"}, "memory is more than can be counted"),
        ({"gpu": "1e30"}, "example.com/gpu is more than can be counted"),
    ],
)
def test_more_than_the_engine_takes_is_told_and_takes_nothing_it_cannot_take_on_a_node(
    amounts: dict[str, str], words: str
) -> None:
    given = pod(asking(**amounts))
    wrong = refused(given)
    assert wrong.field == "spec.containers.resources"
    assert words in wrong.why
    assert task_problem(found_of(given, StorageCache())) is None


# -- templates ---------------------------------------------------------------------------------------------------------


def with_volume(name: str, **volume: Any) -> Pod:
    mounted = {"containers": [{"volumeMounts": [{"name": name}]}]}
    return pod({**mounted, "volumes": [{"name": name, **volume}]}, name=name, uid=f"{name}-uid")


@pytest.mark.parametrize("kind", ["projected", "configMap", "emptyDir", "hostPath"])
def test_pods_with_volumes_of_no_matter_are_read_once_whatever_the_volumes_are_called(kind: str) -> None:
    templates = Templates(StorageCache())
    first, second = (
        templates.waiting(with_volume(f"kube-api-access-{end}", **{kind: {}})) for end in ("x7x2p", "b9k4q")
    )
    assert isinstance(first, Task)
    assert isinstance(second, Task)
    assert first.id != second.id
    assert first.requirements is second.requirements


@pytest.mark.parametrize(
    ("given", "depends"),
    [
        (pod(), False),
        (with_volume("token", projected={}), False),
        (with_volume("disk", iscsi={}), False),
        (with_volume("data", persistentVolumeClaim={"claimName": "data"}), True),
        (with_volume("scratch", ephemeral={}), True),
        (pod({"affinity": {"nodeAffinity": {}}}), False),
    ],
)
def test_claims_are_what_pods_depend_on_beside_themselves(given: Pod, depends: bool) -> None:
    assert depends_on_world(given) is depends


def test_rules_over_namespaces_by_their_labels_depend_on_these() -> None:
    term = {"topologyKey": "zone", "namespaceSelector": {"matchLabels": {"team": "a"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    assert depends_on_world(pod({"affinity": affinity}))


def test_a_pod_with_a_claim_or_an_old_kind_of_volume_is_never_taken_for_one_without() -> None:
    templates = Templates(StorageCache())
    assert isinstance(templates.waiting(with_volume("a", emptyDir={})), Task)
    for kind in ("persistentVolumeClaim", "ephemeral", "iscsi"):
        assert isinstance(templates.waiting(with_volume("a", **{kind: {}})), Unsupported)


@pytest.mark.parametrize("name", ["runtime-seconds", "deadline-seconds", "defer-seconds", "energy-weight"])
@pytest.mark.parametrize(
    "text", ["1.79e308", "1e12", "1000000001", "nan", "inf", "-inf", "-1", "1e-320000x", "9" * 400]
)
def test_a_number_that_nobody_means_is_an_annotation_that_cannot_be_read(name: str, text: str) -> None:
    wrong = refused(pod(annotations={f"wattloom.dev/{name}": text}))
    assert wrong.field == f"metadata.annotations[wattloom.dev/{name}]"


def test_run_times_of_decades_are_clocks_that_were_not_set() -> None:
    """Containers that never began have the year 1970 or 1 written on them."""
    for began in ("1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z"):
        assert ran_s(succeeded(run(began, "2026-01-01T00:00:00Z")), 3.0) == 3.0
    assert ran_s(succeeded(run(None, None)), 1e12) is None


def anti_affinity(count: int) -> dict[str, Any]:
    terms = [
        {"topologyKey": f"key{number % 3}", "labelSelector": {"matchLabels": {"app": f"a{number}"}}}
        for number in range(count)
    ]
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def test_a_pod_with_more_rules_than_anybody_means_waits_and_is_told_how_many_are_followed() -> None:
    assert len(constraints(pod(anti_affinity(1_000))).anti_affinity) == 1_000
    wrong = refused(pod(anti_affinity(1_001)))
    assert "1001" in wrong.message
    assert "at most 1000 are followed" in wrong.message


def test_a_pod_that_runs_already_with_more_rules_than_are_followed_keeps_everybody_away() -> None:
    found = found_of(pod(anti_affinity(3_000)), StorageCache())
    assert task_problem(found) is None
    assert found.requirements is not None
    assert found.requirements.constraints is not None
    assert found.requirements.constraints.anti_affinity == tuple(
        AffinityTerm(f"key{number}", ()) for number in range(3)
    )
