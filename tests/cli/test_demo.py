"""The demo: real calls with their joules first, the comparison of policies after."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from wattloom.cli.demo import MEANING, demo
from wattloom.cli.demo_functions import functions
from wattloom.cli.demo_run import run_here
from wattloom.report.here import Here


@pytest.fixture(scope="module")
def here() -> Here:
    return run_here(calls=6)


def test_every_function_has_seconds_and_joules(here: Here) -> None:
    assert [each.name for each in here.functions] == [function.__name__ for function in functions()]
    for each in here.functions:
        assert each.calls == 6
        assert each.seconds > 0.0
        assert each.joules > 0.0 < each.spread_j


def test_a_call_that_waits_costs_far_less_than_one_that_works(here: Here) -> None:
    watts = {each.name: each.joules / each.seconds for each in here.functions}
    assert watts["wait_a_moment"] < 0.2 * watts["count_primes"]


def test_readings_follow_each_other_from_the_first_call_on(here: Here) -> None:
    assert here.readings[0].begin_s == 0.0
    for one, other in zip(here.readings, here.readings[1:], strict=False):
        assert one.begin_s < one.end_s <= other.begin_s + 1e-6
    assert max(end for _, _, end in here.phases) <= here.readings[-1].end_s + 0.5


def test_phases_are_in_the_order_of_the_functions(here: Here) -> None:
    begins = [begin for _, begin, _ in here.phases]
    assert begins == sorted(begins)
    assert begins[0] == 0.0


def test_the_command_says_what_a_call_costs_and_writes_both_parts_on_one_page(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    arguments = ["--calls", "3", "--scenario", "hsc-cpu", "--policies", "spread,least-joules"]
    done = CliRunner().invoke(
        demo, [*arguments, "--report", str(tmp_path)], env={"COLUMNS": "80"}, catch_exceptions=False
    )
    assert done.exit_code == 0
    said = " ".join(done.output.split())
    assert "count_primes" in said
    assert "mJ per call" in said
    assert MEANING in said
    assert "least-joules saves" in said
    page = (tmp_path / "index.html").read_text()
    assert page.index("On this machine") < page.index("comparison of policies")
    assert "Every figure of the comparison is modelled" in page
    assert (tmp_path / "this-machine.png").read_bytes().startswith(b"\x89PNG")
