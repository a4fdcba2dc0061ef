"""Stores of a journal keep the rules of every store: the file, and one in memory, which shows that it is a seam."""

import time
from pathlib import Path

import pytest
from tests.journal.memory_store import Drawer, MemoryStore

from wattloom.history.log import VERSION, Header
from wattloom.journal.journal import Journal
from wattloom.journal.spool import Spool
from wattloom.journal.sqlite_store import SqliteStore
from wattloom.journal.store import Store
from wattloom.local.journaled_run import JournaledRun
from wattloom.testing.store_conformance import CHECKS, Check, MakeStore, check_name

DRAWERS: dict[Path, Drawer] = {}


def in_a_file(folder: Path) -> Store:
    return SqliteStore.open(folder / "work.journal")


def in_memory(folder: Path) -> Store:
    return MemoryStore(DRAWERS.setdefault(folder, Drawer()), folder / "memory")


@pytest.mark.parametrize("make", [in_a_file, in_memory], ids=["file", "memory"])
@pytest.mark.parametrize("check", CHECKS, ids=check_name)
def test_stores(check: Check, make: MakeStore, tmp_path: Path) -> None:
    check(make, tmp_path)


def test_a_run_turns_over_in_memory_as_in_a_file(tmp_path: Path) -> None:
    """The local backend's side of it knows no file."""
    store = in_memory(tmp_path)
    journal = Journal(store, Spool(tmp_path / "spool"))
    journaled = JournaledRun(journal, Header(VERSION, "fifo", "local"), time.time())
    first = journaled.run
    journaled.turn_over(time.time(), [], 0)
    journaled.commit()
    assert journaled.run > first
    assert store.runs_to_recover(journaled.run) == []
    journal.end_run(time.time())
    journal.close()
    assert not store.is_open
