"""What a pod's owner wants of us: annotations under `wattloom.dev/`.

Owns their names and values. A value that cannot be read makes the pod wait with a word about it: guessing would be
worse, because nobody would notice.
"""

from math import nan
from typing import Final

import msgspec

from wattloom.bounds import LONGEST_S
from wattloom.kubernetes.model.objects import Pod
from wattloom.kubernetes.model.unsupported import Unsupported

PREFIX: Final = "wattloom.dev/"
ENERGY_WEIGHT: Final = f"{PREFIX}energy-weight"
DEADLINE: Final = f"{PREFIX}deadline-seconds"
DEFER: Final = f"{PREFIX}defer-seconds"
RUNTIME: Final = f"{PREFIX}runtime-seconds"
FUNCTION: Final = f"{PREFIX}function"
LONGEST_FUNCTION: Final = 256
_BOUNDS: Final = {
    ENERGY_WEIGHT: (0.0, 1.0, "a number from 0 to 1"),
    DEADLINE: (1e-3, LONGEST_S, f"a number of seconds above 0, at most {LONGEST_S:.0f}"),
    DEFER: (0.0, LONGEST_S, f"a number of seconds, not negative, at most {LONGEST_S:.0f}"),
    RUNTIME: (1e-3, LONGEST_S, f"a number of seconds above 0, at most {LONGEST_S:.0f}"),
}


class PodAnnotations(msgspec.Struct, frozen=True, gc=False):
    """As a task has them."""

    energy_weight: float = 0.5
    deadline_s: float | None = None
    defer_s: float = 0.0
    runtime_s: float | None = None
    """How long it runs, where its owner knows."""


NONE: Final = PodAnnotations()


def annotations_of(pod: Pod) -> PodAnnotations | Unsupported:
    """What the annotations say."""
    annotations = pod.metadata.annotations
    function = annotated_function(pod)
    if isinstance(function, Unsupported):
        return function
    found: dict[str, float] = {}
    for name in _BOUNDS.keys() & annotations.keys():
        number = _number(name, annotations[name])
        if isinstance(number, Unsupported):
            return number
        found[name] = number
    if not found:
        return NONE
    return PodAnnotations(found.get(ENERGY_WEIGHT, 0.5), found.get(DEADLINE), found.get(DEFER, 0.0), found.get(RUNTIME))


def annotated_function(pod: Pod) -> str | Unsupported | None:
    """The function that the pod is a call of, as a plan or a profile has it. None: nobody says."""
    text = pod.metadata.annotations.get(FUNCTION)
    if text is None or is_function_name(text):
        return text
    wanted = f"a name of 1 to {LONGEST_FUNCTION} characters that can be printed"
    return Unsupported(f"metadata.annotations[{FUNCTION}]", f"must be {wanted}, not {text[:40]!r}", mistake=True)


def is_function_name(text: str) -> bool:
    """Whether it can stand in the annotation."""
    return 0 < len(text) <= LONGEST_FUNCTION and text.isprintable()


def _number(name: str, text: str) -> float | Unsupported:
    least, most, wanted = _BOUNDS[name]
    try:
        number = float(text)
    except ValueError:
        number = nan
    if not least <= number <= most:
        return Unsupported(f"metadata.annotations[{name}]", f"must be {wanted}, not {text!r}", mistake=True)
    return number
