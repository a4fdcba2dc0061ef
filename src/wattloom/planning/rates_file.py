"""RATES.toml: functions with wanted rates, and the servers they may be on.

Owns the file's form and what it may leave out: cores, memory, architecture and idle watts come from the machine's
profile. Profiles of functions are another file's business; which machines are known, the caller's.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Final

import msgspec

from wattloom.bounds import MOST_WATTS
from wattloom.errors import InputError
from wattloom.files import UNREADABLE, read_text
from wattloom.machines.catalogue import MOST_MEMORY_GIB, MachineEntry
from wattloom.machines.profile import MachineProfile
from wattloom.planning.plan import Demand, Server
from wattloom.units import GIB

MOST_SERVERS: Final = 100_000
Gib = Annotated[float, msgspec.Meta(ge=0.0, le=MOST_MEMORY_GIB)]
Watts = Annotated[float, msgspec.Meta(ge=0.0, le=MOST_WATTS)]


class FunctionEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A function of which more is said than its rate."""

    rate: float
    memory_gib: Gib = 0.0
    """That each core of it needs."""
    arch: str | tuple[str, ...] = ()
    labels: dict[str, str] = {}
    cpu: float = 1.0


class ServerEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One server, or some that are equal."""

    machine: str
    name: str = ""
    count: Annotated[int, msgspec.Meta(ge=1, le=MOST_SERVERS)] = 1
    cores: int | None = None
    memory_gib: Gib | None = None
    arch: str | None = None
    labels: dict[str, str] = {}
    idle_w: Watts | None = None
    off_w: Watts | None = None
    may_be_off: bool = False


class RatesFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    functions: dict[str, float | FunctionEntry]
    servers: list[ServerEntry] = []
    machines: dict[str, MachineEntry] = {}
    """Machines that are in no catalogue, as in a scenario."""
    profiles: str = ""
    """File of function profiles, from this file's folder."""


class Rates(msgspec.Struct, frozen=True):
    """What is to be planned."""

    demand: tuple[Demand, ...]
    servers: tuple[Server, ...]
    profiles: Path | None


def read_rates(path: Path, known: Mapping[str, MachineProfile]) -> Rates:
    """From a file. InputError names the file and the field."""
    try:
        return parse_rates(read_text(path), known, path.parent)
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(str(path), f"cannot be read: {getattr(problem, 'strerror', None) or problem}") from problem
    except InputError as problem:
        raise InputError(f"{path}: {problem.field}" if problem.field else str(path), problem.problem) from problem


def asked_in(path: Path) -> tuple[dict[str, float], Path | None]:
    """The rates in a file by function, and the profiles that it names; its servers do not matter."""
    try:
        found = _decoded(read_text(path))
        rates = {name: _demand(name, entry).rate for name, entry in found.functions.items()}
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(str(path), f"cannot be read: {getattr(problem, 'strerror', None) or problem}") from problem
    except InputError as problem:
        raise InputError(f"{path}: {problem.field}" if problem.field else str(path), problem.problem) from problem
    return rates, path.parent / found.profiles if found.profiles else None


def _decoded(text: str) -> RatesFile:
    try:
        found = msgspec.toml.decode(text, type=RatesFile)
    except msgspec.ValidationError as problem:
        words, _, where = str(problem).partition(" - at `$")
        raise InputError(where.rstrip("`").lstrip("."), words) from problem
    except UNREADABLE as problem:
        raise InputError("", f"is not TOML: {problem}") from problem
    if not found.functions:
        raise InputError("functions", "names none: give each a rate, as in `jwt = 120`")
    return found


def parse_rates(text: str, known: Mapping[str, MachineProfile], folder: Path = Path()) -> Rates:
    """From TOML text."""
    found = _decoded(text)
    own = {name: entry.profile(name, f"machines.{name}") for name, entry in found.machines.items()}
    demand = tuple(_demand(name, entry) for name, entry in found.functions.items())
    servers = _servers(found.servers, {**known, **own})
    _refuse_contradictions(demand, servers)
    return Rates(demand, servers, folder / found.profiles if found.profiles else None)


def _demand(name: str, entry: float | FunctionEntry) -> Demand:
    if not isinstance(entry, FunctionEntry):
        entry = FunctionEntry(rate=float(entry))
    made = Demand(
        function=name,
        rate=entry.rate,
        memory=round(entry.memory_gib * GIB),
        arch=(entry.arch,) if isinstance(entry.arch, str) else entry.arch,
        labels=entry.labels,
        cpu=entry.cpu,
    )
    if wrong := made.problem():
        raise InputError(f"functions.{name}.{wrong[0]}", wrong[1])
    return made


def _servers(entries: Sequence[ServerEntry], known: Mapping[str, MachineProfile]) -> tuple[Server, ...]:
    if not entries:
        raise InputError("servers", "names none: give at least one [[servers]] with its machine")
    if sum(entry.count for entry in entries) > MOST_SERVERS:
        raise InputError("servers", f"are more than {MOST_SERVERS:,}")
    made: list[Server] = []
    taken: set[str] = set()
    for number, entry in enumerate(entries):
        for each in _equal_servers(entry, number, known):
            if each.name in taken:
                raise InputError(f"servers[{number}].name", f"{each.name!r} is there twice")
            taken.add(each.name)
            made.append(each)
    return tuple(made)


def _equal_servers(entry: ServerEntry, number: int, known: Mapping[str, MachineProfile]) -> list[Server]:
    profile = known.get(entry.machine)
    cores = entry.cores if entry.cores is not None else (profile.cores if profile else None)
    if cores is None:
        close = get_close_matches(entry.machine, known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise InputError(f"servers[{number}].machine", f"{entry.machine!r} is not known: give its cores.{hint}")
    memory = entry.memory_gib * GIB if entry.memory_gib is not None else (profile.memory if profile else 0)
    stem = entry.name or entry.machine
    one = Server(
        name=stem,
        machine=entry.machine,
        cores=cores,
        memory=round(memory),
        arch=entry.arch if entry.arch is not None else (profile.arch if profile else ""),
        labels=entry.labels,
        idle_w=entry.idle_w if entry.idle_w is not None else _idle(profile),
        off_w=entry.off_w if entry.off_w is not None else _off(profile),
        may_be_off=entry.may_be_off,
    )
    if wrong := one.problem():
        raise InputError(f"servers[{number}].{wrong[0]}", wrong[1])
    if entry.count == 1:
        return [one]
    digits = len(str(entry.count))
    names = [f"{stem}-{at:0{digits}}" for at in range(1, entry.count + 1)]
    return [msgspec.structs.replace(one, name=name) for name in names]


def _idle(profile: MachineProfile | None) -> float | None:
    return profile.watts[0][1] if profile is not None and profile.watts else None


def _off(profile: MachineProfile | None) -> float:
    """What a machine draws asleep; one that cannot sleep is switched off."""
    return profile.sleep_w if profile is not None and profile.sleep_w is not None else 0.0


def _refuse_contradictions(demand: Sequence[Demand], servers: Sequence[Server]) -> None:
    """Labels and architectures that no server has, before anything is solved."""
    archs = {each.arch for each in servers}
    labels = {(key, value) for each in servers for key, value in each.labels.items()}
    for wanted in demand:
        if wanted.arch and "" not in archs and not archs & set(wanted.arch):
            names = " or ".join(wanted.arch)
            raise InputError(
                f"functions.{wanted.function}.arch", f"no server is {names}: they are {', '.join(sorted(archs))}"
            )
        for key, value in wanted.labels.items():
            if (key, value) not in labels:
                others = sorted(found for name, found in labels if name == key)
                hint = f" ({key} is {', '.join(others)})" if others else f" (no server has a label {key})"
                raise InputError(f"functions.{wanted.function}.labels.{key}", f"no server has {key}={value}{hint}")


def refuse_unknown_functions(demand: Sequence[Demand], functions: Sequence[str], where: str) -> None:
    """Rates of functions that have no profile anywhere."""
    known = set(functions)
    for wanted in demand:
        if wanted.function not in known:
            close = get_close_matches(wanted.function, functions, n=3)
            hint = f"; did you mean {', '.join(close)}?" if close else ""
            raise InputError(f"functions.{wanted.function}", f"has no profile in {where}{hint}")
