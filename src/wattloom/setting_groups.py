"""Which settings there are, in groups: those of running here, and those that plug-ins bring.

Owns the group `local`, what a plug-in writes to bring a group of its own, and how that is found. Where values come from
is `settings`'s business.

What the entry point of a plug-in names, a function or a class, may have a parameter `settings` whose type is a msgspec
Struct with a default for every field: its group, under the plug-in's name. Ours do as others do. A plug-in is loaded
for that only once somebody has set something under its name.
"""

from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from inspect import isclass, signature
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_type_hints

import msgspec

from wattloom.errors import InputError

Positive = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=0, le=10_000)]

Role = Literal["credential", "receiver", "path"]
ROLE: Final = "wattloom"
Credential = Annotated[str, msgspec.Meta(extra={ROLE: "credential"})]
"""Tells the other side who asks: goes only where a receiver says that stands in the same place."""
Receiver = Annotated[str, msgspec.Meta(extra={ROLE: "receiver"})]
"""Says who is told, and who may listen."""
FilePath = Annotated[str, msgspec.Meta(extra={ROLE: "path"})]
"""`~` is the home folder in it."""
BY_NAME: Final[dict[Role, tuple[str, ...]]] = {
    "credential": ("user", "password", "token", "community"),
    "receiver": ("url", "host", "certificate", "cipher_suite", "clear_text"),
    "path": ("journal", "keys", "path", "certificate"),
}
"""Settings that are so by their name, whatever their type says."""
PLUG_INS: Final = {"wattloom.meters": "meter", "wattloom.predictors": "predictor"}
"""Groups of entry points whose plug-ins may bring settings."""

S = TypeVar("S", bound=msgspec.Struct)


class Local(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Running on this machine."""

    journal: str = ""
    """Path of the journal. Empty: one for each program, in the user's state folder."""
    durability: Literal["process", "machine"] = "process"
    """What accepted tasks survive: the end of the process, or also that of the machine (each commit then waits for the
    disk)."""
    retention_days: Positive = 14.0
    """Runs that ended longer ago are removed from the journal."""
    retention_megabytes: Positive = 512.0
    """The oldest runs are removed from a journal that is larger."""
    keys: str = ""
    """Path of the file of idempotency keys, which several programs may share. Empty: beside the program's journal."""
    key_days: Positive = 14.0
    """So long at least the result of a call with a key is given again, however large the journal is."""
    idle_timeout_s: Positive = 60.0
    """A worker with nothing to do for so long is ended."""
    max_workers: Count = 0
    """Most worker processes at a time. 0: as many as there are cores to use."""
    policy: str = "least-joules"
    """Which policy decides, as `--policy` takes it."""


class Unchecked(msgspec.Struct, frozen=True):
    """What is set for a plug-in that cannot be loaded, so that nobody knows what is right. Whoever wants the plug-in is
    told what is wrong with it; nobody else is kept by it."""

    values: dict[str, Any] = {}


class Settings(msgspec.Struct, frozen=True):
    """All groups in which something is set, and ours."""

    local: Local = Local()
    brought: dict[str, msgspec.Struct] = {}
    """By group: those of plug-ins."""

    def of(self, name: str, kind: type[S]) -> S:
        """Those of the plug-in of that name; the defaults, where nothing is set."""
        found = self.brought.get(group_of(name))
        return found if isinstance(found, kind) else kind()

    def are_given(self, name: str) -> bool:
        """Whether something is set for the plug-in of that name that is not so by default."""
        found = self.brought.get(group_of(name))
        return found is not None and found != type(found)()


class PlugInProblem(Exception):
    """A plug-in cannot be loaded, or what it wants to be told is no group of settings."""


# -- what a plug-in brings ---------------------------------------------------------------------------------------------


def group_of(name: str) -> str:
    """The group of the plug-in of that name, as files and variables of the environment can have it."""
    return "_".join("".join(each if each.isalnum() else " " for each in name.lower()).split())


def settings_type(plug_in: object) -> type[msgspec.Struct] | None:
    """What it wants to be told: the type of the parameter `settings`. None: nothing. Raises PlugInProblem."""
    try:
        parameters = signature(plug_in).parameters if callable(plug_in) else {}
    except ValueError:  # of some that are written in C nothing is known
        return None
    if "settings" not in parameters:
        return None
    try:
        hints = get_type_hints(plug_in.__init__ if isclass(plug_in) else plug_in)
    except Exception as problem:
        raise PlugInProblem(f"the type of its settings is not known ({problem}): import it where it runs") from problem
    kind = hints.get("settings")
    if not (isclass(kind) and issubclass(kind, msgspec.Struct)):
        return None  # something of its own, which it has a default for
    without = [field.name for field in msgspec.structs.fields(kind) if field.required]
    if without:
        raise PlugInProblem(f"{kind.__name__}.{without[0]} has no default: nothing has to be set")
    return kind


def brought(group: str) -> type[msgspec.Struct] | None:
    """The settings of that group. None: no plug-in that is installed brings it. Raises PlugInProblem, and InputError
    if two of them do, and not the same."""
    kinds = {}
    for entry in _plug_ins():
        if group_of(entry.name) == group and (kind := _brought_by(entry)) is not None:
            kinds[kind] = entry
    if len(kinds) > 1:
        who = " and ".join(f"the {PLUG_INS[entry.group]} {entry.value}" for entry in kinds.values())
        raise InputError(group, f"{who} bring different settings under one name: remove one of the two packages")
    return next(iter(kinds), None)


def groups() -> dict[str, type[msgspec.Struct]]:
    """Every group, ours first. All plug-ins are loaded for this; those that cannot be are left out."""
    found: dict[str, type[msgspec.Struct]] = {}
    for name in sorted({group_of(entry.name) for entry in _plug_ins()}):
        try:
            kind = brought(name)
        except (PlugInProblem, InputError):
            continue
        if kind is not None:
            found[name] = kind
    return {"local": Local} | found


def keys_with(role: Role, kind: type[msgspec.Struct]) -> frozenset[str]:
    """Settings that have this role, by their name or their type."""
    return frozenset(
        field.name
        for field in msgspec.structs.fields(kind)
        if field.name in BY_NAME[role] or any(_names(each, role) for each in get_args(field.type)[1:])
    )


def _names(said: object, role: Role) -> bool:
    return isinstance(said, msgspec.Meta) and (said.extra or {}).get(ROLE) == role


def _plug_ins() -> Iterator[EntryPoint]:
    """Of several with one name the last is meant, as whoever makes one has it."""
    for group in PLUG_INS:
        yield from {entry.name: entry for entry in entry_points(group=group)}.values()


def _brought_by(entry: EntryPoint) -> type[msgspec.Struct] | None:
    try:
        return settings_type(entry.load())
    except PlugInProblem as problem:
        raise PlugInProblem(f"{entry.value}: {problem}") from problem
    except (Exception, SystemExit) as problem:  # a package that fails must not take the others down with it
        raise PlugInProblem(f"{entry.value} cannot be loaded: {type(problem).__name__}: {problem}") from problem
