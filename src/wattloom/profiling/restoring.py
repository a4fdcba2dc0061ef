"""Frequencies are put back, whatever happens to the one who changed them.

Three ropes. Leaving the block puts them back, for ends by an exception or a signal that Python sees. A guard process,
which outlives us, does it when our end of a pipe closes: kill -9. And what was set before stands in a file that is
written before the first change and removed after the last, for the next `wattloom profile` if the guard was killed
too. A reboot sets frequencies anew by itself: then the file is only removed.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from wattloom.interpreter import own_environment, own_module
from wattloom.machines.own_profile import SYSTEM, text
from wattloom.ownership import NotOurs, refuse_foreign, refuse_foreign_folder
from wattloom.profiling.frequency import FrequencyError, Saved, restore, saved
from wattloom.profiling.storing import store

FILE: Final = "frequencies-before.json"
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
DONE: Final = b"."


@contextmanager
def put_back(folder: Path, system: Path = SYSTEM, boot_id: Path = BOOT_ID, lock: int | None = None) -> Iterator[None]:
    """Within the block frequencies may be changed; afterwards all is as before. The file lies in `folder`. The guard
    holds `lock` as well, so that nobody else begins before it has put things back."""
    before = saved(system, text(boot_id))
    file = folder / FILE
    store(file, msgspec.json.encode(before))
    read, write = os.pipe()
    guard = _guard(file, read, lock, system)
    os.close(read)
    try:
        yield
    finally:
        wrong = restore(before, system)
        with suppress(OSError):
            os.write(write, b"" if wrong else DONE)
        os.close(write)
        guard.wait()  # the guard removes the file, after it has tried as well if we could not
    if wrong:
        raise FrequencyError(f"frequencies could not be put back: {wrong[0]}; see {file}")


def left_behind(folder: Path, boot_id: Path = BOOT_ID, system: Path = SYSTEM) -> str:
    """Put back what a run that was killed has left changed. What was done, in words; empty: nothing was left."""
    file = folder / FILE
    try:
        refuse_foreign(file)
        refuse_foreign_folder(folder)
        before = msgspec.json.decode(file.read_bytes(), type=Saved)
    except FileNotFoundError:
        return ""
    except NotOurs as problem:
        raise FrequencyError(
            f"{problem.filename} {problem.strerror}: frequencies are not put back by what it says"
        ) from problem
    except (OSError, msgspec.MsgspecError) as problem:
        raise FrequencyError(f"{file}: cannot be read, so frequencies cannot be put back: {problem}") from problem
    if before.boot_id != text(boot_id):
        file.unlink(missing_ok=True)
        return "frequencies were left changed by a run that was killed; the machine has been restarted since"
    if problem_found := before.problem(system):
        raise FrequencyError(f"{file}: {problem_found}: frequencies are not put back by it. Remove it")
    wrong = restore(before, system)
    if wrong:
        raise FrequencyError(f"frequencies that a killed run has left could not be put back: {wrong[0]}. Try sudo")
    file.unlink(missing_ok=True)
    return "frequencies that a killed run had left changed were put back"


# -- the guard ---------------------------------------------------------------------------------------------------------


def _guard(file: Path, read: int, lock: int | None, system: Path) -> "subprocess.Popen[bytes]":
    """A process in a session of its own, so that no signal of the terminal reaches it. Returns when it stands guard."""
    command = own_module("wattloom.profiling.restoring", str(file), str(read), str(system))
    kept = (read,) if lock is None else (read, lock)
    guard = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        pass_fds=kept,
        start_new_session=True,
        env=own_environment(),
    )
    assert guard.stdout is not None
    with guard.stdout:
        if guard.stdout.read(1) != DONE:
            raise FrequencyError("the guard that puts frequencies back could not be started: nothing was changed")
    return guard


def main() -> None:
    """FILE PIPE SYSTEM: wait until the pipe is closed; unless all was said to be done, put back what the file said when
    it was read, at the beginning."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    file, read, system = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    before = msgspec.json.decode(file.read_bytes(), type=Saved)
    os.write(1, DONE)
    os.close(1)
    done = os.read(read, 1) == DONE
    if done or not restore(before, system):
        file.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
