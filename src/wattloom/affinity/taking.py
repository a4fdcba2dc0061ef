"""The way in: function profiles of this machine, from what a caller wants.

Owns the order (each function alone, then bag after bag), what is kept of an interrupted run, and where the files go.
After every bag all that is known is on the disk.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from wattloom.affinity.bags import Bag, Lots, drawn
from wattloom.affinity.estimating import profiles
from wattloom.affinity.machine import Played, played
from wattloom.affinity.running import TIMEOUT_S, BagRunner, tried
from wattloom.affinity.seen import Bags, Setting, Trial, encode_bags, read_bags
from wattloom.affinity.targets import Target, targets
from wattloom.errors import InputError, WattloomError
from wattloom.local.executor import Executor
from wattloom.local.import_path import prints_nowhere
from wattloom.machines.own_profile import profiles_folder
from wattloom.profiling.profiler import Step, Tell, signals_raise
from wattloom.profiling.resuming import INSTEAD
from wattloom.profiling.storing import StoreError, alone, refuse_missing_folder, store
from wattloom.workload.function_profile import FunctionProfiles, encode_function_profiles, read_function_profiles

QUIET_S: Final = 1.5
"""Before the first call: the account sees what the machine draws idle."""
REST_S: Final = 1.0
"""Before every bag: it sees that again. While all cores are busy nothing tells idle power from the rest."""
FILE: Final = "functions.json"


class FunctionsRequest(msgspec.Struct, frozen=True):
    """What a caller may choose."""

    functions: tuple[str, ...] = ()
    lots: Lots = Lots()
    seconds: float = 10.0
    """Of each bag."""
    machine: str = ""
    """A virtual node or a machine of the catalogue to play; empty: this one as it is."""
    nodes: Path | None = None
    """The file of virtual nodes that `machine` names one of."""
    meter: str = ""
    output: Path | None = None
    """Left out: this user's own file, where planning finds it."""
    fresh: bool = False
    timeout_s: float = TIMEOUT_S


class Taken(msgspec.Struct, frozen=True):
    """What has come of it."""

    path: Path
    profiles: FunctionProfiles
    """All that the file has now."""
    bags: Bags
    news: bool = True
    """False: all was there already."""


def own_path() -> Path:
    """Where this user's function profiles are."""
    return profiles_folder() / FILE


def bags_path(path: Path, machine: str) -> Path:
    """Where the bags behind a file of profiles are."""
    return path.with_name(f"{path.stem}.{machine}.bags.json")


def profile_functions(
    request: FunctionsRequest,
    date: Callable[[], str],
    tell: Tell = lambda step: None,
    say: Callable[[str], None] = lambda words: None,
    **how: Any,
) -> Taken:
    """Take the bags that are missing, and put what they come to into the file. `say` is told of what goes wrong on the
    way; `how` are further arguments of the executors."""
    machine = played(request.machine, request.nodes, how.get("meter", request.meter))
    wanted = targets(request.functions)
    _refuse_none(wanted)
    drawn([each.name for each in wanted], request.lots)  # what is wrong is said before anything is run
    refuse_missing_folder(request.output)
    path = own_path() if request.output is None else request.output
    if path.exists():
        read_function_profiles(path)  # a file that is something else is not written over
    with alone(profiles_folder()), signals_raise():
        known = _beginning(bags_path(path, machine.name), _setting(request, wanted, machine), date(), request.fresh)
        taking = _Taking(request, machine, wanted, known, path, tell, say, how)
        news = not known.finished
        bags = taking.run(date) if news else known
        return Taken(path, taking.merged(bags), bags, news)


def _refuse_none(wanted: list[Target]) -> None:
    if not wanted:
        raise InputError(
            "functions", "name at least one, as module:function; or `wattloom workload list` says what the suite's need"
        )


def _setting(request: FunctionsRequest, wanted: list[Target], machine: Played) -> Setting:
    return Setting(
        functions=tuple(each.words for each in wanted),
        lots=request.lots,
        seconds=request.seconds,
        machine=machine.name,
        cores=machine.cores,
        meter=machine.meter,
        provenance=machine.provenance,
        quantity=machine.quantity,
        virtual=machine.virtual,
    )


def _beginning(path: Path, setting: Setting, date: str, fresh: bool) -> Bags:
    """The bags to go on with: those in the file, or none. InputError if an unfinished file is of something else."""
    new = Bags(setting=setting, began=date)
    if fresh or not path.exists():
        return new
    old = read_bags(path)
    if old.setting == setting:
        return old
    if old.finished:
        return new
    field = next(name for name in setting.__struct_fields__ if getattr(old.setting, name) != getattr(setting, name))
    raise InputError(str(path), f"was begun with another {field} and is not finished; {INSTEAD}")


class _Taking:
    """One run of the command."""

    def __init__(
        self,
        request: FunctionsRequest,
        machine: Played,
        wanted: list[Target],
        known: Bags,
        path: Path,
        tell: Tell,
        say: Callable[[str], None],
        how: dict[str, Any],
    ) -> None:
        self._request, self._machine, self._targets, self._bags = request, machine, wanted, known
        self._path, self._tell, self._say, self._how = path, tell, say, how
        self._words = ""
        self._done = 0
        self._bags_run = 0
        self._bag_s = 0.0
        self._began = time.monotonic()

    def run(self, date: Callable[[], str]) -> Bags:
        for target in self._targets:
            self._try(target)
        able = [each.function for each in self._bags.able]
        if not able:
            raise WattloomError("none of the functions works: there is nothing to profile")
        lots = self._request.lots
        bags = drawn(able, lots)
        missing = [(number, bag) for number, bag in enumerate(bags) if not self._has(number, bag)]
        if missing:
            with self._runner(able) as runner:
                for number, bag in missing:
                    self._run(runner, number, bag, len(bags))
        self._keep(msgspec.structs.replace(self._bags, finished=date()))
        self._store(self._path, encode_function_profiles(self.merged(self._bags)))
        return self._bags

    def merged(self, bags: Bags) -> FunctionProfiles:
        """What the file has, with these bags' rows in place of those of the same functions and machine."""
        before = read_function_profiles(self._path) if self._path.exists() else FunctionProfiles()
        source = f"{len(bags.bags)} bags of {min(bags.setting.lots.size, len(bags.able))}, {bags.began[:10]}"
        rows = [self._machine.at_its_speed(row) for row in profiles(bags, source)]
        return before.merged(rows)

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _try(self, target: Target) -> None:
        self._step(f"{target.words} alone")
        known = self._bags.trial(target.name)
        if known is None:
            known = tried(target, self._request.timeout_s, **self._without_meter)
            self._keep(msgspec.structs.replace(self._bags, trials=(*self._bags.trials, known)))
        if known.problem:
            self._say(f"{target.words} is left out: {known.problem}")
        self._done += 1

    @property
    def _without_meter(self) -> dict[str, Any]:
        return {name: value for name, value in self._how.items() if name != "meter"}

    def _has(self, number: int, bag: Bag) -> bool:
        return any((each.number, each.bag) == (number, bag) for each in self._bags.bags)

    @contextmanager
    def _runner(self, able: list[str]) -> Iterator[BagRunner]:
        wanted = [each for each in self._targets if each.name in able]
        trials: list[Trial] = self._bags.able
        with tempfile.TemporaryDirectory(prefix="wattloom-bags-") as folder:
            how = self._machine.executor | self._how
            journal = Path(folder) / "bags.journal"
            with Executor(journal=journal, policy="fifo", **{"initializer": prints_nowhere, **how}) as executor:
                if self._machine.provenance == "measured":
                    time.sleep(QUIET_S)
                yield BagRunner(
                    executor,
                    self._machine.cores,
                    wanted,
                    trials,
                    self._request.seconds,
                    virtual=self._machine.virtual,
                    timeout_s=self._request.timeout_s,
                    beat=self._beat,
                )

    def _run(self, runner: BagRunner, number: int, bag: Bag, total: int) -> None:
        self._done = len(self._targets) + len(self._bags.bags)
        self._step(f"bag {number + 1} of {total}")
        began = time.monotonic()
        if self._machine.provenance == "measured":
            time.sleep(REST_S)
        seen = runner.run(number, bag)
        self._bag_s += time.monotonic() - began
        self._bags_run += 1
        self._keep(msgspec.structs.replace(self._bags, bags=(*self._bags.bags, seen)))
        for each in seen.seen:
            if each.problem:
                self._say(f"bag {number + 1}: {each.function} crashed, the others went on: {each.problem}")

    def _step(self, words: str) -> None:
        self._words = words
        self._beat()

    def _beat(self) -> None:
        bags = self._request.lots.bags
        each_s = self._bag_s / self._bags_run if self._bags_run else self._request.seconds
        left_s = each_s * (bags - len(self._bags.bags))
        self._tell(Step(self._words, self._done, len(self._targets) + bags, left_s))

    # -- files ---------------------------------------------------------------------------------------------------------

    def _keep(self, bags: Bags) -> None:
        self._store(bags_path(self._path, self._machine.name), encode_bags(bags))
        self._bags = bags

    def _store(self, path: Path, content: bytes) -> None:
        try:
            store(path, content)
        except StoreError as problem:
            raise StoreError(
                f"{problem}. {len(self._bags.bags)} bags that were run before are safe; make room and run the command "
                "again: it goes on from there"
            ) from problem
