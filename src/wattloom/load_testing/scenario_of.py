"""A plan as a scenario file, for `wattloom simulate` and `wattloom compare`.

Owns the form. Servers are nodes with the plan's idle watts and, on average over what runs on a machine, its watts per
busy core; functions take as long as the plan's E says; each comes at its rate. What the plan does not say is assumed,
and the file lists it.
"""

from collections.abc import Iterable

import msgspec

from wattloom.errors import InputError
from wattloom.load_testing.carried import watts_per_core
from wattloom.machines.catalogue import machines as catalogue
from wattloom.planning.plan import Plan, Server
from wattloom.simulation.arrivals import MOST_TASKS
from wattloom.simulation.scenario import parse
from wattloom.units import MIB
from wattloom.workload.function_profile import FunctionProfiles
from wattloom.workload.open_loop import Arrivals


def scenario_text(
    plan: Plan,
    plan_file: str,
    *,
    seconds: float,
    arrivals: Arrivals = "poisson",
    profiles: FunctionProfiles | None = None,
) -> str:
    """TOML of a scenario in which the plan's rates are asked for so many seconds. `plan_file`: where the plan is, as
    seen from the scenario's file. `profiles`: E on machines that the plan does not use."""
    if not plan.servers:
        raise InputError("plan", "names no servers: a scenario needs their machines and cores")
    expected = sum(each.rate for each in plan.assignments) * seconds
    if not 0.0 < expected <= MOST_TASKS:
        raise InputError("seconds", f"would make {expected:,.0f} calls; a simulation takes 1 to {MOST_TASKS:,}")
    assumed: list[str] = []
    machines = {name: _machine(name, plan, assumed) for name in dict.fromkeys(each.machine for each in plan.servers)}
    names = list(dict.fromkeys(each.function for each in plan.assignments))
    functions = {name: _function(name, plan, list(machines), profiles or FunctionProfiles(), assumed) for name in names}
    made: dict[str, object] = {
        "name": f"plan-{plan.digest[:12]}",
        "title": f"{len(names)} functions at planned rates ({plan.policy})",
        "plan": plan_file,
        "assumptions": [*assumed, f"{arrivals} arrivals for {seconds:g} s"],
        "machines": {name: entry for name, entry in machines.items() if entry},
        "nodes": [_node(each) for each in plan.servers],
        "functions": functions,
        "arrivals": [_stream(name, plan, seconds, arrivals) for name in names if _rate(name, plan) > 0.0],
    }
    text = _toml(made)
    parse(text, "the plan as a scenario")  # what we write, we can read
    return text


def _rate(name: str, plan: Plan) -> float:
    return sum(each.rate for each in plan.assignments if each.function == name)


def _machine(name: str, plan: Plan, assumed: list[str]) -> dict[str, object]:
    """As the plan has it, or by the catalogue where the plan lacks watts; empty: the catalogue's."""
    servers = [each for each in plan.servers if each.machine == name]
    one, core_w = servers[0], watts_per_core(plan, servers)
    known = catalogue().get(name)
    entry: dict[str, object] = {"arch": one.arch or (known.arch if known else "x86_64"), "cores": one.cores}
    if core_w is None and known is None and one.idle_w is not None:
        assumed.append(f"nothing runs on {name}, so what its cores draw is not known")
    if one.idle_w is None or core_w is None:
        return {} if known is not None else entry
    assumed.append(f"a busy core of {name} draws {core_w:.4g} W above idle, the mean over what the plan has there")
    entry["cores_watts"] = [[0, one.idle_w], [one.cores, one.idle_w + one.cores * core_w]]
    if any(each.may_be_off for each in servers):
        entry["sleep_w"] = one.off_w
    return entry


def _node(server: Server) -> dict[str, object]:
    entry: dict[str, object] = {"name": server.name, "machine": server.machine, "cpu": float(server.cores)}
    if server.labels:
        entry["labels"] = server.labels
    return entry


def _function(
    name: str, plan: Plan, machines: Iterable[str], profiles: FunctionProfiles, assumed: list[str]
) -> dict[str, object]:
    machine_of = {each.name: each.machine for each in plan.servers}
    planned = {machine_of[each.server]: each for each in plan.assignments if each.function == name}
    slowest = min(each.per_core_s for each in planned.values())
    seconds: dict[str, float] = {}
    for machine in machines:
        profile = profiles.by_pair.get((name, machine))
        if machine in planned:
            seconds[machine] = 1.0 / planned[machine].per_core_s
        elif profile is not None:
            seconds[machine] = 1.0 / profile.per_core_s.value
        else:
            seconds[machine] = 1.0 / slowest
            assumed.append(f"{name} is as fast on {machine} as where the plan has it: no profile says otherwise")
    wanted = next((each for each in plan.demand if each.function == name), None)
    entry: dict[str, object] = {"cpu": 1.0 if wanted is None else wanted.cpu}
    if wanted is not None and wanted.memory:
        entry["memory_mib"] = wanted.memory / MIB
    builds = dict.fromkeys(each.variant for each in planned.values() if each.variant)
    entry |= {"variants": {build: {"seconds": seconds} for build in builds}} if builds else {"seconds": seconds}
    return entry


def _stream(name: str, plan: Plan, seconds: float, arrivals: Arrivals) -> dict[str, object]:
    return {"kind": arrivals, "rate_per_s": _rate(name, plan), "duration_s": seconds, "functions": {name: 1.0}}


# -- TOML --------------------------------------------------------------------------------------------------------------


def _toml(value: dict[str, object]) -> str:
    """Tables of a scenario: plain values first, then tables, then lists of tables."""
    return "\n".join(_table(value, ())) + "\n"


def _table(value: dict[str, object], path: tuple[str, ...]) -> list[str]:
    lines = [f"{_key(name)} = {_value(each)}" for name, each in value.items() if not _is_nested(each)]
    for name, each in value.items():
        within = ".".join(_key(part) for part in (*path, name))
        if isinstance(each, dict) and _is_nested(each):
            plain = any(not _is_nested(inner) for inner in each.values())
            lines += ["", f"[{within}]"] if plain else []
            lines += _table(each, (*path, name))
        elif _is_nested(each):
            assert isinstance(each, list)
            for one in each:
                lines += ["", f"[[{within}]]", *_table(one, (*path, name))]
    return lines


def _is_nested(value: object) -> bool:
    """A table of tables, or a list of them; tables of plain values are written in one line but for the first level."""
    if isinstance(value, dict):
        return any(isinstance(each, dict | list) for each in value.values())
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _value(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(name)} = {_value(each)}" for name, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(each) for each in value) + "]"
    if isinstance(value, float):
        return repr(value)
    return msgspec.json.encode(value).decode()


def _key(name: str) -> str:
    plain = name.isascii() and all(sign.isalnum() or sign in "-_" for sign in name)
    return name if plain and name else msgspec.json.encode(name).decode()
