"""A journal that the old code left by kill -9 is recovered as the old code does: what is run again, what is concluded
as unknown, and which values are given."""

import pytest
from tests.golden import journals


@pytest.mark.parametrize("boot", journals.BOOTS)
def test_a_killed_programs_calls_come_to_the_same_end(boot: str) -> None:
    assert "\n".join(journals.different(boot)) == ""


def test_what_may_have_begun_depends_on_whether_the_machine_was_started_anew() -> None:
    ends = [journals.recorded()[boot]["recovered"] for boot in journals.BOOTS]
    assert {name for name in ends[0] if ends[0][name] != ends[1][name]} == {"1-37"}
