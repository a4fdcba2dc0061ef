"""What a log can hold is pinned to its version: who changes the one without the other is told so here."""

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import inspect

from wattloom.history.log import READABLE, VERSION, Header
from wattloom.scheduling.events import AnyEvent
from wattloom.scheduling.instructions import AnyInstruction

RECORDED_VERSION = 6
RECORDED: dict[str, str] = {
    "Header": "wattloom_log policy backend seed scenario lease placed predictor moves",
    "LeaseTerms": "seconds ahead_s most",
    "machine-defined": "time machine",
    "MachineProfile": (
        "name arch cores threads memory watts smt_slowdown speed tdp_w sleep_w wake_s wake_j provenance quantity source"
    ),
    "function-defined": "time function",
    "Function": "name requirements variants",
    "Requirements": "cpu memory arch labels devices resources where tags space",
    "Constraints": "selector terms volumes tolerations ports spread near apart",
    "NodeTerm": "labels fields",
    "Expression": "key operator values",
    "Toleration": "key operator value effect",
    "Port": "port protocol address",
    "Spread": "key most selector least_domains honor_affinity honor_taints",
    "AffinityTerm": "key selector spaces",
    "Variant": "name arch devices seconds",
    "node-joined": "time node",
    "Node": "name machine cpu memory labels devices cap_w asleep resources taints closed own",
    "Taint": "key value effect",
    "node-changed": "time node",
    "node-lost": "time node",
    "node-awake": "time node",
    "node-asleep": "time node",
    "cap-changed": "time watts",
    "task-submitted": "time task past",
    "Task": (
        "id function requirements priority energy_weight deadline_s defer_s after idempotent retries "
        "infrastructure_retries size prefers"
    ),
    "Preference": "node labels joules seconds",
    "Past": "attempts failures losses submitted joules spread_j provenance place share",
    "task-orphaned": "time task message past",
    "task-found": "time task node attempt started past behind variant devices",
    "task-leaving": "time task",
    "task-changed": "time task",
    "task-removed": "time task message",
    "task-started": "time task attempt",
    "task-progressed": "time task attempt share checkpoint checkpoint_bytes",
    "task-migrated": "time task attempt node",
    "task-resized": "time task attempt",
    "task-finished": "time task attempt seconds cpu_s setup_s",
    "task-failed": "time task attempt kind message cpu_s seconds",
    "task-returned": "time task attempt",
    "cancel-requested": "time task",
    "instruction-failed": "time instruction task attempt node message function variant",
    "frequency-changed": "time node share",
    "instance-ready": "time node function variant",
    "instance-gone": "time node function variant",
    "signal-changed": "time name value forecast",
    "plan-changed": "time digest",
    "model-changed": "time digest",
    "reading-arrived": "time node watts tasks",
    "usage-arrived": (
        "time node seconds meter_j idle_j unattributed_j running_j provenance functions tasks cpu_second cpu_second_of"
    ),
    "Used": "calls seconds seconds_squared joules joules_squared metered core_s",
    "function-learned": "time function machine used variant",
    "functions-forgotten": "time functions",
    "tick": "time",
    "place": "task attempt node variant cost guarantee devices forecast behind number",
    "known": "seconds watts joules spread_s provenance",
    "unknown": "reason",
    "evict": "task attempt node reason",
    "migrate": "task attempt node to variant devices forecast number",
    "resize": "task attempt node cpu memory",
    "set-frequency": "node share",
    "prepare": "node function variant",
    "release": "node function variant",
    "conclude": "task outcome reason message",
    "wait": "task reason until message",
    "sleep": "node",
    "wake": "node",
}
"""By kind of record, or by class of what stands in one: its fields, in order."""


def present() -> dict[str, str]:
    """What can be written today."""
    found: dict[str, str] = {}
    for root in (Header, AnyEvent, AnyInstruction):
        for struct in structs(inspect.type_info(root), set()):
            name = str(struct.tag or struct.cls.__name__)
            fields = " ".join(field.encode_name for field in struct.fields)
            assert found.setdefault(name, fields) == fields, f"two of the log's classes are called {name}"
    return found


def structs(of: object, seen: set[type]) -> Iterator[inspect.StructType]:
    """Every class that a value of this type can hold, itself first."""
    if isinstance(of, inspect.StructType):
        if of.cls in seen:
            return
        seen.add(of.cls)
        yield of
    if isinstance(of, inspect.Type | inspect.Field):
        for name in of.__struct_fields__:
            yield from structs(getattr(of, name), seen)
    elif isinstance(of, tuple):
        for each in of:
            yield from structs(each, seen)


def problem(recorded: Mapping[str, str], now: Mapping[str, str], recorded_version: int, version: int) -> str:
    """What whoever changed the format has still to do; empty: nothing."""
    changed = sorted(kind for kind in recorded.keys() | now.keys() if recorded.get(kind) != now.get(kind))
    if changed and version == recorded_version:
        return (
            f"{', '.join(changed)} changed, and history.log.VERSION is still {version}: raise it, then record both here"
        )
    if version != recorded_version:
        return f"record version {version} here: {', '.join(changed) or 'nothing'} changed"
    return ""


def test_what_a_log_can_hold_changes_only_with_its_version() -> None:
    assert problem(RECORDED, present(), RECORDED_VERSION, VERSION) == ""


def test_a_log_of_the_present_version_can_be_read() -> None:
    assert max(READABLE) == VERSION


def test_a_new_kind_or_field_without_a_new_version_is_named() -> None:
    now = present()
    moon = {**now, "moon-risen": "time moon", "tick": "time moon"}
    assert (
        problem(now, moon, 5, 5)
        == "moon-risen, tick changed, and history.log.VERSION is still 5: raise it, then record both here"
    )
    assert problem(moon, now, 5, 5).startswith("moon-risen, tick changed")
    assert problem(now, moon, 5, 6) == "record version 6 here: moon-risen, tick changed"
    assert problem(moon, moon, 6, 6) == ""


def test_what_stands_inside_a_record_counts_too() -> None:
    class Phase(msgspec.Struct):
        share: float

    class Moon(msgspec.Struct):
        phases: dict[str, tuple[Phase, ...] | None] = {}
        of: Phase | None = None

    assert [struct.cls for struct in structs(inspect.type_info(Moon), set())] == [Moon, Phase]
