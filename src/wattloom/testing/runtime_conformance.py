"""What every runtime must do, ours and anybody else's: `check_runtime(samples)` in a test is enough.

Owns the checks, and says which sample functions they call; whoever brings a runtime writes these in its language. The
checks raise AssertionError when it does not do what a worker counts on. To see each rule as a test of its own:

    @pytest.mark.parametrize("check", CHECKS, ids=check_name)
    def test_my_runtime(check: Check) -> None:
        check(my_samples)
"""

import io
import os
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from typing import Any, Final

import msgspec

from wattloom.metering.proc import family_seconds
from wattloom.runtimes import plain
from wattloom.runtimes.protocol import BYTES, JSON, LOST, RAISED, UNSENDABLE, VALUE, Outcome, Runtime
from wattloom.runtimes.python import decoded_value

SAMPLES: Final = {
    "echo": "returns its only argument: JSON, or bytes",
    "add": "returns the sum of two numbers",
    "fail": "fails, with its argument as the message",
    "say": "prints its first argument, a text, so many times as the second says; returns nothing",
    "grow": "returns a text of so many letters x",
    "spin": "uses the processor for so many seconds; returns anything",
    "nan": "returns not-a-number, alone or inside something; or fails to",
    "count": "returns how often it was called before in this process: 0, 1, ...",
    "end": "ends its process with this exit code",
    "die": "kills its process by SIGKILL",
}
"""What each function of a runtime's samples does. The last three only where functions have processes that are kept."""
OPTIONAL: Final = frozenset({"nan", "count", "end", "die"})
VALUES: Final[tuple[Any, ...]] = (
    None,
    True,
    0,
    -7,
    2**53 - 1,
    1.5,
    "",
    "plain",
    'ü € 😀 \n " \\ \x00',
    [],
    [1, [2, {"a": None}]],
    {"a": {"b": []}},
)


class Samples(msgspec.Struct, frozen=True):
    """A runtime to check."""

    make: Callable[[], Runtime]
    blob: Callable[[str], bytes]
    """The function of this name (`SAMPLES`), as it is sent; of `nowhere`: one that is not there."""
    without: frozenset[str] = frozenset()
    """Of `OPTIONAL`: those that it cannot have."""


Check = Callable[[Samples], None]


def check_runtime(samples: Samples) -> None:
    """Every rule, one after the other, each with a runtime of its own."""
    for check in CHECKS:
        check(samples)


def check_name(check: Check) -> str:
    return check.__name__


@contextmanager
def bench_of(samples: Samples) -> "Iterator[Bench]":
    bench = Bench(samples)
    try:
        yield bench
    finally:
        bench.runtime.close()


class Bench:
    """One runtime, and its functions."""

    def __init__(self, samples: Samples) -> None:
        self.runtime: Final = samples.make()
        self._samples: Final = samples
        self._loaded: Final[dict[str, Any]] = {}

    def call(self, name: str, *args: Any) -> Outcome:
        if name not in self._loaded:
            self._loaded[name] = self.runtime.load(self._samples.blob(name))
        packed, content = plain.pack_plain(args, {})
        return self.runtime.call(self._loaded[name], packed.body, packed.raw, content)

    def value(self, name: str, *args: Any) -> Any:
        outcome = self.call(name, *args)
        assert outcome.status == VALUE, f"{name} gave no value: {said(outcome)}"
        assert outcome.content in (JSON, BYTES), f"{name} gave a value of the content type {outcome.content!r}"
        return decoded_value(outcome.packed.body, outcome.packed.raw, outcome.content)

    def used_s(self) -> float:
        """CPU seconds of this process, of those it has waited for, and of those that the runtime keeps."""
        waited = resource.getrusage(resource.RUSAGE_CHILDREN)
        kept = sum(family_seconds(Path("/proc", str(pid))) or 0.0 for pid in self.runtime.processes())
        return process_time() + waited.ru_utime + waited.ru_stime + kept


def said(outcome: Outcome) -> str:
    return (outcome.packed.body or b"".join(map(bytes, outcome.packed.raw))).decode(errors="replace")


@contextmanager
def printed() -> Iterator[list[io.StringIO]]:
    """What goes to this process's standard output and error meanwhile."""
    before, found = (sys.stdout, sys.stderr), [io.StringIO(), io.StringIO()]
    sys.stdout, sys.stderr = found
    try:
        yield found
    finally:
        sys.stdout, sys.stderr = before


# -- arguments and results ---------------------------------------------------------------------------------------------


def json_comes_back_as_it_went(samples: Samples) -> None:
    with bench_of(samples) as bench:
        for value in VALUES:
            assert bench.value("echo", value) == value, f"{value!r} did not come back"
        assert bench.value("add", 2, 3) == 5


def bytes_come_back_as_they_went(samples: Samples) -> None:
    with bench_of(samples) as bench:
        for value in (b"", b"plain", bytes(range(256))):
            assert bench.value("echo", value) == value, f"{value!r} did not come back"


def large_arguments_and_results_pass(samples: Samples) -> None:
    with bench_of(samples) as bench:
        text = "large " * 500_000
        assert bench.value("echo", text) == text
        data = os.urandom(1 << 22)
        assert bench.value("echo", data) == data
        assert len(bench.value("grow", 3_000_000)) == 3_000_000


def what_json_has_no_word_for_is_refused(samples: Samples) -> None:
    if "nan" not in samples.without:
        with bench_of(samples) as bench:
            outcome = bench.call("nan")
        assert outcome.status in (UNSENDABLE, RAISED), f"not-a-number became {said(outcome)}"


# -- failures ----------------------------------------------------------------------------------------------------------


def a_failure_is_told_and_the_next_call_is_made(samples: Samples) -> None:
    with bench_of(samples) as bench:
        outcome = bench.call("fail", "no such luck")
        assert (outcome.status, outcome.content) == (RAISED, JSON), said(outcome)
        told = msgspec.json.decode(said(outcome).encode())
        assert "no such luck" in told["message"], told
        assert isinstance(told["type"], str), told
        assert told["type"], told
        assert bench.value("add", 1, 1) == 2


def a_function_that_is_not_there_is_named(samples: Samples) -> None:
    runtime = samples.make()
    try:
        loaded = runtime.load(samples.blob("nowhere"))
        outcome = runtime.call(loaded, b"[]", [], JSON)
    except Exception as problem:
        outcome = runtime.failed(problem, JSON)
    finally:
        runtime.close()
    assert (outcome.status, outcome.content) == (RAISED, JSON), said(outcome)
    assert "nowhere" in said(outcome), said(outcome)


def a_process_that_ends_itself_has_failed(samples: Samples) -> None:
    if "end" in samples.without:
        return
    with bench_of(samples) as bench:
        outcome = bench.call("end", 3)
        assert (outcome.status, outcome.content) == (RAISED, JSON), said(outcome)
        assert msgspec.json.decode(said(outcome).encode())["exit_code"] == 3
        assert bench.value("add", 1, 1) == 2, "nobody started another process"


def a_process_that_was_killed_is_lost(samples: Samples) -> None:
    """It may have done its work: whoever may run it twice does so."""
    if "die" in samples.without:
        return
    with bench_of(samples) as bench:
        outcome = bench.call("die")
        assert outcome.status == LOST, said(outcome)
        assert "SIGKILL" in said(outcome), said(outcome)
        assert bench.value("add", 1, 1) == 2, "nobody started another process"


# -- what it prints, what it keeps, what it uses -----------------------------------------------------------------------


def what_it_prints_is_passed_on(samples: Samples) -> None:
    with bench_of(samples) as bench:
        with printed() as found:
            bench.value("say", "hello", 1)
        assert "hello" in "".join(each.getvalue() for each in found)
        with printed() as found:
            bench.value("say", "y" * 99, 20_000)
        assert sum(each.getvalue().count("y") for each in found) == 99 * 20_000


def it_stays_warm_between_calls(samples: Samples) -> None:
    if "count" in samples.without:
        return
    with bench_of(samples) as bench:
        assert [bench.value("count") for _ in range(3)] == [0, 1, 2]


def its_processor_time_can_be_counted(samples: Samples) -> None:
    with bench_of(samples) as bench:
        bench.value("add", 1, 1)
        before = bench.used_s()
        bench.value("spin", 0.3)
        used = bench.used_s() - before
        assert 0.25 <= used < 3.0, f"a call that used the processor for 0.3 s was seen to use {used:.3f} s"


CHECKS: Final[tuple[Check, ...]] = (
    json_comes_back_as_it_went,
    bytes_come_back_as_they_went,
    large_arguments_and_results_pass,
    what_json_has_no_word_for_is_refused,
    a_failure_is_told_and_the_next_call_is_made,
    a_function_that_is_not_there_is_named,
    a_process_that_ends_itself_has_failed,
    a_process_that_was_killed_is_lost,
    what_it_prints_is_passed_on,
    it_stays_warm_between_calls,
    its_processor_time_can_be_counted,
)
