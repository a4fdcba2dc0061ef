"""Rules about where tasks may go, one by one: what each means, what is said of those who wait, who is asked again."""

import pytest

from wattloom.cluster.node import Node
from wattloom.cluster.reasons import Reason
from wattloom.history.explanation import explain
from wattloom.policies.fifo import Fifo
from wattloom.policies.protocol import Ask, Policy, Proposal, Refusal, View
from wattloom.scheduling import events as ev
from wattloom.testing import builders
from wattloom.testing.harness import Harness
from wattloom.workload.constraints import (
    AffinityTerm,
    Constraints,
    Expression,
    NodeTerm,
    Port,
    Spread,
    Taint,
    Toleration,
)
from wattloom.workload.requirements import Requirements

WEB = (Expression("app", "In", ("web",)),)
AT_ANY_COST = Toleration("", "Exists")


def needs(constraints: Constraints | None = None, app: str = "web", **more: object) -> Requirements:
    return Requirements(1.0, constraints=constraints, task_labels=(("app", app),), **more)  # type: ignore[arg-type]


def cluster(*nodes: Node) -> Harness:
    """An engine that takes the first node by name."""
    h = Harness(new_policy=Fifo).machine(builders.LINEAR)
    for node in nodes:
        h.tell(ev.NodeJoined(h.time, node))
    return h


def node(name: str, zone: str = "", **more: object) -> Node:
    labels = {"zone": zone} if zone else {}
    return Node(name, "linear", cpu=50.0, labels=labels, own={"host": name}, **more)  # type: ignore[arg-type]


def found(h: Harness, task: str, node: str, wants: Requirements) -> None:
    h.define(builders.function("f"))
    h.tell(ev.TaskFound(h.time, builders.task(task, "f", wants), node))


# -- what is counted ---------------------------------------------------------------------------------------------------


def test_counted_resources_are_given_out_and_back() -> None:
    h = cluster(node("a", resources={"pods": 2, "gpu": 1}))
    h.submit("x", needs=Requirements(0.1, resources=(("gpu", 1), ("pods", 1))))
    h.submit("y", needs=Requirements(0.1, resources=(("gpu", 1), ("pods", 1))))
    h.submit("z", needs=Requirements(0.1, resources=(("pods", 1),)))
    assert [h.where(task) for task in "xyz"] == ["a", None, "a"]
    h.finish("z")
    assert h.where("y") is None
    h.finish("x")
    assert h.where("y") == "a"


@pytest.mark.parametrize(("resources", "reason"), [({}, "no-such-resource"), ({"gpu": 1}, "node-too-small")])
def test_a_node_that_never_has_enough_of_a_resource_says_so(resources: dict[str, int], reason: str) -> None:
    h = cluster(node("a", resources=resources))
    h.submit("x", needs=Requirements(0.1, resources=(("gpu", 2),)))
    assert h.reason("x") == Reason.NEVER_FITS
    ledger = h.engine.ledger
    told = explain(ledger.tasks["x"], ledger.view, h.engine.policy)
    assert [candidate.reason for candidate in told.candidates] == [reason]


def test_a_resource_that_a_node_gets_later_counts_what_was_found_there() -> None:
    h = cluster(node("a"))
    found(h, "old", "a", Requirements(0.1, resources=(("gpu", 1),)))
    h.change(node("a", resources={"gpu": 1}))
    h.submit("x", needs=Requirements(0.1, resources=(("gpu", 1),)))
    assert h.where("x") is None
    h.finish("old")
    assert h.where("x") == "a"


# -- found and leaving -------------------------------------------------------------------------------------------------


def test_a_task_that_is_found_takes_its_part_beyond_what_there_is() -> None:
    h = cluster(node("a"))
    found(h, "old", "a", Requirements(60.0))
    h.submit("x", needs=Requirements(1.0))
    h.submit("wants nothing", needs=Requirements(0.0))
    assert (h.where("old"), h.where("x"), h.where("wants nothing")) == ("a", None, "a")
    h.finish("old")
    assert h.where("x") == "a"


def test_a_task_that_waits_and_is_found_has_its_place_by_that() -> None:
    h = cluster(node("a", closed=True))
    h.submit("x")
    assert h.where("x") is None
    found(h, "x", "a", Requirements())
    assert (h.where("x"), h.attempt("x")) == ("a", 1)
    assert h.engine.ledger.view.queued == 0
    h.finish("x")


def test_a_task_that_somebody_else_put_elsewhere_moves_there() -> None:
    h = cluster(node("a"), node("b"))
    h.submit("x")
    assert h.where("x") == "a"
    found(h, "x", "b", Requirements())
    assert (h.where("x"), h.attempt("x")) == ("b", 2)
    assert not h.engine.ledger.index.nodes["a"].tasks


def test_a_task_that_has_started_is_not_found_elsewhere() -> None:
    h = cluster(node("a"), node("b"))
    found(h, "x", "a", Requirements())
    assert h.refused(ev.TaskFound(h.time, builders.task("x", "f"), "b")).field == "task"
    assert h.refused(ev.TaskFound(h.time, builders.task("y", "f"), "nowhere")).field == "node"


def test_a_task_found_before_what_it_comes_after_has_ended_runs_on() -> None:
    h = cluster(node("a"))
    h.submit("first")
    h.tell(ev.TaskSubmitted(h.time, builders.task("then", "f", after=("first",))))
    found(h, "then", "a", Requirements())
    h.tell(ev.CancelRequested(h.time, "first"))
    h.evicted("first")
    assert h.where("then") == "a"


def test_only_who_is_on_a_node_can_leave_it_and_only_once() -> None:
    h = cluster(node("a"))
    assert h.refused(ev.TaskLeaving(h.time, "nobody")).field == "task"
    h.submit("x")
    h.tell(ev.TaskLeaving(h.time, "x"))
    assert h.refused(ev.TaskLeaving(h.time, "x")).field == "task"


def test_a_task_found_on_a_sleeping_node_shows_that_it_is_awake() -> None:
    h = Harness(new_policy=Fifo).node("a", builders.SLEEPER, asleep=True)
    found(h, "x", "a", Requirements())
    assert h.engine.ledger.index.nodes["a"].mode.is_awake


# -- rules of classes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "constraints", "reason"),
    [
        (node("a", closed=True), None, "node-closed"),
        (node("a", taints=(Taint("spot"),)), None, "taint-not-tolerated"),
        (node("a", taints=(Taint("spot", "", "NoExecute"),)), None, "taint-not-tolerated"),
        (node("a", taints=(Taint("spot", "", "PreferNoSchedule"),)), None, None),
        (node("a", closed=True, taints=(Taint("spot"),)), Constraints(tolerations=(AT_ANY_COST,)), None),
        (node("a", "z"), Constraints(selector=(("zone", "y"),)), "affinity-differs"),
        (node("a", "z"), Constraints(terms=(NodeTerm(),)), "affinity-differs"),
        (node("a", "z"), Constraints(terms=(NodeTerm((Expression("zone", "Exists"),)), NodeTerm())), None),
        (node("a", "7"), Constraints(terms=(NodeTerm((Expression("zone", "Gt", ("6",)),)),)), None),
        (node("a", "seven"), Constraints(terms=(NodeTerm((Expression("zone", "Gt", ("6",)),)),)), "affinity-differs"),
        (node("a", "z"), Constraints(volumes=((NodeTerm((Expression("zone", "In", ("y",)),)),),)), "volume-elsewhere"),
        (node("a"), Constraints(selector=(("host", "b"),)), "affinity-differs"),
        (node("a"), Constraints(selector=(("host", "a"),)), None),
        (
            node("a"),
            Constraints(terms=(NodeTerm(fields=(Expression("metadata.name", "NotIn", ("a",)),)),)),
            "affinity-differs",
        ),
        (
            node("a"),
            Constraints(volumes=((NodeTerm(fields=(Expression("metadata.name", "In", ("a",)),)),),)),
            "volume-elsewhere",
        ),
    ],
)
def test_a_node_is_refused_for_this_reason(spec: Node, constraints: Constraints | None, reason: str | None) -> None:
    h = cluster(spec)
    h.submit("x", needs=needs(constraints))
    if reason is None:
        assert h.where("x") == "a"
        return
    ledger = h.engine.ledger
    told = explain(ledger.tasks["x"], ledger.view, h.engine.policy)
    assert [candidate.reason for candidate in told.candidates] == [reason]


# -- rules between tasks -----------------------------------------------------------------------------------------------


def test_a_port_is_one_tasks_and_every_address_means_all_of_them() -> None:
    h = cluster(node("a"))
    one, other, every = (needs(Constraints(ports=(Port(80, address=a),))) for a in ("10.0.0.1", "10.0.0.2", "0.0.0.0"))
    h.submit("one", needs=one)
    h.submit("other", needs=other)
    h.submit("every", needs=every)
    h.submit("udp", needs=needs(Constraints(ports=(Port(80, "UDP"),))))
    assert [h.where(task) for task in ("one", "other", "every", "udp")] == ["a", "a", None, "a"]
    assert h.reason("every") == Reason.PORT
    h.finish("one")
    assert h.where("every") is None
    h.finish("other")
    assert h.where("every") == "a"


def test_tasks_are_spread_over_zones_and_wait_where_that_would_be_too_uneven() -> None:
    h = cluster(node("a", "x"), node("b", "x"), node("c", "y", closed=True))
    spread = needs(Constraints(spread=(Spread("zone", 1, WEB),)))
    h.submit("1", needs=spread)
    h.submit("2", needs=spread)
    assert (h.where("1"), h.where("2"), h.reason("2")) == ("a", None, Reason.SPREAD)
    found(h, "3", "c", needs())
    assert h.where("2") == "a"


def test_who_is_leaving_does_not_count_where_tasks_are_spread() -> None:
    h = cluster(node("a", "x"), node("c", "y", closed=True))
    spread = needs(Constraints(spread=(Spread("zone", 1, WEB),)))
    h.submit("1", needs=spread)
    h.submit("2", needs=spread)
    assert h.where("2") is None
    h.tell(ev.TaskLeaving(h.time, "1"))
    assert h.where("2") == "a"
    h.finish("1")
    h.submit("3", needs=spread)
    assert h.where("3") is None


def test_too_few_domains_count_as_if_one_were_empty() -> None:
    h = cluster(node("a", "x"), node("b", "y"))
    spread = needs(Constraints(spread=(Spread("zone", 1, WEB, least_domains=3),)))
    for number in range(3):
        h.submit(str(number), needs=spread)
    assert [h.where(str(number)) for number in range(3)] == ["a", "b", None]
    h.tell(ev.NodeJoined(h.time, node("c", "z")))
    assert h.where("2") == "c"


def test_a_task_that_wants_company_waits_for_it_unless_it_is_the_first_of_its_kind() -> None:
    h = cluster(node("a", "x"), node("b", "y"))
    with_web = Constraints(affinity=(AffinityTerm("zone", WEB),))
    h.submit("db", needs=needs(with_web, "db"))
    assert h.reason("db") == Reason.COMPANY_MISSING
    found(h, "elsewhere", "b", needs())
    assert h.where("db") == "b"
    h.submit("web", needs=needs(with_web))
    assert h.where("web") == "b"
    h.finish("elsewhere")
    h.finish("web")
    h.submit("first", needs=needs(with_web))
    assert h.where("first") == "a"


def test_tasks_that_want_to_be_apart_keep_others_away_too() -> None:
    h = cluster(node("a"), node("b"))
    alone = Constraints(anti_affinity=(AffinityTerm("host", WEB),))
    h.submit("1", needs=needs(alone))
    h.submit("2", needs=needs(alone))
    h.submit("3", needs=needs(alone))
    h.submit("plain", needs=needs())
    h.submit("other", needs=needs(app="db"))
    assert [h.where(task) for task in ("1", "2", "3", "plain", "other")] == ["a", "b", None, None, "a"]
    assert (h.reason("3"), h.reason("plain")) == (Reason.COMPANY_UNWANTED, Reason.KEPT_AWAY)
    h.finish("2")
    assert (h.where("3"), h.where("plain")) == ("b", None)


def test_rules_look_in_the_spaces_that_they_name() -> None:
    h = cluster(node("a"))
    found(h, "there", "a", needs(namespace="prod"))
    h.submit("here", needs=needs(Constraints(anti_affinity=(AffinityTerm("host", WEB, ("test",)),))))
    h.submit("anywhere", needs=needs(Constraints(anti_affinity=(AffinityTerm("host", WEB),))))
    assert (h.where("here"), h.where("anywhere")) == ("a", None)


def test_a_higher_priority_goes_first_to_what_a_rule_opens() -> None:
    h = cluster(node("a"))
    alone = needs(Constraints(anti_affinity=(AffinityTerm("host", WEB),)))
    h.submit("there", needs=alone)
    h.submit("low", needs=alone)
    h.tell(ev.TaskSubmitted(h.time, builders.task("high", "f", alone, priority=2_000_001_000)))
    h.finish("there")
    assert (h.where("low"), h.where("high")) == (None, "a")


def test_a_label_that_changes_moves_a_node_to_another_domain() -> None:
    h = cluster(node("a", "x"), node("b", "x"))
    h.submit("1", needs=needs(Constraints(anti_affinity=(AffinityTerm("zone", WEB),))))
    h.submit("2", needs=needs(Constraints(anti_affinity=(AffinityTerm("zone", WEB),))))
    assert h.where("2") is None
    h.change(node("b", "y"))
    assert h.where("2") == "b"


def test_explanations_tell_nodes_of_one_class_apart_by_the_rule_that_bars_them() -> None:
    h = cluster(node("a"), node("b"), node("c"))
    alone = Constraints(anti_affinity=(AffinityTerm("host", WEB),))
    h.submit("1", needs=needs(alone))
    told = {}
    h.engine.watcher = lambda record: told.update(
        {each.first: each.reason for each in explain(record, h.engine.ledger.view, h.engine.policy).candidates}
    )
    h.submit("2", needs=needs(alone))
    assert told == {"a": Reason.COMPANY_UNWANTED, "b": Reason.TAKEN}


def test_a_policy_that_does_not_ask_for_allowed_nodes_is_caught() -> None:
    class Careless(Fifo):
        def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
            site = view.cheapest(ask.shape, self)
            return Refusal(view.why_none(ask.shape)) if site is None else Proposal(site.first(), 0.0)

    def new_policy() -> Policy:
        return Careless()

    h = Harness(new_policy=new_policy).machine(builders.LINEAR)
    h.tell(ev.NodeJoined(0.0, Node("a", "linear", own={"host": "a"})))
    h.tell(ev.NodeJoined(0.0, Node("b", "linear", own={"host": "b"})))
    h.submit("x", needs=needs(Constraints(selector=(("host", "b"),))))
    assert (h.where("x"), h.reason("x")) == (None, Reason.AFFINITY)


def test_watts_that_are_freed_on_a_node_which_rules_bar_help_who_waits_for_watts() -> None:
    h = cluster(node("a"), node("b"))
    h.cap(51.0)
    h.submit("there", needs=needs())
    h.submit("x", needs=needs(Constraints(selector=(("host", "b"),))))
    assert (h.where("there"), h.where("x"), h.reason("x")) == ("a", None, Reason.CLUSTER_WATTS)
    h.finish("there")
    assert h.where("x") == "b"
