"""What the engine is told of pods and nodes: no pod is lost, no node is given out twice, whatever comes in which order.

The rolls and the engine are real and wired as in the scheduler; the test is the API server's word and the binder.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest
from tests.beds.kubernetes import Api, eventually
from tests.beds.kubernetes.fleet import fake_node, fake_pod
from tests.kubernetes.running import CURVE, PROFILE, Running, nodes, pods

from wattloom.cluster.node import Node as EngineNode
from wattloom.kubernetes.model import event_messages
from wattloom.kubernetes.model.objects import Node, Pod
from wattloom.kubernetes.model.profiles import Profiles
from wattloom.kubernetes.model.storage_cache import StorageCache
from wattloom.kubernetes.model.templates import Templates
from wattloom.kubernetes.options import usable_policy
from wattloom.kubernetes.state.driver import TimedDriver
from wattloom.kubernetes.state.node_cache import NodeCache
from wattloom.kubernetes.state.pod_cache import PodCache
from wattloom.kubernetes.state.pod_entry import At, PodEntry
from wattloom.prediction.runtimes import ENOUGH_SAMPLES
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import AnyInstruction, Place
from wattloom.scheduling.invariants import check
from wattloom.scheduling.state import Stage, TaskRecord
from wattloom.units import MILLI

OURS = "wattloom"
ZONE = "topology.kubernetes.io/zone"
EVERYWHERE = {"tolerations": [{"operator": "Exists"}]}


class Bench:
    """The rolls and an engine, without a cluster. The test moves the clock, and says what becomes of bindings."""

    def __init__(self) -> None:
        self.time = 0.0
        self.ready: list[PodEntry] = []
        self.told: list[ev.AnyEvent] = []
        self._runner = asyncio.Runner()
        self.driver = _Noted(self.told, self._carry_out, lambda: self.time)
        self.pods = PodCache(
            self.driver,
            Templates(StorageCache()),
            ours=lambda pod: pod.spec.scheduler_name == OURS,
            node_counts=lambda name: self.nodes.counts(name),
            settled=lambda name: self.nodes.settled(name),
            ready=self.ready.append,
            not_followed=lambda entry, wrong: None,
        )
        self.nodes = NodeCache(self.driver, here=self.pods.node_here, left=self.pods.node_left, busy=self.pods.busy)

    def _carry_out(self, instruction: AnyInstruction) -> None:
        if isinstance(instruction, Place):
            self.pods.placed(self.pods.by_task[instruction.task], instruction.node, instruction.attempt)

    def _in_loop(self, work: Any, *args: Any) -> None:
        async def worked() -> None:
            work(*args)
            self._take_in()
            check(self.driver.engine)

        self._runner.run(worked())

    def _take_in(self) -> None:
        while self.ready:
            self.pods.submit(self.ready.pop(0))

    def close(self) -> None:
        self.driver.stop()
        self._runner.close()

    # -- what happens --------------------------------------------------------------------------------------------------

    def node(self, name: str, **about: Any) -> None:
        self._in_loop(self.nodes.changed, msgspec.convert(fake_node(name, **about), Node))

    def node_gone(self, name: str) -> None:
        self._in_loop(self.nodes.deleted, name)

    def pod(self, name: str, *, on: str = "", phase: str = "Pending", leaving: bool = False, **about: Any) -> PodEntry:
        """The API server says that it is so. Pods of ours, unless told otherwise."""
        self._in_loop(self.pods.changed, a_pod(name, on=on, phase=phase, leaving=leaving, **about))
        return self.entry(name)

    def ended(self, name: str, phase: str, **about: Any) -> None:
        self._in_loop(self.pods.changed, a_pod(name, phase=phase, **about))

    def removed(self, name: str, **about: Any) -> None:
        self._in_loop(self.pods.deleted, a_pod(name, **about))

    def not_bound(self, name: str) -> None:
        self._in_loop(self.pods.not_bound, self.entry(name), "its node is gone")

    def tell(self, event: ev.AnyEvent) -> None:
        self._in_loop(self.driver.tell, event)

    # -- what is so ----------------------------------------------------------------------------------------------------

    def entry(self, name: str) -> PodEntry:
        return self.pods.by_uid[f"uid-of-{name}"]

    def record(self, name: str) -> TaskRecord:
        """What the engine has of it."""
        task = self.entry(name).task
        assert task is not None
        return self.driver.engine.ledger.tasks[task.id]

    def cpus(self, node: str) -> float:
        """Given out."""
        return self.driver.engine.ledger.index.nodes[node].allocated / MILLI

    def learned(self, name: str) -> list[float | None]:
        """Run times that were told of ended tasks of this pod."""
        ends = (each for each in self.told if isinstance(each, ev.TaskFinished))
        return [each.seconds for each in ends if f"/{name}#" in each.task]

    @property
    def refused(self) -> int:
        return self.driver.refused


class _Noted(TimedDriver):
    """Keeps what was told."""

    def __init__(self, told: list[ev.AnyEvent], carry_out: Any, clock: Any) -> None:
        super().__init__(usable_policy("least-joules"), carry_out, clock=clock)
        self._told = told

    def tell(self, event: ev.AnyEvent) -> bool:
        self._told.append(event)
        return super().tell(event)


def a_pod(
    name: str,
    *,
    on: str = "",
    phase: str = "Pending",
    leaving: bool = False,
    ran: Sequence[dict[str, Any]] = (),
    **about: Any,
) -> Pod:
    body = fake_pod(name, **{"cpu": "1", "scheduler": OURS, "node": on or None, **about})
    body["metadata"] |= {"uid": f"uid-of-{name}", "namespace": "default"}
    if leaving:
        body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return msgspec.convert({**body, "status": {"phase": phase, "containerStatuses": ran}}, Pod)


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.close()


# -- nodes that are deleted ------------------------------------------------------------------------------------------


def test_a_pod_that_waits_for_a_full_node_still_waits_when_that_node_is_deleted(bench: Bench) -> None:
    bench.node("n1", cpu="4")
    bench.pod("old", cpu="4", on="n1")
    assert bench.pod("new", cpu="4").at is At.QUEUED
    bench.node_gone("n1")
    assert bench.entry("new").at is At.QUEUED
    assert bench.record("new").stage is Stage.QUEUED
    assert bench.entry("old").at is At.STRANDED
    bench.node("n2", cpu="4")
    assert (bench.entry("new").at, bench.entry("new").node) == (At.BINDING, "n2")
    assert bench.refused == 0


def test_a_pod_that_tolerates_everything_does_not_go_to_a_deleted_node_either(bench: Bench) -> None:
    bench.node("n1", cpu="4")
    bench.pod("old", cpu="4", on="n1")
    bench.pod("new", cpu="4", spec=EVERYWHERE)
    bench.node_gone("n1")
    assert bench.record("new").stage is Stage.QUEUED
    assert bench.refused == 0


def test_nothing_goes_to_a_deleted_node_while_a_binding_to_it_is_not_known(bench: Bench) -> None:
    bench.node("n1", cpu="4")
    assert bench.pod("first", cpu="4").at is At.BINDING
    bench.pod("next", cpu="4", spec=EVERYWHERE)
    bench.node_gone("n1")
    bench.not_bound("first")
    assert bench.entry("next").at is At.QUEUED
    assert bench.record("next").stage is Stage.QUEUED
    assert not bench.nodes.counts("n1")
    assert bench.refused == 0


def test_a_deleted_node_that_is_made_again_takes_pods_again(bench: Bench) -> None:
    bench.node("n1", cpu="4")
    bench.pod("first", cpu="2")
    bench.node_gone("n1")
    bench.node("n1", cpu="4")
    assert (bench.pod("next", cpu="2").at, bench.entry("next").node) == (At.BINDING, "n1")


def test_a_pod_of_which_the_engine_knows_nothing_more_is_told_to_it_again(bench: Bench) -> None:
    bench.node("n1")
    bench.pod("one")
    bench.tell(ev.NodeLost(0.0, "n1"))
    bench.not_bound("one")
    assert bench.entry("one").at is At.QUEUED
    assert bench.record("one").stage is Stage.QUEUED


def test_pods_of_a_node_that_comes_back_count_there_again(bench: Bench) -> None:
    bench.node("n1", cpu="4")
    bench.pod("old", cpu="3", on="n1")
    bench.node_gone("n1")
    bench.node("n1", cpu="4")
    assert bench.entry("old").at is At.ON_NODE
    assert bench.cpus("n1") == 3
    bench.removed("old")
    assert bench.cpus("n1") == 0
    assert bench.refused == 0


def test_a_pod_that_was_being_deleted_still_is_when_its_node_comes_back(bench: Bench) -> None:
    bench.node("n1", cpu="4")
    bench.pod("old", on="n1")
    bench.pod("old", on="n1", leaving=True)
    bench.node_gone("n1")
    bench.node("n1", cpu="4")
    assert bench.record("old").holding.leaving
    bench.pod("old", on="n1", leaving=True)
    assert bench.refused == 0


def test_a_pod_whose_deletion_began_while_its_node_was_gone_is_leaving(bench: Bench) -> None:
    bench.node("n1", cpu="4")
    bench.pod("old", on="n1")
    bench.node_gone("n1")
    bench.pod("old", on="n1", leaving=True)
    bench.node("n1", cpu="4")
    assert bench.record("old").holding.leaving
    assert bench.refused == 0


# -- pods that change on their nodes ---------------------------------------------------------------------------------


def test_another_label_on_a_running_pod_gives_its_room_to_nobody(bench: Bench) -> None:
    bench.node("n1", cpu="4")
    bench.pod("old", cpu="4", on="n1")
    bench.pod("new", cpu="4")
    bench.pod("old", cpu="4", on="n1", labels={"tier": "back"})
    assert bench.entry("new").at is At.QUEUED
    assert bench.cpus("n1") == 4
    bench.removed("old")
    assert (bench.entry("new").at, bench.cpus("n1")) == (At.BINDING, 4)
    assert bench.refused == 0


def test_a_running_pod_that_was_made_smaller_gives_back_what_it_no_longer_has(bench: Bench) -> None:
    bench.node("n1", cpu="4")
    bench.pod("old", cpu="4", on="n1")
    bench.pod("new", cpu="2")
    bench.pod("old", cpu="3", on="n1")
    assert (bench.entry("new").at, bench.cpus("n1")) == (At.QUEUED, 3)
    bench.pod("old", cpu="2", on="n1")
    assert (bench.entry("new").at, bench.cpus("n1")) == (At.BINDING, 4)
    assert bench.refused == 0


def test_a_pod_that_is_being_deleted_and_gets_another_label_is_still_leaving(bench: Bench) -> None:
    bench.node("n1")
    bench.pod("old", on="n1", leaving=True)
    bench.pod("old", on="n1", leaving=True, labels={"tier": "back"})
    assert bench.record("old").holding.leaving
    assert bench.refused == 0


def test_company_goes_by_the_labels_that_pods_have_now(bench: Bench) -> None:
    bench.node("a", labels={ZONE: "a"})
    bench.node("b", labels={ZONE: "b"})
    bench.pod("old", on="a", labels={"app": "db"})
    bench.pod("old", on="a", labels={"app": "web"})
    assert bench.pod("near-db", spec=_affinity("podAffinity", "db")).at is At.QUEUED
    assert bench.pod("near-web", spec=_affinity("podAffinity", "web")).node == "a"
    assert bench.pod("apart-web", spec=_affinity("podAntiAffinity", "web")).node == "b"
    assert bench.refused == 0


def test_a_pod_with_another_label_is_counted_once_where_pods_are_spread(bench: Bench) -> None:
    bench.node("a", labels={ZONE: "a"})
    bench.node("b", labels={ZONE: "b"})
    bench.pod("old", on="a", labels={"app": "web"})
    bench.pod("old", on="a", labels={"app": "web", "tier": "back"})
    spread = [bench.pod(f"web-{number}", labels={"app": "web"}, spec=_SPREAD).node for number in range(3)]
    assert sorted(["a", *spread]) == ["a", "a", "b", "b"]
    assert bench.refused == 0


def _affinity(kind: str, app: str) -> dict[str, Any]:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


_SPREAD = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
}


# -- pods that change while they wait --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotation", "field", "before", "after"),
    [
        ("defer-seconds", "defer_s", 3600.0, 1.0),
        ("deadline-seconds", "deadline_s", 3600.0, 60.0),
        ("energy-weight", "energy_weight", 0.25, 0.75),
    ],
)
def test_a_corrected_wish_of_a_pod_that_waits_counts(
    bench: Bench, annotation: str, field: str, before: float, after: float
) -> None:
    name = f"wattloom.dev/{annotation}"
    bench.pod("one", annotations={name: str(before)})
    assert getattr(bench.record("one").task, field) == before
    bench.pod("one", annotations={name: str(after)})
    assert bench.entry("one").at is At.QUEUED
    assert getattr(bench.record("one").task, field) == after
    assert bench.refused == 0


def test_a_corrected_run_time_of_a_pod_that_waits_counts(bench: Bench) -> None:
    for seconds in ("3600", "60"):
        bench.pod("one", annotations={"wattloom.dev/runtime-seconds": seconds})
    function = bench.record("one").shape.function
    assert [list(each.seconds.values()) for each in function.variants] == [[60.0]]


def test_a_pod_that_waits_and_changes_in_nothing_that_counts_keeps_its_turn(bench: Bench) -> None:
    wishes = {"wattloom.dev/defer-seconds": "60", "wattloom.dev/runtime-seconds": "5"}
    bench.pod("one", annotations=wishes)
    known = bench.record("one")
    bench.pod("one", annotations={**wishes, "example.com/seen": "yes"})
    assert bench.record("one") is known


def test_nobody_writes_on_for_a_pod_that_was_deleted_while_it_waited(running: Running, api: Api, space: str) -> None:
    """Made again under its name, it is another pod: what was to be said of the first would conflict for ever.

    It is gone without notice, as after a watch that was cut."""
    conditions, cache = running.scheduler.conditions, running.scheduler.state.pods
    changed = cache.changed
    write, send = conditions._write, conditions._send
    writing: list[PodEntry] = []
    sent: list[str] = []

    async def counted(entry: PodEntry, wanted: Any) -> None:
        writing.append(entry)
        await write(entry, wanted)
        writing.remove(entry)

    async def made_again(pod: Pod, wanted: Any) -> None:
        sent.append(pod.metadata.uid)
        if len(sent) == 1:
            api.delete(f"/api/v1/namespaces/{space}/pods/one", gracePeriodSeconds=0)
            pods(api, space, "one", cpu="2")
        await send(pod, wanted)

    def without_notice(pod: Pod) -> None:
        if pod.metadata.deletion_timestamp is None:
            changed(pod)

    running.call(lambda: setattr(cache, "changed", without_notice))
    running.call(lambda: setattr(conditions, "_write", counted))
    running.call(lambda: setattr(conditions, "_send", made_again))
    nodes(api, "n1", cpu="1")
    pods(api, space, "one", cpu="2")
    eventually(lambda: conditions.written == 1, 60)
    eventually(lambda: not writing, 60)
    assert len(set(sent)) == 2


def test_a_mistyped_annotation_asks_for_no_more_nodes_and_is_over_once_it_is_corrected(
    running: Running, api: Api, space: str
) -> None:
    nodes(api, "n1")
    pods(api, space, "one", annotations={"wattloom.dev/runtime-seconds": "ten"})
    path = f"/api/v1/namespaces/{space}/pods/one"
    told = eventually(lambda: api.get(path)["status"].get("conditions"))[0]
    assert (told["type"], told["status"], told["reason"]) == ("PodScheduled", "False", "SchedulerError")
    assert told["message"].endswith("-seconds]: must be a number of seconds above 0, at most 1000000000, not 'ten'")
    api.patch(path, {"metadata": {"annotations": {"wattloom.dev/runtime-seconds": "10"}}})
    assert eventually(lambda: api.get(path)["spec"].get("nodeName")) == "n1"


# -- nodes of machines that the engine does not take -----------------------------------------------------------------


def test_a_node_is_cordoned_and_tainted_although_its_machine_is_refused(bench: Bench) -> None:
    bench.node("n1", cpu="4")
    bench.pod("old", on="n1")
    bench.node("n1", cpu="4", arch="arm64")
    assert bench.refused == 1
    bench.node("n1", cpu="4", arch="arm64", unschedulable=True)
    assert bench.pod("next").at is At.QUEUED
    bench.node("n1", cpu="4", arch="arm64", taints=[{"key": "only", "value": "us", "effect": "NoSchedule"}])
    assert bench.entry("next").at is At.QUEUED
    bench.node("n1", cpu="4", arch="arm64")
    assert bench.entry("next").node == "n1"


def test_the_machine_is_taken_once_nothing_stands_in_its_way(bench: Bench) -> None:
    bench.node("n1", cpu="4")
    bench.pod("old", on="n1")
    bench.node("n1", cpu="4", arch="arm64")
    assert bench.driver.engine.ledger.nodes["n1"].machine == "unknown-x86_64-4"
    bench.removed("old")
    bench.node("n1", cpu="4", arch="arm64", unschedulable=True)
    assert bench.driver.engine.ledger.nodes["n1"].machine == "unknown-aarch64-4"


@pytest.mark.parametrize("before", [None, "unknown-x86_64-4"])
def test_a_node_whose_machine_cannot_be_defined_is_what_it_was_or_of_unknown_power(
    bench: Bench, before: str | None
) -> None:
    about: dict[str, Any] = {"cpu": "4", "annotations": {PROFILE: CURVE}, "unschedulable": True}
    machine = Profiles().of(msgspec.convert(fake_node("n1", **about), Node)).machine
    bench.tell(ev.MachineDefined(0.0, msgspec.structs.replace(machine, cores=2)))
    bench.tell(ev.NodeJoined(0.0, EngineNode("elsewhere", machine.name, closed=True)))
    if before is not None:
        bench.node("n1", cpu="4")
    bench.node("n1", **about)
    known = bench.driver.engine.ledger.nodes["n1"]
    assert (known.machine, known.closed) == ("unknown-x86_64-4", True)


# -- how long pods run -----------------------------------------------------------------------------------------------


def test_a_pod_that_succeeds_teaches_how_long_it_ran(bench: Bench) -> None:
    bench.node("n1")
    bench.pod("one")
    bench.pod("one", on="n1")
    bench.time = 10.0
    bench.pod("one", on="n1", phase="Running")
    bench.time = 15.0
    bench.pod("one", on="n1", phase="Running", labels={"tier": "back"})
    bench.time = 40.0
    bench.ended("one", "Succeeded", on="n1")
    assert bench.learned("one") == [30.0]
    assert not bench.pods.by_uid
    bench.removed("one", on="n1", phase="Succeeded")
    assert (bench.learned("one"), bench.cpus("n1"), bench.refused) == ([30.0], 0, 0)


def test_run_times_are_learned_from_what_a_real_api_server_tells(running: Running, api: Api, space: str) -> None:
    nodes(api, "n1")
    names = [f"job-{number}" for number in range(5)]
    pods(api, space, *names)
    cache = running.scheduler.state.pods
    eventually(lambda: running.call(lambda: [each.at for each in cache.by_uid.values()]) == [At.ON_NODE] * 5)
    for name in names:
        path = f"/api/v1/namespaces/{space}/pods/{name}/status"
        api.patch(path, {"status": {"phase": "Running"}})
        api.patch(path, {"status": {"phase": "Succeeded"}})
    eventually(lambda: not running.call(lambda: cache.by_uid))
    measured = running.call(running.scheduler.driver.engine.ledger.predictor.measured)
    assert [(function, used.calls) for (function, _, _), used in measured.items()] == [(f"{space}/job", 5)]


def test_a_pod_of_another_scheduler_is_known_while_it_waits_and_has_its_load_once_it_is_bound(bench: Bench) -> None:
    bench.node("n1", cpu="4")
    theirs = bench.pod("theirs", cpu="3", scheduler="default-scheduler")
    assert (theirs.at, theirs.pod, bench.pods.waiting(), bench.pods.without_place()) == (At.OTHERS, None, [], {})
    assert not [each for each in bench.told if isinstance(each, ev.TaskSubmitted)]
    bench.pods.world_changed()
    assert bench.pod("theirs", cpu="3", scheduler="default-scheduler", on="n1") is theirs
    assert (theirs.at, bench.cpus("n1")) == (At.ON_NODE, 3.0)
    assert bench.pod("ours", cpu="2").at is At.QUEUED
    bench.removed("theirs", cpu="3", scheduler="default-scheduler", on="n1")
    assert (bench.entry("ours").node, bench.refused) == ("n1", 0)


def test_a_pod_of_another_scheduler_that_is_deleted_while_it_waits_is_forgotten(bench: Bench) -> None:
    bench.pod("theirs", scheduler="default-scheduler")
    told = len(bench.told)
    bench.removed("theirs", scheduler="default-scheduler")
    assert (bench.pods.by_uid, len(bench.told), bench.refused) == ({}, told, 0)


def test_pods_on_nodes_are_kept_whole_only_if_they_must_be_read_again(bench: Bench) -> None:
    """What keeps others away says so by itself, unless it names namespaces by their labels."""
    bench.node("n1")
    term: dict[str, Any] = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "a"}}}
    apart = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    assert bench.pod("one", on="n1", spec=apart).pod is None
    term["namespaceSelector"] = {"matchLabels": {"team": "a"}}
    assert bench.pod("two", on="n1", spec=apart).pod is not None


def test_pods_of_others_teach_too(bench: Bench) -> None:
    bench.node("n1")
    bench.pod("one", on="n1", scheduler="default-scheduler")
    bench.pod("one", on="n1", scheduler="default-scheduler", phase="Running")
    bench.time = 5.0
    bench.ended("one", "Succeeded", on="n1", scheduler="default-scheduler")
    assert bench.learned("one") == [5.0]


THREE_SECONDS = {"terminated": {"startedAt": "2026-01-01T10:00:00Z", "finishedAt": "2026-01-01T10:00:03Z"}}


def test_a_pod_teaches_what_is_written_on_its_containers_rather_than_what_was_seen(bench: Bench) -> None:
    bench.node("n1")
    bench.pod("one")
    bench.pod("one", on="n1")
    bench.pod("one", on="n1", phase="Running", ran=[{"name": "c", "state": {"running": {}}}])
    bench.time = 4.34
    bench.ended("one", "Succeeded", on="n1", ran=[{"name": "c", "state": THREE_SECONDS}])
    assert bench.learned("one") == [3.0]


def test_a_pod_that_ran_before_anybody_looked_teaches_what_is_written_on_its_containers(bench: Bench) -> None:
    bench.node("n1")
    bench.pod("one", on="n1", phase="Running")
    bench.time = 1.0
    bench.ended("one", "Succeeded", on="n1", ran=[{"name": "c", "state": THREE_SECONDS}])
    assert bench.learned("one") == [3.0]


def test_an_event_says_how_many_runs_it_takes_until_joules_are_known(bench: Bench) -> None:
    def words(name: str) -> str:
        entry = bench.pod(name)
        record = bench.record(name)
        return event_messages.scheduled(Place(record.task.id, 1, entry.node, "", 0.0), record, 1, "least-joules", "")

    bench.node("n1", annotations={PROFILE: CURVE})
    for number in range(ENOUGH_SAMPLES):
        assert f"runtime-seconds, or let it run {ENOUGH_SAMPLES} times)" in words(f"job-{number}")
        bench.pod(f"job-{number}", on="n1", phase="Running")
        bench.ended(f"job-{number}", "Succeeded", on="n1", ran=[{"name": "c", "state": THREE_SECONDS}])
    assert " W more for 3 s, " in words("job-9")


@pytest.mark.parametrize(("phase", "leaving", "told"), [("Succeeded", True, [None]), ("Failed", False, [])])
def test_containers_of_a_pod_that_did_not_run_to_its_end_teach_nothing(
    bench: Bench, phase: str, leaving: bool, told: list[None]
) -> None:
    bench.node("n1")
    bench.pod("one", on="n1", phase="Running")
    bench.ended("one", phase, on="n1", leaving=leaving, ran=[{"name": "c", "state": THREE_SECONDS}])
    assert bench.learned("one") == told


def test_what_was_learned_of_bare_pods_outlives_another_that_declares_its_run_time(bench: Bench) -> None:
    bench.node("n1")
    for number in range(3):
        bench.pod(f"job-{number}", on="n1", phase="Running")
        bench.ended(f"job-{number}", "Succeeded", on="n1", ran=[{"name": "c", "state": THREE_SECONDS}])
    for number, seconds in ((3, "60"), (4, "90")):
        bench.pod(f"job-{number}", annotations={"wattloom.dev/runtime-seconds": seconds})
    known = bench.driver.engine.ledger.predictor.measured()
    assert {function: used.mean_s for (function, _, _), used in known.items()} == {"default/job": 3.0}
    declared = [bench.record(name).shape.function.variants[0].seconds for name in ("job-3", "job-4")]
    assert [list(each.values()) for each in declared] == [[60.0], [90.0]]


def test_a_pod_that_ran_before_anybody_looked_teaches_nothing_without_its_containers_times(bench: Bench) -> None:
    """As all of them, after the scheduler was started again: it was not seen when they began."""
    bench.node("n1")
    bench.pod("one", on="n1", phase="Running")
    bench.time = 5.0
    bench.ended("one", "Succeeded", on="n1")
    assert bench.learned("one") == [None]


def test_the_time_a_pod_ran_on_a_node_that_is_not_known_counts(bench: Bench) -> None:
    bench.pod("one", on="n1")
    bench.pod("one", on="n1", phase="Running")
    bench.time = 20.0
    bench.node("n1")
    bench.time = 30.0
    bench.ended("one", "Succeeded", on="n1")
    assert bench.learned("one") == [30.0]


@pytest.mark.parametrize("phase", ["Failed", "Running", ""])
def test_a_pod_that_did_not_succeed_teaches_nothing(bench: Bench, phase: str) -> None:
    bench.node("n1")
    bench.pod("one", on="n1")
    bench.pod("one", on="n1", phase="Running")
    bench.time = 5.0
    bench.removed("one", on="n1", phase=phase)
    assert bench.learned("one") == []
    assert (bench.cpus("n1"), bench.refused) == (0, 0)


def test_a_pod_that_was_stopped_and_says_that_it_succeeded_teaches_nothing(bench: Bench) -> None:
    bench.node("n1")
    bench.pod("one", on="n1")
    bench.pod("one", on="n1", phase="Running")
    bench.time = 5.0
    bench.ended("one", "Succeeded", on="n1", leaving=True)
    assert bench.learned("one") == [None]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_when_it_is_first_seen_is_not_told(bench: Bench, phase: str) -> None:
    bench.node("n1")
    known = len(bench.told)
    bench.ended("one", phase, on="n1")
    bench.removed("one", on="n1", phase=phase)
    assert len(bench.told) == known
    assert not bench.pods.by_uid


def test_the_end_of_a_pod_makes_room_for_the_next(bench: Bench) -> None:
    bench.node("n1", cpu="4")
    bench.pod("old", cpu="4", on="n1", phase="Running")
    bench.pod("new", cpu="4")
    bench.ended("old", "Failed", cpu="4", on="n1")
    assert bench.entry("new").node == "n1"
