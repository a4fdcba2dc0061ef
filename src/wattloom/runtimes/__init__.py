"""Runtimes: how a call is run, in Python and in other languages.

Owns the protocol, what a call and its end are made of, and one file for each runtime. Functions of other languages come
as files. Knows no socket, no journal and no engine: the worker (`local.worker`) has those.
"""

from pathlib import Path


def include() -> str:
    """The folder of `wattloom.h`, for C and C++ programs that stay warm between calls."""
    return str(Path(__file__).parent)
