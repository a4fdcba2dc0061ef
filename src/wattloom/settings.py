"""Settings, in groups, and where each value comes from.

Defaults < `pyproject.toml` (`[tool.wattloom.local]`) < `wattloom.toml` (`[local]`), both in the working folder <
environment (`WATTLOOM_LOCAL__KEY`) < what the caller gives. Owns their checks and the places where journals live
by default; which settings there are stands in `setting_groups`. Knows neither what a journal is nor who uses a value.

The files of the working folder may be anybody's: of a checkout, of a shared folder. What they name is not run, and no
secret that stands elsewhere is sent where they say, unless the folder is trusted: the program imports from it anyway,
or `WATTLOOM_TRUSTED_FOLDERS` lists it.
"""

import os
import pwd
import re
import shlex
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, get_args

import msgspec

from wattloom.errors import InputError
from wattloom.ownership import SUPERUSER, NotOurs, refuse_foreign
from wattloom.program import APART, HALF, NESTED, name_of, this_program
from wattloom.setting_groups import Local, PlugInProblem, Role, Settings, Unchecked, brought, groups, keys_with

PREFIX: Final = "WATTLOOM_"
PROJECT_FILE: Final = "pyproject.toml"
OWN_FILE: Final = "wattloom.toml"
SUFFIX: Final = ".journal"
LAUNCHERS: Final = re.compile(rf"({APART}[0-9a-f]{{{2 * HALF}}})(?:-([0-9]+))?$")
"""How the names of their journals end: that of a copy with its number."""
TRUSTED: Final = "WATTLOOM_TRUSTED_FOLDERS"
"""Folders whose settings files are as good as the environment, with colons between."""


BOTH_SIDES: Final[tuple[Role, Role]] = ("credential", "receiver")


class SettingsError(InputError):
    """A setting is unknown or has a wrong value. `field` says where it stands."""


def load_settings(
    given: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    folder: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """The settings that hold here. `given` has groups of values that go before all others; None in it: not given."""
    return load_with_withheld(given, folder=folder, environ=environ)[0]


def load_with_withheld(
    given: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    folder: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> tuple[Settings, dict[str, str]]:
    """The settings that hold here, and by group why its credentials are not among them."""
    folder, environ = folder or Path(), os.environ if environ is None else environ
    kinds = _Kinds()
    values: dict[str, dict[str, Any]] = {"local": {}}
    places: dict[str, dict[str, Place]] = {}
    for where, group, key, value, from_text, source in _found(given or {}, folder, environ, kinds):
        values.setdefault(group, {})[key] = _checked(where, kinds.of(where, group), key, value, from_text)
        places.setdefault(group, {})[key] = Place(source, where)
    withheld = {}
    if not is_trusted(folder, environ):
        _refuse_foreign_files(folder, places)
        mixed = {group: _mixed(each, values[group], kinds.of("", group)) for group, each in places.items()}
        withheld = {group: why for group, why in mixed.items() if why}
    for group in withheld:
        secret = keys_with("credential", kinds.of("", group))
        values[group] = {key: value for key, value in values[group].items() if key not in secret}
    made = {group: _made(kinds.of("", group), group, each) for group, each in values.items()}
    return Settings(made.pop("local"), made), withheld  # type: ignore[arg-type]


# -- whom to trust -----------------------------------------------------------------------------------------------------


class Place(msgspec.Struct, frozen=True):
    """Where a value stands."""

    source: str
    """The file; empty: it comes from the environment or the program, so from the user."""
    where: str
    """File and field, for messages."""


def is_trusted(folder: Path, environ: Mapping[str, str]) -> bool:
    """Whether what the folder's settings name may be run: the program imports from there, or the user says so."""
    said = [each for each in environ.get(TRUSTED, "").split(os.pathsep) if each]
    try:
        here = os.path.realpath(folder)
    except OSError:  # the working folder is gone, and with it all that it could name
        return True
    return any(os.path.realpath(os.path.expanduser(each) or ".") == here for each in (*said, *sys.path))


def named_by_the_folder(group: str, folder: Path | None = None) -> dict[str, str]:
    """Settings of a group that stand in a file of a folder which is not trusted, and where."""
    folder = folder or Path()
    if is_trusted(folder, os.environ):
        return {}
    found: dict[str, str] = {}
    for where, its_group, key, _, _, source in _found({}, folder, os.environ, _Kinds()):
        if its_group == group:
            found.pop(key, None)
            found |= {key: where} if source else {}
    return found


def not_run(where: str, what: str, instead: str) -> SettingsError:
    """What such a setting names is code, and somebody else may have written it."""
    return SettingsError(
        where,
        f"names {what}. Nothing that files of the working folder name is run by itself: give it by {instead}, or, if "
        f"you trust all that is in this folder, set {TRUSTED}={shlex.quote(os.path.realpath('.'))}",
    )


def _mixed(places: Mapping[str, Place], values: Mapping[str, Any], kind: type[msgspec.Struct]) -> str:
    """Why credentials are not sent: they stand elsewhere than what says where they would go. Empty: they may be."""
    secrets, receivers = (
        [place for key, place in places.items() if key in keys_with(role, kind) and values[key]] for role in BOTH_SIDES
    )
    for secret in secrets:
        for receiver in receivers:
            if secret.source != receiver.source:
                return (
                    f"{secret.where} is not sent where {receiver.where} says: set both in one file, or both in the "
                    f"environment, or trust this folder ({TRUSTED})"
                )
    return ""


def _refuse_foreign_files(folder: Path, places: Mapping[str, Mapping[str, Place]]) -> None:
    """Whoever can write a file must not choose whom is asked for watts, nor what is run."""
    wrong = {name: problem for name in (PROJECT_FILE, OWN_FILE) if (problem := _foreign(folder / name))}
    for group, each in places.items():
        for key, place in each.items():
            if place.source in wrong and (group != "local" or key in ("journal", "keys", "policy")):
                raise SettingsError(
                    place.where, f"is not taken from there: {place.source} {wrong[place.source]}; or set {TRUSTED}"
                )


def _foreign(path: Path) -> str:
    try:
        refuse_foreign(path)
    except NotOurs as problem:
        return str(problem.strerror)
    except OSError:
        return ""
    return ""


# -- sources -----------------------------------------------------------------------------------------------------------

Found = tuple[str, str, str, Any, bool, str]
"""Where it stands, group, key, value, whether that is text to be read, and the file; empty: it is in none."""


def _found(
    given: Mapping[str, Mapping[str, Any]], folder: Path, environ: Mapping[str, str], kinds: "_Kinds"
) -> Iterator[Found]:
    """Every value of every source; what comes later goes before what came earlier."""
    project = _read(folder / PROJECT_FILE).get("tool", {}).get("wattloom", {})
    yield from _in_tables(f"{PROJECT_FILE}: tool.wattloom.", project, PROJECT_FILE, kinds)
    yield from _in_tables(f"{OWN_FILE}: ", _read(folder / OWN_FILE), OWN_FILE, kinds)
    for name in sorted(environ):
        group, mark, key = name.removeprefix(PREFIX).lower().partition("__")
        if name.startswith(PREFIX) and mark:  # other variables with this prefix are no settings
            kinds.of(name, group)
            yield name, group, key, environ[name], True, ""
    for group, values in given.items():
        kinds.of(group, group)
        for key, value in values.items():
            if value is not None:
                yield key, group, key, value, False, ""


def _in_tables(prefix: str, tables: object, source: str, kinds: "_Kinds") -> Iterator[Found]:
    if not isinstance(tables, dict):
        raise SettingsError(prefix.rstrip(". :"), f"must be a table, not {_kind(tables)}")
    for group, values in tables.items():
        kinds.of(prefix + group, group)
        if not isinstance(values, dict):
            raise SettingsError(prefix + group, f"must be a table, not {_kind(values)}")
        for key, value in values.items():
            yield f"{prefix}{group}.{key}", group, key, value, False, source


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise SettingsError(path.name, f"is not TOML: {problem}") from problem
    except OSError as problem:
        raise SettingsError(path.name, f"cannot be read: {problem.strerror}") from problem


# -- checks ------------------------------------------------------------------------------------------------------------


class _Kinds:
    """What the settings of a group are. A plug-in is looked for once, and only if its group is named."""

    def __init__(self) -> None:
        self._known: dict[str, type[msgspec.Struct]] = {"local": Local}

    def of(self, where: str, group: str) -> type[msgspec.Struct]:
        if group not in self._known:
            self._known[group] = _brought(where, group)
        return self._known[group]


def _brought(where: str, group: str) -> type[msgspec.Struct]:
    try:
        found = brought(group)
    except PlugInProblem:
        return Unchecked
    except InputError as problem:
        raise SettingsError(where, problem.problem) from problem
    if found is None:
        known = _known(group, groups())
        raise SettingsError(where, f"no such group of settings{known}; a plug-in has its own once it is installed")
    return found


def _made(kind: type[msgspec.Struct], group: str, values: dict[str, Any]) -> msgspec.Struct:
    """What a plug-in itself has against values that are right by themselves is wrong with the group."""
    if kind is Unchecked:
        return Unchecked(values)
    try:
        return kind(**values)
    except (ValueError, TypeError, InputError) as problem:
        raise SettingsError(f"settings of {group}", str(problem)) from problem


def _checked(where: str, kind: type[msgspec.Struct], key: str, value: Any, from_text: bool) -> Any:
    if kind is Unchecked:
        return value
    fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
    if key not in fields:
        raise SettingsError(where, f"no such setting{_known(key, fields)}")
    if isinstance(value, Path) and fields[key] is str:
        value = str(value)
    found = read_text(where, value, fields[key]) if from_text else _converted(where, value, fields[key])
    return os.path.expanduser(found) if key in keys_with("path", kind) else found


def read_text(where: str, text: str, wanted: Any) -> Any:
    """The text as a value of a setting of that type. Raises SettingsError."""
    return _converted(where, text.strip(), wanted, strict=False)


def _converted(where: str, value: Any, wanted: Any, strict: bool = True) -> Any:
    try:
        return msgspec.convert(value, wanted, strict=strict)
    except msgspec.ValidationError as problem:
        raise SettingsError(where, _in_words(str(problem), value, wanted)) from problem


def _in_words(problem: str, value: Any, wanted: Any) -> str:
    """msgspec's complaint about a value, in the words of the file."""
    shown = repr(value) if isinstance(value, str) else str(value)
    if found := re.match(r"Expected `\w+` (>=|>|<=|<) (\S+)", problem):
        bounds = {">=": "at least", ">": "above", "<=": "at most", "<": "below"}
        return f"must be {bounds[found[1]]} {float(found[2]):g}, not {shown}"
    if problem.startswith("Invalid enum value"):
        choices = [str(choice) for choice in get_args(wanted)]
        return f"must be {' or '.join(choices)}, not {shown}{_nearest(str(value), choices)}"
    if found := re.match(r"Expected `(\w+)`", problem):
        names = {"int": "a whole number", "float": "a number", "str": "text"}
        return f"must be {names.get(found[1], found[1])}, not {shown if isinstance(value, str) else _kind(value)}"
    return problem


def _nearest(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _known(name: str, known: Mapping[str, object]) -> str:
    return f"{_nearest(name, list(known))}; there is {', '.join(known)}"


def _kind(value: object) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", dict: "a table"}
    return names.get(type(value), type(value).__name__)


# -- where journals live -----------------------------------------------------------------------------------------------


def state_folder() -> Path:
    """$XDG_STATE_HOME/wattloom, or ~/.local/state/wattloom; for a user without a home, a folder of temporary files. The
    superuser's is his own even where $HOME is still that of somebody else, as after `sudo -E`."""
    given = os.environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(given):  # the XDG specification has relative ones ignored
        return Path(given) / "wattloom"
    try:
        return _home() / ".local" / "state" / "wattloom"
    except RuntimeError:
        return Path(tempfile.gettempdir()) / f"wattloom-{os.getuid()}"


def _home() -> Path:
    home = Path.home()
    if os.geteuid() == SUPERUSER and home.is_dir() and home.stat().st_uid != SUPERUSER:
        with suppress(KeyError):
            return Path(pwd.getpwuid(SUPERUSER).pw_dir)
    return home


def default_journal(program: str | None = None, number: int = 1) -> Path:
    """Where a program's journal is, unless a setting says otherwise. Where several of that program run at a time, the
    second has number 2, and so on."""
    name = this_program() if program is None else name_of(program)
    return state_folder() / (f"{name}{SUFFIX}" if number == 1 else f"{name}-{number}{SUFFIX}")


def of_the_same_launcher(journal: Path) -> list[Path]:
    """Other journals of what runs other people's code, in the same folder, or from before these were told apart; the
    one used last first. Empty if the journal is a script's."""
    stem, apart, rest = journal.stem.partition(APART)
    if not apart or rest.startswith(NESTED):
        return []
    alike = f"{stem}{APART}{rest[:HALF]}"
    return [
        each
        for each in journals()
        if (each.stem == stem or each.stem.startswith(alike)) and not each.stem.startswith(journal.stem)
    ]


def launchers_unused_since(unix: float, journal: Path) -> list[Path]:
    """Journals of all launchers that nobody has written to since, longest unused first: every other command line and
    folder has one, and may never come again. Empty if the journal is a script's."""
    if LAUNCHERS.search(journal.stem) is None:
        return []
    return [each for each in reversed(journals()) if _used(each) < unix and _is_the_last_of_a_launcher(each)]


def _is_the_last_of_a_launcher(journal: Path) -> bool:
    """Those of copies are found by counting, so no number may be left out."""
    found = LAUNCHERS.search(journal.stem)
    if found is None:
        return False
    number = int(found[2] or 1)
    return not journal.with_name(f"{journal.stem[: found.end(1)]}-{number + 1}{SUFFIX}").exists()


def journals() -> list[Path]:
    """All journals in the state folder, the one used last first."""
    folder = state_folder()
    return sorted(folder.glob(f"*{SUFFIX}"), key=_used, reverse=True) if folder.is_dir() else []


def _used(journal: Path) -> float:
    """When it was last written: what is new stands in the file beside it first, which reading makes too, empty."""
    times = [0.0]
    for path in (journal, journal.with_name(journal.name + "-wal")):
        try:
            found = path.stat()
        except OSError:
            continue
        if found.st_size:
            times.append(found.st_mtime)
    return max(times)
