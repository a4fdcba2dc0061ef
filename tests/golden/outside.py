"""The plug-in from outside: installed as its users do, and what comes of its policies and its meter.

Owns the installation into a folder and the file of what came of it.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from tests.golden.comparing import lost

SOURCE: Final = Path(__file__).parent / "outside_package"
FILE: Final = Path(__file__).with_name("outside.json")
POLICIES: Final = ("outside-fastest", "outside-fastest:price=0.05", "outside-crowded", "outside-nearest")
SCENARIO: Final = "heats-bursts"
METER: Final = "outside-board"
KEPT: Final = ("digest", "energy_wh", "makespan_s", "decisions")
TOO_LONG_S: Final = 300.0


class Installed:
    """The plug-in in a folder of its own, without network."""

    def __init__(self, folder: Path, source: Path = SOURCE) -> None:
        self.folder: Final = folder
        self._site: Final = folder / "site"
        shutil.copytree(source, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
        words = ("--no-deps", "--no-build-isolation", "--no-index", "--target", str(self._site))
        self.python("-m", "pip", "install", "-q", *words, str(folder / "source"))

    def python(self, *words: str, **variables: str) -> str:
        """What it prints; it has to end well."""
        done = self.run(*words, **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run(self, *words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        paths = [str(self._site), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PIP_ROOT_USER_ACTION": "ignore"} | variables
        return subprocess.run(
            [sys.executable, *words],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TOO_LONG_S,
        )

    def wattloom(self, *words: str, **variables: str) -> Any:
        return json.loads(self.python("-m", "wattloom.cli.main", *words, "--json", **variables))


def came_of(installed: Installed) -> dict[str, Any]:
    """By policy."""
    return {policy: _kept(installed.wattloom("simulate", SCENARIO, "--policy", policy)) for policy in POLICIES}


def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found


def record(tell: Callable[[str], None]) -> None:
    with TemporaryDirectory(prefix="wattloom-golden-") as folder:
        lines = [f"{json.dumps(key)}: {json.dumps(said)}" for key, said in came_of(Installed(Path(folder))).items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    tell("outside: recorded")


def different() -> list[str]:
    with TemporaryDirectory(prefix="wattloom-golden-") as folder:
        return list(lost(recorded(), came_of(Installed(Path(folder)))))


def _kept(said: dict[str, Any]) -> dict[str, Any]:
    return {key: said[key] for key in KEPT}
