"""Which journals a question is about: one that was named, or all of this user; and which of them has a task.

Owns the search. Knows no worker and no executor; what a journal holds is read by `listing` and `runs`.
"""

from pathlib import Path
from typing import Final

import msgspec

from wattloom.errors import InputError, LogError
from wattloom.history.listing import Row, list_tasks
from wattloom.history.log import split_run
from wattloom.history.runs import runs
from wattloom.history.stored_log import is_journal
from wattloom.settings import journals, load_settings, state_folder

MOST_NAMED: Final = 5
WHERE: Final = "`wattloom tasks` lists the tasks there are"


class Found(msgspec.Struct, frozen=True):
    """A task, and the journal that has it."""

    journal: Path
    row: Row

    @property
    def log(self) -> Path:
        """The run as `--log` takes it."""
        return run_of(self.journal, self.row.run)


def run_of(journal: Path, run: int) -> Path:
    """A run of a journal as `--log` takes it; 0: of a log that is no journal."""
    return journal.with_name(f"{journal.name}#{run}") if run else journal


def wanted(journal: str | Path | None) -> list[Path]:
    """The journal that was named, or all there are. A name is a path, or that of a journal in the state folder, or how
    such a name begins up to its `-`. Raises LogError if there is none of that name."""
    if journal is None:
        return [path for path in _all() if not _problem(path)]
    path = Path(journal)
    if split_run(path)[0].is_file():
        return [path]
    name, mark, run = str(journal).partition("#")
    known = {each.stem: each for each in journals()}
    alike = [stem for stem in known if stem == name] or [stem for stem in known if stem.rpartition("-")[0] == name]
    if len(alike) == 1:
        return [known[alike[0]].with_name(f"{known[alike[0]].name}{mark}{run}")]
    if alike:
        raise LogError(name, f"several journals begin so: {', '.join(sorted(alike))}")
    if path.is_dir():
        raise LogError(str(journal), f"is a folder: name a journal in it, as in {path / 'NAME.journal'}")
    raise LogError(str(journal), f"there is neither such a file nor such a journal in {state_folder()}")


def unreadable() -> dict[Path, str]:
    """Journals that are there and cannot be read, and why: no reason to hide the others."""
    return {path: problem for path in _all() if (problem := _problem(path))}


def holding(task: str, journal: str | Path | None = None) -> Found:
    """The one journal that has this task. Raises InputError if none has it or several have."""
    looked = wanted(journal)
    found = [Found(split_run(path)[0], row) for path in looked if (row := _row(path, task)) is not None]
    if not found:
        where = _places(looked) if looked else f"; there are no journals in {state_folder()} yet"
        raise InputError(task, f"there is no such task{where}. {WHERE}")
    if len(found) > 1:
        several = "".join(f"\n    --journal {_short(each.journal)}  ({each.row.function})" for each in found)
        raise InputError(task, f"{len(found)} journals have a task of this name. Say which:{several}")
    return found[0]


def last_run() -> Path:
    """The run that began last, of all journals, as `--log` takes it. Raises InputError if there is none."""
    found = [(known[-1].began, path, known[-1].run) for path in wanted(None) if (known := runs(path))]
    if not found:
        raise InputError("", f"there are no journals in {state_folder()} yet: run something, or name a log")
    _, path, run = max(found)
    return run_of(path, run)


def _short(journal: Path) -> str:
    """As `wanted` takes it."""
    return journal.stem if journal.parent == state_folder() else str(journal)


def _all() -> list[Path]:
    """Those of the state folder, and the one that the settings name."""
    named = load_settings().local.journal
    found = journals()
    if named and Path(named).is_file() and Path(named).resolve() not in {path.resolve() for path in found}:
        found.insert(0, Path(named))
    return found


def _problem(path: Path) -> str:
    if not is_journal(path):
        return "is damaged or is not a journal"
    try:
        runs(path)
    except LogError as problem:
        return problem.problem
    return ""


def _row(path: Path, task: str) -> Row | None:
    """A task 12-7 is of the program that began with run 12: it is in that run, or in a later one, which that program
    began when its log had become long, or which took the task over. Runs before need not be read."""
    file, named = split_run(path)
    number = task.partition("-")[0]
    if named is not None or not number.isdecimal() or not is_journal(file):
        return next(iter(list_tasks(path, task=task, limit=1)), None)
    for run in (each.run for each in runs(file) if each.run >= int(number)):
        if rows := list_tasks(file, run=run, task=task, limit=1):
            return rows[0]
    return None


def _places(looked: list[Path]) -> str:
    names = ", ".join(path.name for path in looked[:MOST_NAMED])
    more = f" and {len(looked) - MOST_NAMED} more" if len(looked) > MOST_NAMED else ""
    return f" in {names}{more}"
