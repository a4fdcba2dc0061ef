"""Draws of what the ISA study did not publish: speeds and joules of its 22 functions, load level, idle power.

Owns the functions, the priors with their sources, and how a draw is made of a seed so that the study's first fact
holds. The speed of a function on an x86 core is 1: only ratios decide who runs where, and none is read off a picture.
"""

from collections.abc import Iterator
from math import log
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from wattloom.machines.catalogue import machines
from wattloom.machines.curves import FUNCTIONS_DIFFER
from wattloom.machines.machine import Machine
from wattloom.machines.processors import SAME_MODEL
from wattloom.planning.two_servers import Whole, one_by_one
from wattloom.units import MILLI

Real = NDArray[np.float64]

X86: Final = 0
ARM: Final = 1
MACHINES: Final = ("xeon-gold-5318y-2s", "altra-max-m128-1s")
CATEGORIES: Final = {
    "crypto": ("el-passo-cpp", "el-passo-wasm", "jwt-python", "jwt-node", "jwt-java"),
    "media": ("thumbnail-python", "thumbnail-node", "thumbnail-java", "video-to-gif-python", "video-to-gif-node",
              "image-recognition-python"),
    "scientific": ("matrix-numpy-python", "matrix-native-python", "matrix-native-node", "matrix-native-java",
                   "pagerank-python"),
    "web": ("html-python", "html-node", "html-java", "zip-python", "zip-node", "zip-java"),
}  # fmt: skip
"""In the order of the study's table."""
FUNCTIONS: Final = tuple(name for names in CATEGORIES.values() for name in names)
OF_CATEGORY: Final = np.array([at for at, names in enumerate(CATEGORIES.values()) for _ in names])
WORKLOADS: Final = ("general", *CATEGORIES)
DOMINANT: Final = 0.8
"""Share of the load that a category has in the workload it dominates; the others share the rest."""
TURNS: Final = {
    "round-robin": tuple(at % 2 for at in range(len(FUNCTIONS))),
    "x86-first": (X86,) * len(FUNCTIONS),
    "arm-first": (ARM,) * len(FUNCTIONS),
}
"""Of the study's simple policies, which server each function is tried on first."""

SLOWEST: Final = 0.363 / 0.992
FASTEST: Final = 1.2
USUAL: Final = (SLOWEST * FASTEST) ** 0.5
PUBLIC_KEY: Final = 0.25
LEVEL_SPREAD: Final = log(FASTEST / SLOWEST) / 2 / 1.6449
CATEGORY_SPREAD: Final = 0.3
FUNCTION_SPREAD: Final = 0.25
OWN_SPREAD: Final = FUNCTIONS_DIFFER / 2**0.5
MORE_IDLE_W: Final = (0.0, 80.0)
CEILING: Final = (0.75, 1.0)
LEVELS: Final = np.arange(100, 49, -1) / 100.0
"""Of the load, as shares of all cores, the highest first."""

PRIORS: Final = (
    f"Speed of an ARM core over an x86 core: median {USUAL:.2f}, nine of ten between {SLOWEST:.2f} (ssj_ops per core "
    "in SPECpower_ssj2008 of both machines, as in our catalogue) and 1.20 (interpreted functions as fast on a 2.5 GHz "
    "Neoverse N1 as on an x86 thread: A. Filichkin, AWS Lambda battle: x86 vs ARM, 2021; here it has 3.0 GHz). "
    f"Categories differ by {CATEGORY_SPREAD:.0%}, functions of one by {FUNCTION_SPREAD:.0%}. All log-normal.",
    f"El Passo in C++: {PUBLIC_KEY:.2f}, as RSA-2048 on an Altra core against an x86 core of 3 GHz (Chips and Cheese, "
    "Neoverse N1 vs Zen 2, 2021): its time is arithmetic of large numbers. The rest of crypto half way to it, in "
    f"logarithms: {(PUBLIC_KEY * USUAL) ** 0.5:.2f}.",
    "Watts of a busy core above idle, at the plug: SPECpower_ssj2008 of both machines, as in our catalogue, each "
    f"{SAME_MODEL:.0%} off, as machines of one model are. Functions differ by {FUNCTIONS_DIFFER:.0%} (kepler-model-db, "
    "node nx12), half of that variance the same on both machines.",
    "Idle power: as in SPECpower_ssj2008 (118 and 79 W), and 0 to 80 W more on each server, evenly, for its 256 GB, "
    "SSDs and 100 GbE.",
    "Load level: of each workload the highest at which all five policies reach every rate, in steps of 1% of all "
    "cores, at most a ceiling of 75 to 100%, evenly, and one server must not suffice. ('A single server is "
    "insufficient', 'most of the cores used', 'all runs match the required number of calls'.)",
    "Expected cores of a function: the mean over both servers. Within a category it is the same for all functions, as "
    "the study balances it.",
)


class Draw(msgspec.Struct, frozen=True, kw_only=True):
    """One set of what was not published. Arrays have a row for each function and a column for each server."""

    number: int
    capacity: tuple[int, int]
    per_core_s: Real
    """E: executions per second and core; on x86 1 (of a thread as much less as threads slow each other)."""
    joules: Real
    """W: of one execution, at the plug and above idle."""
    idle_w: tuple[float, float]
    loads: dict[str, float]
    """Of each workload, expected cores of all functions as a share of all cores. Left out: there is none at which one
    server is too small and all policies reach every rate."""

    def rates(self, workload: str) -> Real:
        """R: requests per second of each function."""
        return rates(workload, self.loads[workload], self.per_core_s, self.capacity)


def rates(workload: str, load: float, per_core_s: Real, capacity: tuple[int, int]) -> Real:
    """R of each function: the study's shares of categories, balanced within each by expected cores."""
    if workload == "general":
        shares = np.full(len(CATEGORIES), 1.0 / len(CATEGORIES))
    else:
        shares = np.full(len(CATEGORIES), (1.0 - DOMINANT) / (len(CATEGORIES) - 1))
        shares[list(CATEGORIES).index(workload)] = DOMINANT
    expected = (shares / np.bincount(OF_CATEGORY))[OF_CATEGORY] * load * sum(capacity)
    found: Real = expected / np.mean(1.0 / per_core_s, axis=1)
    return found


def cores(rates: Real, per_core_s: Real) -> Whole:
    """A: whole cores of each function on each server."""
    return np.ceil(rates[..., None] / per_core_s).astype(np.int64)


class Ground(msgspec.Struct, frozen=True):
    """What of the two servers is known, from the catalogue."""

    capacity: tuple[int, int]
    idle_w: tuple[float, float]
    core_w: Real
    """Above idle, of one core (or thread) with all others busy."""
    x86_speed: float
    """Of a thread against a core of its own; 1 where cores are counted."""
    differ: float = OWN_SPREAD
    """How far watts of functions differ, of both machines together and of each."""


def ground(threads: bool = False, alike: bool = False) -> Ground:
    """The two servers, x86 counted in cores or in threads; on each all functions draw alike, or not."""
    x86, arm = (Machine(machines()[name]) for name in MACHINES)
    capacity = (x86.profile.threads if threads else x86.profile.cores, arm.profile.cores)
    pairs = zip((x86, arm), capacity, strict=True)
    core_w = np.array([(machine.watts(count * MILLI) - machine.idle_w) / count for machine, count in pairs])
    speed = 1.0 / x86.profile.smt_slowdown if threads else 1.0
    return Ground(capacity, (x86.idle_w, arm.idle_w), core_w, speed, 0.0 if alike else OWN_SPREAD)


def draws(count: int, servers: Ground) -> Iterator[Draw]:
    """Draws 0, 1 and so on: each depends on its number alone."""
    return (draw_of(number, servers) for number in range(count))


def draw_of(number: int, servers: Ground) -> Draw:
    """Drawn again until exactly one function is better on x86 in both, and 21 on ARM in speed or energy."""
    # The stream of this generator is frozen by numpy: the same draw with every version.
    chance = np.random.RandomState([14, number])
    while True:
        per_core_s = _speeds(servers, chance)
        joules = _watts(servers, chance) / per_core_s
        better = (per_core_s[:, X86] > per_core_s[:, ARM]) & (joules[:, X86] < joules[:, ARM])
        if better.sum() == 1:
            break
    more = chance.uniform(*MORE_IDLE_W, size=len(MACHINES))
    return Draw(
        number=number,
        capacity=servers.capacity,
        per_core_s=per_core_s,
        joules=joules,
        idle_w=(servers.idle_w[X86] + float(more[X86]), servers.idle_w[ARM] + float(more[ARM])),
        loads=_loads(per_core_s, servers.capacity, float(chance.uniform(*CEILING))),
    )


def _speeds(servers: Ground, chance: np.random.RandomState) -> Real:
    level = log(USUAL) + LEVEL_SPREAD * chance.standard_normal()
    category = CATEGORY_SPREAD * chance.standard_normal(len(CATEGORIES))
    category[list(CATEGORIES).index("crypto")] += log(PUBLIC_KEY / USUAL) / 2
    own = FUNCTION_SPREAD * chance.standard_normal(len(FUNCTIONS))
    arm = np.exp(level + category[OF_CATEGORY] + own)
    arm[FUNCTIONS.index("el-passo-cpp")] = PUBLIC_KEY * np.exp(own[FUNCTIONS.index("el-passo-cpp")])
    return np.stack([np.full(len(FUNCTIONS), servers.x86_speed), arm], axis=1)


def _watts(servers: Ground, chance: np.random.RandomState) -> Real:
    """Of a busy core above idle."""
    machine = SAME_MODEL * chance.standard_normal(len(MACHINES))
    both = servers.differ * chance.standard_normal((len(FUNCTIONS), 1))
    own = servers.differ * chance.standard_normal((len(FUNCTIONS), len(MACHINES)))
    watts: Real = servers.core_w * np.exp(machine + both + own)
    return watts


def _loads(per_core_s: Real, capacity: tuple[int, int], ceiling: float) -> dict[str, float]:
    """Where one of the simple policies reaches every rate, both solvers do."""
    levels = LEVELS[ceiling >= LEVELS]
    full = np.stack([rates(workload, 1.0, per_core_s, capacity) for workload in WORKLOADS])
    needed = cores(full[:, None, :] * levels[:, None], per_core_s)
    carried = np.all([(one_by_one(turns, needed, capacity) >= 0).all(axis=-1) for turns in TURNS.values()], axis=0)
    too_small = (needed.sum(axis=-2) > capacity).all(axis=-1)
    highest = {workload: int(np.argmax(fits)) for workload, fits in zip(WORKLOADS, carried, strict=True) if fits.any()}
    at = {workload: WORKLOADS.index(workload) for workload in highest}
    return {workload: float(levels[top]) for workload, top in highest.items() if too_small[at[workload], top]}
