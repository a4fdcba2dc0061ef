"""Random instances by family and seed, for tests and benchmarks of planning.

`source`: the ISA study's kind, servers of 48 and 128 cores, each with figures of its own. `large`: about three
functions to a server. `typed`: eight kinds of equal servers. `tight`: nearly full. `idle`: typed
servers at half load, which may be off.
"""

import numpy as np

from wattloom.planning.instance import Instance

FAMILIES = ("source", "large", "typed", "tight", "idle")
LOADS = {"source": 0.80, "large": 1.05, "typed": 0.80, "tight": 0.97, "idle": 0.50}
"""Of all cores: what functions need halfway between their fewest cores and their median, not what a plan gives out."""
KINDS = 8


def make_instance(family: str, functions: int, servers: int, seed: int) -> Instance:
    """The same family, sizes and seed give the same instance."""
    draw = np.random.default_rng([FAMILIES.index(family), functions, servers, seed])
    typed = family in ("typed", "idle")
    kinds = min(KINDS, servers) if typed else servers
    counts = np.full(kinds, servers // kinds, dtype=np.int64)
    counts[: servers % kinds] += 1
    arm = np.arange(kinds) % 2 == 1
    room = np.where(arm, 128, 48).astype(np.int64)
    if kinds > 2:
        room = np.maximum(8, (room * draw.uniform(0.75, 1.5, kinds)).astype(np.int64))
    if family == "idle":
        room = 2 * room
    speed = draw.lognormal(0.0, 0.35, (functions, kinds)) * np.where(arm, 0.8, 1.0)
    per_core_w = draw.lognormal(1.2, 0.25, (functions, kinds)) * np.where(arm, 0.7, 1.3)
    wish = draw.lognormal(0.0, 0.25 if family == "large" else 0.8, functions)
    low, high = 1e-3, 1e3
    total = LOADS[family] * float((room * counts).sum())
    for _ in range(60):  # rates at which the usual assignment gives out the wanted share of cores
        middle = (low * high) ** 0.5
        cores = np.ceil(middle * wish[:, None] / speed)
        low, high = (middle, high) if _usual_load(cores) < total else (low, middle)
    cores = np.ceil(low * wish[:, None] / speed).astype(np.int64)
    watts = low * wish[:, None] / speed * per_core_w
    return Instance(
        cost=np.where(cores <= room, watts, np.inf),
        cores=cores,
        memory=None,
        room=room,
        memory_room=np.full(kinds, 1 << 62, dtype=np.int64),
        counts=counts,
        on_cost=room * draw.uniform(0.8, 1.6, kinds) if family == "idle" else np.zeros(kinds),
    )


def _usual_load(cores: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> float:
    """Between a function's best server and its middle one."""
    return float((0.5 * cores.min(axis=1) + 0.5 * np.median(cores, axis=1)).sum())
