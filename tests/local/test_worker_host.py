"""The host of this machine keeps the rules of every host; and a host that breaks one is found out."""

from pathlib import Path

import pytest

from wattloom.history.log import VERSION, Header
from wattloom.journal.journal import Journal
from wattloom.local.job import Job
from wattloom.local.nodes import whole_machine
from wattloom.local.worker_host import WorkerHost
from wattloom.local.worker_pool import Upbringing, WorkerPool
from wattloom.machines.this_machine import this_machine
from wattloom.testing import worker_host_conformance as kit
from wattloom.testing.worker_host_conformance import CHECKS, Check, check_name


def pool(folder: Path, kind: type[WorkerPool] = WorkerPool) -> WorkerHost:
    journal = Journal.open(folder / "work.journal")
    run = journal.begin_run(Header(VERSION, "fifo", "local"), 0.0)
    host = kind([whole_machine(this_machine(), 2)], journal, run, Upbringing(), lambda then: then())
    close = host.close

    def close_all(*, forget: bool) -> None:
        close(forget=forget)
        journal.close()

    host.close = close_all  # type: ignore[method-assign]
    return host


@pytest.mark.parametrize("check", CHECKS, ids=check_name)
def test_workers_of_this_machine(check: Check, tmp_path: Path) -> None:
    check(pool, tmp_path)


class Hasty(WorkerPool):
    """Sends what the journal may not have yet."""

    def place(self, job: Job, node: str, behind: Job | None) -> None:
        super().place(job, node, behind)
        self.send(0.0)


class Forgetful(WorkerPool):
    """Says of nobody that it was lost."""

    def cut_off(self, job: Job, why: str) -> None:
        pass


def test_a_host_that_does_not_wait_for_the_journal_is_found_out(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        kit.nothing_begins_before_it_is_sent(lambda folder: pool(folder, Hasty), tmp_path)


def test_a_host_that_does_not_cut_off_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker may take its time to start; only the end that never comes is not waited for."""
    monkeypatch.setattr(Forgetful, "cut_off", lambda *_: monkeypatch.setattr(kit, "PATIENCE_S", 1.0))
    with pytest.raises(AssertionError, match="a call has no end"):
        kit.a_call_that_is_cut_off_is_lost(lambda folder: pool(folder, Forgetful), tmp_path)
