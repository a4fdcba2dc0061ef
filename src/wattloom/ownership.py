"""Whose a file is: whether somebody else could have written what is about to be believed, or run.

Owns the rule. A file or folder is ours if this user or the superuser owns it and nobody else may write to it; a user's
own group, as Debian and Fedora give each one, counts as the user. A folder that everybody may write to but in which
each may remove only what is his own, as /tmp, is one in which ours are safe once they are there.
"""

import grp
import os
import pwd
import shlex
import stat
from contextlib import suppress
from errno import EPERM
from pathlib import Path
from typing import Final

SUPERUSER: Final = 0
CREATED: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class NotOurs(PermissionError):
    """Somebody else could have written it. `strerror` says who, and what to do."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(EPERM, problem, str(path))


def refuse_foreign(path: Path) -> None:
    """Raises NotOurs if a file or folder that is there, or a link by that name, is not ours; OSError if none is."""
    found = os.lstat(path)
    _refuse(path, found)
    if stat.S_ISLNK(found.st_mode):
        _refuse(path, os.stat(path))


def refuse_foreign_folder(path: Path) -> bool:
    """Raises NotOurs if a folder is not ours, nor one as /tmp; whether it is one as that."""
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        _refuse(path, found)
        found = os.stat(path)
    shared = bool(found.st_mode & stat.S_ISVTX) and bool(_others_who_write(found))
    _refuse(path, found, shared=shared)
    return shared


def real_path(path: Path) -> Path:
    """Where a name leads: by whatever name a file is known, it is one file. Raises NotOurs if somebody else's link by
    that name says so."""
    with suppress(FileNotFoundError):
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            _refuse(path, found)
    return Path(os.path.realpath(path))


def create(path: Path) -> None:
    """A new file for this user alone, or one that is there and ours. Raises NotOurs, OSError."""
    try:
        os.close(os.open(path, CREATED, 0o600))
    except FileExistsError:
        refuse_foreign(path)


def create_folder(path: Path) -> None:
    """A new folder for this user alone, or one that is there and ours; no link. Raises NotOurs, OSError."""
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        raise NotOurs(path, "is a link to somewhere else: remove it")
    _refuse(path, found)


def refuse_foreign_descriptor(path: Path, descriptor: int) -> None:
    """Of a file that is open already: nobody can put another in its place meanwhile."""
    _refuse(path, os.fstat(descriptor))


# -- the rule ----------------------------------------------------------------------------------------------------------


def _refuse(path: Path, found: os.stat_result, *, shared: bool = False) -> None:
    named = shlex.quote(str(path))
    if found.st_uid not in (os.geteuid(), SUPERUSER):
        whose = f"belongs to {_user(found.st_uid)} and not to you, {_user(os.geteuid())}"
        raise NotOurs(path, f"{whose} (if you trust all that is in it: sudo chown {os.geteuid()} {named})")
    if not shared and not stat.S_ISLNK(found.st_mode) and (others := _others_who_write(found)):
        raise NotOurs(path, f"may be written by {others} (chmod go-w {named})")


def _others_who_write(found: os.stat_result) -> str:
    """In words; empty: nobody."""
    if found.st_mode & stat.S_IWOTH:
        return "everybody"
    if found.st_mode & stat.S_IWGRP and not _is_own_group(found.st_gid):
        return f"its group, {_group(found.st_gid)}"
    return ""


def _is_own_group(group: int) -> bool:
    """Whether it is the group that has this user's name and nobody else in it."""
    try:
        user, members = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return user.pw_gid == group and members.gr_name == user.pw_name and set(members.gr_mem) <= {user.pw_name}


def _user(number: int) -> str:
    with suppress(KeyError):
        return pwd.getpwuid(number).pw_name
    return f"user {number}"


def _group(number: int) -> str:
    with suppress(KeyError):
        return grp.getgrgid(number).gr_name
    return f"number {number}"
