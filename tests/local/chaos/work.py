"""What the tasks of a chaos run do: leave one line each, take some time, now and then start a process.

Owns the visible effect. Imported by workers under its name.
"""

import subprocess
import time

from tests.local.chaos import notes


def leave_a_line(effects: str, identity: str, seconds: float, ballast: bytes, with_child: bool) -> tuple[str, bytes]:
    """The line is the effect; some do it before they take their time, some after. Large ballast comes back."""
    child = subprocess.Popen(["sleep", "1000"]) if with_child else None
    late = sum(identity.encode()) % 2
    if late:
        time.sleep(seconds)
    notes.append(effects, f"effect {identity}")
    if not late:
        time.sleep(seconds)
    if child is not None:
        child.kill()
        child.wait()
    return identity, ballast
