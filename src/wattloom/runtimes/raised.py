"""Exceptions on their way from a worker: what was raised, and where.

Owns the traceback as the cause of an exception, and what is known of a failure in a runtime that raises no exceptions
of Python's. Knows no task and no journal.
"""

from typing import Any, Final

import msgspec


class RemoteTraceback(Exception):
    """Where the exception was raised, in the worker."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


RemoteTraceback.__module__ = "wattloom.local.errors"  # where it was found before; pickles may say so


def with_its_traceback(problem: BaseException, text: str) -> BaseException:
    """An exception from a worker, caused by where it was raised there. Raises TypeError: it is none, though it was one
    before it was pickled."""
    if not issubclass(type(problem), BaseException):
        raise TypeError(f"it was pickled as something else, {type(problem).__qualname__}: see its __reduce__")
    problem.__cause__ = RemoteTraceback(text)
    return problem


class Raised(msgspec.Struct, frozen=True, omit_defaults=True):
    """A failure in words, as it is sent in JSON."""

    type: str
    message: str
    traceback: str = ""
    runtime: str = "python"
    exit_code: int | None = None
    """Of a process that has ended instead of answering."""


class FunctionFailed(Exception):
    """Raised inside a worker by a runtime: the function has failed, and this is what is known of it."""

    def __init__(self, told: Raised) -> None:
        super().__init__(f"{told.type}: {told.message}")
        self.told: Final = told


def raised_from(found: Any) -> Raised:
    """As it was told by somebody else's runtime: whatever is missing is empty."""
    told = found if isinstance(found, dict) else {"message": str(found)}
    code = told.get("exit_code")
    return Raised(
        str(told.get("type") or "Error"),
        str(told.get("message") or ""),
        str(told.get("traceback") or ""),
        str(told.get("runtime") or "python"),
        code if isinstance(code, int) else None,
    )
