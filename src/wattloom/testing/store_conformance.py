"""What every store of a journal must do, ours and anybody else's: `check_store(make, folder)` in a test is enough.

Owns the checks. `make` opens the store that belongs to a folder: opened again, after it was closed, it is the same one.
The checks write, cut off and read again, and raise AssertionError when something is not as it was. To see each rule as
a test of its own:

    @pytest.mark.parametrize("check", CHECKS, ids=check_name)
    def test_my_store(check: Check, tmp_path: Path) -> None:
        check(make_my_store, tmp_path)
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from wattloom.history.log import VERSION, Header
from wattloom.history.stored_log import rows_of
from wattloom.journal.errors import JournalBusy
from wattloom.journal.journal import Journal
from wattloom.journal.payloads import Call, KeptFunction
from wattloom.journal.pending import Pending, RunEnded, RunLookedAt, RunTakenOver, WorkerGone, WorkerStarted
from wattloom.journal.retention import Retention
from wattloom.journal.spool import Spool
from wattloom.journal.store import RunStart, Store
from wattloom.scheduling import events as ev
from wattloom.workload.function import Function
from wattloom.workload.task import Task

MakeStore = Callable[[Path], Store]
Check = Callable[[MakeStore, Path], None]

NOW: Final = 1_000_000_000.0
HEADER: Final = Header(VERSION, "fifo", "local")
START: Final = RunStart(NOW, "a program", 17, "a boot", msgspec.json.encode(HEADER))


def check_store(make: MakeStore, folder: Path) -> None:
    """Every rule, one after the other, each in a folder of its own."""
    for check in CHECKS:
        own = folder / check.__name__
        own.mkdir()
        check(make, own)


def check_name(check: Check) -> str:
    return check.__name__


@contextmanager
def _opened(make: MakeStore, folder: Path) -> Iterator[Store]:
    store = make(folder)
    try:
        yield store
    finally:
        store.close()


def _pending(*lines: bytes) -> Pending:
    pending = Pending()
    pending.records.extend(lines)
    return pending


def _row(run: int, number: int) -> int:
    return rows_of(run)[0] + number


# -- the rules ---------------------------------------------------------------------------------------------------------


def one_program_at_a_time_has_it(make: MakeStore, folder: Path) -> None:
    """Whoever comes second is told so; afterwards it is free."""
    with _opened(make, folder) as store:
        assert store.is_open
        try:
            make(folder).close()
        except JournalBusy:
            pass
        else:
            raise AssertionError("two have it open at a time")
    assert not store.is_open
    make(folder).close()


def runs_are_numbered_upwards(make: MakeStore, folder: Path) -> None:
    """Also after all were let go: a number is never given twice."""
    with _opened(make, folder) as store:
        first, second = store.begin_run(START), store.begin_run(START)
        assert 0 < first < second
        ended = Pending()
        ended.changes.extend([RunEnded(first, NOW, 0, 0), RunEnded(second, NOW, 0, 0)])
        store.commit(ended, None)
        assert store.prune(Retention(days=0.0), NOW + 10.0) == [first, second]
    with _opened(make, folder) as store:
        assert store.begin_run(START) > second


def what_was_committed_is_there_afterwards(make: MakeStore, folder: Path) -> None:
    """All kinds of it, for whoever opens it next."""
    with _opened(make, folder) as store:
        run = store.begin_run(START)
        pending = _pending(b"one\n", b"two\n")
        pending.payloads[_row(run, 1)] = b"payload"
        pending.functions["digest"] = ("f", run, b"pickled")
        pending.learned["f", "machine"] = b"[1]"
        pending.changes.append(WorkerStarted(run, "worker-1", 4711))
        store.commit(pending, _row(run, 1))
        store.commit(_pending(b"three\n"), _row(run, 2))
    with _opened(make, folder) as store:
        assert list(store.log_of(run)) == [(_row(run, 1), b"one\ntwo\n"), (_row(run, 2), b"three\n")]
        assert list(store.payloads_of(run)) == [(_row(run, 1), b"payload")]
        assert store.function("digest") == KeptFunction("digest", "f", b"pickled")
        assert store.learned("f", "machine") == b"[1]"
        assert store.workers_of(run) == {"worker-1": 4711}
        assert store.boot_of(run) == "a boot"


def what_is_not_there_is_none(make: MakeStore, folder: Path) -> None:
    with _opened(make, folder) as store:
        run = store.begin_run(START)
        assert not list(store.log_of(run))
        assert not list(store.payloads_of(run))
        assert store.function("digest") is None
        assert store.learned("f", "machine") is None
        assert store.workers_of(run) == {}


def a_commit_that_fails_writes_nothing(make: MakeStore, folder: Path) -> None:
    """And the next one everything."""
    with _opened(make, folder) as store:
        run = store.begin_run(START)
        broken = _pending(b"one\n")
        broken.payloads[_row(run, 1)] = b"payload"
        learned: dict[tuple[str, str], Any] = broken.learned
        learned["f", "machine"] = {}  # no bytes, so that it cannot be kept
        try:
            store.commit(broken, _row(run, 1))
        except Exception:
            assert not list(store.log_of(run)), "half of a commit was written"
            assert not list(store.payloads_of(run)), "half of a commit was written"
        else:
            raise AssertionError("what is no bytes was kept")
        broken.learned["f", "machine"] = b"[1]"
        store.commit(broken, _row(run, 1))
        assert list(store.log_of(run)) == [(_row(run, 1), b"one\n")]


def a_commit_that_is_made_again_does_no_harm(make: MakeStore, folder: Path) -> None:
    """Its answer may have been lost."""
    with _opened(make, folder) as store:
        run = store.begin_run(START)
        pending = _pending(b"one\n")
        pending.payloads[_row(run, 1)] = b"payload"
        pending.functions["digest"] = ("f", run, b"pickled")
        pending.changes.append(WorkerStarted(run, "worker-1", 1))
        assert store.commit(pending, _row(run, 1)) == len(b"pickled")
        assert store.commit(pending, _row(run, 1)) == 0, "a function that is there was counted as new"
        assert list(store.log_of(run)) == [(_row(run, 1), b"one\n")]
        assert list(store.payloads_of(run)) == [(_row(run, 1), b"payload")]


def payloads_go_when_they_are_forgotten(make: MakeStore, folder: Path) -> None:
    """Chunk by chunk, or all of a run that another has taken over."""
    with _opened(make, folder) as store:
        run, other = store.begin_run(START), store.begin_run(START)
        pending = Pending()
        pending.payloads.update({_row(run, 1): b"a", _row(run, 2): b"b", _row(other, 1): b"c"})
        store.commit(pending, None)
        forgetting = Pending()
        forgetting.forget(_row(run, 1))
        store.commit(forgetting, None)
        assert list(store.payloads_of(run)) == [(_row(run, 2), b"b")]
        taking = Pending()
        taking.changes.append(RunTakenOver(run, other))
        store.commit(taking, None)
        assert not list(store.payloads_of(run))
        assert list(store.payloads_of(other)) == [(_row(other, 1), b"c")]


def workers_are_known_until_they_are_gone(make: MakeStore, folder: Path) -> None:
    with _opened(make, folder) as store:
        run = store.begin_run(START)
        pending = Pending()
        pending.changes.extend(WorkerStarted(run, f"worker-{number}", number) for number in (1, 2, 3))
        pending.changes.append(WorkerGone(run, "worker-2"))
        store.commit(pending, None)
        assert store.workers_of(run) == {"worker-1": 1, "worker-3": 3}
        ending = Pending()
        ending.changes.append(WorkerGone(run))
        store.commit(ending, None)
        assert store.workers_of(run) == {}


def a_run_is_recovered_until_somebody_answers_for_it(make: MakeStore, folder: Path) -> None:
    """One that did not end, or ended with tasks left; not one that was looked at and has none, nor the present one."""
    with _opened(make, folder) as store:
        cut, left, done, empty, present = (store.begin_run(START) for _ in range(5))
        pending = Pending()
        pending.changes.extend([RunEnded(left, NOW, 2, 0), RunEnded(done, NOW, 0, 0), RunLookedAt(empty, 0)])
        store.commit(pending, None)
        assert store.runs_to_recover(present) == [cut, left]
        taking = Pending()
        taking.changes.extend([RunTakenOver(cut, present), RunTakenOver(left, present)])
        store.commit(taking, None)
        assert store.runs_to_recover(present) == []
        assert store.runs_to_recover(None) == [present]


def old_runs_go_and_those_with_tasks_stay(make: MakeStore, folder: Path) -> None:
    with _opened(make, folder) as store:
        old, left, new = (store.begin_run(START) for _ in range(3))
        for run in (old, left, new):
            store.commit(_pending(b"line\n"), _row(run, 1))
        pending = Pending()
        pending.changes.extend(
            [RunEnded(old, NOW, 0, 5), RunEnded(left, NOW, 1, 5), RunEnded(new, NOW + 90_000.0, 0, 5)]
        )
        store.commit(pending, None)
        assert store.prune(Retention(days=1.0), NOW + 100_000.0) == [old]
        while store.tidy(1.0):
            pass
        assert not list(store.log_of(old))
        assert list(store.log_of(left))
        assert list(store.log_of(new))
        assert store.runs_to_recover(None) == [left]


def a_journal_on_it_finds_what_was_cut_off(make: MakeStore, folder: Path) -> None:
    """The whole way: a call is accepted, its program ends without a word, and the next one has it as it was."""
    spool, task = Spool(folder / "spool"), Task("1-1", "f")
    with _opened(make, folder) as store:
        journal = Journal(store, spool)
        run = journal.begin_run(HEADER, NOW)
        journal.keep_function("digest", "f", b"pickled")
        journal.keep([Call(task.id, "digest", b"arguments", key="k", timeout=3.0)])
        events = [ev.FunctionDefined(0.0, Function("f")), ev.TaskSubmitted(1.0, task)]
        journal.append(msgspec.json.Encoder().encode_lines(events))
        journal.commit()
        journal.append(b'{"not": "committed"}\n')
    with _opened(make, folder) as store:
        journal = Journal(store, spool)
        now = journal.begin_run(HEADER, NOW)
        (left,) = journal.unfinished()
        assert (left.run, left.task, left.definition) == (run, task, Function("f"))
        assert left.call == Call(task.id, "digest", b"arguments", key="k", timeout=3.0)
        assert left.function == KeptFunction("digest", "f", b"pickled")
        assert not left.placed
        journal.taken_over(run)
        journal.end_run(NOW)
        assert store.runs_to_recover(None) == []
        assert now > run


CHECKS: Final[tuple[Check, ...]] = (
    one_program_at_a_time_has_it,
    runs_are_numbered_upwards,
    what_was_committed_is_there_afterwards,
    what_is_not_there_is_none,
    a_commit_that_fails_writes_nothing,
    a_commit_that_is_made_again_does_no_harm,
    payloads_go_when_they_are_forgotten,
    workers_are_known_until_they_are_gone,
    a_run_is_recovered_until_somebody_answers_for_it,
    old_runs_go_and_those_with_tasks_stay,
    a_journal_on_it_finds_what_was_cut_off,
)
