"""The ISA study's five policies on one draw: who runs where, and what the PDU would see.

Owns the runs of a draw. Both servers are always on, a function has whole cores on one server, and nothing is kept warm:
a server draws its idle power, and each execution its joules.
"""

from typing import Final

import msgspec
import numpy as np

from wattloom.experiments.isa_draws import ARM, FUNCTIONS, MACHINES, TURNS, WORKLOADS, X86, Draw, Real, cores
from wattloom.planning.making import Wishes, make_plan
from wattloom.planning.plan import Demand, Plan, Server
from wattloom.planning.two_servers import Whole, least_on_two, one_by_one
from wattloom.workload.function_profile import FunctionProfile, FunctionProfiles, exact

POLICIES: Final = ("round-robin", "x86-first", "arm-first", "core-aware", "energy-aware")
FULL: Final = 0.95
"""Of its cores: functions come whole, so that a few are left over."""
TIES: Final = 1e-6
"""Cores that a watt counts for core-aware: of plans with equally few cores it has the one with the least energy."""


class Run(msgspec.Struct, frozen=True):
    """A workload under a policy that found room for all functions."""

    servers: Whole
    """Of each function."""
    cores: tuple[int, int]
    """Given out on each server."""
    active_w: float
    """The objective: joules of an execution times rate, of all functions."""
    whole_w: float
    """With what both servers draw idle."""
    arm_is_full: bool
    """All but a few of its cores are given out."""


Runs = dict[tuple[str, str], Run | None]
"""By workload and policy. None: a rate could not be reached."""


def runs_of(draw: Draw) -> Runs:
    """All workloads under all policies."""
    return {(workload, policy): _run(draw, workload, policy) for workload in WORKLOADS for policy in POLICIES}


def _run(draw: Draw, workload: str, policy: str) -> Run | None:
    if workload not in draw.loads:
        return None
    rates = draw.rates(workload)
    needed = cores(rates, draw.per_core_s)
    watts = draw.joules * rates[:, None]
    servers = placed(policy, needed, watts, draw.capacity)
    if servers is None:
        return None
    given = [int(needed[servers == server, server].sum()) for server in (X86, ARM)]
    active = float(watts[np.arange(len(servers)), servers].sum())
    full = given[ARM] >= FULL * draw.capacity[ARM]
    return Run(servers, (given[X86], given[ARM]), active, active + sum(draw.idle_w), full)


def placed(policy: str, needed: Whole, watts: Real, capacity: tuple[int, int]) -> Whole | None:
    """Each function's server. None: the policy found none for one of them."""
    if policy in TURNS:
        servers = one_by_one(TURNS[policy], needed, capacity)
        return servers if (servers >= 0).all() else None
    return least_on_two(needed, watts if policy == "energy-aware" else needed + TIES * watts, capacity)


# -- as a plan ---------------------------------------------------------------------------------------------------------

ARCHS: Final = ("x86_64", "aarch64")
NODES: Final = ("x86", "arm")


def profiles_of(draw: Draw) -> FunctionProfiles:
    """E and W of a draw, as they stand in a file."""
    return FunctionProfiles(
        tuple(
            FunctionProfile(
                function=name,
                machine=machine,
                per_core_s=exact(float(draw.per_core_s[number, server])),
                joules=exact(float(draw.joules[number, server])),
                quantity="wall",
                source=f"drawn: draw {draw.number} of the experiment isa",
            )
            for number, name in enumerate(FUNCTIONS)
            for server, machine in enumerate(MACHINES)
        )
    )


def in_tasks(draw: Draw, calls: float) -> Draw:
    """The same load in tasks of so many calls in a row."""
    return msgspec.structs.replace(draw, per_core_s=draw.per_core_s / calls, joules=draw.joules * calls)


def plan_of(draw: Draw, workload: str, policy: str) -> Plan:
    """The same as `wattloom plan make` has it. InputError: a rate cannot be reached."""
    demand = [
        Demand(function=name, rate=float(rate)) for name, rate in zip(FUNCTIONS, draw.rates(workload), strict=True)
    ]
    servers = [
        Server(name=name, machine=machine, arch=arch, cores=cores, idle_w=idle)
        for name, machine, arch, cores, idle in zip(NODES, MACHINES, ARCHS, draw.capacity, draw.idle_w, strict=True)
    ]
    return make_plan(demand, servers, profiles_of(draw), Wishes(policy=policy))
