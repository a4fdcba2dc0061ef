"""Which nodes a pod may go to, in cases where kube-scheduler does what one would not guess. No API server is needed.

Each was read in kube-scheduler's sources or seen on a cluster; `test_differential` compares such cases by the thousand.
"""

from typing import Any

from tests.beds.kubernetes import fake_node, fake_pod
from tests.beds.kubernetes.own_answer import OwnAnswer, world_of

from wattloom.kubernetes.model.unsupported import Unsupported

Body = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
ANYWHERE = {"a", "b", "c"}


def nodes(**more: dict[str, Any]) -> list[Body]:
    """a and b are in zone 1, c is in zone 2."""
    zones = {"a": "1", "b": "1", "c": "2"}
    bodies = []
    for name, zone in zones.items():
        changes = dict(more.get(name, {}))
        labels = {ZONE: zone, **changes.pop("labels", {})}
        bodies.append(fake_node(name, labels=labels, **changes))
    return bodies


def pod(name: str, node: str | None = None, *, app: str = "web", leaving: bool = False, **spec: Any) -> Body:
    body = fake_pod(name, cpu=None, memory=None, node=node, labels={"app": app}, spec=spec)
    body["metadata"] |= {"namespace": "shop", "uid": name.ljust(8, "-")}
    if leaving:
        body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return body


def asking(cpu: str) -> Body:
    return {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}


def feasible(given: Body, *placed: Body, on: list[Body] | None = None) -> set[str]:
    found = OwnAnswer(on or nodes(), placed, world_of((), (), ())).feasible(given)
    assert not isinstance(found, Unsupported), found
    return set(found)


def spread(key: str = ZONE, app: str | None = "web", **more: Any) -> Body:
    selector = {"labelSelector": {"matchLabels": {"app": app} if app else {}}}
    constraint = {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **selector, **more}
    return {"topologySpreadConstraints": [constraint]}


def company(kind: str, *terms: tuple[str, str]) -> Body:
    bodies = [{"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}} for key, app in terms]
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": bodies}}}


def wanting(key: str, operator: str, *values: str) -> Body:
    terms = [{"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}]
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    }


def test_a_pod_that_wants_no_cpu_goes_to_a_node_that_has_given_out_too_much() -> None:
    crowd = [pod("big", "a", **asking("100"))]
    assert feasible(pod("p"), *crowd) == ANYWHERE
    assert feasible(pod("p", **asking("1m")), *crowd) == {"b", "c"}


def test_a_node_with_as_many_pods_as_it_takes_takes_none_that_wants_nothing_either() -> None:
    assert feasible(pod("p"), pod("x", "a"), on=nodes(a={"pods": 1})) == {"b", "c"}


def test_spreading_over_pods_that_an_empty_selector_means_asks_for_the_label_only() -> None:
    bare = nodes()
    del bare[2]["metadata"]["labels"][ZONE]
    assert feasible(pod("p", **spread(app=None)), pod("x", "a"), pod("y", "a"), on=bare) == {"a", "b"}


def test_pods_on_their_way_out_do_not_count_in_spreading_but_take_room_and_keep_company() -> None:
    assert feasible(pod("p", **spread()), pod("x", "a")) == {"c"}
    assert feasible(pod("p", **spread()), pod("x", "a", leaving=True)) == ANYWHERE
    assert feasible(pod("p", **company("podAffinity", (ZONE, "db"))), pod("x", "c", app="db", leaving=True)) == {"c"}


def test_too_few_domains_count_as_one_that_is_empty() -> None:
    even = [pod("x", "a"), pod("y", "c")]
    assert feasible(pod("p", **spread()), *even) == ANYWHERE
    assert feasible(pod("p", **spread(minDomains=3)), *even) == set()


def test_nodes_that_the_pod_may_not_choose_are_no_empty_domain_unless_it_says_so() -> None:
    rule = spread("kubernetes.io/hostname")
    crowd = [pod("x", "a"), pod("y", "b")]
    assert feasible(pod("p", **rule, nodeSelector={ZONE: "1"}), *crowd) == {"a", "b"}
    rule["topologySpreadConstraints"][0]["nodeAffinityPolicy"] = "Ignore"
    assert feasible(pod("p", **rule, nodeSelector={ZONE: "1"}), *crowd) == set()


def test_tainted_nodes_are_an_empty_domain_unless_the_pod_says_not() -> None:
    tainted = nodes(c={"taints": [{"key": "k", "effect": "NoSchedule"}]})
    assert feasible(pod("p", **spread()), pod("x", "a"), on=tainted) == set()
    assert feasible(pod("p", **spread(nodeTaintsPolicy="Honor")), pod("x", "a"), on=tainted) == {"a", "b"}


def test_the_first_of_pods_that_want_each_other_may_go_anywhere() -> None:
    rule = company("podAffinity", (ZONE, "web"))
    assert feasible(pod("p", **rule)) == ANYWHERE
    assert feasible(pod("p", app="other", **rule)) == set()
    assert feasible(pod("p", **rule), pod("x", "c")) == {"c"}


def test_one_pod_must_be_all_the_company_that_is_wanted() -> None:
    rule = company("podAffinity", (ZONE, "db"), (ZONE, "cache"))
    assert feasible(pod("p", **rule), pod("x", "a", app="db"), pod("y", "a", app="cache")) == set()


def test_pods_that_are_there_keep_away_newcomers_who_mind_nobody() -> None:
    alone = pod("x", "a", app="db", **company("podAntiAffinity", (ZONE, "web")))
    assert feasible(pod("p"), alone) == {"c"}
    assert feasible(pod("p", app="other"), alone) == ANYWHERE


def test_a_port_on_every_address_is_taken_on_each_and_one_on_an_address_only_there() -> None:
    def port(address: str) -> Body:
        return {"containers": [{"name": "main", "ports": [{"hostPort": 80, "hostIP": address}]}]}

    there = pod("x", "a", **port("10.0.0.1"))
    assert feasible(pod("p", **port("10.0.0.1")), there) == {"b", "c"}
    assert feasible(pod("p", **port("10.0.0.2")), there) == ANYWHERE
    assert feasible(pod("p", **port("0.0.0.0")), there) == {"b", "c"}
    assert feasible(pod("p", **port("10.0.0.2")), pod("x", "a", **port(""))) == {"b", "c"}


def test_labels_are_compared_as_numbers_only_if_kubernetes_reads_them_as_such() -> None:
    told = nodes(a={"labels": {"gen": "1_0"}}, b={"labels": {"gen": "007"}}, c={"labels": {"gen": "x"}})
    assert feasible(pod("p", **wanting("gen", "Gt", "5")), on=told) == {"b"}


def test_a_label_that_is_missing_is_in_no_set_and_so_not_in_any() -> None:
    told = nodes(a={"labels": {"disk": "ssd"}}, b={"labels": {"disk": "hdd"}})
    assert feasible(pod("p", **wanting("disk", "NotIn", "ssd")), on=told) == {"b", "c"}


def test_who_tolerates_the_taint_of_cordoned_nodes_goes_there_though_they_have_it_not() -> None:
    cordoned = nodes(a={"unschedulable": True})
    tolerating = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
    assert feasible(pod("p"), on=cordoned) == {"b", "c"}
    assert feasible(pod("p", tolerations=tolerating), on=cordoned) == ANYWHERE


def test_host_names_are_looked_at_node_by_node() -> None:
    assert feasible(pod("p", nodeSelector={"kubernetes.io/hostname": "b"})) == {"b"}
    assert feasible(pod("p", **wanting("kubernetes.io/hostname", "NotIn", "b"))) == {"a", "c"}
