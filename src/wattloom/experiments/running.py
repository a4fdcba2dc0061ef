"""From a name to an outcome: finds an experiment, checks what it needs, runs it.

Owns the way in (entry points of the group `wattloom.experiments`, and single files), the list, and the bounds of what
can be asked for.
"""

from pathlib import Path
from typing import Final

import msgspec

from wattloom.errors import InputError
from wattloom.experiments.outcome import Outcome
from wattloom.experiments.protocol import Asked, Data, Experiment, Progress
from wattloom.plug_ins import PlugIns

GROUP: Final = "wattloom.experiments"
EXPERIMENTS: Final = PlugIns(GROUP, "experiment", "experiments", Experiment, InputError)  # type: ignore[type-abstract]
MOST_SEEDS: Final = 100_000


class ExperimentInfo(msgspec.Struct, frozen=True):
    """An experiment that can be named."""

    name: str
    title: str
    summary: str
    seeds: int
    quick_seeds: int
    options: dict[str, str]
    needs: tuple[Data, ...]
    cite: tuple[str, ...]


def experiments() -> list[ExperimentInfo]:
    """Every installed experiment, by name."""
    return [
        ExperimentInfo(name, cls.title, cls.summary, cls.seeds, cls.quick_seeds, dict(cls.options), cls.needs, cls.cite)
        for name, cls in EXPERIMENTS.available().items()
    ]


def experiment(
    name: str | Experiment,
    seeds: int | None = None,
    *,
    quick: bool = False,
    data: str | Path | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Run a published study's experiment, and hold ours against what was published.

    `name` is written as on the command line (`isa`, `isa:threads=true`, `mine.py:Mine`). `seeds`: how many draws or
    runs; left out, as many as the experiment has, or few with `quick`. `data`: a folder with files that the experiment
    needs and that are not ours to bring.
    """
    found = EXPERIMENTS.load(name) if isinstance(name, str) else name
    wanted = seeds if seeds is not None else found.quick_seeds if quick else found.seeds
    if not 1 <= wanted <= MOST_SEEDS:
        raise InputError("seeds", f"must be 1 to {MOST_SEEDS:,}, not {wanted}")
    folder = None if data is None else Path(data)
    _refuse_missing(found, folder)
    outcome = found.run(Asked(seeds=wanted, quick=quick, data=folder, progress=progress))
    return msgspec.structs.replace(outcome, experiment=name) if isinstance(name, str) else outcome


def _refuse_missing(found: Experiment, folder: Path | None) -> None:
    """Before any work: what is not there, and where it comes from."""
    if folder is not None and not folder.is_dir():
        raise InputError("data", f"there is no folder {folder}")
    for need in found.needs:
        if folder is None or not (folder / need.file).exists():
            where = "name its folder by --data" if folder is None else f"it is not in {folder}"
            raise InputError(
                "data", f"{found.name} needs {need.file} ({need.what}): {where}; it comes from {need.whence}"
            )
