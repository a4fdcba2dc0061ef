"""What tests of the suite share: functions that can run here, the others skipped by name."""

import pytest

from wattloom import suite


def work_of(name: str) -> suite.Work:
    """The function, or a skip that says what is missing."""
    lacks = suite.missing(name)
    if lacks:
        pytest.skip(f"{name} CANNOT RUN HERE: it needs {', '.join(map(str, lacks))}")
    return suite.function(name)
