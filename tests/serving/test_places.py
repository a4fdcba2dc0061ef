"""Who has to leave when there is no place left."""

import asyncio

import pytest

from wattloom.serving.places import Limits, Places


class Heard:
    """A connection that notes when it is thrown out."""

    def __init__(self, number: int, gone: list[int]) -> None:
        self._number, self._gone = number, gone

    def close(self) -> None:
        self._gone.append(self._number)

    abort = close

    def is_closing(self) -> bool:
        return self._number in self._gone


def test_of_those_who_came_in_one_moment_the_first_leaves_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event loop's clock stands still while it lets many in: uvloop's for a whole turn."""

    async def come() -> list[int]:
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: 5.0)
        gone: list[int] = []
        places = Places(Limits(callers=2))
        callers = [places.take(Heard(number, gone)) for number in range(40)]
        thrown_out = list(gone)
        for caller in callers:
            caller.gone()
        return thrown_out

    assert asyncio.run(come()) == list(range(38))
