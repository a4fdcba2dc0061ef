"""A plan's file: JSON, indented, the same plan in the same bytes.

Owns reading with its checks, and the bytes. Who writes them decides how.
"""

from pathlib import Path

import msgspec

from wattloom.bounds import MOST_WATTS
from wattloom.errors import InputError
from wattloom.files import UNREADABLE, read_bytes
from wattloom.planning.plan import VERSION, Plan


def read_plan(path: Path) -> Plan:
    """From a file. InputError names the file and the field."""
    try:
        found = msgspec.json.decode(read_bytes(path), type=Plan)
    except OSError as problem:
        raise InputError(str(path), f"cannot be read: {problem.strerror or problem}") from problem
    except msgspec.ValidationError as problem:
        words, _, where = str(problem).partition(" - at `$")
        field = where.rstrip("`").lstrip(".")
        raise InputError(f"{path}: {field}" if field else str(path), words) from problem
    except UNREADABLE as problem:
        raise InputError(str(path), f"holds no plan: {problem}") from problem
    if wrong := _problem(found):
        raise InputError(f"{path}: {wrong[0]}", wrong[1])
    return found


def encode_plan(plan: Plan) -> bytes:
    return msgspec.json.format(msgspec.json.encode(plan), indent=1) + b"\n"


def _problem(plan: Plan) -> tuple[str, str] | None:
    """The first wrong field: a version that is not known, servers and functions that are not there, absurd figures."""
    if plan.wattloom_plan != VERSION:
        return "wattloom_plan", f"version {plan.wattloom_plan} is not known, only {VERSION}"
    if not 0.0 < plan.quantile < 1.0:
        return "quantile", f"must be above 0 and below 1, not {plan.quantile}"
    if not 0.0 <= plan.core_price_w <= MOST_WATTS:
        return "core_price_w", f"must not be negative, at most {MOST_WATTS:g} W, not {plan.core_price_w}"
    for at, server in enumerate(plan.servers):
        if wrong := server.problem():
            return f"servers[{at}].{wrong[0]}", wrong[1]
    for at, wanted in enumerate(plan.demand):
        if wrong := wanted.problem():
            return f"demand[{at}].{wrong[0]}", wrong[1]
    servers, functions = {each.name for each in plan.servers}, {each.function for each in plan.demand}
    for at, each in enumerate(plan.assignments):
        if plan.servers and each.server not in servers:
            return f"assignments[{at}].server", f"{each.server!r} is none of its servers"
        if plan.demand and each.function not in functions:
            return f"assignments[{at}].function", f"{each.function!r} is none of its functions"
        if not (each.rate >= 0.0 and each.cores >= 0 and each.per_core_s > 0.0):
            return f"assignments[{at}]", "rate, cores and per_core_s must not be negative"
        if each.watts is not None and not each.watts >= 0.0:
            return f"assignments[{at}].watts", f"must not be negative, not {each.watts}"
    return None
