"""From what a user writes to a policy: `name`, `name:key=value,...`, `file.py:Class` or `file.py:Class:key=value,...`.

Owns the way in, which is one for built-in policies, installed packages (entry points of the group `wattloom.policies`)
and single files. Every mistake is a PolicyError that says what is wrong and what would be right.
"""

import sys
from collections.abc import Iterable
from difflib import get_close_matches
from hashlib import blake2b
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from inspect import Parameter, isclass, signature
from pathlib import Path
from types import ModuleType, NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from wattloom.errors import PolicyError
from wattloom.policies.protocol import Policy

GROUP: Final = "wattloom.policies"
SWITCH: Final = {"true": True, "false": False}


def load_policy(spec: str) -> Policy:
    """The policy that was written, made with its options. Raises PolicyError."""
    label, options = _split(spec)
    if is_file(spec):
        path, _, class_name = label.rpartition(":")
        cls = _from_file(Path(path), class_name)
    else:
        cls = _by_name(label)
    return _make(cls, label, _pairs(label, options))


def _split(spec: str) -> tuple[str, str]:
    """Who is meant, and the options."""
    if not is_file(spec):
        head, _, options = spec.partition(":")
        return head, options
    path, _, rest = spec.partition(".py:")
    path = path if path.endswith(".py") else f"{path}.py"
    class_name, _, options = rest.partition(":")
    return f"{path}:{class_name}", options


def with_options(spec: str, options: dict[str, str]) -> str:
    """The same policy with these options beside those that were written, which stay."""
    head, given = _split(spec)
    more = [f"{key}={value}" for key, value in options.items() if key not in _pairs(head, given)]
    return f"{head}:{','.join([*filter(None, [given]), *more])}" if given or more else head


def is_file(spec: str) -> bool:
    """Whether it names a file of Python, which is run to have the policy."""
    return spec.endswith(".py") or ".py:" in spec


def load_recorded(spec: str, source: str, *, trusted: bool) -> Policy:
    """The policy that `source`, a log, says it was decided by. A log is data that people hand on: unless it is trusted,
    no file that it names is run. Raises PolicyError."""
    if is_file(spec) and not trusted:
        raise PolicyError(
            "policy",
            f"{source} was decided by {spec}, a file of Python here, and reading a log runs no code by itself: look at "
            "the file, then say --trust-policy",
        )
    return load_policy(spec)


def available() -> dict[str, type[Policy]]:
    """Every installed policy that can be loaded, by name."""
    found: dict[str, type[Policy]] = {}
    for name, entry in sorted(_entries().items()):
        try:
            found[name] = _from_entry(entry)
        except PolicyError:
            continue
    return found


def unavailable() -> dict[str, str]:
    """Installed policies that cannot be loaded, and what is wrong with each."""
    wrong: dict[str, str] = {}
    for name, entry in sorted(_entries().items()):
        try:
            _from_entry(entry)
        except PolicyError as problem:
            wrong[name] = problem.problem
    return wrong


# -- classes ---------------------------------------------------------------------------------------------------------


def _entries() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _by_name(name: str) -> type[Policy]:
    entries = _entries()
    if name not in entries:
        raise PolicyError("policy", f"{name!r} is not known{_instead(name, entries, 'the policies are')}")
    return _from_entry(entries[name])


def _from_entry(entry: EntryPoint) -> type[Policy]:
    try:
        found = entry.load()
    except (Exception, SystemExit) as problem:  # a package that fails to import must not take the others down with it
        raise PolicyError(entry.name, f"{entry.value} cannot be loaded: {_said(problem)}") from problem
    return _policy_class(found, entry.name)


def _from_file(path: Path, class_name: str) -> type[Policy]:
    if not path.is_file():
        raise PolicyError("policy", f"there is no file {path}")
    module = _run(path)
    classes = [name for name, value in vars(module).items() if _is_own_policy(value, module)]
    if not class_name:
        raise PolicyError("policy", f"name the class too: {_listed(f'{path}:{name}' for name in classes)}")
    if class_name not in vars(module):
        known = _instead(class_name, classes, "its policies are")
        raise PolicyError("policy", f"{path} has no class {class_name!r}{known}")
    return _policy_class(vars(module)[class_name], f"{path}:{class_name}")


def _run(path: Path) -> ModuleType:
    """The file as a module of its own. It stays in sys.modules, where dataclasses and the like look for their types."""
    name = f"wattloom_policy_{path.stem}_{blake2b(str(path.resolve()).encode(), digest_size=6).hexdigest()}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PolicyError("policy", f"{path} is not a Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as problem:
        del sys.modules[name]
        raise PolicyError("policy", f"{path} cannot be loaded: {_said(problem)}") from problem
    return module


def _is_own_policy(value: object, module: ModuleType) -> bool:
    return isclass(value) and issubclass(value, Policy) and value.__module__ == module.__name__


def _policy_class(found: object, label: str) -> type[Policy]:
    if not (isclass(found) and issubclass(found, Policy)):
        raise PolicyError(label, "is not a policy: it must be a subclass of wattloom.policies.protocol.Policy")
    return found


# -- options ---------------------------------------------------------------------------------------------------------


def _pairs(label: str, options: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for item in options.split(",") if options else ():
        key, equals, value = (part.strip() for part in item.partition("="))
        if not (key and equals):
            raise PolicyError(label, f"{item!r} is not an option: write key=value, with commas in between")
        if key in pairs:
            raise PolicyError(f"{label}.{key}", "is given twice")
        pairs[key] = value
    return pairs


def _make(cls: type[Policy], label: str, pairs: dict[str, str]) -> Policy:
    types = _parameters(cls)
    for key in pairs:
        if key not in types:
            known = _instead(key, types, "its options are") if types else "; it has none"
            raise PolicyError(f"{label}.{key}", f"is not an option of {label}{known}")
    values = {key: _convert(f"{label}.{key}", text, types[key]) for key, text in pairs.items()}
    try:
        policy = cls(**values)
    except PolicyError as problem:
        raise PolicyError(f"{label}.{problem.field}" if problem.field else label, problem.problem) from problem
    except (Exception, SystemExit) as problem:
        raise PolicyError(label, f"cannot be made: {_said(problem)}") from problem
    if not getattr(policy, "name", ""):
        raise PolicyError(label, f"class {cls.__name__} has no name: give it a class attribute `name`")
    return policy


def _parameters(cls: type[Policy]) -> dict[str, object]:
    """The constructor's parameters that can be given by name, and their types."""
    by_name = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    names = [name for name, parameter in signature(cls).parameters.items() if parameter.kind in by_name]
    hints = get_type_hints(cls.__init__) if names else {}
    return {name: hints.get(name, str) for name in names}


def _convert(field: str, text: str, wanted: object) -> Any:
    """The text as a value of the wanted type."""
    if get_origin(wanted) in (Union, UnionType):
        return _convert_union(field, text, get_args(wanted))
    if get_origin(wanted) is Literal:
        choices = {str(choice): choice for choice in get_args(wanted)}
        if text not in choices:
            raise PolicyError(field, f"must be {' or '.join(choices)}, not {text!r}")
        return choices[text]
    if wanted is bool:
        if text.lower() not in SWITCH:
            raise PolicyError(field, f"must be true or false, not {text!r}")
        return SWITCH[text.lower()]
    if wanted is int or wanted is float:
        return _number(field, text, wanted)
    if wanted in (str, Any, object):
        return text
    raise PolicyError(field, f"is of type {wanted}, which cannot be written as an option")


def _convert_union(field: str, text: str, choices: tuple[object, ...]) -> Any:
    if NoneType in choices and text.lower() == "none":
        return None
    kinds = [choice for choice in choices if choice is not NoneType]
    for kind in kinds[:-1]:
        try:
            return _convert(field, text, kind)
        except PolicyError:
            continue
    return _convert(field, text, kinds[-1])


def _number(field: str, text: str, kind: type[int] | type[float]) -> int | float:
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise PolicyError(field, f"must be {what}, not {text!r}") from None


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
