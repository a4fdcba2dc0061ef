"""Function profiles on their way between machines: what is taken out of a file, and what may be put into one.

Owns when two files contradict each other: both know the same function on the same machine, and their intervals of E or
W lie apart. Then nothing is changed.
"""

from collections.abc import Collection, Sequence
from pathlib import Path

from wattloom.errors import InputError
from wattloom.workload.function_profile import Figure, FunctionProfile, FunctionProfiles, read_function_profiles

Key = tuple[str, str, str]


def read_or_none(path: Path) -> FunctionProfiles:
    """What a file has; none yet: nothing."""
    return read_function_profiles(path) if path.exists() else FunctionProfiles()


def selected(
    profiles: FunctionProfiles, machines: Collection[str] = (), functions: Collection[str] = ()
) -> FunctionProfiles:
    """Rows of these machines and functions; none named: all. InputError if a name has no row."""
    for what, wanted, known in (
        ("machine", machines, profiles.machines),
        ("function", functions, profiles.functions),
    ):
        unknown = [name for name in wanted if name not in known]
        if unknown:
            there = f"there are {', '.join(known)}" if known else "there are no profiles yet"
            raise InputError(what, f"{unknown[0]} has no profile; {there}")
    rows = [
        row
        for row in profiles.rows
        if (not machines or row.machine in machines) and (not functions or row.function in functions)
    ]
    return FunctionProfiles(tuple(rows))


def imported(
    own: FunctionProfiles, files: Sequence[Path], replace: bool = False
) -> tuple[FunctionProfiles, list[FunctionProfile]]:
    """Ours with the rows of these files, and the rows that are new. What is equal is left alone; of two that agree, the
    one that rests on more executions stays. `replace`: theirs are right where they contradict ours."""
    known: dict[Key, tuple[FunctionProfile, str]] = {_key(row): (row, "what is here") for row in own.rows}
    news: dict[Key, FunctionProfile] = {}
    for file in files:
        for row in read_function_profiles(file).rows:
            there = known.get(_key(row))
            if there is not None:
                if there[0] == row:
                    continue
                apart = contradiction(there[0], row)
                if apart and not replace:
                    raise InputError(
                        str(file),
                        f"{row.function} on {row.machine}: {apart} here contradicts {there[1]}; nothing was imported. "
                        "--replace takes the file's",
                    )
                if not apart and there[0].executions >= row.executions:
                    continue
            known[_key(row)] = row, str(file)
            news[_key(row)] = row
    return own.merged(news.values()), list(news.values())


def contradiction(one: FunctionProfile, other: FunctionProfile) -> str:
    """What of two rows cannot both be true; empty: nothing. What was measured may differ from what was estimated."""
    if _apart(one.per_core_s, other.per_core_s):
        return f"E of {other.per_core_s.value:.4g}/s ({one.per_core_s.value:.4g}/s there)"
    comparable = one.quantity == other.quantity and one.provenance == other.provenance
    if comparable and one.joules is not None and other.joules is not None and _apart(one.joules, other.joules):
        return f"W of {other.joules.value:.4g} J ({one.joules.value:.4g} J there)"
    return ""


def _apart(one: Figure, other: Figure) -> bool:
    return one.high < other.low or other.high < one.low


def _key(row: FunctionProfile) -> Key:
    return row.function, row.machine, row.variant
