"""The how-to page, typed as it stands, on a real API server: every command of it works."""

import os
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.beds.kubernetes import ControlPlane, binaries
from tests.beds.kubernetes.processes import Process
from tests.kubernetes.conftest import programs_or_skip

PAGE = Path(__file__).parents[2] / "docs/how-to/schedule-on-kubernetes.md"
FOREVER = ("wattloom kubernetes scheduler", "port-forward")
"""Commands that go on until they are ended. A port-forward needs a node that is not played."""
REPLAY = "wattloom replay decisions.log --policy spread"


class Terminal:
    """A shell with `kubectl` and `wattloom`, in a folder of its own."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        (folder / "bin").mkdir(parents=True)
        (folder / "bin/kubectl").symlink_to(binaries(["kubectl"])["kubectl"])
        wattloom = folder / "bin/wattloom"
        wattloom.write_text(f'#!/bin/sh\nexec {sys.executable} -m wattloom.cli.main "$@"\n')
        wattloom.chmod(0o755)
        self._folder = folder
        self._env = os.environ | {
            "KUBECONFIG": str(plane.kubeconfig),
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(folder),
            "COLUMNS": "120",
        }

    def type(self, text: str) -> str:
        command = ["bash", "-euo", "pipefail", "-c", text]
        done = subprocess.run(command, cwd=self._folder, env=self._env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
        return done.stdout

    def begin(self, text: str) -> Process:
        words = ["bash", "-c", f"exec {text}"]
        process = Process(text, words, self._folder / "said", cwd=self._folder, env=self._env)
        process.start()
        return process


def blocks() -> list[str]:
    return re.findall(r"```(?:bash|sh)\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_the_page_can_be_typed_from_its_beginning_to_its_end(played: ControlPlane, tmp_path: Path) -> None:
    programs_or_skip("kubectl")
    if shutil.which("bash") is None:
        pytest.skip("BASH IS MISSING: install it (Debian: apt-get install bash)")
    terminal = Terminal(played, tmp_path / "terminal")
    said: list[str] = []
    begun: list[Process] = []
    with ExitStack() as stack:
        stack.callback(terminal.type, "kubectl delete --ignore-not-found crd machineprofiles.wattloom.dev")
        for block in blocks():
            lasting = [line for line in block.splitlines() if any(words in line for words in FOREVER)]
            if "wattloom replay" in block:
                begun[0].wait_until(lambda: "same work" in terminal.type(REPLAY), 60)
            if not any("port-forward" in line for line in lasting):
                rest = "".join(f"{line}\n" for line in block.splitlines() if line not in lasting)
                for line in lasting:
                    begun.append(terminal.begin(line))
                    stack.callback(begun[-1].stop, 60.0)
                said.append(terminal.type(rest))
            if "schedulerName: wattloom" in block:
                # Shows what the scheduler said if it has ended, as where somebody else listens on its port.
                begun[0].wait_until(lambda: "Scheduled" in terminal.type("kubectl describe pod web-0"), 60)
                said.append(terminal.type("kubectl describe pod web-0"))
    text = " ".join("\n".join(said).split())
    sample = re.search(r"Normal  Scheduled  (.*?)\n```", PAGE.read_text(), re.DOTALL)
    assert sample is not None
    assert " ".join(sample[1].split()) in text
    assert text.count("sent default/web-0#") == 2
    assert "Under spread the same work would have cost" in text
