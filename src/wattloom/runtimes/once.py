"""One process for one call: arguments by standard input, the result by standard output, the rest is log.

Owns the process while it runs, and what its result is taken for. Native programs and WASI commands have this in common.
"""

import os
import select
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Literal

import msgspec

from wattloom.runtimes import plain
from wattloom.runtimes.child import Ended
from wattloom.runtimes.packing import Packed
from wattloom.runtimes.protocol import BYTES, JSON, LOST, Outcome
from wattloom.runtimes.raised import Raised, raised_from

READ_AT_ONCE: Final = 1 << 18
MOST_SAID: Final = 2000
"""Letters of what a program said last, if it has failed."""
Kind = Literal["", "json", "bytes", "text"]
"""What a result is taken for; empty: what the arguments were."""


def run_once(command: Sequence[str], body: bytes | memoryview) -> tuple[int, bytes, str]:
    """Exit code as of `subprocess`, standard output, and the end of what was said on standard error, which is passed
    on. Raises OSError."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    with process:
        out, said = _exchange(process.stdin.fileno(), process.stdout.fileno(), process.stderr.fileno(), body, process)
    return process.returncode, out, said


def _exchange(
    to: int, out: int, err: int, body: bytes | memoryview, process: "subprocess.Popen[bytes]"
) -> tuple[bytes, str]:
    found, said, left = bytearray(), bytearray(), memoryview(body)
    os.set_blocking(to, False)
    ends = select.poll()
    ends.register(out, select.POLLIN)
    ends.register(err, select.POLLIN)
    ends.register(to, select.POLLOUT)
    open_ends = {out, err}
    while open_ends:
        for end, _ in ends.poll():
            if end == to:
                left = _written(to, left)
                if not left:
                    ends.unregister(to)
                    assert process.stdin is not None
                    with suppress(OSError):
                        process.stdin.close()
                continue
            data = os.read(end, READ_AT_ONCE)
            if not data:
                ends.unregister(end)
                open_ends.remove(end)
            elif end == out:
                found += data
            else:
                said += data
                del said[:-MOST_SAID]
                pass_on(data)
    return bytes(found), said.decode(errors="replace")


def _written(to: int, left: memoryview) -> memoryview:
    try:
        return left[os.write(to, left) :]
    except BlockingIOError:
        return left
    except OSError:  # it does not want all of it
        return left[:0]


def pass_on(data: bytes) -> None:
    """To the call's log."""
    with suppress(Exception):
        sys.stderr.write(data.decode(errors="replace"))


# -- what came of it ---------------------------------------------------------------------------------------------------


def outcome(runtime: str, code: int, out: bytes, said: str, wanted: Kind, content: str) -> Outcome:
    ended = Ended(code)
    if code < 0 and not ended.by_its_own_fault:
        return Outcome(LOST, Packed(f"its program {ended}".encode(), []), JSON)
    if code:
        return plain.failed(_failure(runtime, ended, said))
    return result(out, wanted or ("bytes" if content == BYTES else "json"))


def _failure(runtime: str, ended: Ended, said: str) -> Raised:
    """What a program says of itself in JSON on its last line counts; else that line is the message."""
    last = said.strip().rpartition("\n")[2]
    with suppress(msgspec.DecodeError):
        found = msgspec.json.decode(last)
        if isinstance(found, dict) and "message" in found:
            told = raised_from(found)
            return msgspec.structs.replace(told, traceback=said, runtime=runtime, exit_code=ended.exit_code)
    kind = "ProgramCrashed" if ended.code < 0 else "ProgramFailed"
    text = f"it {ended.plainly}{f': {last}' if last else ''}"
    return Raised(kind, text, said, runtime, ended.exit_code)


def result(out: bytes, wanted: Kind) -> Outcome:
    if wanted == "bytes":
        return plain.value(out, BYTES)
    if wanted == "text":
        return plain.value(msgspec.json.encode(out.decode(errors="replace")), JSON)
    try:
        msgspec.json.decode(out or b"null")
    except msgspec.DecodeError as problem:
        begins = out[:60].decode(errors="replace")
        hint = 'say runtime_options={"result": "text"} or "bytes" if it is none'
        return plain.unsendable(f"what it wrote to standard output is no JSON ({problem}): {begins!r}; {hint}")
    return plain.value(out or b"null", JSON)
