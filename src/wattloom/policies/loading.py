"""From what a user writes to a policy: `name`, `name:key=value,...`, `file.py:Class` or `file.py:Class:key=value,...`.

Owns the way in: entry points of the group `wattloom.policies`, and single files (`plug_ins` says how). Every mistake is
a PolicyError.
"""

from typing import Final

from wattloom.errors import PolicyError
from wattloom.plug_ins import PlugIns, is_file, split
from wattloom.policies.protocol import Policy

__all__ = [
    "as_recorded",
    "available",
    "both_ways",
    "given_options",
    "is_file",
    "load_policy",
    "load_recorded",
    "unavailable",
    "with_options",
    "with_sleep",
]

GROUP: Final = "wattloom.policies"
POLICIES: Final = PlugIns(
    GROUP,
    "policy",
    "policies",
    Policy,  # type: ignore[type-abstract]
    PolicyError,
    switches={"sleep": "sleeps"},
)


def as_recorded(spec: str) -> str:
    """The same as a log names it: options that name what may change name it by a digest. Raises PolicyError."""
    label, options = split(spec)
    pairs = POLICIES.pairs(label, options)
    if not pairs:
        return spec
    found = POLICIES.class_of(spec).recorded(pairs)
    return spec if found == pairs else f"{label}:{','.join(f'{key}={value}' for key, value in found.items())}"


def load_policy(spec: str) -> Policy:
    """The policy that was written, made with its options. Raises PolicyError."""
    return POLICIES.load(spec)


def with_options(spec: str, options: dict[str, str]) -> str:
    """The same policy with these options beside those that were written, which stay."""
    return POLICIES.with_options(spec, options)


def given_options(spec: str) -> dict[str, str]:
    """Options as they were written."""
    return POLICIES.pairs(*split(spec))


def with_sleep(spec: str, sleep: bool | None) -> str:
    """The same policy with idle nodes that sleep, or without; None: as it is. What was written stays."""
    return spec if sleep is None else with_options(spec, {"sleep": str(sleep).lower()})


def both_ways(specs: list[str]) -> list[str]:
    """Each policy as it is, and with sleep if it does without, or without if it lets idle nodes sleep."""
    found: list[str] = []
    for spec in specs:
        found += [spec, with_sleep(spec, not load_policy(spec).sleeps)]
    return found


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
    return POLICIES.available()


def unavailable() -> dict[str, str]:
    """Installed policies that cannot be loaded, and what is wrong with each."""
    return POLICIES.unavailable()
