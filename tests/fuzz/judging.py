"""What is wrong with the outcome of a call: nothing, or a sentence.

Owns the rules: exit 0, or exit 2 with a sentence that names what is wrong; other codes only where the reference has
them; no traceback, no warning of Python's, no figure that is none.
"""

import json
import re
from pathlib import PurePath
from typing import Any, Final

from tests.fuzz.calling import Outcome
from tests.fuzz.cases import Case

PASSED_ON: Final = ("run", "measure")
"""Their exit code is the command's."""
MAY_FAIL: Final = (
    "run", "measure", "tasks prune", "demo", "meter read", "meter export", "validate attribution",
    "profile cpu", "profile gpu", "top", "exporter", "kubernetes profile", "kubernetes scheduler",
    "kubernetes extender", "why", "workload run",
)  # fmt: skip
"""Exit 1, with a sentence: a journal, a meter or a cluster that does not do what it should."""
TRACEBACK: Final = re.compile(r"^Traceback \(most recent call last\)|^\s+File \".*\", line \d+, in ", re.MULTILINE)
OURS: Final = re.compile(r"wattloom/(cli|journal|scheduling|simulation|disaggregation|attribution)/")
PYTHON_S: Final = re.compile(r"\.py:\d+: \w*Warning|Exception ignored|^Fatal Python error", re.MULTILINE)
NO_FIGURE: Final = re.compile(r"(?<![\w.'\"/=-])[-+]?(nan|inf|infinity)(?![\w'\"/=])", re.IGNORECASE)
SENTENCE: Final = re.compile(r"^(error|Error|Usage): .*\S|^\[wattloom\] ", re.MULTILINE)


def wrong(case: Case, outcome: Outcome) -> str:
    """In a few words that are the same for the same defect; empty: nothing."""
    if outcome.hung:
        return "does not end"
    found = TRACEBACK.search(outcome.err) or TRACEBACK.search(outcome.out)
    if found and not (case.command == "run" and not OURS.search(outcome.err)):
        return f"traceback: {_where(outcome.err)}"
    if PYTHON_S.search(outcome.err):
        return f"a warning of Python's: {PYTHON_S.findall(outcome.err)[0][-60:]}"
    return _wrong_code(case, outcome) or _wrong_words(case, outcome)


def _where(text: str) -> str:
    """The last of our lines, and the exception."""
    places = re.findall(r'File ".*?/(?:src/)?(wattloom/[^"]*)", line (\d+)', text)
    last = re.findall(r"^(\w[\w.]*(?:Error|Exception|Interrupt|Exit|Iteration|Broken|Refused)\b)", text, re.MULTILINE)
    return f"{':'.join(places[-1]) if places else '?'} {last[-1] if last else ''}"


def _wrong_code(case: Case, outcome: Outcome) -> str:
    allowed = {0, 2}
    allowed |= {1} if case.command in MAY_FAIL else set()
    allowed |= {130, 143, -2, -15} if outcome.interrupted else set()
    if case.command in PASSED_ON and outcome.code >= 0 and outcome.code != 70:
        return ""
    return "" if outcome.code in allowed else f"exit {outcome.code}"


def _wrong_words(case: Case, outcome: Outcome) -> str:
    if outcome.code in (1, 2) and not outcome.interrupted and case.command not in PASSED_ON:
        if not SENTENCE.search(outcome.err):
            return f"exit {outcome.code} without a sentence"
        return _unnamed(case, outcome)
    if outcome.code != 0:
        return ""
    if "--json" in case.words and case.command not in (*PASSED_ON, "top", "meter read", "exporter"):
        return _wrong_json(outcome.out)
    found = NO_FIGURE.search(outcome.out) or NO_FIGURE.search(outcome.err)
    named = " ".join([*case.words, *(value for _, value in case.environment)])
    return f"prints {found[0].strip()}" if found and found[0].strip("+- ") not in named else ""


def _unnamed(case: Case, outcome: Outcome) -> str:
    """A file that was made wrong is named in what is said of it. (Exit 1 is about something else.)"""
    if outcome.code == 1:
        return ""
    if case.file and PurePath(case.file).name not in outcome.err:
        return "does not name the file"
    if (
        case.odd
        and not case.environment
        and not any(_names(option, outcome.err) for option in (*case.odd, *case.words))
    ):
        return "does not name the option"
    return ""


def _names(option: str, said: str) -> bool:
    """By its name, or by the value it was given."""
    name, _, value = option.partition("=")
    bare = name.strip("-").replace("-", "_")
    shown = value[:20].encode("utf-8", "backslashreplace").decode()
    bare = bare[:200].encode("utf-8", "backslashreplace").decode()
    return bare in said.replace("-", "_") or bool(value and shown in said)


def _wrong_json(text: str) -> str:
    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError as problem:
        return f"no JSON: {str(problem)[:40]}"
    return ""
