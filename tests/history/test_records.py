"""One room reads the log: nobody else knows how a line looks, and every reader goes by the same walk."""

import ast
import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import msgspec
import pytest

import wattloom
from wattloom.errors import LogError
from wattloom.history.functions import function_costs
from wattloom.history.listing import list_tasks
from wattloom.history.log import VERSION, Header, Log
from wattloom.history.records import Happened, Part, Walk, kind_of, whole
from wattloom.history.task_history import RunHistory
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import AnyInstruction, Place
from wattloom.testing.harness import Harness

SOURCES = Path(wattloom.__file__).parent
KINDS = [kind_of(kind).encode() for kind in (*get_args(ev.AnyEvent), *get_args(AnyInstruction))]
MARKS = [b'"event"', b'"instruction"', *(b'"%s"' % kind for kind in KINDS)]
FROM_TOMORROW = [
    b'{"event":"moon-risen","time":1.5,"moon":{"phase":0.5}}\n',
    b'{"instruction":"howl","at":["the","moon"]}\n',
]


def bytes_in(source: Path) -> Iterator[bytes]:
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, bytes):
            yield node.value


def queries_in(source: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_how_a_record_looks_is_known_to_the_room_of_history_alone() -> None:
    """So a new event is a matter of the engine, of that room and of the docs."""
    found = [
        f"{source.relative_to(SOURCES)}: {text!r}"
        for source in sorted(SOURCES.rglob("*.py"))
        if source.parent.name != "history"
        for text in bytes_in(source)
        if any(mark in text for mark in MARKS)
    ]
    assert not found
    assert any(mark in text for text in bytes_in(Path(__file__)) for mark in MARKS), "or it could not fail"


def test_rows_of_a_log_are_read_by_the_room_of_history_and_by_whoever_writes_them() -> None:
    found = {
        source.relative_to(SOURCES).parts[0]
        for source in SOURCES.rglob("*.py")
        if any("records" in text and "FROM log" in text for text in queries_in(source))
    }
    assert found == {"history"}


MAY_ASK_FOR_A_KIND = {
    "driving/snapshot.py",  # of events that it has made itself
    "simulation/loop.py",  # of what it is about to tell the engine
    "kubernetes/state/driver.py",
    "testing/harness.py",  # as is whoever plays a backend
    "testing/policy_clusters.py",
    "cli/demo_run.py",  # of the run that the demo has just made
}


def kinds_asked_for_in(source: Path) -> Iterator[str]:
    """Kinds of events that a module tells apart: by isinstance, type, match or the keys of a table."""
    kinds = {kind.__name__ for kind in get_args(ev.AnyEvent)}
    for node in ast.walk(ast.parse(source.read_text())):
        asked: list[ast.expr | None] = []
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "issubclass")
        ):
            asked = [*node.args[1:]]
        elif isinstance(node, ast.MatchClass):
            asked = [node.cls]
        elif isinstance(node, ast.Compare):
            asked = [*node.comparators]
        elif isinstance(node, ast.Dict):
            asked = [*node.keys]
        for each in asked:
            if each is not None and not isinstance(each, ast.Call):
                names = (getattr(part, "attr", getattr(part, "id", "")) for part in ast.walk(each))
                yield from (name for name in names if name in kinds)


def test_what_a_record_means_is_known_to_the_engine_and_to_the_room_of_history_alone() -> None:
    """So a new event which changes what ran where touches these two and the docs: who makes up the joules of a run, or
    lets its work run again, is handed rows."""
    found = {
        str(source.relative_to(SOURCES))
        for source in SOURCES.rglob("*.py")
        if source.relative_to(SOURCES).parts[0] not in ("history", "scheduling")
        if any(kinds_asked_for_in(source))
    }
    assert found == MAY_ASK_FOR_A_KIND


def test_nobody_else_knows_how_a_log_begins() -> None:
    named = {
        source.relative_to(SOURCES).parts[0]
        for source in SOURCES.rglob("*.py")
        if '"wattloom_log"' in source.read_text()
    }
    assert named == {"history"}


def test_the_engine_opens_no_file_and_no_database() -> None:
    outside = {"io", "os", "pathlib", "shutil", "sqlite3", "tempfile", "mmap"}
    for source in sorted((SOURCES / "scheduling").rglob("*.py")):
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Import):
                imported = {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported = {(node.module or "").partition(".")[0]}
            else:
                imported = set()
            opens = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open"
            assert not imported & outside, source
            assert not opens, source


def told() -> list[bytes]:
    h = Harness().machine().node("a").function("f")
    h.submit("one")
    h.submit("two")
    h.start("one")
    h.finish("one", seconds=2.0)
    records = [record for event, instructions in h.recorded for record in (event, *instructions)]
    return [msgspec.json.encode(record) + b"\n" for record in records]


def test_whole_records_and_lines_make_the_same_history() -> None:
    walk = Walk()
    by_lines, by_records = RunHistory(walk), RunHistory()
    walk.take(told())
    for _, record in whole(told(), "log"):
        by_records.tell(record)
    assert list(by_lines.by_task) == ["one", "two"]
    for name, task in by_lines.by_task.items():
        other = by_records.by_task[name]
        assert task.submission() == other.submission()
        assert msgspec.structs.replace(task, source=b"") == msgspec.structs.replace(other, source=b"")
    defined = by_lines.definition("f")
    assert defined is not None
    assert defined == by_records.definition("f")


def test_kinds_of_another_version_are_passed_over_by_who_lists_and_refused_by_who_replays(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    lines = told()
    header = msgspec.json.encode(Header(VERSION, "fifo", "simulation")) + b"\n"
    log.write_bytes(header + b"".join(lines[:3] + FROM_TOMORROW + lines[3:]))
    assert {row.task: row.state for row in list_tasks(log)} == {"one": "finished", "two": "placed"}
    assert [cost.calls for cost in function_costs([log], "pro-rata")] == [1]
    with pytest.raises(LogError, match="moon-risen") as problem:
        list(Log(log).records())
    assert str(problem.value).startswith(f"{log}:5")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"event":"tick"}\n', "missing required field `time`"),
        (b'{"event":"tick","time":"soon"}\n', "Expected `float`"),
        (b'{"instruction":"wait",\n', "truncated"),
        (b"lost\n", "neither an event nor an instruction"),
        (b'{"event":"ti', "subsection not found"),
    ],
)
def test_a_line_that_is_no_record_is_damage_with_its_number(line: bytes, words: str) -> None:
    with pytest.raises(LogError, match=words) as problem:
        Walk("run.log").take([*told()[:2], line])
    assert str(problem.value).startswith("run.log:4")
    Walk(unasked=False).take([b"lost\n"])


def test_several_may_ask_for_one_kind_and_time_is_that_of_the_last_event() -> None:
    class Where(Part, gc=False):
        node: str

    walk = Walk()
    seen: list[object] = []
    walk.on_event(ev.Tick, Happened, lambda event: seen.append(event.time))
    walk.on_event(ev.Tick, ev.Tick, lambda event: seen.append(type(event)))
    walk.on_instruction(Place, Where, lambda place: seen.append((place.node, walk.at.time, walk.at.number)))
    walk.take([b'{"event":"tick","time":3.0}\n', b'{"instruction":"place","task":"t","node":"a"}\n'])
    assert seen == [3.0, ev.Tick, ("a", 3.0, 3)]


def test_a_history_goes_when_nobody_has_it_any_more() -> None:
    """Without waiting for a search for circles: that of a long journal has hundreds of megabytes."""
    gc.disable()
    try:
        walk = Walk()
        history = RunHistory(walk)
        walk.take(told())
        gone = weakref.ref(history)
        del walk, history
        assert gone() is None
    finally:
        gc.enable()


def test_a_log_that_grows_is_read_up_to_where_it_was(tmp_path: Path) -> None:
    """Whoever writes may be faster than whoever reads."""
    log = tmp_path / "run.log"
    lines = told()
    header = msgspec.json.encode(Header(VERSION, "fifo", "simulation")) + b"\n"
    log.write_bytes(header + b"".join(lines))
    read = []
    with log.open("ab", buffering=0) as file:
        for line in Log(log).lines():
            read.append(line)
            file.write(lines[-1])
    assert read == lines


def test_a_line_nested_without_end_is_damage_and_no_traceback() -> None:
    walk = Walk("run.log")
    line = b'{"event":"moon-risen","time":0.0,"moon":' + b"[" * 100_000
    with pytest.raises(LogError, match="damaged"):
        walk.take([line])
