"""What the reference lists by hand is complete: reasons, records of the log, functions."""

import inspect
import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

import wattloom
from wattloom.cluster.reasons import Reason
from wattloom.history.log import VERSION, Header
from wattloom.policies.listing import policies
from wattloom.scheduling.events import AnyEvent
from wattloom.scheduling.instructions import AnyInstruction

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
FIRST_CELL = re.compile(r"^\| `([^`]+)` \|", re.MULTILINE)
FUNCTIONS = (
    *("machine_curve", "machine_match"),
    "attribute",
    "profile_cpu",
    "profile_functions",
    "validate_attribution",
    "experiment",
    *("run_workload", "workloads"),
    *("simulate", "compare", "replay", "why", "policies", "scenarios", "machines"),
    *("run", "tasks", "functions", "logs", "prune", "meters", "measure", "measure_command"),
)


def page(name: str) -> str:
    return (REFERENCE / name).read_text()


def test_every_reason_has_one_row_and_every_row_is_a_reason() -> None:
    assert sorted(FIRST_CELL.findall(page("reasons.md"))) == sorted(reason.value for reason in Reason)


def kinds() -> list[str]:
    """Names of all events and instructions in the log."""
    return [str(kind.__struct_config__.tag) for kind in (*get_args(AnyEvent), *get_args(AnyInstruction))]


def examples() -> list[str]:
    return [
        line for block in re.findall(r"```json\n(.*?)```", page("log.md"), re.DOTALL) for line in block.splitlines()
    ]


def test_every_record_of_the_log_has_one_row() -> None:
    assert sorted(FIRST_CELL.findall(page("log.md"))) == sorted(kinds())


def test_every_record_of_the_log_has_an_example() -> None:
    shown = re.findall(r'^\{"(?:event|instruction)":"([\w-]+)"', "\n".join(examples()), re.MULTILINE)
    assert sorted(shown) == sorted(kinds())


@pytest.mark.parametrize("line", examples(), ids=lambda line: line[:40])
def test_examples_of_the_log_can_be_read_and_are_written_so(line: str) -> None:
    if line.startswith('{"wattloom_log"'):
        header = msgspec.json.decode(line, type=Header)
        assert header.wattloom_log == VERSION
        assert msgspec.json.encode(header).decode() == line
        return
    record: object = (
        msgspec.json.decode(line, type=AnyEvent)
        if line.startswith('{"event"')
        else msgspec.json.decode(line, type=AnyInstruction)
    )
    assert msgspec.json.decode(msgspec.json.encode(record)) == msgspec.json.decode(line)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_written_with_their_signatures(name: str) -> None:
    function = policies if name == "policies" else getattr(wattloom, name)
    signature = inspect.signature(function)
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    written = str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty)).replace("'", '"')
    assert f"\n{name}{written} -> " in page("python-api.md")


def test_every_public_name_is_on_the_page() -> None:
    words = set(re.findall(r"\w+", page("python-api.md")))
    assert set(wattloom.__all__) - {"__version__"} <= words
