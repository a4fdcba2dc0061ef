"""Scenarios: TOML files that say what is run on what.

Owns the form of a scenario file and its JSON schema. What is wrong with one is said by `scenario_problems`; turning
one into a trial with a seed is `build` and `arrivals`; the built-in ones are the files beside this module, in
`scenarios/`.
"""

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from wattloom.errors import ScenarioError
from wattloom.files import UNREADABLE, read_text
from wattloom.machines.catalogue import MachineEntry
from wattloom.simulation.published import Published
from wattloom.simulation.scenario_problems import close_to, in_words
from wattloom.simulation.trial import SchedulerCost

# TOML can write inf and nan; a year of seconds and a terawatt are well below the limit.
Positive = Annotated[float, msgspec.Meta(gt=0, le=1e12)]
NotNegative = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Nodes = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Spread = Annotated[float, msgspec.Meta(ge=0, le=10)]


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of a scenario file: unknown fields are errors."""


class NodeGroup(Entry, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Equal nodes."""

    machine: str
    """A machine of this file or of the catalogue; or the path of a profile, which ends in .json."""
    count: Nodes = 1
    name: str = ""
    """Prefix of their names; left out: the machine's name."""
    cpu: Positive | None = None
    """Cores that may be given out; left out: the machine's hardware threads."""
    memory_gib: NotNegative | None = None
    labels: dict[str, str] = {}
    devices: dict[str, Count] = {}
    cap_w: Positive | None = None
    asleep: bool = False


class VariantEntry(Entry, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One build of a function."""

    arch: str | list[str] = []
    devices: dict[str, Positive] = {}
    seconds: dict[str, Positive] = {}
    """Run time alone, by machine."""
    work_s: Positive | None = None
    """Run time alone on a machine of speed 1, for machines that `seconds` does not name."""


class FunctionEntry(Entry, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A function and the usual wishes of its tasks."""

    cpu: NotNegative = 1.0
    memory_mib: NotNegative = 0.0
    arch: str | list[str] = []
    labels: dict[str, str] = {}
    devices: dict[str, Positive] = {}
    seconds: dict[str, Positive] = {}
    """Run time alone, by machine."""
    work_s: Positive | None = None
    """Run time alone on a machine of speed 1, for machines that `seconds` does not name."""
    variants: dict[str, VariantEntry] = {}
    """Builds by name; left out: one build with `seconds` and `work_s`."""
    spread: Spread = 0.0
    """Standard deviation of a task's length over its mean (log-normal)."""
    cold_start_s: NotNegative = 0.0
    keep_alive_s: NotNegative = 0.0
    priority: int = 0
    energy_weight: Share = 0.5
    deadline_s: Positive | None = None
    defer_s: NotNegative = 0.0
    idempotent: bool = True
    retries: Annotated[int, msgspec.Meta(ge=0)] = 0
    infrastructure_retries: Annotated[int, msgspec.Meta(ge=0)] = 3


class ArrivalsEntry(Entry, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A stream of tasks."""

    kind: Literal["at-once", "poisson", "even", "bursts", "trace"]
    functions: dict[str, Positive] = {}
    """Functions with their weights; each task draws one. (A trace names its own.)"""
    start_s: NotNegative = 0.0
    count: Count | None = None
    """Tasks in all (at-once, poisson) or in each burst."""
    rate_per_s: Positive | None = None
    """poisson: mean arrivals per second; even: arrivals per second."""
    duration_s: Positive | None = None
    """poisson, even: how long, instead of `count`."""
    bursts: Count = 1
    every_s: Positive | None = None
    """bursts: from one to the next."""
    within_s: NotNegative = 0.0
    """bursts: a burst's tasks come evenly at random within so many seconds."""
    file: str = ""
    """trace: a CSV with time_s, function; optional: seconds, count, priority, deadline_s, energy_weight, defer_s."""


class FaultEntry(Entry, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A node that vanishes, and maybe comes back."""

    node: str
    at_s: NotNegative
    back_after_s: Positive | None = None


class Scenario(Entry, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A whole scenario file."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    title: str = ""
    assumptions: list[str] = []
    """What is not in the source and was assumed."""
    sources: list[str] = []
    published: list[Published] = []
    """Figures of the sources', to hold ours against."""
    forecasts: Literal["declared", "none"] = "declared"
    """Whether the scheduler is told the functions' usual run times, or has to learn them."""
    power_cap_w: Positive | None = None
    """Limit on the whole cluster's draw."""
    plan: str = ""
    """A plan's file (`wattloom plan make`), which holds from the beginning: the policy `planned` goes by it."""
    scheduler: SchedulerCost = SchedulerCost()
    machines: dict[str, MachineEntry] = {}
    nodes: Annotated[list[NodeGroup], msgspec.Meta(min_length=1)]
    functions: dict[str, FunctionEntry] = {}
    arrivals: Annotated[list[ArrivalsEntry], msgspec.Meta(min_length=1)]
    faults: list[FaultEntry] = []


def schema() -> dict[str, Any]:
    """JSON schema of a scenario file."""
    return msgspec.json.schema(Scenario)


@cache
def builtin_names() -> list[str]:
    folder = files("wattloom.simulation").joinpath("scenarios")
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def known_instead(wrong: str) -> str:
    """Which built-in scenarios there are, as the end of a sentence."""
    return f" ({', '.join(builtin_names())}){close_to(wrong, builtin_names())}"


def text_of(name: str) -> str:
    """A built-in scenario's file."""
    return files("wattloom.simulation").joinpath("scenarios", f"{name}.toml").read_text()


def load_scenario(name_or_path: str) -> tuple[Scenario, Path]:
    """A built-in scenario by name or a file by path, and the folder its traces are relative to."""
    if name_or_path in builtin_names():
        return parse(text_of(name_or_path), name_or_path), Path()
    path = Path(name_or_path)
    if not path.exists():
        raise ScenarioError(name_or_path, f"is neither a file nor a built-in scenario{known_instead(name_or_path)}")
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as problem:
        raise ScenarioError(name_or_path, f"cannot be read: {problem}") from problem
    return parse(text, name_or_path), path.parent


def parse(text: str, where: str) -> Scenario:
    """A scenario from TOML text. Errors name the field."""
    try:
        return msgspec.toml.decode(text, type=Scenario)
    except msgspec.ValidationError as problem:
        field, wrong = in_words(problem, text, Scenario)
        raise ScenarioError(f"{where}: {field}" if field else where, wrong) from problem
    except UNREADABLE as problem:
        raise ScenarioError(where, f"is not TOML: {problem}") from problem
