"""Scripts as programs of their own: written to a folder, started in a session of their own, looked at from outside.

Owns starting and ending them, and a mark by which everything they start can be found.
"""

import os
import signal
import subprocess
import sys
import uuid
from contextlib import suppress
from pathlib import Path
from textwrap import dedent

from tests.local.chaos import processes

TOO_LONG_S = 20.0


class Script:
    """One script in a folder. Its journals are in that folder too."""

    def __init__(self, folder: Path, text: str, *python_options: str, name: str = "script.py") -> None:
        self.folder = folder
        self.mark = uuid.uuid4().hex
        self.path = folder / name
        self.path.write_text(dedent(text))
        self.command = [sys.executable, *python_options, str(self.path)]
        self._started: list[subprocess.Popen[str]] = []

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {processes.MARK: self.mark, "XDG_STATE_HOME": str(self.folder / "state")}

    def start(self, *arguments: object, **options: object) -> "subprocess.Popen[str]":
        process: subprocess.Popen[str] = subprocess.Popen(  # type: ignore[call-overload]
            [*self.command, *map(str, arguments)],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **options,
        )
        self._started.append(process)
        return process

    def run(self, *arguments: object) -> str:
        """What it wrote. It has to end well, and to say on standard error at most that an earlier run was cut off."""
        out, errors = self.start(*arguments).communicate(timeout=TOO_LONG_S)
        assert self._started[-1].returncode == 0, f"{out}\n{errors}"
        assert all("was cut off" in line for line in errors.splitlines()), errors
        return out

    def left(self) -> list[int]:
        """Processes of it that live."""
        return processes.marked(self.mark)

    def end(self) -> None:
        """Whatever is left of it."""
        for pid in self.left():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self._started:
            process.communicate()
