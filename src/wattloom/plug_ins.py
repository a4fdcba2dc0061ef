"""From what a user writes to an object somebody installed: `name`, `name:key=value,...`, `file.py:Class` and so on.

Owns the way in, which is one for what is built in, installed packages (entry points of a group) and single files. Every
mistake is an error that says what is wrong and what would be right. Knows nothing of what it loads but its base class.

What has a parameter `settings` (`setting_groups`) has the fields of its type as options. What is set for it holds where
an option is not written; `with_settings` writes it out, since a log has to name all that decisions were made with.
"""

import sys
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from hashlib import blake2b
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from inspect import Parameter, isclass, signature
from pathlib import Path
from types import ModuleType, NoneType, UnionType
from typing import Any, Final, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from wattloom.errors import InputError
from wattloom.setting_groups import PlugInProblem, keys_with, settings_type

T = TypeVar("T")

SWITCH: Final = {"true": True, "false": False}


def is_file(spec: str) -> bool:
    """Whether it names a file of Python, which is run to have what it defines."""
    return spec.endswith(".py") or ".py:" in spec


def split(spec: str) -> tuple[str, str]:
    """Who is meant, and the options."""
    if not is_file(spec):
        head, _, options = spec.partition(":")
        return head, options
    path, _, rest = spec.partition(".py:")
    path = path if path.endswith(".py") else f"{path}.py"
    class_name, _, options = rest.partition(":")
    return f"{path}:{class_name}", options


class PlugIns(Generic[T]):
    """One group of plug-ins."""

    def __init__(
        self,
        group: str,
        kind: str,
        kinds: str,
        base: type[T],
        error: type[InputError],
        switches: Mapping[str, str] | None = None,
    ) -> None:
        self.group: Final = group
        self.kind: Final = kind
        """What one of them is called, `kinds` several."""
        self.kinds: Final = kinds
        self.base: Final = base
        self.error: Final = error
        self.switches: Final = dict(switches or {})
        """Options, true or false, that all of them have, and the attribute that each sets, where the constructor does
        not know it."""

    def load(self, spec: str) -> T:
        """What was written, made with its options."""
        label, options = split(spec)
        return self.make(self.class_of(spec), label, self.pairs(label, options))

    def class_of(self, spec: str) -> type[T]:
        label, _ = split(spec)
        if not is_file(spec):
            return self._by_name(label)
        path, _, class_name = label.rpartition(":")
        return self._from_file(Path(path), class_name)

    def with_options(self, spec: str, options: dict[str, str]) -> str:
        """The same with these options beside those that were written, which stay."""
        head, given = split(spec)
        more = [f"{key}={value}" for key, value in options.items() if key not in self.pairs(head, given)]
        return f"{head}:{','.join([*filter(None, [given]), *more])}" if given or more else head

    def with_settings(self, spec: str) -> str:
        """The same with what is set for it, as options beside those that were written. A file has only these."""
        label, _ = split(spec)
        kind = None if is_file(spec) else self._settings_of(self.class_of(spec), label)
        if kind is None:
            return spec
        from wattloom.settings import load_settings

        found, usual = load_settings().of(label, kind), kind()
        values = {key: getattr(found, key) for key in kind.__struct_fields__}
        return self.with_options(
            spec,
            {key: self._written(f"{label}.{key}", each) for key, each in values.items() if each != getattr(usual, key)},
        )

    def _written(self, field: str, value: object) -> str:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if "," in text or text != text.strip():
            raise self.error(field, f"is set to {text!r}: a comma or a space at its end cannot stand in an option")
        return text

    def _settings_of(self, cls: type[T], label: str) -> type[msgspec.Struct] | None:
        try:
            kind = settings_type(cls)
        except PlugInProblem as problem:
            raise self.error(label, str(problem)) from problem
        secret = keys_with("credential", kind) if kind is not None else ()
        for key in secret:
            raise self.error(f"{label}.{key}", f"is a credential: a {self.kind} has none, since logs name its settings")
        return kind

    def available(self) -> dict[str, type[T]]:
        """Every installed one that can be loaded, by name."""
        return {name: found for name, found in self._found() if not isinstance(found, str)}

    def unavailable(self) -> dict[str, str]:
        """Installed ones that cannot be loaded, and what is wrong with each."""
        return {name: found for name, found in self._found() if isinstance(found, str)}

    def _found(self) -> list[tuple[str, type[T] | str]]:
        found: list[tuple[str, type[T] | str]] = []
        for name, entry in sorted(self._entries().items()):
            try:
                found.append((name, self._from_entry(entry)))
            except InputError as problem:
                found.append((name, problem.problem))
        return found

    # -- classes -------------------------------------------------------------------------------------------------------

    def _entries(self) -> dict[str, EntryPoint]:
        return {entry.name: entry for entry in entry_points(group=self.group)}

    def _by_name(self, name: str) -> type[T]:
        entries = self._entries()
        if name not in entries:
            known = _instead(name, entries, f"the {self.kinds} are")
            raise self.error(self.kind, f"{name!r} is not known{known}")
        return self._from_entry(entries[name])

    def _from_entry(self, entry: EntryPoint) -> type[T]:
        try:
            found = entry.load()
        except (Exception, SystemExit) as problem:  # a package that fails to import must not take others down with it
            raise self.error(entry.name, f"{entry.value} cannot be loaded: {_said(problem)}") from problem
        return self._checked(found, entry.name)

    def _from_file(self, path: Path, class_name: str) -> type[T]:
        if not path.is_file():
            raise self.error(self.kind, f"there is no file {path}")
        module = self._run(path)
        classes = [name for name, value in vars(module).items() if self._is_own(value, module)]
        if not class_name:
            raise self.error(self.kind, f"name the class too: {_listed(f'{path}:{name}' for name in classes)}")
        if class_name not in vars(module):
            known = _instead(class_name, classes, f"its {self.kinds} are")
            raise self.error(self.kind, f"{path} has no class {class_name!r}{known}")
        return self._checked(vars(module)[class_name], f"{path}:{class_name}")

    def _run(self, path: Path) -> ModuleType:
        """The file as a module of its own. It stays in sys.modules, where dataclasses and the like look for types."""
        name = f"wattloom_{self.kind}_{path.stem}_{blake2b(str(path.resolve()).encode(), digest_size=6).hexdigest()}"
        spec = spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise self.error(self.kind, f"{path} is not a Python file")
        module = module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as problem:
            del sys.modules[name]
            raise self.error(self.kind, f"{path} cannot be loaded: {_said(problem)}") from problem
        return module

    def _is_own(self, value: object, module: ModuleType) -> bool:
        return isclass(value) and issubclass(value, self.base) and value.__module__ == module.__name__

    def _checked(self, found: object, label: str) -> type[T]:
        if not (isclass(found) and issubclass(found, self.base)):
            base = f"{self.base.__module__}.{self.base.__qualname__}"
            raise self.error(label, f"is not a {self.kind}: it must be a subclass of {base}")
        return found

    # -- options -------------------------------------------------------------------------------------------------------

    def pairs(self, label: str, options: str) -> dict[str, str]:
        """Options as they were written, by key."""
        pairs: dict[str, str] = {}
        for item in options.split(",") if options else ():
            key, equals, value = (part.strip() for part in item.partition("="))
            if not (key and equals):
                raise self.error(label, f"{item!r} is not an option: write key=value, with commas in between")
            if key in pairs:
                raise self.error(f"{label}.{key}", "is given twice")
            pairs[key] = value
        return pairs

    def make(self, cls: type[T], label: str, pairs: dict[str, str]) -> T:
        """One of the class with options as they were written."""
        kind = self._settings_of(cls, label)
        types = dict.fromkeys(self.switches, bool) | _parameters(cls, kind) | _fields(kind)
        for key in pairs:
            if key not in types:
                known = _instead(key, types, "its options are") if types else "; it has none"
                raise self.error(f"{label}.{key}", f"is not an option of {label}{known}")
        try:
            told = _fields(kind)
            values = {
                key: _read(f"{label}.{key}", text, told[key])
                if key in told
                else _convert(f"{label}.{key}", text, types[key])
                for key, text in pairs.items()
            }
            made, switched = self._made(cls, kind, values)
        except _NotConverted as problem:
            raise self.error(problem.field, problem.problem) from None
        except InputError as problem:
            raise self.error(f"{label}.{problem.field}" if problem.field else label, problem.problem) from problem
        except (Exception, SystemExit) as problem:
            raise self.error(label, f"cannot be made: {_said(problem)}") from problem
        if not getattr(made, "name", ""):
            raise self.error(label, f"class {cls.__name__} has no name: give it a class attribute `name`")
        for attribute, value in switched.items():
            setattr(made, attribute, value)
        return made

    def _made(
        self, cls: type[T], kind: type[msgspec.Struct] | None, values: dict[str, Any]
    ) -> tuple[T, dict[str, Any]]:
        """One of the class, and the attributes that are to be set on it."""
        own, told = _parameters(cls, kind), _fields(kind)
        switched = {self.switches[key]: value for key, value in values.items() if key not in own and key not in told}
        given = {key: value for key, value in values.items() if key in own}
        if kind is not None:
            given["settings"] = kind(**{key: value for key, value in values.items() if key in told})
        return cls(**given), switched


class _NotConverted(InputError):
    """A text that is no value of an option."""


def _fields(kind: type[msgspec.Struct] | None) -> dict[str, object]:
    """Settings by name, and their types."""
    return {} if kind is None else {field.name: field.type for field in msgspec.structs.fields(kind)}


def _read(field: str, text: str, wanted: object) -> Any:
    """The text as a value of that setting, as from the environment."""
    from wattloom.settings import SettingsError, read_text

    try:
        return read_text(field, text, wanted)
    except SettingsError as problem:
        raise _NotConverted(field, problem.problem) from problem


def _parameters(cls: type[object], kind: type[msgspec.Struct] | None) -> dict[str, object]:
    """The constructor's parameters that can be given by name, and their types; without its settings."""
    by_name = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    names = [name for name, parameter in signature(cls).parameters.items() if parameter.kind in by_name]
    hints = get_type_hints(cls.__init__) if names else {}
    return {name: hints.get(name, str) for name in names if kind is None or name != "settings"}


def _convert(field: str, text: str, wanted: object) -> Any:
    """The text as a value of the wanted type."""
    if get_origin(wanted) in (Union, UnionType):
        return _convert_union(field, text, get_args(wanted))
    if get_origin(wanted) is Literal:
        choices = {str(choice): choice for choice in get_args(wanted)}
        if text not in choices:
            raise _NotConverted(field, f"must be {' or '.join(choices)}, not {text!r}")
        return choices[text]
    if wanted is bool:
        if text.lower() not in SWITCH:
            raise _NotConverted(field, f"must be true or false, not {text!r}")
        return SWITCH[text.lower()]
    if wanted is int or wanted is float:
        return _number(field, text, wanted)
    if wanted in (str, Any, object):
        return text
    raise _NotConverted(field, f"is of type {wanted}, which cannot be written as an option")


def _convert_union(field: str, text: str, choices: tuple[object, ...]) -> Any:
    if NoneType in choices and text.lower() == "none":
        return None
    kinds = [choice for choice in choices if choice is not NoneType]
    for kind in kinds[:-1]:
        try:
            return _convert(field, text, kind)
        except _NotConverted:
            continue
    return _convert(field, text, kinds[-1])


def _number(field: str, text: str, kind: type[int] | type[float]) -> int | float:
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise _NotConverted(field, f"must be {what}, not {text!r}") from None


# -- words -----------------------------------------------------------------------------------------------------------


def _instead(wrong: str, known: Iterable[str], these_are: str) -> str:
    names = sorted(known)
    close = get_close_matches(wrong, names, n=1)
    hint = f"; did you mean {close[0]}?" if close else ";"
    return f"{hint} {these_are} {_listed(names)}" if names else ""


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _said(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__
