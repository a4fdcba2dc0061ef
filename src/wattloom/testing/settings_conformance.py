"""What the settings that a plug-in brings must be: part of the kits of meters and predictors.

Owns the rules. They hold for what the entry point names, the function or class with the parameter `settings`
(`wattloom.setting_groups`), and raise AssertionError. For a plug-in of another kind `check_settings(entry_point)` in a
test is enough.
"""

import re
from typing import Final

import msgspec

from wattloom.setting_groups import PlugInProblem, keys_with, settings_type
from wattloom.settings import SettingsError, read_text

SECRET: Final = re.compile(r"passw|secret|token|credential|(^|_)(key|pin|auth)(_|$)")
"""Names of what nobody else is to know."""


def check_settings(plug_in: object) -> None:
    """All rules. What brings no settings breaks none."""
    try:
        kind = settings_type(plug_in)
    except PlugInProblem as problem:
        raise AssertionError(str(problem)) from problem
    if kind is None:
        return
    they_do_not_change(kind)
    each_can_be_named_in_a_file_and_in_the_environment(kind)
    each_can_be_written_as_text(kind)
    secrets_are_credentials(kind)


def they_do_not_change(kind: type[msgspec.Struct]) -> None:
    _require(kind.__struct_config__.frozen, f"{kind.__name__} is not frozen: write frozen=True")


def each_can_be_named_in_a_file_and_in_the_environment(kind: type[msgspec.Struct]) -> None:
    for name in kind.__struct_fields__:
        _require(name == name.lower(), f"{kind.__name__}.{name} has capitals, which nobody can set by the environment")


def each_can_be_written_as_text(kind: type[msgspec.Struct]) -> None:
    """A variable of the environment is text; and what is the default must be allowed."""
    for field in msgspec.structs.fields(kind):
        usual = getattr(kind(), field.name)
        text = str(usual).lower() if isinstance(usual, bool) else str(usual)
        try:
            found = read_text(field.name, text, field.type)
        except SettingsError as problem:
            raise AssertionError(f"{kind.__name__}.{field.name}: its default {problem.problem}") from problem
        _require(found == usual, f"{kind.__name__}.{field.name} is {usual!r} by default, and read as {found!r}")


def secrets_are_credentials(kind: type[msgspec.Struct]) -> None:
    """Else they would be sent to whom a file of the working folder names."""
    known = keys_with("credential", kind)
    for name in kind.__struct_fields__:
        _require(
            not SECRET.search(name) or name in known,
            f"{kind.__name__}.{name} looks like a secret: its type must be wattloom.setting_groups.Credential",
        )
    _require(
        not known or bool(keys_with("receiver", kind)),
        f"{kind.__name__} has {', '.join(sorted(known))}, and nothing that says to whom that goes: the type of such a "
        "setting is wattloom.setting_groups.Receiver",
    )


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)
