"""No lost wake-ups: whoever waits is asked again when what he waits for may have come."""

import pytest

from wattloom.cluster.reasons import Reason
from wattloom.policies.marginal_energy import MarginalEnergy
from wattloom.policies.protocol import Proposal, Refusal
from wattloom.policies.view import Ask, View
from wattloom.scheduling.instructions import Wait
from wattloom.testing.builders import CONVEX, LINEAR, SLEEPER, WITHOUT_CURVE, node, requirements
from wattloom.testing.harness import Harness, places
from wattloom.testing.odd_policies import Hesitant, Scripted

WHOLE = requirements(4.0)


def test_when_a_nodes_cap_is_raised() -> None:
    h = Harness().node("a", cap_w=25.0)
    h.submit("t")
    assert places(h.change(node("a", cap_w=35.0))) == [("t", "a")]


def test_when_a_node_gets_the_label() -> None:
    h = Harness().node("a")
    h.submit("t", needs=requirements(labels={"zone": "a"}))
    assert places(h.change(node("a", labels={"zone": "a"}))) == [("t", "a")]


def test_when_a_node_gets_the_device() -> None:
    h = Harness().node("a")
    h.submit("t", needs=requirements(devices={"gpu": 0.5}))
    assert places(h.change(node("a", devices={"gpu": 1}))) == [("t", "a")]


def test_when_the_cluster_cap_is_raised_or_lifted() -> None:
    for watts in (35.0, None):
        h = Harness().node("a")
        h.cap(25.0)
        h.submit("t")
        assert places(h.cap(watts)) == [("t", "a")]


def test_when_a_node_that_drew_watts_is_lost() -> None:
    h = Harness().node("a").node("b")
    h.cap(45.0)
    h.submit("t")
    assert h.reason("t") == Reason.CLUSTER_WATTS
    assert places(h.lose("b")) == [("t", "a")]


def test_when_watts_are_freed_on_a_node_that_is_kept_for_another() -> None:
    here, there = {"side": "a"}, {"side": "b"}
    h = Harness().node("a", labels=here).node("b", CONVEX, labels=there)
    h.cap(69.0)
    for name in ("x0", "x1"):
        h.submit(name, needs=requirements(1.0, labels=here))
    h.submit("big", needs=requirements(4.0, labels=here))
    h.pass_time(30.0)
    h.submit("y", needs=requirements(2.0, labels=there))
    assert h.reason("y") == Reason.CLUSTER_WATTS
    h.pass_time(30.0)
    h.submit("x2", needs=requirements(0.5, labels=here))
    h.pass_time(1.0)
    assert list(h.engine.reservations.held) == ["a"]
    assert places(h.finish("x0")) == [("y", "b")]


def test_when_an_unknown_draw_becomes_known() -> None:
    h = Harness().machine(LINEAR).node("a").node("b", WITHOUT_CURVE)
    h.cap(500.0)
    h.submit("t")
    assert h.where("t") is None
    h.change(node("b", LINEAR))
    assert h.where("t") is not None


def test_when_a_waking_node_with_room_wakes_for_a_policy_that_wants_it_awake() -> None:
    def awake_only(ask: Ask, view: View) -> Proposal | Refusal:
        for site, _ in view.fitting(ask.shape):
            if ask.task.id == "waker" or site.mode == 0:
                return Proposal(site.first(), 0.0)
        return Refusal(Reason.NO_ROOM)

    h = Harness(Scripted(awake_only)).node("a", SLEEPER, asleep=True)
    h.submit("waker")
    h.submit("t")
    assert h.where("t") is None
    assert places(h.awake("a")) == [("waker", "a"), ("t", "a")]


def test_when_a_forecast_is_learned() -> None:
    """The policy takes only places it knows the run time of; the place that fits is elsewhere than where it ran."""

    def known_only(ask: Ask, view: View) -> Proposal | Refusal:
        for site, estimate in view.fitting(ask.shape):
            if ask.task.id.startswith("try") or estimate.alone:
                return Proposal(site.first(), 0.0)
        return Refusal(Reason.RUNTIME_UNKNOWN)

    h = Harness(Scripted(known_only)).node("a", cpu=1.0)
    for number in range(3):
        if number == 2:
            h.submit("t", needs=requirements(2.0))
            h.node("b", CONVEX, cpu=2.0)
            assert h.where("t") is None
            h.submit("filler", needs=requirements(0.5))
        h.submit(f"try{number}", needs=requirements(1.0))
        h.finish(f"try{number}", seconds=5.0)
    assert h.where("t") == "b"


def test_when_a_meter_says_that_a_node_draws_less() -> None:
    class Metered(Scripted):
        reading_interval_s = 5.0

    def below_40(ask: Ask, view: View) -> Proposal | Refusal:
        watts = view.readings.expected("a")
        return Proposal("a", 0.0) if watts is not None and watts < 40.0 else Refusal(Reason.NODE_WATTS)

    h = Harness(Metered(below_40)).node("a")
    h.submit("t")
    h.reading("a", 55.0)
    assert h.where("t") is None
    h.reading("a", 35.0)
    assert h.where("t") == "a"


# -- waiting by choice -----------------------------------------------------------------------------------------------


def until(time: float | None, reason: Reason = Reason.WAITING_IS_CHEAPER) -> Scripted:
    """Every task waits until its own `defer_s` is over; without one, until `time`."""

    def script(ask: Ask, view: View) -> Proposal | Refusal:
        end = ask.submitted + ask.task.defer_s if ask.task.defer_s else time
        if end is not None and view.time >= end:
            return Proposal("a", 0.0)
        return Refusal(reason, end)

    return Scripted(script)


def test_a_task_whose_policy_waits_is_asked_when_it_said() -> None:
    h = Harness(until(20.0)).node("a")
    told = h.submit("t")[0]
    assert told == Wait("t", Reason.WAITING_IS_CHEAPER, 20.0)
    assert h.engine.next_tick == 20.0
    assert places(h.tick(20.0)) == [("t", "a")]


def test_a_task_that_may_wait_long_does_not_hold_up_one_of_its_kind_that_may_not() -> None:
    h = Harness(until(None)).node("a")
    h.submit("patient", defer_s=1000.0)
    h.submit("hurried", defer_s=2.0)
    assert places(h.pass_time(2.0)) == [("hurried", "a")]
    assert places(h.pass_time(998.0)) == [("patient", "a")]


def test_tasks_that_queued_up_for_room_each_wait_as_long_as_they_like_once_there_is_some() -> None:
    """The first in the lane chooses to wait when room comes; those behind it were never asked before."""
    h = Harness(until(None)).node("a")
    h.submit("busy", needs=WHOLE, defer_s=0.5)
    h.pass_time(0.5)
    h.submit("patient", defer_s=1000.0)
    for name in ("soon", "sooner"):
        h.submit(name, defer_s=3.0)
    h.finish("busy")
    assert [task for task, _ in places(h.pass_time(3.0))] == ["soon", "sooner"]


def test_a_task_whose_wait_ends_while_there_is_no_room_is_placed_when_there_is() -> None:
    def script(ask: Ask, view: View) -> Proposal | Refusal:
        if view.time < ask.submitted + ask.task.defer_s:
            return Refusal(Reason.WAITING_IS_CHEAPER, ask.submitted + ask.task.defer_s)
        for site, _ in view.fitting(ask.shape):
            return Proposal(site.first(), 0.0)
        return Refusal(view.why_none(ask.shape))

    h = Harness(Scripted(script)).node("a")
    h.submit("patient", defer_s=1000.0)
    h.submit("hurried", defer_s=5.0)
    h.submit("busy", needs=WHOLE)
    assert places(h.pass_time(10.0)) == []
    assert places(h.finish("busy")) == [("hurried", "a")]


def test_a_task_of_higher_priority_is_asked_though_its_lane_waits_by_choice() -> None:
    h = Harness(until(None)).node("a")
    h.submit("patient", defer_s=1000.0)
    h.submit("urgent", defer_s=1.0, priority=5)
    assert places(h.pass_time(1.0)) == [("urgent", "a")]


def test_a_newcomer_that_is_first_in_its_lane_is_asked_though_the_one_before_chose_to_wait() -> None:
    def script(ask: Ask, view: View) -> Proposal | Refusal:
        return Proposal("a", 0.0) if ask.task.priority else Refusal(Reason.WAITING_IS_SOONER, 50.0)

    h = Harness(Scripted(script)).node("a")
    h.submit("t")
    assert places(h.submit("urgent", priority=1)) == [("urgent", "a")]


def test_a_policy_that_waits_without_saying_how_long_is_asked_within_a_minute() -> None:
    h = Harness(until(None)).node("a")
    h.submit("t")
    assert h.engine.next_tick == 60.0


@pytest.mark.parametrize("time", [-5.0, 0.0, float("nan"), float("-inf")])
def test_a_policy_that_waits_until_a_time_that_has_passed_does_not_hang_the_engine(time: float) -> None:
    h = Harness(Scripted(lambda ask, view: Refusal(Reason.WAITING_IS_CHEAPER, time))).node("a")
    h.submit("t")
    assert h.engine.next_tick == 1.0
    h.pass_time(10.0)
    assert h.engine.proposals <= 12


def test_a_policy_that_waits_for_ever_is_taken_at_its_word() -> None:
    h = Harness(Scripted(lambda ask, view: Refusal(Reason.WAITING_IS_CHEAPER, float("inf")))).node("a")
    h.submit("t")
    h.pass_time(1000.0)
    assert h.engine.proposals == 1


def test_asking_often_does_not_pile_up_timers() -> None:
    h = Harness(until(1e6)).node("a")
    h.submit("t")
    for number in range(100):
        h.cap(100.0 + number)
    assert len(h.engine.timers._heap) == 1


def test_those_who_wait_by_choice_all_run_in_the_end() -> None:
    h = Harness(Hesitant()).node("a")
    for number in range(30):
        h.submit(f"t{number}", needs=requirements(0.1), defer_s=float(number % 7))
    h.pass_time(30.0)
    assert all(h.where(f"t{number}") == "a" for number in range(30))
    h.replay()


# -- a policy's faults -----------------------------------------------------------------------------------------------


def test_a_policy_that_raises_makes_its_task_back_off_and_is_asked_again() -> None:
    def script(ask: Ask, view: View) -> Proposal | Refusal:
        if view.time < 3.0:
            raise ValueError("no idea")
        return Proposal("a", 1.0)

    h = Harness(Scripted(script)).node("a")
    (told,) = h.submit("t")
    assert isinstance(told, Wait)
    assert (told.task, told.reason, told.until) == ("t", Reason.POLICY_FAILED, 1.0)
    assert told.message.startswith("ValueError: no idea (")
    assert places(h.pass_time(3.0)) == [("t", "a")]


def test_a_policy_that_raises_for_one_task_does_not_hold_up_the_next() -> None:
    def script(ask: Ask, view: View) -> Proposal | Refusal:
        if ask.task.id == "t":
            raise ValueError
        return Proposal("a", 1.0)

    h = Harness(Scripted(script)).node("a")
    h.submit("t")
    assert places(h.submit("u")) == [("u", "a")]


NONSENSE: list[object] = [
    None,
    7,
    "a",
    Proposal(7, 1.0),  # type: ignore[arg-type]
    Proposal("a", None),  # type: ignore[arg-type]
    Refusal("no", None),  # type: ignore[arg-type]
    Refusal(Reason.CPU, "x"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("answer", NONSENSE)
def test_an_answer_that_is_none_counts_as_a_failure_of_the_policy(answer: object) -> None:
    h = Harness(Scripted(lambda ask, view: answer)).node("a")  # type: ignore[arg-type,return-value]
    [told] = h.submit("t")
    assert isinstance(told, Wait)
    assert told.reason == Reason.POLICY_FAILED


def test_a_proposal_of_an_unknown_node_is_refused_and_the_policy_is_asked_again_later() -> None:
    h = Harness(Scripted(lambda ask, view: Proposal("b" if view.time < 5.0 else "a", 1.0))).node("a")
    [told] = h.submit("t")
    assert told == Wait("t", Reason.BAD_PROPOSAL, None, "the policy proposed b")
    assert places(h.pass_time(10.0)) == [("t", "a")]


def test_a_proposal_of_a_full_node_is_refused_with_the_reason_and_asked_again_later() -> None:
    h = Harness(Scripted(lambda ask, view: Proposal("b" if view.time > 5.0 else "a", 1.0)))
    h.node("a", cpu=1.0).node("b")
    h.submit("x")
    [told] = h.submit("t")
    assert told == Wait("t", Reason.CPU, None, "the policy proposed a")
    assert places(h.pass_time(10.0)) == [("t", "b")]


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), float("-inf")])
def test_a_cost_that_is_no_number_is_told_as_unknown(cost: float) -> None:
    h = Harness(Scripted(lambda ask, view: Proposal("a", cost))).node("a")
    h.submit("t")
    assert h.placements["t"][0].cost is None


def test_a_policy_that_says_no_room_though_there_is_some_has_no_node_kept_idle_for_it() -> None:
    def script(ask: Ask, view: View) -> Proposal | Refusal:
        return Refusal(Reason.NO_ROOM) if ask.task.id == "t" else Proposal("a", 0.0)

    h = Harness(Scripted(script)).node("a")
    h.submit("t", needs=requirements(0.5))
    h.pass_time(100.0)
    h.submit("u")
    h.pass_time(100.0)
    assert not h.engine.reservations.held
    assert places(h.submit("v")) == [("v", "a")]


def test_a_task_whose_policy_fails_while_a_node_is_kept_for_it_is_not_placed_behind_the_counters_back() -> None:
    class Failing(MarginalEnergy):
        def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
            if ask.task.id == "big" and 62.0 < view.time < 100.0:
                raise RuntimeError("not now")
            return super().propose(ask, view)

    h = Harness(Failing(tdp=False, guarantee=1.0)).node("a")
    h.submit("x0")
    h.submit("big", needs=WHOLE)
    h.pass_time(60.0)
    h.submit("x1")
    h.pass_time(5.0)
    h.finish("x0")
    h.finish("x1")
    assert h.engine.ledger.view.queued == 0
    h.submit("x2")
    h.finish("x2")
    h.pass_time(100.0)
    assert h.where("big") == "a"


def test_a_task_that_backs_off_gives_up_the_node_kept_for_it() -> None:
    """Otherwise the node would be given to a task that is not queued, and nobody else could use it meanwhile."""

    class Failing(MarginalEnergy):
        def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
            if ask.task.id == "big" and view.cap_microwatts is not None:
                raise RuntimeError("caps are beyond me")
            return super().propose(ask, view)

    h = Harness(Failing(tdp=False, guarantee=1.0)).node("a")
    h.submit("x0")
    h.submit("big", needs=WHOLE)
    h.pass_time(60.0)
    h.submit("x1")
    h.pass_time(1.0)
    assert list(h.engine.reservations.held) == ["a"]
    h.cap(500.0)
    assert not h.engine.reservations.held
    h.finish("x0")
    assert places(h.submit("x2")) == [("x2", "a")]


def test_a_timer_from_before_a_back_off_does_not_stand_in_for_one_after_it() -> None:
    """It waits by choice until 100, fails at 10, and waits by choice until 100 again: the old timer is void."""

    def script(ask: Ask, view: View) -> Proposal | Refusal:
        if view.time == 10.0:
            raise RuntimeError("not now")
        return Proposal("a", 0.0) if view.time >= 100.0 else Refusal(Reason.WAITING_IS_CHEAPER, 100.0)

    h = Harness(Scripted(script)).node("a")
    h.submit("t")
    h.time = 10.0
    h.cap(500.0)
    assert places(h.pass_time(90.0)) == [("t", "a")]
