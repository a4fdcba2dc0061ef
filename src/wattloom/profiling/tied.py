"""Starts a program that dies with us: run as a script, `tied.py PARENT COMMAND...`.

Owns the rope between a load and the profiler, so that a profiler that is killed leaves no load behind. A script of its
own, because no Python code may run between fork and exec where other threads are about.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Ask the kernel for our death with the parent's, and become the command."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before we asked
        sys.exit(1)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
