"""Tasks and functions are listed from the log: states, times, joules, trends."""

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from wattloom.errors import LogError
from wattloom.history.functions import function_costs
from wattloom.history.listing import LEFT, list_tasks
from wattloom.history.log import VERSION, Header
from wattloom.testing.builders import requirements
from wattloom.testing.harness import Harness

from .conftest import Opener

BEGAN = 1_000_000.0
JOULES = (
    b'{"event":"usage-arrived","time":99.0,"node":"a","provenance":"measured",'
    b'"tasks":{"done":[2.5,0.5],"bad":[1.0,0.1]}}\n'
)


def lines(h: Harness) -> bytes:
    records = [record for event, instructions in h.recorded for record in (event, *instructions)]
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


def one_of_each() -> Harness:
    """A task in every state there is."""
    h = Harness().machine().node("a").node("b").function("f").function("g")
    h.time = 10.0
    for name in ("done", "bad", "lost", "stopped", "runs", "placed"):
        h.submit(name, function="g" if name == "done" else "f", needs=requirements(0.5))
    h.submit("dependent", function="f", after=("bad",))
    h.submit("huge", function="f", needs=requirements(1000.0))
    h.time = 11.0
    for name in ("done", "bad", "lost", "runs"):
        h.start(name)
    h.time = 13.0
    h.finish("done", seconds=1.5)
    h.fail("bad", "ZeroDivisionError: division by zero")
    h.fail_infrastructure("lost", "the worker was killed")
    h.cancel("stopped")
    h.evicted("stopped")
    return h


def test_every_state_is_told(path: Path, open_journal: Opener) -> None:
    journal = open_journal(began=BEGAN)
    journal.append(lines(one_of_each()))
    journal.commit()
    assert {row.task: row.state for row in list_tasks(path)} == {
        "done": "finished",
        "bad": "failed",
        "lost": "unknown",
        "stopped": "cancelled",
        "runs": "running",
        "placed": "placed",
        "dependent": "rejected",
        "huge": "waiting",
    }


def test_attempts_that_failed_are_paid_for_too(path: Path, open_journal: Opener) -> None:
    """By a figure of their own, or by their CPU time; each once."""
    journal = open_journal(began=BEGAN)
    usage = b'{"event":"usage-arrived","time":%d,"node":"a","provenance":"measured","tasks":{%s},"cpu_second":%s}\n'
    failed = b'{"event":"task-failed","time":2.0,"task":"%s","attempt":1,"message":"no"%s}\n'
    for task in (b"long", b"short"):
        journal.append(
            b'{"event":"task-submitted","time":1.0,"task":{"id":"%(t)s","function":"f"}}\n'
            b'{"instruction":"place","task":"%(t)s","attempt":1,"node":"a"}\n' % {b"t": task}
        )
    journal.append(failed % (b"long", b"") + failed % (b"short", b',"cpu_s":0.5'))
    journal.append(usage % (3, b'"long":[2.5,0.5]', b"[10.0,1.0,0.25]"))
    for task in (b"long", b"short"):
        journal.append(
            b'{"instruction":"place","task":"%(t)s","attempt":2,"node":"a"}\n'
            b'{"event":"task-finished","time":4.0,"task":"%(t)s","attempt":2,"seconds":0.1,"cpu_s":0.1}\n'
            % {b"t": task}
        )
    journal.append(usage % (5, b"", b"[20.0,2.0,0.5]"))
    journal.append(usage % (6, b"", b"[20.0,2.0,0.5]"))
    journal.commit()
    rows = {row.task: (row.joules, row.spread_j) for row in list_tasks(path)}
    assert rows["long"] == pytest.approx((2.5 + 2.0, 0.5 + 0.7))
    assert rows["short"] == pytest.approx((5.0 + 2.0, 0.75 + 0.7))
    (cost,) = function_costs([path])
    assert cost.joules == pytest.approx(11.5)


def test_short_calls_pay_what_their_function_draws(path: Path, open_journal: Opener) -> None:
    journal = open_journal(began=BEGAN)
    for task in (b"f", b"g"):
        journal.append(
            b'{"event":"task-submitted","time":1.0,"task":{"id":"%(t)s","function":"%(t)s"}}\n'
            b'{"instruction":"place","task":"%(t)s","attempt":1,"node":"a"}\n'
            b'{"event":"task-finished","time":2.0,"task":"%(t)s","attempt":1,"seconds":0.1,"cpu_s":0.1}\n'
            % {b"t": task}
        )
    journal.append(
        b'{"event":"usage-arrived","time":3.0,"node":"a","provenance":"measured",'
        b'"cpu_second":[10.0,1.0,0.5],"cpu_second_of":{"g":[20.0,2.0,0.25]}}\n'
    )
    journal.commit()
    rows = {row.task: (row.joules, row.spread_j) for row in list_tasks(path)}
    assert rows["f"] == pytest.approx((1.0, 0.6))
    assert rows["g"] == pytest.approx((2.0, 0.45))


def test_a_row_tells_where_when_how_long_and_what_it_cost(path: Path, open_journal: Opener) -> None:
    journal = open_journal(began=BEGAN)
    journal.append(lines(one_of_each()) + JOULES)
    journal.commit()
    rows = {row.task: row for row in list_tasks(path)}
    done, bad, runs, huge = (rows[name] for name in ("done", "bad", "runs", "huge"))
    assert (done.run, done.function, done.attempts, done.message) == (1, "g", 1, "")
    assert done.node in ("a", "b")
    assert (done.submitted, done.started, done.ended, done.seconds) == (BEGAN + 10, BEGAN + 11, BEGAN + 13, 1.5)
    assert (done.joules, done.spread_j, done.provenance) == (2.5, 0.5, "measured")
    assert (bad.seconds, bad.joules, bad.message) == (2.0, 1.0, "ZeroDivisionError: division by zero")
    assert (runs.started, runs.ended, runs.seconds, runs.joules) == (BEGAN + 11, None, None, None)
    assert (huge.node, huge.attempts, huge.started) == ("", 0, None)


def test_the_newest_come_first_and_filters_hold(path: Path, open_journal: Opener) -> None:
    journal = open_journal(began=BEGAN)
    journal.append(lines(one_of_each()))
    journal.commit()
    assert [row.task for row in list_tasks(path, limit=2)] == ["huge", "dependent"]
    assert [row.task for row in list_tasks(path, states=("finished", "failed"))] == ["bad", "done"]
    assert [row.task for row in list_tasks(path, function="g")] == ["done"]
    assert [row.task for row in list_tasks(path, task="lost")] == ["lost"]
    assert list_tasks(path, states=("finished",), function="f") == []


def test_tasks_of_all_runs_are_listed_and_those_taken_over_only_once(path: Path, open_journal: Opener) -> None:
    h = Harness().machine().node("a").function("f")
    h.submit("ended", function="f")
    h.finish("ended")
    h.submit("left", function="f")
    open_journal(began=BEGAN).append(lines(h))
    journal = open_journal(run=False)
    assert [(row.run, row.task, row.message) for row in list_tasks(path)] == [(1, "left", LEFT), (1, "ended", "")]
    journal.begin_run(Header(VERSION, "fifo", "local"), BEGAN + 100)
    journal.taken_over(1)
    again = Harness().machine().node("a").function("f")
    again.submit("left", function="f")
    journal.append(lines(again))
    journal.commit()
    assert [(row.run, row.task, row.message) for row in list_tasks(path)] == [(2, "left", ""), (1, "ended", "")]
    assert [row.task for row in list_tasks(path, run=1)] == ["ended"]
    assert [row.task for row in list_tasks(path.with_name("work.journal#2"))] == ["left"]
    with pytest.raises(LogError, match="no run 3"):
        list_tasks(path, run=3)


def test_a_text_log_is_listed_in_its_own_time(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    header = msgspec.json.encode(Header(VERSION, "fifo", "test")) + b"\n"
    log.write_bytes(header + lines(one_of_each()))
    (row,) = list_tasks(log, task="done")
    assert (row.run, row.submitted, row.ended) == (0, 10.0, 13.0)


def test_what_is_no_log_is_said_not_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("hello\n")
    with pytest.raises(LogError, match="not a Wattloom log"):
        list_tasks(tmp_path / "file")
    with pytest.raises(LogError, match="No such file"):
        list_tasks(tmp_path / "nothing")


def calls(function: str, seconds: Sequence[float], joules: Sequence[float | None]) -> bytes:
    text = b""
    for number, (took, used) in enumerate(zip(seconds, joules, strict=True)):
        task = f"{function}{number}".encode()
        text += b'{"event":"task-submitted","time":%d,"task":{"id":"%s","function":"%s"}}\n' % (
            number, task, function.encode(),
        )  # fmt: skip
        text += b'{"event":"task-finished","time":%d,"task":"%s","attempt":1,"seconds":%f}\n' % (number, task, took)
        if used is not None:
            text += b'{"event":"usage-arrived","time":%d,"tasks":{"%s":[%f,0.0]}}\n' % (number, task, used)
    return text


def test_functions_have_mean_spread_and_trend(path: Path, open_journal: Opener) -> None:
    journal = open_journal()
    journal.append(calls("grows", [1.0] * 18 + [2.0] * 2, [10.0] * 18 + [20.0] * 2))
    journal.append(calls("cheap", [1.0, 3.0], [None, 0.5]))
    journal.append(calls("unmetered", [4.0], [None]))
    journal.commit()
    grows, cheap, unmetered = function_costs([path])
    assert (grows.function, grows.calls, grows.finished, grows.joules) == ("grows", 20, 20, 220.0)
    assert (grows.mean_s, grows.mean_j) == pytest.approx((1.1, 11.0))
    assert (grows.spread_s, grows.spread_j) == pytest.approx((0.3077935, 3.077935))
    assert (grows.trend_s, grows.trend_j) == pytest.approx((2 / 1.1 - 1, 20 / 11 - 1))
    assert (cheap.function, cheap.mean_s, cheap.mean_j) == ("cheap", 2.0, 0.5)
    assert cheap.spread_s == pytest.approx(2**0.5)
    assert (cheap.spread_j, cheap.trend_s, cheap.trend_j) == (None, None, None)
    assert (unmetered.function, unmetered.mean_s, unmetered.spread_s, unmetered.mean_j) == (
        "unmetered",
        4.0,
        None,
        None,
    )


def test_functions_come_together_over_runs_and_journals(tmp_path: Path, path: Path, open_journal: Opener) -> None:
    journal = open_journal()
    journal.append(calls("f", [1.0], [1.0]))
    journal.end_run(1001.0)
    journal.begin_run(Header(VERSION, "fifo", "local"), 1002.0)
    journal.append(calls("f", [2.0], [2.0]))
    journal.commit()
    text = tmp_path / "run.log"
    text.write_bytes(msgspec.json.encode(Header(VERSION, "fifo", "test")) + b"\n" + calls("f", [6.0], [None]))
    (f,) = function_costs([path, text])
    assert (f.calls, f.mean_s, f.mean_j, f.joules) == (3, 3.0, 1.5, 3.0)


def test_calls_that_failed_count_and_do_not_blur_the_seconds(path: Path, open_journal: Opener) -> None:
    journal = open_journal()
    journal.append(lines(one_of_each()) + JOULES)
    journal.commit()
    by_name = {cost.function: cost for cost in function_costs([path])}
    assert (by_name["f"].calls, by_name["f"].finished, by_name["f"].mean_s, by_name["f"].joules) == (3, 0, None, 1.0)


def test_a_hundred_thousand_tasks_are_listed_in_seconds(path: Path, open_journal: Opener) -> None:
    journal = open_journal()
    story = (
        b'{"event":"task-submitted","time":1.0,"task":{"id":"t%(n)d","function":"f"}}\n'
        b'{"instruction":"place","task":"t%(n)d","attempt":1,"node":"a","variant":"default","cost":1.5}\n'
        b'{"event":"task-started","time":1.0,"task":"t%(n)d","attempt":1}\n'
        b'{"event":"task-finished","time":2.0,"task":"t%(n)d","attempt":1,"seconds":0.5}\n'
    )
    for number in range(100_000):
        journal.append(story % {b"n": number})
    journal.commit()
    begin = time.process_time()
    assert len(list_tasks(path)) == 100_000
    assert time.process_time() - begin < 5.0
