"""One call of the command line that nobody would make: words, files made wrong, an odd terminal.

Owns how a case is drawn from its number. Commands and options are those that click knows, so a new one is fuzzed by
itself; the files are those of `seeds.FORMATS`.
"""

import shlex
from dataclasses import dataclass, field, replace
from functools import cache
from random import Random
from typing import Final

import click
from tests.cli.conftest import commands
from tests.fuzz import values
from tests.fuzz.seeds import FORMATS, Format

NEVER: Final = {
    "profile cpu": ("--frequencies",),
    "profile gpu": ("--load",),
    "experiment run": ("--seeds",),
}
"""Options that change the machine, run what they are given, or take as long as they are asked to."""
HARMLESS: Final = ("true", "false", "echo hello", "no-such-program", "./folder", "sh -c 'exit 3'", "printf \\377")
FUNCTIONS: Final = (
    "json:dumps",
    "math:sqrt",
    "nothing:f",
    "os:nothing",
    ":",
    "a:",
    ":b",
    "math:pi",
    "builtins:repr",
    "a b:c",
)
USUAL: Final = {
    "simulate": "scenario.toml",
    "compare": "scenario.toml --policies fifo,pack",
    "replay": "run.log",
    "why": "t1 --log run.log",
    "tasks": "--journal work.journal",
    "tasks prune": "--journal work.journal",
    "functions": "--journal work.journal",
    "logs": "--journal work.journal",
    "attribute": "--power power.csv --runs runs.csv",
    "machines curve": "--idle 50 --max 300",
    "profile show": "cpu.json",
    "profile diff": "cpu.json other.json",
    "profile cpu": "--builtin --levels 1 --seconds 1 --settle 0 --meter recording",
    "scenarios show": "hsc-cpu",
    "experiment run": "isa --seeds 2",
    "meter read": "recording --count 1 --interval 0.05",
    "meter export": "--vms folder",
    "top": "--once",
    "kubernetes profile": "n1 cpu.json --kubeconfig kubeconfig",
    "kubernetes scheduler": "--kubeconfig kubeconfig --first-answer 0.1 --http ''",
    "kubernetes extender": "--kubeconfig kubeconfig --print-config",
    "exporter": "--listen 127.0.0.1:0",
    "validate attribution": "--seconds 1 --rounds 2",
    "demo": "--calls 2 --scenario scenario.toml --policies fifo",
    "completion": "bash",
    "workload install": "--dry-run",
    "workload run": "matrix-native-python --calls 1 --journal work.journal",
}
"""What a command needs to get as far as its options: others begin with nothing."""


@dataclass(frozen=True, slots=True)
class Case:
    """A call. `steps`: which mutation of the file, with which seed."""

    words: tuple[str, ...]
    file: str = ""
    steps: tuple[tuple[int, int], ...] = ()
    columns: str = ""
    encoding: str = "utf-8"
    odd: tuple[str, ...] = ()
    """The options that were given an odd value."""
    command: str = ""
    environment: tuple[tuple[str, str], ...] = ()
    data: bytes | None = field(default=None, repr=False)
    """The file as it is, once it is no longer made by steps."""

    def content(self, seed: bytes) -> bytes:
        """The file made wrong."""
        if self.data is not None:
            return self.data
        mutations = format_of(self.file).mutations
        for which, number in self.steps:
            seed = mutations[which](seed, Random(number))
        return seed


def format_of(file: str) -> Format:
    return next(each for each in FORMATS if each.file == file)


def draw(seed: int, number: int) -> Case:
    """The same seed and number, the same case."""
    random = Random(f"{seed}/{number}")
    case = _wrong_words(random, number // 2) if number % 2 else _wrong_file(random, number // 2)
    columns = random.choice(("", "", "", "1", "30", "60", "80", "100", "200", "100000", "-5", "many"))
    encoding = random.choice(("utf-8",) * 15 + ("ascii", "latin-1"))
    return replace(case, columns=columns, encoding=encoding)


def _wrong_file(random: Random, number: int) -> Case:
    """Each kind of file in its turn."""
    kind = FORMATS[number % len(FORMATS)]
    steps = tuple(
        (random.randrange(len(kind.mutations)), random.randrange(2**32)) for _ in range(random.choice((1, 1, 1, 2, 3)))
    )
    words = tuple(shlex.split(random.choice(kind.commands).replace("{}", kind.file)))
    return Case(words, kind.file, steps, command=_command_of(words))


@cache
def tree() -> dict[str, click.Command]:
    return {" ".join(words): command for words, command in commands()}


def _command_of(words: tuple[str, ...]) -> str:
    return next(
        name for name in sorted(tree(), key=len, reverse=True) if words[: name.count(" ") + 1] == tuple(name.split())
    )


def _wrong_words(random: Random, number: int) -> Case:
    """Each command in its turn."""
    name, command = sorted(tree().items())[number % len(tree())]
    params = [each for each in command.params if not (set(each.opts) & set(NEVER.get(name, ())))]
    usual = shlex.split(USUAL.get(name, ""))
    words: list[str] = []
    odd: list[str] = []
    for param in random.sample(params, k=min(len(params), random.choice((1, 1, 1, 2, 3)))):
        added = _given(param, random)
        words += added
        odd += [param.opts[-1] if isinstance(param, click.Option) else param.human_readable_name]
        usual = _without(usual, param)
    behind = _behind(name, random)
    environment = _variable(random) if random.random() < 0.1 else ()
    return Case((*name.split(), *usual, *words, *behind), odd=tuple(odd), command=name, environment=environment)


def _behind(name: str, random: Random) -> list[str]:
    if name not in ("run", "measure"):
        return []
    if name == "run" and random.random() < 0.4:
        return [random.choice(FUNCTIONS)]
    return ["--", *shlex.split(random.choice(HARMLESS))] if random.random() < 0.9 else []


def _variable(random: Random) -> tuple[tuple[str, str], ...]:
    """A setting from the environment."""
    from wattloom.setting_groups import groups

    known = groups()
    group = random.choice(sorted(known))
    key = random.choice([*known[group].__struct_fields__, "nothing"])
    value = values.number(random) if random.random() < 0.5 else values.string(random)
    return ((f"WATTLOOM_{group.upper()}__{key.upper()}", value),)


def _without(usual: list[str], param: click.Parameter) -> list[str]:
    """A usual value does not stand beside an odd one."""
    if isinstance(param, click.Argument):
        return usual[1:] if usual and not usual[0].startswith("-") else usual
    for at, word in enumerate(usual):
        if word in param.opts:
            return usual[:at] + usual[at + 2 - bool(getattr(param, "is_flag", False)) :]
    return usual


def _given(param: click.Parameter, random: Random) -> list[str]:
    if isinstance(param, click.Option) and param.is_flag:
        return [random.choice([*param.opts, *param.secondary_opts])]
    value = _value(param, random)
    if isinstance(param, click.Argument):
        return [] if value.startswith("-") else [value]
    return [f"{param.opts[-1]}={value}"] if param.opts[-1].startswith("--") else [param.opts[-1], value]


def _value(param: click.Parameter, random: Random) -> str:
    kind = param.type
    if isinstance(kind, click.Choice) and random.random() < 0.5:
        return str(random.choice(list(kind.choices)))
    if isinstance(kind, click.types.FloatParamType | click.types.IntParamType | click.FloatRange | click.IntRange):
        return values.number(random) if random.random() < 0.9 else values.string(random)
    if isinstance(kind, click.Path) or random.random() < 0.1:
        return values.path(random, [each.file for each in FORMATS])
    return values.string(random) if random.random() < 0.6 else values.number(random)
