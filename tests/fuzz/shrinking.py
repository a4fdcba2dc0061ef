"""A case that goes wrong, made as small as it can be and still go wrong in the same way.

Owns the search: fewer steps, fewer words, a shorter file. It ends after a number of tries.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from tests.fuzz.cases import Case

MOST_TRIES: Final = 150

Same = Callable[[Case], bool]


def smallest(case: Case, same: Same, seed: bytes) -> Case:
    """`same`: whether a case goes wrong as the first one did."""
    tries = 0
    while True:
        for smaller in _smaller(case, seed):
            tries += 1
            if tries > MOST_TRIES:
                return case
            if same(smaller):
                case = smaller
                break
        else:
            return case


def _smaller(case: Case, seed: bytes) -> Iterator[Case]:
    if case.columns or case.encoding != "utf-8":
        yield replace(case, columns="", encoding="utf-8")
    if len(case.steps) > 1:
        for at in range(len(case.steps)):
            yield replace(case, steps=case.steps[:at] + case.steps[at + 1 :])
    for at in range(1 + case.command.count(" "), len(case.words)):
        if case.words[at].startswith("-") and case.words[at] != "--":
            yield replace(case, words=case.words[:at] + case.words[at + 1 :])
            yield replace(case, words=case.words[:at] + case.words[at + 2 :])
    if case.environment:
        yield replace(case, environment=())
    if case.file and not case.file.endswith("journal"):
        yield from (replace(case, data=data, steps=()) for data in _shorter(case.content(seed)))


def _shorter(data: bytes) -> Iterator[bytes]:
    """Without a stretch of lines: half of them, a quarter, down to one."""
    lines = data.splitlines(keepends=True)
    length = len(lines) // 2
    while length:
        for at in range(0, len(lines), length):
            yield b"".join(lines[:at] + lines[at + length :])
        length //= 2
