"""Who goes first, who may overtake, and how long."""

from wattloom.cluster.node_class import Mode
from wattloom.cluster.reasons import Reason
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import Wait
from wattloom.scheduling.placement import BACK_OFF_MOST_S
from wattloom.scheduling.reservations import PATIENCE_S
from wattloom.scheduling.state import Stage
from wattloom.testing.builders import CONVEX, LINEAR, SLEEPER, machine, node, requirements, task
from wattloom.testing.harness import Harness, places, waits

WHOLE = requirements(4.0)


def full_node() -> Harness:
    """One node of four cores, all taken by task `busy`."""
    h = Harness().node("a")
    h.submit("busy", needs=WHOLE)
    return h


def test_tasks_of_one_shape_are_placed_in_order_of_arrival() -> None:
    h = full_node()
    for name in ("z", "y", "x"):
        h.submit(name)
    assert places(h.finish("busy")) == [("z", "a"), ("y", "a"), ("x", "a")]


def test_tasks_of_different_shapes_are_placed_in_order_of_arrival() -> None:
    h = full_node()
    for name, cpu in (("one", 1.0), ("two", 2.0), ("half", 0.5)):
        h.submit(name, needs=requirements(cpu))
    assert [task for task, _ in places(h.finish("busy"))] == ["one", "two", "half"]


def test_higher_priority_goes_first_and_arrival_decides_within() -> None:
    h = full_node()
    for name, priority in (("low", -1), ("first", 5), ("normal", 0), ("second", 5)):
        h.submit(name, priority=priority)
    assert [task for task, _ in places(h.finish("busy"))] == ["first", "second", "normal", "low"]


def test_a_retried_task_keeps_its_place_in_the_order() -> None:
    h = Harness().node("a")
    h.submit("old", needs=WHOLE, retries=1)
    h.submit("young", needs=WHOLE)
    assert places(h.fail("old")) == [("old", "a")]


def test_a_task_that_does_not_fit_does_not_block_those_behind_it() -> None:
    h = Harness().node("a")
    h.submit("some", needs=requirements(3.0))
    assert waits(h.submit("big", needs=WHOLE)) == [("big", Reason.NO_ROOM)]
    assert places(h.submit("small")) == [("small", "a")]


def test_a_task_that_fits_nowhere_is_told_so_and_waits_for_a_node_that_is_large_enough() -> None:
    h = Harness().node("a")
    assert waits(h.submit("huge", needs=requirements(64.0))) == [("huge", Reason.NEVER_FITS)]
    big = machine("big", cores=64)
    h.machine(big)
    assert places(h.join(node("b", big), big)) == [("huge", "b")]


def test_without_nodes_a_task_waits_for_the_first_to_join() -> None:
    h = Harness()
    assert waits(h.submit("t")) == [("t", Reason.NO_NODES)]
    h.machine(LINEAR)
    assert places(h.join(node("a"), LINEAR)) == [("t", "a")]


def test_its_owner_is_told_once_why_a_task_waits() -> None:
    h = full_node()
    h.submit("t")
    assert not waits(h.submit("u", needs=requirements(2.0)))[1:]
    assert not any(isinstance(each, Wait) and each.task == "t" for each in h.tick())


# -- starvation ------------------------------------------------------------------------------------------------------


def keep_small_ones_coming(h: Harness, until: str, rounds: int = 300) -> float:
    """Every second a small task ends and another comes, one for each core; how long `until` waited."""
    since = h.time
    names = [f"s{number}" for number in range(4)]
    for name in names:
        h.submit(name)
    for count in range(rounds):
        if h.where(until) is not None:
            return h.time - since
        h.pass_time(1.0)
        h.submit(f"n{count}")
        running = [name for name, record in h.engine.ledger.tasks.items() if record.node]
        h.finish(running[0])
    raise AssertionError(f"{until} was not placed in {rounds} s")


def test_a_big_task_is_not_starved_by_small_ones() -> None:
    h = Harness().node("a")
    h.submit("first")
    h.submit("big", needs=WHOLE)
    assert PATIENCE_S <= keep_small_ones_coming(h, "big") <= PATIENCE_S + 10.0
    h.replay()


def test_a_big_task_is_not_starved_on_several_nodes() -> None:
    h = Harness().node("a").node("b", CONVEX)
    for name in ("p", "q", "r", "s", "t"):
        h.submit(name)
    h.submit("big", needs=WHOLE)
    assert keep_small_ones_coming(h, "big") <= PATIENCE_S + 15.0


def test_two_big_tasks_of_different_shapes_both_get_their_turn() -> None:
    h = Harness().node("a")
    h.submit("first")
    h.submit("big", needs=WHOLE)
    h.submit("bigger", needs=requirements(4.0, memory=1024))
    keep_small_ones_coming(h, "big")
    h.finish("big")
    assert keep_small_ones_coming_again(h, "bigger") <= 2 * PATIENCE_S + 20.0


def keep_small_ones_coming_again(h: Harness, until: str) -> float:
    since = h.time
    for count in range(400):
        if h.where(until) is not None:
            return h.time - since
        h.pass_time(1.0)
        h.submit(f"m{count}")
        running = [name for name, record in h.engine.ledger.tasks.items() if record.node]
        if running:
            h.finish(running[0])
    raise AssertionError(f"{until} was not placed")


def test_a_big_task_is_not_starved_under_a_cluster_cap() -> None:
    """Ten watts a core: with 20 W idle, 60 W let four cores run in all, though there are eight."""
    h = Harness().node("a").node("b")
    h.cap(80.0)
    h.submit("first")
    h.submit("big", needs=WHOLE)
    assert keep_small_ones_coming(h, "big") <= PATIENCE_S + 10.0


def test_a_big_task_is_not_starved_by_lack_of_room_and_of_watts_in_turn() -> None:
    h = Harness().node("a").node("b", cpu=2.0)
    h.cap(85.0)
    for name in ("p", "q"):
        h.submit(name)
    h.submit("big", needs=WHOLE)
    assert keep_small_ones_coming(h, "big") <= 3 * PATIENCE_S


def starving(h: Harness) -> None:
    """A node is kept free for `big`."""
    h.submit("x0")
    h.submit("big", needs=WHOLE)
    h.pass_time(PATIENCE_S)
    h.submit("x1")
    h.pass_time(1.0)
    assert list(h.engine.reservations.held) == ["a"]


def test_nobody_overtakes_on_a_node_kept_free() -> None:
    h = Harness().node("a")
    starving(h)
    h.submit("x2")
    assert h.where("x2") is None
    assert h.engine.ledger.index.nodes["a"].mode == Mode.HELD
    h.finish("x0")
    assert places(h.finish("x1")) == [("big", "a")]
    assert places(h.finish("big")) == [("x2", "a")]


def test_when_the_task_is_cancelled_its_node_is_free_for_others() -> None:
    h = Harness().node("a")
    starving(h)
    h.submit("x2")
    assert places(h.cancel("big")) == [("x2", "a")]


def test_when_the_node_kept_free_is_lost_another_is_kept() -> None:
    h = Harness().node("a")
    starving(h)
    h.node("b", cpu=3.0)
    h.lose("a")
    h.node("c", CONVEX)
    assert h.where("big") == "c"


def test_when_the_node_kept_free_is_lost_the_task_is_not_starved_on_the_rest() -> None:
    h = Harness().node("a")
    starving(h)
    h.node("b", cpu=3.0)
    for number in range(3):
        h.submit(f"b{number}")
    h.lose("a")
    h.node("c", cpu=3.0)
    h.change(node("b"))
    assert keep_small_ones_coming(h, "big") <= 2 * PATIENCE_S + 10.0


def test_when_the_node_kept_free_sleeps_by_itself_the_task_is_asked_again() -> None:
    h = Harness().node("a", SLEEPER)
    starving(h)
    h.finish("x0")
    assert places(h.finish("x1")) == [("big", "a")]
    h.finish("big")
    h.asleep("a")
    h.submit("again", needs=WHOLE)
    assert h.stage("again") == Stage.ASSIGNED


def test_when_the_node_kept_free_shrinks_it_is_given_up() -> None:
    h = Harness().node("a")
    starving(h)
    h.submit("x2")
    h.change(node("a", cpu=3.0))
    assert not h.engine.reservations.held
    assert h.where("x2") == "a"


def test_a_task_that_could_never_have_the_watts_does_not_hold_everybody_up() -> None:
    """Idle draw and this task's together are over the cap: waiting for others' watts is in vain."""
    h = Harness().node("a").node("b")
    h.cap(75.0)
    h.submit("x0")
    h.submit("big", needs=WHOLE)
    assert h.reason("big") == Reason.CLUSTER_WATTS
    for count in range(150):
        h.pass_time(1.0)
        h.submit(f"y{count}")
        assert h.where(f"y{count}") is not None
        h.finish(f"y{count}")


def test_the_task_that_goes_first_steps_back_when_the_cap_falls_below_its_need() -> None:
    h = Harness().node("a").node("b")
    h.cap(80.0)
    h.submit("x0")
    h.submit("big", needs=WHOLE)
    h.pass_time(PATIENCE_S)
    h.submit("x1")
    h.pass_time(1.0)
    h.submit("x2")
    assert h.reason("x2") == Reason.STARVED_AHEAD
    h.cap(75.0)
    assert h.where("x2") is not None


def test_the_task_that_goes_first_steps_back_when_its_only_node_is_lost() -> None:
    h = Harness().node("a").node("b", cpu=3.0)
    h.cap(80.0)
    h.submit("x0", needs=requirements(1.0, labels={"side": "b"}))
    h.change(node("b", cpu=3.0, labels={"side": "b"}))
    h.submit("big", needs=WHOLE)
    h.pass_time(PATIENCE_S)
    h.submit("x1")
    h.pass_time(1.0)
    h.submit("x2")
    assert h.reason("x2") == Reason.STARVED_AHEAD
    h.lose("a")
    assert h.where("x2") == "b"


def test_a_waiting_task_alone_asks_for_no_ticks() -> None:
    """Nobody can overtake it while nothing is placed, so there is nothing to look after."""
    h = Harness().node("a")
    h.submit("huge", needs=requirements(64.0))
    assert h.engine.next_tick is None


# -- back-off --------------------------------------------------------------------------------------------------------


def test_back_off_doubles_up_to_a_minute() -> None:
    h = Harness().node("a")
    h.submit("t")
    waited: list[float] = []
    for _ in range(9):
        told = h.place_failed("t", "busy")[-1]
        assert isinstance(told, Wait)
        assert told.reason == Reason.START_REFUSED
        assert told.until is not None
        waited.append(told.until - h.time)
        assert h.stage("t") == Stage.BACKING_OFF
        assert places(h.tick(told.until)) == [("t", "a")]
    assert waited == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, BACK_OFF_MOST_S]


def test_a_start_ends_the_growth_of_back_off() -> None:
    h = Harness().node("a")
    h.submit("t", idempotent=True)
    h.place_failed("t")
    h.pass_time(1.0)
    h.place_failed("t")
    h.pass_time(2.0)
    h.start("t")
    h.fail_infrastructure("t")
    h.place_failed("t")
    assert h.engine.next_tick == h.time + 1.0


def test_a_task_backing_off_leaves_its_place_to_others() -> None:
    h = Harness().node("a")
    h.submit("t", needs=WHOLE)
    h.submit("u", needs=WHOLE)
    assert places(h.place_failed("t")) == [("u", "a")]


def test_the_engine_says_when_it_wants_a_tick() -> None:
    h = Harness().node("a")
    assert h.engine.next_tick is None
    h.submit("t")
    h.pass_time(5.0)
    h.place_failed("t")
    assert h.engine.next_tick == 6.0
    assert places(h.tell(ev.Tick(5.9))) == []
    assert places(h.tell(ev.Tick(6.0))) == [("t", "a")]


def test_a_node_lost_with_many_tasks_lists_their_lane_once() -> None:
    count = 2_000
    h = Harness().node("a", machine("wide", cores=64), cpu=float(count))
    h.function()
    engine = h.engine
    for number in range(count):
        engine.handle(ev.TaskSubmitted(0.0, task(f"t{number}", idempotent=True)))
    engine.handle(ev.NodeLost(1.0, "a"))
    assert len(engine.queue.ready) <= 2
    instructions = engine.handle(ev.NodeJoined(2.0, node("b", machine("wide", cores=64), cpu=float(count))))
    assert [place[0] for place in places(instructions)] == [f"t{number}" for number in range(count)]
    assert len(engine.queue.ready) <= 2
