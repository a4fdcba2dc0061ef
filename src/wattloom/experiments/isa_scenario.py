"""One draw of the ISA experiment as a scenario: the built-in `isa-mixed`, made anew by a command.

Owns which draw it is and how it is written. The simulator knows what a machine draws, not what a function does, so it
is one of the draws in which functions draw alike. To search for it, and to write it:

    python -m wattloom.experiments.isa_scenario search 5000
    python -m wattloom.experiments.isa_scenario > isa-mixed.toml
"""

import sys
from collections.abc import Iterable
from statistics import median
from typing import Final

from wattloom.experiments.isa import DrawFacts, facts_of
from wattloom.experiments.isa_draws import ARM, CATEGORIES, FUNCTIONS, WORKLOADS, X86, Draw, draw_of, draws, ground
from wattloom.experiments.isa_runs import NODES, runs_of

SEARCHED: Final = 5000
TYPICAL: Final = 3236
"""Of these draws, functions alike: all facts hold in two, and savings of this one are nearest the medians of all."""
WORKLOAD: Final = "general"
TASK_S: Final = 8.0
"""A task is as many calls in a row as take so long on a core of the x86 server: thousands of tasks, not millions."""
DURATION_S: Final = 600


def typical_draw() -> Draw:
    """The draw that `isa-mixed` is."""
    return draw_of(TYPICAL, ground(alike=True))


def nearest_the_medians(found: Iterable[DrawFacts]) -> DrawFacts | None:
    """Of those in which all facts hold, the one whose savings are nearest the medians of all. None: there is none."""
    every = list(found)
    usual = {workload: median(each.savings[workload] for each in every) for workload in WORKLOADS}
    holding = [each for each in every if each.all_hold]
    return min(holding, key=lambda each: sum(abs(each.savings[of] - usual[of]) for of in WORKLOADS), default=None)


def search(count: int) -> DrawFacts | None:
    """Among so many draws."""
    found = (facts_of(draw, runs_of(draw)) for draw in draws(count, ground(alike=True)))
    return nearest_the_medians(each for each in found if each is not None)


def text(draw: Draw) -> str:
    """The scenario's file."""
    rates = draw.rates(WORKLOAD) * draw.per_core_s[:, X86] / TASK_S
    parts = [_head(draw), *_machines(draw)]
    for category, names in CATEGORIES.items():
        parts += [f"# {category}\n", *(_function(draw, name) for name in names)]
    weights = "\n".join(f"{name} = {float(rate):.5f}" for name, rate in zip(FUNCTIONS, rates, strict=True))
    arrivals = f'kind = "poisson"\nrate_per_s = {float(rates.sum()):.4f}\nduration_s = {DURATION_S}'
    return "\n".join([*parts, f"[[arrivals]]\n{arrivals}\n\n[arrivals.functions]\n{weights}\n"])


def _head(draw: Draw) -> str:
    facts = {
        "number": draw.number, "searched": SEARCHED, "load": draw.loads[WORKLOAD], "task_s": TASK_S,
        "duration_s": DURATION_S,
    }  # fmt: skip
    lists = {"sources": SOURCES, "assumptions": ASSUMPTIONS}
    told = (
        f"{name} = [\n" + "".join(f'  "{line.format(**facts)}",\n' for line in lines) + "]\n"
        for name, lines in lists.items()
    )
    return f'name = "isa-mixed"\ntitle = "{TITLE}"\n{"".join(told)}\n{COMMENT}'


def _machines(draw: Draw) -> list[str]:
    core_w = draw.joules[0] * draw.per_core_s[0]
    shown = []
    for server, arch in ((X86, "x86_64"), (ARM, "aarch64")):
        idle, cores = draw.idle_w[server], draw.capacity[server]
        full = idle + cores * float(core_w[server])
        shown.append(
            f'[machines.isa-{NODES[server]}]\narch = "{arch}"\ncores = {cores}\nmemory_gib = 256\n'
            f"cores_watts = [[0, {idle:.2f}], [{cores}, {full:.2f}]]\n"
            f'provenance = "estimated"\nsource = "drawn: draw {draw.number} of the experiment isa, functions alike"\n'
        )
    nodes = [f'[[nodes]]\nmachine = "isa-{name}"\nname = "{name}"\n' for name in NODES]
    return [*shown, *nodes]


def _function(draw: Draw, name: str) -> str:
    seconds = TASK_S * draw.per_core_s[FUNCTIONS.index(name), X86] / draw.per_core_s[FUNCTIONS.index(name)]
    x86, arm = (f"{float(each):.4g}" for each in seconds)
    return (
        f"[functions.{name}]\n"
        f'variants.x86 = {{ arch = ["x86_64"], seconds = {{ isa-x86 = {x86} }} }}\n'
        f'variants.arm = {{ arch = ["aarch64"], seconds = {{ isa-arm = {arm} }} }}\n'
    )


TITLE: Final = "Two instruction sets: a dual Xeon Gold 5318Y and an Altra Max, 22 serverless functions, the general mix"
SOURCES: Final = (
    "ISA: Arys, Carlier and Riviere, Energy-Aware Scheduling of a Serverless Workload in an ISA-Heterogeneous Cluster "
    "(WoSC 2024): the two machines, the 22 functions in four categories, the general workload (a quarter of the cores "
    "for each category, balanced over its functions).",
    "Speeds, watts and load: draw {number} of `wattloom experiment isa:alike=true`, whose priors name their sources.",
)
ASSUMPTIONS: Final = (
    "The source prints no speeds, joules or load level. This is one draw from the stated priors of the experiment isa, "
    "of those in which functions draw alike: of the first {searched} the one in which all facts of the source hold, "
    "function by function, and whose savings are nearest the medians.",
    "A task stands for as many calls in a row as take {task_s:g} s on an x86 core, so that a run has thousands of "
    "tasks, not millions.",
    "The load is {load:.0%} of all cores, counted in expected cores: the highest at which all five policies of the "
    "source reach every rate. Tasks come by chance (Poisson), for {duration_s} s.",
    "There are no cold starts and nothing is kept warm, as in the source. The x86 server has 48 cores, each for one "
    "task; its 96 threads are not used.",
    "Power rises in a straight line with the cores in use.",
)
COMMENT: Final = """\
# What the study found is held against ours by `wattloom experiment isa`, function by function: it places functions,
# each with all its calls on one server, and our policies place tasks. Under plans its whole order holds in this draw;
# tests show it, planned and simulated.
"""


def main(words: list[str]) -> None:
    """Search, or write the file."""
    if words[:1] == ["search"]:
        found = search(int(words[1]) if words[1:] else SEARCHED)
        sys.stdout.write("none\n" if found is None else f"draw {found.number}: {found.savings}\n")
        return
    sys.stdout.write(text(typical_draw()))


if __name__ == "__main__":
    main(sys.argv[1:])
