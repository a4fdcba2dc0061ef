"""What is wrong with a scenario file, in the file's own words.

Owns the way from msgspec's complaint to the field's full path and a sentence about it. What is right is `scenario`'s.
"""

import re
from collections.abc import Iterable
from datetime import date, datetime, time
from difflib import get_close_matches
from typing import Any, Final

import msgspec
from msgspec import inspect

Step = str | int | None
"""A name, a place in a list, or (None) a name that msgspec leaves out."""

FEW_FIELDS: Final = 20
BOUNDS: Final = {">=": "at least", ">": "above", "<=": "at most", "<": "below"}


def in_words(problem: msgspec.ValidationError, text: str, kind: type[msgspec.Struct]) -> tuple[str, str]:
    """The field's full path and what is wrong with it, for TOML text that was refused as a struct of this kind."""
    message, _, path = str(problem).partition(" - at `$")
    steps = _named(_steps(path.rstrip("`")), text, str(problem), kind)
    value, wanted = _walk(msgspec.toml.decode(text), steps), _type_at(inspect.type_info(kind), steps)
    if found := re.fullmatch(r"Object contains unknown field `(.*)`", message):
        return _written([*steps, found[1]]), f"no such field{_fields(found[1], wanted)}"
    if found := re.fullmatch(r"Object missing required field `(.*)`", message):
        return _written([*steps, found[1]]), "is missing"
    return _written(steps), _about_a_value(message, value, wanted)


def _about_a_value(message: str, value: Any, wanted: inspect.Type | None) -> str:
    if found := re.fullmatch(r"Expected `.*` (>=|>|<=|<) (\S+)", message):
        return f"must be {BOUNDS[found[1]]} {float(found[2]):.15g}, not {value}"
    if found := re.fullmatch(r"Expected `(\w+)` of length >= (\d+)", message):
        return "must not be empty" if found[2] == "1" else f"must have at least {found[2]} entries"
    if found := re.fullmatch(r"Expected `array` of length (\d+), got (\d+)", message):
        return f"must have {found[1]} entries, not {found[2]}"
    if message.startswith("Invalid enum value") and isinstance(wanted, inspect.LiteralType):
        choices = [str(choice) for choice in wanted.values]
        return f"must be {_either(choices)}, not {value!r}{close_to(str(value), choices)}"
    if message.startswith("Expected ") and wanted is not None:
        return f"must be {_kind(wanted)}, not {_kind_of_value(value)}"
    return message


# -- where -------------------------------------------------------------------------------------------------------------


def _steps(path: str) -> list[Step]:
    found = re.findall(r"\.([^.\[]+)|\[(\d+)\]|\[(\.\.\.)\]", path)
    return [None if unnamed else name or int(number) for name, number, unnamed in found]


def _named(steps: list[Step], text: str, message: str, kind: type[msgspec.Struct]) -> list[Step]:
    """The steps with the names that msgspec leaves out: it writes `[...]` for an entry of a table of named things."""
    whole = msgspec.toml.decode(text)
    named: list[Step] = []
    for step in steps:
        named.append(_wrong_entry(_walk(whole, named), whole, message, kind) if step is None else step)
    return named


def _wrong_entry(table: Any, whole: Any, message: str, kind: type[msgspec.Struct]) -> str | None:
    """The entry that is enough to be refused: the others are taken out of the table, which is part of the whole."""
    entries: dict[str, Any] = dict(table) if isinstance(table, dict) else {}
    for name, entry in entries.items():
        table.clear()
        table[name] = entry
        try:
            msgspec.convert(whole, kind)
        except msgspec.ValidationError as problem:
            if str(problem) == message:
                return name
    return None


def _walk(value: Any, steps: Iterable[Step]) -> Any:
    for step in steps:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int):
            value = value[step]
        else:
            return None
    return value


def _written(steps: Iterable[Step]) -> str:
    parts = (f"[{step}]" if isinstance(step, int) else f".{'?' if step is None else step}" for step in steps)
    return "".join(parts).lstrip(".")


# -- what would be right -----------------------------------------------------------------------------------------------


def _type_at(kind: inspect.Type, steps: Iterable[Step]) -> inspect.Type | None:
    found: inspect.Type | None = _only(kind)
    for step in steps:
        found = None if found is None else _type_below(found, step)
    return found


def _type_below(kind: inspect.Type, step: Step) -> inspect.Type | None:
    if isinstance(kind, inspect.UnionType):
        return next((below for one in kind.types if (below := _type_below(one, step)) is not None), None)
    if isinstance(kind, inspect.StructType):
        return next((_only(field.type) for field in kind.fields if field.encode_name == step), None)
    if isinstance(kind, inspect.DictType):
        return _only(kind.value_type)
    if isinstance(kind, inspect.ListType):
        return _only(kind.item_type)
    if isinstance(kind, inspect.TupleType) and isinstance(step, int) and step < len(kind.item_types):
        return _only(kind.item_types[step])
    return None


def _only(kind: inspect.Type) -> inspect.Type:
    """Without None, which TOML cannot write."""
    if not isinstance(kind, inspect.UnionType):
        return kind
    kinds = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
    return kinds[0] if len(kinds) == 1 else inspect.UnionType(tuple(kinds))


WORDS: Final[dict[type[inspect.Type], str]] = {
    inspect.BoolType: "true or false",
    inspect.IntType: "a whole number",
    inspect.FloatType: "a number",
    inspect.StrType: "text",
    inspect.DictType: "a table",
    inspect.StructType: "a table",
}


def _kind(kind: inspect.Type) -> str:
    if isinstance(kind, inspect.UnionType):
        return " or ".join(_kind(one) for one in kind.types)
    if isinstance(kind, inspect.LiteralType):
        return _either([str(choice) for choice in kind.values])
    if isinstance(kind, inspect.TupleType):
        return f"a list of {len(kind.item_types)} entries"
    if isinstance(kind, inspect.ListType):
        return f"a list of {_several(_only(kind.item_type))}"
    return WORDS.get(type(kind), "something else")


def _either(choices: list[str]) -> str:
    return " or ".join([", ".join(choices[:-1]), choices[-1]] if len(choices) > 1 else choices)


def _several(kind: inspect.Type) -> str:
    if isinstance(kind, inspect.StructType):
        return "tables ([[...]])"
    if isinstance(kind, inspect.TupleType):
        return "pairs" if len(kind.item_types) == 2 else "lists"
    return {inspect.FloatType: "numbers", inspect.IntType: "whole numbers"}.get(type(kind), _kind(kind))


def _kind_of_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, datetime | date | time):
        return "a date or time"
    return "text" if isinstance(value, str) else "a list" if isinstance(value, list) else "a table"


def _fields(wrong: str, table: inspect.Type | None) -> str:
    names = [field.encode_name for field in table.fields] if isinstance(table, inspect.StructType) else []
    listed = f" (fields: {', '.join(names)})" if 0 < len(names) <= FEW_FIELDS else ""
    return close_to(wrong, names) + listed


def close_to(wrong: str, names: list[str]) -> str:
    """The name that may have been meant, as the end of a sentence; empty: none is near."""
    close = get_close_matches(wrong, names, n=1)
    return f"; did you mean `{close[0]}`?" if close else ""
