"""One raw counter that wraps: the only place where a wrap is undone.

Owns the last raw value. Knows neither files nor units.
"""


class Counter:
    """Follows a counter that starts again at 0 after `most`. None: it is not known to wrap."""

    __slots__ = ("_last", "_most")

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._last: int | None = None

    @property
    def last(self) -> int | None:
        """What it showed when it was last taken."""
        return self._last

    def problem(self, value: int, most_rise: float) -> str:
        """What is wrong with the new value, if it cannot have risen by more than `most_rise`. Empty: nothing."""
        if value < 0 or (self._most is not None and value > self._most):
            return f"the counter shows {value}, beyond its range"
        if self._last is None:
            return ""
        if self._most is not None and most_rise > self._most:
            return "the counter was not read for so long that it may have wrapped more than once"
        if value < self._last and self._most is None:
            return f"the counter went backwards, from {self._last} to {value}"
        rise = self._rise(value)
        if rise > most_rise:
            return f"the counter rose by {rise} where at most {most_rise:.0f} is possible, from {self._last} to {value}"
        return ""

    def take(self, value: int, sound: bool) -> int:
        """How much it rose, and go on from here. Unsound: only go on from here."""
        rise = self._rise(value) if sound else 0
        self._last = value
        return rise

    def _rise(self, value: int) -> int:
        if self._last is None:
            return 0
        if value >= self._last or self._most is None:
            return value - self._last
        return self._most - self._last + value
