"""Journals in a folder of their own, lines as the engine writes them, and programs that can be killed."""

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wattloom.history.log import VERSION, Header
from wattloom.journal.journal import Journal
from wattloom.journal.sqlite_store import SqliteStore

Opener = Callable[..., Journal]
Start = Callable[..., "subprocess.Popen[bytes]"]


def connection_of(journal: Journal) -> sqlite3.Connection:
    assert isinstance(journal.store, SqliteStore)
    return journal.store.connection()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "work.journal"


@pytest.fixture
def open_journal(path: Path) -> Iterator[Opener]:
    """Opens the journal, with a run begun unless told otherwise. What it opened before is closed, without an end of
    its run; the last one at the end."""
    opened: list[Journal] = []

    def opener(run: bool = True, began: float = 1000.0) -> Journal:
        for earlier in opened:
            earlier.close()
        journal = Journal.open(path, program="test")
        opened.append(journal)
        if run:
            journal.begin_run(Header(VERSION, "fifo", "local"), began)
        return journal

    yield opener
    for journal in opened:
        journal.close()


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts Python text as a program of its own; what is left of it at the end is killed."""
    started: list[subprocess.Popen[bytes]] = []

    def starter(text: str, *arguments: object) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-c", text, *map(str, arguments)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(process)
        return process

    yield starter
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.communicate()
