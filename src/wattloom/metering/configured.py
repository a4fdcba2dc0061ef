"""What the settings say of a source, and how to say that they say nothing.

Owns the words of "not set up". The settings themselves are `settings`'s.
"""

import os
from functools import lru_cache
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from wattloom.program import working_folder
from wattloom.serving.address import is_loopback
from wattloom.setting_groups import Settings, group_of
from wattloom.settings import OWN_FILE, PREFIX, PROJECT_FILE, is_trusted, load_with_withheld

NOT_SET_UP: Final = "not set up"


def settings_here() -> Settings:
    """The settings that hold in the working folder: read once for all meters, and again when they have changed."""
    return _here()[0]


def withheld(name: str) -> str:
    """Why the credentials of a meter are not used here. Empty: they are, or there are none."""
    return _here()[1].get(group_of(name), "")


def _here() -> tuple[Settings, dict[str, str]]:
    files = tuple(_changed(Path(name)) for name in (PROJECT_FILE, OWN_FILE))
    variables = tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith(PREFIX)))
    folder = Path(working_folder())
    return _settings(folder, files, variables, is_trusted(folder, os.environ))


@lru_cache(maxsize=1)
def _settings(
    folder: Path, files: tuple[int, ...], variables: tuple[tuple[str, str], ...], trusted: bool
) -> tuple[Settings, dict[str, str]]:
    return load_with_withheld(folder=folder, environ=dict(variables))


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def not_set_up(name: str, key: str, example: str) -> str:
    """The quiet reason, nobody has asked for this meter; and in the next line how to."""
    group = group_of(name)
    variable = f"WATTLOOM_{group.upper()}__{key.upper()}={example}"
    return f"{NOT_SET_UP}\nset {variable}, or {key} below [{group}] in {OWN_FILE}"


def address_problem(url: str) -> str:
    """What is wrong with an address. Empty: nothing."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - looks whether it is a number
    except ValueError:
        return "is not an address: write it as http://host:port/path"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "must begin with http:// or https:// and a host"
    return ""


def missing_address(group: str, url: str, example: str) -> str | None:
    """Why there is nobody to ask: no address, or none that can be one."""
    if not url:
        return not_set_up(group, "url", example)
    problem = address_problem(url)
    return f"the setting {group}.url {problem}" if problem else withheld(group) or None


def in_clear(group: str, url: str, secret: bool, allowed: bool) -> str | None:
    """Why a secret is not sent to that address: others could read it on the way. None: it may be."""
    parts = urlsplit(url)
    if parts.scheme == "https" or not (secret or parts.username) or allowed or is_loopback(parts.hostname or ""):
        return None
    way = "plain http" if parts.scheme == "http" else "SNMP, which has no secrets"
    other = f"{group} is asked by {way}, so whoever is on the way can read its password"
    instead = "use https, or" if parts.scheme == "http" else "if nobody else is on that network,"
    return f"{other}\n{instead} set WATTLOOM_{group.upper()}__CLEAR_TEXT=true"
