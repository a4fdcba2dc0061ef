"""Whose a journal is: one that somebody else could have written is refused, with all that belongs to it."""

import os
import stat
import tempfile
import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from wattloom.errors import WattloomError
from wattloom.history.holder import holder_of
from wattloom.journal.errors import JournalBusy, JournalNotOurs
from wattloom.journal.journal import Journal
from wattloom.journal.keys import KeyStore
from wattloom.journal.progress import Progress
from wattloom.journal.spool import Spool, map_file
from wattloom.settings import default_journal, state_folder

VICTIM: Final = 54321
ATTACKER: Final = 54322
PARTS: Final = ("", "-wal", "-shm", "-journal", ".lock", ".spool", "folder")
"""Of a journal: files by the end of their names, and the folder it lies in."""

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can play two users")


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """One that was used and closed."""
    path = tmp_path / "own" / "work.journal"
    Journal.open(path).close()
    Spool(path.with_name(path.name + ".spool")).write("args-1-1", [b"large"])
    return path


def part_of(journal: Path, part: str) -> Path:
    """It is made if it is not there."""
    if part == "folder":
        return journal.parent
    path = journal.with_name(journal.name + part)
    if not path.exists():
        path.touch(mode=0o600)
    return path


def played_by(user: int, act: Callable[[], None]) -> str:
    """Do it as another user, in a process of its own; what went wrong."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            act()
            code = 0
        except WattloomError as problem:
            os.write(write, f"{type(problem).__name__}: {problem}".encode())
        except BaseException:
            os.write(write, traceback.format_exc().encode())
        finally:
            os._exit(code)
    os.close(write)
    with open(read) as end:
        said = end.read()
    os.waitpid(child, 0)
    return said


# -- who owns it, who may write ----------------------------------------------------------------------------------------


@as_root
@pytest.mark.parametrize("part", PARTS)
def test_a_journal_of_which_a_part_belongs_to_somebody_else_is_refused(journal: Path, part: str) -> None:
    os.chown(part_of(journal, part), ATTACKER, ATTACKER)
    with pytest.raises(JournalNotOurs, match=f"belongs to user {ATTACKER} and not to you.*chown 0"):
        Journal.open(journal)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(("who", "bits"), [("everybody", 0o002), ("everybody", 0o022)])
def test_a_journal_of_which_everybody_may_write_a_part_is_refused(
    journal: Path, part: str, who: str, bits: int
) -> None:
    path = part_of(journal, part)
    path.chmod(stat.S_IMODE(path.stat().st_mode) | bits)
    with pytest.raises(JournalNotOurs, match=rf"may be written by {who} \(chmod go-w") as told:
        Journal.open(journal)
    assert str(path) in str(told.value)
    assert part or str(told.value).startswith(f"{path}: may be written")
    assert "WATTLOOM_LOCAL__JOURNAL" in str(told.value)
    path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o022)
    Journal.open(journal).close()


@as_root
@pytest.mark.parametrize("part", PARTS)
def test_a_group_that_is_more_than_the_user_may_not_write_either(journal: Path, part: str) -> None:
    path = part_of(journal, part)
    path.chmod(stat.S_IMODE(path.stat().st_mode) | 0o020)
    Journal.open(journal).close()  # root's own group: as of every user where each has one
    path = part_of(journal, part)
    os.chown(path, 0, ATTACKER)
    path.chmod(stat.S_IMODE(path.stat().st_mode) | 0o020)
    with pytest.raises(JournalNotOurs, match=f"may be written by its group, number {ATTACKER}"):
        Journal.open(journal)


@as_root
@pytest.mark.parametrize("part", ["", "-wal", "-journal", "folder"])
def test_a_file_of_keys_of_which_a_part_belongs_to_somebody_else_is_refused(tmp_path: Path, part: str) -> None:
    """The results in it are unpickled."""
    path = tmp_path / "own" / "work.journal.keys"
    path.parent.mkdir()
    store = KeyStore(path, path.with_suffix(""), "", "process", 1.0)
    store.open(0.0, list)
    store.close()
    os.chown(part_of(path, part), ATTACKER, ATTACKER)
    with pytest.raises(JournalNotOurs):
        KeyStore(path, path.with_suffix(""), "", "process", 1.0).open(0.0, list)


@as_root
def test_the_superuser_is_trusted_by_everybody(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    folder = tmp_path / "made-by-root"
    folder.mkdir(mode=0o755)
    own = folder / "own"
    own.mkdir(mode=0o700)
    os.chown(own, VICTIM, VICTIM)
    in_reach(tmp_path)
    assert played_by(VICTIM, lambda: Journal.open(own / "work.journal").close()) == ""


def in_reach(path: Path) -> None:
    """Folders above it may be passed by everybody, for as long as the test lasts."""
    for each in (path, *path.parents):
        if each.stat().st_uid == os.geteuid() and each != Path("/"):
            each.chmod(each.stat().st_mode | 0o011)


# -- folders of all ----------------------------------------------------------------------------------------------------


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder as /tmp."""
    in_reach(tmp_path)
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def test_a_journal_may_lie_in_a_folder_as_tmp_and_is_safe_there(shared: Path) -> None:
    for _ in range(2):
        Journal.open(shared / "work.journal").close()
    Journal.open(shared / "again.journal")
    for path in shared.iterdir():
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path


@as_root
@pytest.mark.parametrize("part", [part for part in PARTS if part != "folder"])
def test_what_somebody_has_put_there_before_us_is_refused(shared: Path, part: str) -> None:
    journal = shared / "work.journal"

    def squat() -> None:
        path = journal.with_name(journal.name + part)
        path.mkdir(mode=0o777) if part == ".spool" else path.touch()
        path.chmod(0o777)

    assert played_by(ATTACKER, squat) == ""
    assert f"belongs to user {ATTACKER}" in played_by(VICTIM, lambda: Journal.open(journal).close())


@as_root
def test_without_a_home_nobody_takes_the_folder_that_somebody_made_for_him(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("TMPDIR", str(shared))
    monkeypatch.setattr(tempfile, "tempdir", None)
    folder = shared / f"wattloom-{VICTIM}"

    def use() -> None:
        assert state_folder() == folder
        Journal.open(default_journal("/srv/app.py")).close()

    assert played_by(VICTIM, use) == ""
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    os.chown(folder, ATTACKER, ATTACKER)
    folder.chmod(0o777)
    assert "JournalNotOurs" in played_by(VICTIM, use)
    folder.rename(shared / "elsewhere")
    assert played_by(ATTACKER, lambda: folder.symlink_to(shared / "elsewhere")) == ""
    assert "JournalNotOurs" in played_by(VICTIM, use)


@as_root
def test_root_with_the_home_of_somebody_else_has_a_state_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_folder() == tmp_path / ".local" / "state" / "wattloom"
    os.chown(tmp_path, VICTIM, VICTIM)
    assert state_folder() == Path("/root/.local/state/wattloom")


# -- links and modes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [".lock", ".spool"])
def test_links_in_place_of_the_lock_or_the_spool_are_not_followed(journal: Path, tmp_path: Path, part: str) -> None:
    path, elsewhere = journal.with_name(journal.name + part), tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    with pytest.raises(WattloomError, match="link"):
        Journal.open(journal)


@as_root
def test_a_link_to_a_journal_is_as_good_as_what_it_leads_to(journal: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.journal"
    link.symlink_to(journal)
    Journal.open(link).close()
    os.chown(journal.parent, ATTACKER, ATTACKER)
    with pytest.raises(JournalNotOurs):
        Journal.open(link)


@pytest.mark.parametrize("named", ["link.journal", "linked/work.journal"])
def test_a_journal_is_one_journal_by_whatever_link_it_is_named(journal: Path, tmp_path: Path, named: str) -> None:
    link = tmp_path / named
    if named == "link.journal":
        link.symlink_to(journal)
    else:
        link.parent.symlink_to(journal.parent)
    with closing(Journal.open(journal)) as first:
        with pytest.raises(JournalBusy):
            Journal.open(link)
        assert holder_of(link) is not None
    with closing(Journal.open(link)) as second:
        assert (second.path, second.spool.folder) == (first.path, first.spool.folder)


def test_a_link_may_be_there_before_the_journal_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "link.journal").symlink_to(tmp_path / "work.journal")
    Journal.open(tmp_path / "link.journal").close()
    assert (tmp_path / "work.journal").is_file()


@as_root
def test_somebody_elses_link_leads_nobody_to_a_journal_of_his_own(shared: Path, journal: Path) -> None:
    link = shared / "link.journal"
    link.symlink_to(journal)
    os.chown(link, ATTACKER, ATTACKER, follow_symlinks=False)
    with pytest.raises(JournalNotOurs):
        Journal.open(link)


def test_spool_files_are_this_users_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        spool = Spool(tmp_path / "work.journal.spool")
        spool.write("args-1-1", [b"large"])
        Progress.create(spool.path("worker-1-1")).close()
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (spool.folder, *spool.folder.iterdir())}
    finally:
        os.umask(before)
    assert modes == {"work.journal.spool": 0o700, "args-1-1": 0o600, "worker-1-1": 0o600}


def test_spool_files_are_neither_written_nor_read_through_links(tmp_path: Path) -> None:
    spool, precious = Spool(tmp_path / "work.journal.spool"), tmp_path / "precious"
    spool.write("args-1-1", [b"large"])
    precious.write_text("mine")
    (spool.folder / "args-1-2.part").symlink_to(precious)
    spool.write("args-1-2", [b"large"])
    (spool.folder / "worker-1-1").symlink_to(precious)
    with pytest.raises(WattloomError):
        Progress.create(spool.path("worker-1-1"))
    assert precious.read_text() == "mine"
    (spool.folder / "args-1-3").symlink_to(spool.folder / "args-1-1")
    with pytest.raises(OSError, match="symbolic links"):
        map_file(spool.folder / "args-1-3")
