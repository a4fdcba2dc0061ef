"""The extender's answers to single questions: choice, caps, assumptions, scores, and questions that make no sense."""

import json
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.beds.kubernetes.fleet import fake_node, fake_pod
from tests.kubernetes.extending import curve

from wattloom.cluster.index import FIRST_TIER, UNKNOWN_TIER
from wattloom.cluster.site import Site
from wattloom.energy.forecast import Unknown
from wattloom.errors import InputError
from wattloom.kubernetes.extender.answers import ALL, Answers
from wattloom.kubernetes.extender.choice import Choice
from wattloom.kubernetes.extender.cluster_state import bare_node
from wattloom.kubernetes.extender.extender import advising, kept
from wattloom.kubernetes.extender.load import MOST_ENDED, Loads
from wattloom.kubernetes.extender.pages import METRICS
from wattloom.kubernetes.extender.scores import scores
from wattloom.kubernetes.model.objects import Node, Pod
from wattloom.kubernetes.model.profiles import ANNOTATION
from wattloom.kubernetes.scheduler.scheduler import usable_policy
from wattloom.kubernetes.state import functions
from wattloom.kubernetes.state.driver import TimedDriver
from wattloom.kubernetes.state.node_cache import NodeCache
from wattloom.policies.least_joules import SLOW_TIER
from wattloom.policies.protocol import Policy, Proposal
from wattloom.policies.view import Ask, View
from wattloom.prediction.placement_estimate import PlacementEstimate
from wattloom.scheduling import events as ev
from wattloom.scheduling.engine import Engine
from wattloom.scheduling.instructions import AnyInstruction, Conclude
from wattloom.testing.fingerprint import fingerprint

Body = dict[str, Any]


class Bench:
    """The parts between the wire and the engine, with a clock that the test moves."""

    def __init__(self, *, keep: int = 1, policy: str = "least-joules", cap_w: float | None = None) -> None:
        self.time = 0.0
        self.synced = True
        self.driver = TimedDriver(
            advising(usable_policy(policy)),
            lambda _: None,
            clock=lambda: self.time,
            mode="record",
            remembered_ends=MOST_ENDED,
        )
        self.heard = 0
        self.freed: list[str] = []
        self.loads = Loads(
            self.driver,
            lambda name: self.nodes.counts(name),
            assume_s=30.0,
            freed=self.freed.append,
            heard=lambda: self.heard,
        )
        here, left, busy = self.loads.pods.node_here, self.loads.pods.node_left, self.loads.pods.busy
        self.nodes = NodeCache(self.driver, here=here, left=left, busy=busy, form=bare_node)
        if cap_w is not None:
            self.driver.tell(ev.CapChanged(0.0, cap_w))
        choice = Choice(self.driver.engine.policy, self.driver.engine.ledger)
        self.answers = Answers(self.driver, choice, self.loads, keep=keep, synced=lambda: self.synced)

    def node(self, name: str, profile: str | None = None, **options: Any) -> None:
        annotations = {ANNOTATION: profile} if profile else {}
        self.nodes.changed(msgspec.convert(fake_node(name, annotations=annotations, **options), Node))

    def filter(self, body: Body, *names: str) -> Body:
        asked = json.dumps({"Pod": body, "Nodes": None, "NodeNames": list(names)}).encode()
        answer: Body = json.loads(self.answers.filter(asked) or self.answers.filter(asked, last=True) or b"")
        return answer

    def chosen(self, body: Body, *names: str) -> list[str]:
        answer = self.filter(body, *names)
        assert answer["Error"] == ""
        found: list[str] = answer["NodeNames"]
        return found

    def scored(self, body: Body, *names: str) -> dict[str, int]:
        asked = {"Pod": body, "NodeNames": list(names)}
        answer = json.loads(self.answers.prioritize(json.dumps(asked).encode()) or b"")
        return {each["Host"]: each["Score"] for each in answer}

    def expected(self, name: str, node: str) -> float | None:
        """How long a pod of that name would run there; None: not known."""
        ledger = self.driver.engine.ledger
        shape = ledger.shape_of(self.loads.call(seen(pod(name))))
        found = ledger.predictor.expect(shape.function, shape.variants[0], ledger.view.nodes()[node].cls.machine)
        return None if isinstance(found, Unknown) else float(found.seconds)

    def demand(self, node: str) -> int:
        return self.driver.engine.ledger.view.nodes()[node].demand


def pod(name: str, *, cpu: str = "1", on: str = "", phase: str = "Pending", **options: Any) -> Body:
    body = fake_pod(name, cpu=cpu, node=on or None, **options)
    body["metadata"] |= {"uid": f"uid-of-{name}", "namespace": "default"}
    return {**body, "status": {"phase": phase}}


def seen(body: Body) -> Pod:
    return msgspec.convert(body, Pod)


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.node("dear", curve(250))
    bench.node("cheap", curve(90))
    bench.node("nameless")
    return bench


# -- the choice -------------------------------------------------------------------------------------------------------


def test_the_best_of_the_offered_nodes_is_chosen_and_no_other(bench: Bench) -> None:
    assert bench.chosen(pod("a"), "nameless", "dear", "cheap") == ["cheap"]
    assert bench.chosen(pod("b"), "dear", "nameless") == ["dear"]
    assert bench.chosen(pod("c"), "nameless") == ["nameless"]


def test_room_is_kube_schedulers_question(bench: Bench) -> None:
    """It has passed the node: perhaps it knows of pods that have just left."""
    for number in range(3):
        bench.loads.changed(seen(pod(f"full-{number}", cpu="4", on="cheap")))
    assert bench.demand("cheap") == 12_000
    assert bench.chosen(pod("a", cpu="4"), "cheap") == ["cheap"]


def test_taints_and_closed_nodes_are_kube_schedulers_question(bench: Bench) -> None:
    taint = {"key": "only", "value": "us", "effect": "NoSchedule"}
    bench.node("special", curve(60), taints=[taint], unschedulable=True)
    assert bench.chosen(pod("a"), "cheap", "special") == ["special"]


def test_so_many_as_are_kept_come_best_first() -> None:
    bench = Bench(keep=2)
    bench.node("c", curve(90))
    bench.node("b", curve(250))
    bench.node("a", curve(400))
    assert bench.chosen(pod("p"), "a", "b", "c") == ["c", "b"]
    assert not bench.loads.pods.by_uid  # which of them it will be is not known before the scores are asked for
    assert bench.scored(pod("p"), "c", "b")["c"] == 10
    assert bench.loads.assumed == 1


def test_nodes_that_came_later_and_sort_before_others_are_found_again(bench: Bench) -> None:
    assert bench.chosen(pod("a"), "cheap", "dear") == ["cheap"]
    bench.node("a-cheaper", curve(60))
    assert bench.chosen(pod("b"), "dear", "cheap", "a-cheaper") == ["a-cheaper"]
    assert bench.chosen(pod("c"), "cheap", "dear") == ["cheap"]


def test_every_offer_gets_the_node_that_ranking_all_of_them_would_give() -> None:
    from random import Random

    random = Random(6)
    bench = Bench()
    names = [f"n{number:03}" for number in range(60)]
    for name in names:
        bench.node(name, curve(random.choice((90, 120, 180, 250))) if random.random() < 0.9 else None)
    for number in range(300):
        offered = random.sample(names, random.randint(1, 40))
        task = bench.loads.call(seen(pod(f"p{number}", cpu=random.choice(("250m", "1", "2")))))
        view = bench.driver.engine.ledger.view
        shape = bench.driver.engine.ledger.shape_of(task)
        policy: Any = bench.driver.engine.policy
        ranked = sorted((policy.rank(shape, view.nodes()[name].site, view), name) for name in offered)
        cpu = f"{round((task.requirements.cpu if task.requirements else 0) * 1000)}m"
        assert bench.chosen(pod(f"p{number}", cpu=cpu), *offered) == [ranked[0][1]]


def test_a_node_that_is_not_known_yet_passes_only_for_want_of_others(bench: Bench) -> None:
    assert bench.chosen(pod("a"), "newcomer", "dear") == ["dear"]
    assert bench.chosen(pod("b"), "newcomer") == ["newcomer"]
    assert bench.scored(pod("c"), "newcomer", "dear") == {"newcomer": 0, "dear": 10}


# -- watts ------------------------------------------------------------------------------------------------------------


def test_nodes_that_would_draw_too_much_fail_with_the_reason() -> None:
    bench = Bench(keep=ALL)
    bench.node("capped", curve(250, capW=60.0))
    bench.node("free", curve(250))
    answer = bench.filter(pod("a"), "capped", "free")
    assert answer["NodeNames"] == ["free"]
    assert answer["FailedNodes"] == {"capped": "node(s) would draw more than their cap"}
    assert bench.filter(pod("b"), "capped")["NodeNames"] == []


def test_the_clusters_cap_counts_what_was_just_sent_there() -> None:
    bench = Bench(cap_w=100.0)  # two nodes idle at 50 W: nothing is left but what a core of 5 W draws
    bench.node("n1", curve(90))
    bench.node("n2", curve(90))
    assert (
        bench.filter(pod("a"), "n1", "n2")["FailedNodes"]["n1"] == "node(s) would take the cluster above its power cap"
    )
    bench.driver.tell(ev.CapChanged(bench.driver.now, 105.0))
    assert bench.chosen(pod("b"), "n1", "n2") == ["n1"]
    assert bench.chosen(pod("c"), "n1", "n2") == []
    assert bench.chosen(pod("b"), "n1", "n2") == ["n1"]  # asked again of the same pod: it does not stand in its own way
    assert bench.filter(pod("d"), "stranger")["FailedNodes"] == {"stranger": "node(s) not known to Wattloom yet"}


@pytest.mark.parametrize(("policy", "expected"), [("marginal-energy:tdp=false", "small"), ("marginal-energy", "large")])
def test_tdp_is_kept_on_the_policys_terms(policy: str, expected: str) -> None:
    bench = Bench(policy=policy)
    bench.node("small", curve(90, tdpW=52.0, quantity="package"))
    bench.node("large", curve(250, tdpW=250.0, quantity="package"))
    assert bench.chosen(pod("a"), "small", "large") == [expected]


def test_a_refusal_is_looked_at_twice_since_kube_scheduler_may_have_seen_a_pod_leave_first() -> None:
    bench = Bench()
    bench.node("n1", curve(250, capW=80.0))
    bench.loads.changed(seen(pod("old", on="n1")))
    asked = json.dumps({"Pod": pod("new"), "NodeNames": ["n1"]}).encode()
    assert bench.answers.filter(asked) is None  # a moment, please
    bench.loads.deleted(seen(pod("old", on="n1")))
    assert json.loads(bench.answers.filter(asked, last=True) or b"")["NodeNames"] == ["n1"]
    again = json.dumps({"Pod": pod("third"), "NodeNames": ["n1"]}).encode()
    assert json.loads(bench.answers.filter(again) or b"")["NodeNames"] == []  # not with every refusal
    bench.time += 1.0
    assert bench.answers.filter(again) is None


# -- what is assumed --------------------------------------------------------------------------------------------------


def test_a_pod_counts_where_it_was_sent_until_it_is_seen_there(bench: Bench) -> None:
    bench.chosen(pod("a"), "cheap", "dear")
    assert bench.demand("cheap") == 1000
    bench.loads.changed(seen(pod("a", on="cheap")))
    assert (bench.demand("cheap"), bench.loads.assumed, len(bench.loads.pods.by_uid)) == (1000, 0, 1)
    bench.time = 1000.0
    bench.loads.expire()
    assert bench.demand("cheap") == 1000
    bench.loads.deleted(seen(pod("a", on="cheap")))
    assert bench.demand("cheap") == 0
    assert bench.driver.refused == 0


def test_a_pod_that_went_elsewhere_counts_there(bench: Bench) -> None:
    bench.chosen(pod("a"), "cheap", "dear")
    bench.loads.changed(seen(pod("a", on="dear")))
    assert (bench.demand("cheap"), bench.demand("dear"), bench.loads.elsewhere) == (0, 1000, 1)
    assert bench.driver.refused == 0


def test_a_pod_that_went_elsewhere_is_learned_with_its_whole_run(bench: Bench) -> None:
    """It was known before it ran, wherever it was thought to go."""
    for number in range(5):
        name = f"job-{number}"
        bench.chosen(pod(name), "cheap", "dear")
        bench.loads.changed(seen(pod(name, on="dear", phase="Running")))
        bench.time += 60.0
        bench.loads.deleted(seen(pod(name, on="dear", phase="Succeeded")))
    assert bench.expected("job-9", "dear") == pytest.approx(60.0)
    assert bench.driver.refused == 0


def test_whoever_was_refused_hears_of_each_node_that_load_has_left(bench: Bench) -> None:
    def freed(what: Callable[[Pod], None], body: Body) -> list[str]:
        bench.freed.clear()
        what(seen(body))
        return list(bench.freed)

    bench.chosen(pod("a"), "cheap", "dear")
    assert freed(bench.loads.changed, pod("a", on="dear")) == ["cheap"]
    assert freed(bench.loads.changed, pod("a", on="dear", phase="Running")) == []
    assert freed(bench.loads.changed, pod("a", on="dear", cpu="500m", phase="Running")) == ["dear"]
    assert freed(bench.loads.deleted, pod("a", on="dear")) == ["dear"]
    assert freed(bench.loads.changed, pod("b", on="unknown")) == []
    assert freed(bench.loads.deleted, pod("b", on="unknown")) == []


def test_a_pod_that_goes_nowhere_is_given_up_after_a_while(bench: Bench) -> None:
    bench.chosen(pod("a"), "cheap", "dear")
    bench.time, bench.heard = 29.0, 1
    bench.loads.expire()
    assert bench.demand("cheap") == 1000
    bench.time = 31.0
    bench.loads.expire()
    assert (bench.demand("cheap"), bench.loads.expired, bench.loads.pods.by_uid) == (0, 1, {})
    assert bench.chosen(pod("a"), "cheap", "dear") == ["cheap"]  # and may come again
    assert bench.driver.refused == 0


def test_nothing_is_given_up_while_nothing_is_heard_of_pods(bench: Bench) -> None:
    bench.heard = 7
    bench.chosen(pod("a"), "cheap", "dear")
    bench.time = 200.0
    bench.loads.expire()
    assert (bench.demand("cheap"), bench.loads.expired) == (1000, 0)
    bench.heard = 8
    bench.loads.expire()
    assert (bench.demand("cheap"), bench.loads.expired) == (0, 1)


@pytest.mark.parametrize("keep", [1, ALL])
def test_a_pod_counts_where_it_was_sent_if_only_one_node_is_left_of_all(keep: int) -> None:
    """kube-scheduler asks for no scores then."""
    bench = Bench(keep=keep)
    bench.node("small", curve(250, capW=80.0))  # 50 W idle and 25 W a core: room for one
    bench.node("full", curve(250, capW=60.0))
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    wish = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}
    spec = {"affinity": {"nodeAffinity": wish}}
    assert bench.chosen(pod("a", spec=spec), "small", "full") == ["small"]
    assert bench.demand("small") == 1000
    assert bench.chosen(pod("b", spec=spec), "small", "full") == []
    bench.loads.changed(seen(pod("a", on="small")))
    assert (bench.loads.assumed, bench.demand("small")) == (0, 1000)


def test_pods_stay_counted_while_their_node_comes_and_goes(bench: Bench) -> None:
    bench.loads.changed(seen(pod("a", on="late")))
    bench.node("late", curve(90))
    assert bench.demand("late") == 1000
    bench.nodes.deleted("late")
    bench.node("late", curve(90))
    assert bench.demand("late") == 1000
    bench.loads.changed(seen(pod("a", on="late", cpu="2")))  # resized in place
    assert bench.demand("late") == 2000
    assert bench.driver.refused == 0


def test_run_times_are_learned_from_pods_that_end(bench: Bench) -> None:
    for number in range(5):
        lives(bench, f"job-{number}", "Pending", "Running")
    assert bench.expected("job-9", "cheap") == pytest.approx(60.0)


THREE_SECONDS = {"terminated": {"startedAt": "2026-01-01T10:00:00Z", "finishedAt": "2026-01-01T10:00:03Z"}}


@pytest.mark.parametrize("phases", [("Pending", "Running"), ("Running",)])
def test_run_times_are_those_written_on_the_containers(bench: Bench, phases: tuple[str, ...]) -> None:
    """Of pods that ran before they were known too."""
    for number in range(3):
        lives(bench, f"job-{number}", *phases, ran=[{"name": "c", "state": THREE_SECONDS}])
    assert bench.expected("job-9", "cheap") == pytest.approx(3.0)


def lives(bench: Bench, name: str, *phases: str, end: str = "Succeeded", ran: Sequence[Body] = (), **meta: Any) -> None:
    """Ten seconds in each phase, in the last one a minute."""
    for phase in phases:
        bench.time += 10.0
        bench.loads.changed(seen(pod(name, on="cheap", phase=phase)))
    bench.time += 60.0
    body = pod(name, on="cheap", phase=end)
    body["metadata"] |= meta
    body["status"]["containerStatuses"] = ran
    bench.loads.deleted(seen(body))


def test_of_pods_that_ran_before_they_were_known_nothing_is_learned(bench: Bench) -> None:
    """Nobody knows when they began: after every restart of the extender that would be too short."""
    for number in range(5):
        lives(bench, f"job-{number}", "Running", "Running")
        lives(bench, f"task-{number}", "Running", "Unknown", "Running")
    assert not bench.expected("job-9", "cheap")
    assert not bench.expected("task-9", "cheap")


def test_of_pods_that_were_stopped_nothing_is_learned(bench: Bench) -> None:
    for number in range(5):
        lives(bench, f"job-{number}", "Pending", "Running", deletionTimestamp="2026-01-01T00:00:00Z")
        lives(bench, f"task-{number}", "Pending", "Running", end="Failed")
    assert not bench.expected("job-9", "cheap")
    assert not bench.expected("task-9", "cheap")
    assert bench.demand("cheap") == 0


def test_a_pod_that_is_resized_while_it_runs_is_learned_with_its_whole_run(bench: Bench) -> None:
    for number in range(5):
        name = f"job-{number}"
        bench.loads.changed(seen(pod(name, on="cheap")))
        bench.loads.changed(seen(pod(name, on="cheap", phase="Running")))
        bench.time += 30.0
        bench.loads.changed(seen(pod(name, on="cheap", cpu="2", phase="Running")))
        bench.time += 30.0
        bench.loads.deleted(seen(pod(name, on="cheap", cpu="2", phase="Succeeded")))
    assert bench.expected("job-9", "cheap") == pytest.approx(60.0)
    assert bench.driver.refused == 0


class Told:
    """A log that keeps events."""

    def __init__(self) -> None:
        self.events: list[ev.AnyEvent] = []

    def write(self, event: ev.AnyEvent, instructions: list[AnyInstruction]) -> None:
        self.events.append(event)


@pytest.mark.parametrize("policy", ["least-joules", "round-robin"])
def test_all_that_the_engine_knows_it_was_told_as_events(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "MOST_IDLE", 20)
    bench, told = Bench(policy=policy), Told()
    bench.driver.driver.log = told
    bench.node("dear", curve(250))
    bench.node("cheap", curve(90))
    for number in range(60):
        lives(bench, f"job-{number}-x", "Pending", "Running")
        bench.chosen(pod(f"ask-{number}-x"), "cheap", "dear")
        bench.scored(pod(f"rank-{number}-x"), "cheap", "dear")
        bench.heard += 1
        bench.loads.expire()
    again = Engine(advising(usable_policy(policy)), remembered_ends=MOST_ENDED)
    for event in told.events:
        assert all(isinstance(each, Conclude) for each in again.handle(event))
    one, other = fingerprint(bench.driver.engine), fingerprint(again)
    for topic in ("nodes", "functions", "ended", "view", "learned", "arrivals"):
        assert one[topic] == other[topic], topic
    assert bench.driver.engine.proposals == 0
    assert any(isinstance(each, ev.FunctionsForgotten) for each in told.events)
    assert bench.driver.refused == 0


def test_a_round_goes_on_from_the_last_answer() -> None:
    bench = Bench(policy="round-robin")
    for name in ("a", "b", "c"):
        bench.node(name, curve(90))
    assert [bench.chosen(pod(f"p{number}"), "a", "b", "c") for number in range(4)] == [["a"], ["b"], ["c"], ["a"]]


def test_functions_that_were_called_once_are_forgotten_in_time(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "MOST_IDLE", 20)
    ledger = bench.driver.engine.ledger
    for number in range(5):
        lives(bench, f"kept-{number}", "Pending", "Running")
    bench.loads.changed(seen(pod("stays", on="cheap")))
    for number in range(2_000):
        lives(bench, f"job-{number}-x", "Pending", "Running")
        bench.chosen(pod(f"ask-{number}-x"), "cheap")  # refused or sent elsewhere: it never comes
        bench.heard += 1
        bench.loads.expire()
        if number % 5 == 0:
            bench.expected("kept-9", "cheap")
    assert len(ledger.functions) <= 20 + 2
    assert len(ledger.predictor.measured()) <= 20
    assert len(ledger.ended) <= MOST_ENDED
    assert bench.expected("kept-9", "cheap") == pytest.approx(60.0)
    assert bench.expected("job-1-x", "cheap") is None  # may come again, as one that is new
    bench.nodes.deleted("cheap")
    bench.node("cheap", curve(90))
    assert bench.demand("cheap") == 2000  # of the one that stays, and of the last that was asked about
    assert bench.driver.refused == 0


def test_a_profile_of_another_architecture_leaves_the_node_in_use_though_pods_are_there(bench: Bench) -> None:
    bench.loads.changed(seen(pod("a", on="cheap")))
    bench.node("cheap", curve(90, arch="aarch64"))
    assert "arch" in bench.nodes.problems["cheap"]
    bench.node("cheap", curve(90, arch="amd64", capW=70.0))
    assert (bench.driver.refused, bench.nodes.problems) == (0, {})
    assert bench.driver.engine.ledger.nodes["cheap"].cap_w == 70.0
    assert bench.demand("cheap") == 1000


def test_an_absurd_profile_leaves_the_others_in_use(bench: Bench) -> None:
    absurd = json.dumps({"cores": 8, "coresWatts": [[0, 1e308], [8, 1.7e308]]})
    bench.node("absurd", absurd)
    bench.node("cheap", absurd)
    assert bench.chosen(pod("a"), "absurd", "dear", "cheap") == ["dear"]
    assert bench.driver.refused == 0


# -- scores -----------------------------------------------------------------------------------------------------------


def test_scores_follow_costs_and_what_is_unknown_gets_nothing() -> None:
    known = {key: (FIRST_TIER, cost, 0.0) for key, cost in ((1, 100.0), (2, 200.0), (3, 150.0))}
    assert scores(known | {4: None, 5: (UNKNOWN_TIER, inf, inf)}) == {1: 10, 2: 3, 3: 6, 4: 0, 5: 0}


def test_costs_that_hardly_differ_leave_the_choice_to_kubernetes() -> None:
    assert scores({1: (FIRST_TIER, 100.0, 0.0), 2: (FIRST_TIER, 101.0, 0.0)}) == {1: 10, 2: 10}
    assert scores({1: (FIRST_TIER, 0.0, 0.0), 2: (FIRST_TIER, 0.0, 0.0)}) == {1: 10, 2: 10}


def test_slow_and_half_known_places_come_after_known_ones() -> None:
    known = {1: (FIRST_TIER, 500.0, 0.0), 2: (FIRST_TIER, 900.0, 0.0), 3: (SLOW_TIER, 5.0, 1.0)}
    unknown = {4: (UNKNOWN_TIER, inf, 7.0), 5: (UNKNOWN_TIER, inf, inf)}
    assert scores(known | unknown) == {1: 10, 2: 3, 3: 2, 4: 1, 5: 0}
    assert scores(unknown | {6: (UNKNOWN_TIER, inf, 14.0)}) == {4: 10, 6: 3, 5: 0}


# -- questions that make no sense -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "cannot be read"),
        (b"{", "cannot be read"),
        (b"[]", "cannot be read"),
        (b'{"Pod": {"metadata": {"uid": 5}}, "NodeNames": []}', "cannot be read"),
        (b'{"Pod": {"metadata": {"uid": "u"}}, "NodeNames": [5]}', "cannot be read"),
        (b'{"Pod": {"metadata": {}}, "NodeNames": ["cheap"]}', "uid is missing"),
        (b'{"Pod": {"metadata": {"uid": "u"}}, "NodeNames": null}', "nodeCacheCapable: true"),
        (b'{"Pod": {"metadata": {"uid": "u"}}, "Nodes": {"items": []}}', "nodeCacheCapable: true"),
        (b'{"Pod": null, "NodeNames": ["cheap"]}', "cannot be read"),
        ("\ud800".encode("utf-8", "surrogatepass"), "cannot be read"),
    ],
)
def test_a_question_that_makes_no_sense_is_answered_in_words(bench: Bench, body: bytes, words: str) -> None:
    for verb in (bench.answers.filter, bench.answers.prioritize):
        assert words in json.loads(verb(body) or b"")["Error"]
    assert bench.chosen(pod("a"), "cheap") == ["cheap"]


def test_amounts_and_wishes_that_cannot_be_read_count_as_none(bench: Bench) -> None:
    odd = pod("odd", cpu="lots", annotations={"wattloom.dev/energy-weight": "very"})
    assert bench.chosen(odd, "cheap") == ["cheap"]


def test_a_policy_that_fails_is_told_as_an_error(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("of the policy")

    monkeypatch.setattr(type(bench.driver.engine.policy), "rank", broken)
    assert "ZeroDivisionError: of the policy" in bench.filter(pod("a"), "cheap")["Error"]


@pytest.mark.parametrize("named", ["dear", "no node at all"])
def test_a_policy_that_names_a_node_that_was_not_offered_is_not_followed(
    bench: Bench, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Elsewhere(Policy):
        def propose(self, ask: Ask, view: View) -> Proposal:
            return Proposal(named, 0.0)

        def judge(self, ask: Ask, site: Site, estimate: PlacementEstimate, view: View) -> float:
            return 0.0

    choice = Choice(Elsewhere(), bench.driver.engine.ledger)
    monkeypatch.setattr(bench.answers, "_choice", choice)
    assert bench.filter(pod("a"), "cheap")["NodeNames"] == []


def test_before_the_cluster_was_read_every_node_passes_and_that_is_said_once(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.synced = False
    for number in range(3):
        assert bench.chosen(pod(f"p{number}"), "any", "other") == ["any", "other"]
    assert bench.scored(pod("q"), "any", "other") == {"any": 0, "other": 0}
    assert sum("every node passes" in each.message for each in caplog.records) == 1


def test_a_node_that_is_offered_twice_counts_once(bench: Bench) -> None:
    assert bench.chosen(pod("a"), "dear", "dear", "nameless", "nameless", "nameless") == ["dear"]


def test_an_empty_offer_gets_an_empty_answer(bench: Bench) -> None:
    assert bench.chosen(pod("a")) == []
    assert bench.scored(pod("a")) == {}


def test_keep_is_a_number_or_all() -> None:
    assert (kept("3"), kept("all")) == (3, ALL)
    for wrong in ("0", "-1", "some", "1.5", ""):
        with pytest.raises(InputError, match="must be a number from 1, or all"):
            kept(wrong)


def test_every_metric_is_in_the_reference_with_its_meaning() -> None:
    text = Path("docs/reference/kubernetes-extender.md").read_text()
    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        assert f"| `{metric.full_name}` | {metric.kind} | {labels} | {metric.help} |" in text
