"""What a long run leaves behind is bounded."""

from wattloom.cluster import index as index_module
from wattloom.scheduling import events as ev
from wattloom.scheduling import ledger as ledger_module
from wattloom.testing.builders import LINEAR, machine, node, requirements, task
from wattloom.testing.harness import Harness, places


def test_shapes_never_seen_again_are_forgotten_with_their_lanes_and_rankings() -> None:
    h = Harness().node("a").function()
    engine = h.engine
    for number in range(5_000):
        engine.handle(ev.TaskSubmitted(0.0, task(f"t{number}", needs=requirements(1.0, number))))
        engine.handle(ev.TaskFinished(0.0, f"t{number}", 1))
    kept = ledger_module.REMEMBERED_SHAPES + 2
    ledger = engine.ledger
    assert len(ledger.shapes) <= kept
    assert len(ledger._shape_of) <= kept
    assert len(engine.queue.lanes) <= kept
    assert len(ledger.index.rankings) <= kept
    assert len(ledger.estimates._seen) <= kept
    assert len(ledger.estimates._never) <= kept
    assert len(engine.reservations.unwatched) <= kept


def test_a_shape_that_somebody_waits_with_is_not_forgotten() -> None:
    h = Harness().node("a").function()
    h.submit("waiting", needs=requirements(64.0))
    for number in range(3_000):
        h.engine.handle(ev.TaskSubmitted(0.0, task(f"t{number}", needs=requirements(1.0, number))))
        h.engine.handle(ev.TaskFinished(0.0, f"t{number}", 1))
    big = machine("big", cores=64)
    h.machine(big)
    assert places(h.join(node("b", big), big)) == [("waiting", "b")]


def test_tasks_cancelled_behind_one_that_never_fits_leave_nothing_in_its_lane() -> None:
    h = Harness().node("a").function()
    huge = requirements(64.0)
    h.submit("stuck", needs=huge, defer_s=1.0)
    for number in range(5_000):
        h.engine.handle(ev.TaskSubmitted(0.0, task(f"t{number}", needs=huge, defer_s=1.0)))
        h.engine.handle(ev.CancelRequested(0.0, f"t{number}"))
    [lane] = h.engine.queue.lanes.values()
    assert len(lane.entries) + len(lane.unasked) < 200
    assert len(h.engine.queue.ready) < 200


def test_tasks_that_may_wait_and_are_placed_at_once_leave_nothing_in_their_lane() -> None:
    h = Harness().node("a").function()
    for number in range(2_000):
        h.engine.handle(ev.TaskSubmitted(0.0, task(f"t{number}", defer_s=1.0)))
        h.engine.handle(ev.TaskFinished(0.0, f"t{number}", 1))
    [lane] = h.engine.queue.lanes.values()
    assert len(lane.unasked) < 200


def test_nodes_that_come_and_go_under_new_labels_leave_no_classes_behind() -> None:
    h = Harness().node("stays").function()
    h.submit("t")
    for number in range(3_000):
        h.engine.handle(ev.NodeJoined(0.0, node(f"n{number}", LINEAR, labels={"host": str(number)})))
        h.engine.handle(ev.NodeLost(0.0, f"n{number}"))
    index = h.engine.ledger.index
    assert len(index.classes) <= index_module.CLASSES_LIMIT
    assert len(index._class_of) <= index_module.CLASSES_LIMIT
    assert len(index._sites) <= 2 * index_module.CLASSES_LIMIT
    h.tick()


def test_a_run_that_comes_back_to_the_same_loads_leaves_no_sites_behind() -> None:
    h = Harness().node("a").node("b").function()
    for number in range(3_000):
        h.engine.handle(ev.TaskSubmitted(0.0, task(f"t{number}")))
        h.engine.handle(ev.TaskFinished(0.0, f"t{number}", 1))
    assert len(h.engine.ledger.index._sites) <= 4
    assert len(h.engine.timers._heap) == 0


def test_ends_are_remembered_for_a_while_and_then_forgotten() -> None:
    h = Harness().node("a").function()
    h.engine.ledger.most_ended = 10
    for number in range(30):
        h.submit(f"t{number}")
        h.finish(f"t{number}")
    assert len(h.engine.ledger.ended) == 10
    h.submit("t0")
    assert h.where("t0") == "a"


def test_dependents_of_ended_tasks_are_forgotten() -> None:
    h = Harness().node("a")
    h.submit("root")
    for number in range(50):
        h.submit(f"t{number}", after=("root",))
        h.cancel(f"t{number}")
    h.finish("root")
    assert not h.engine.graph.dependents
