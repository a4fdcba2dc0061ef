"""The examples in the docs are run: commands, Python, files. A page that lies fails."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """Language, title and text of each fenced block."""
    return BLOCK.findall(page.read_text())


def runnable(page: Path) -> bool:
    return any(language == "python" or "wattloom " in text for language, _, text in blocks(page))


@pytest.mark.parametrize("page", [page for page in PAGES if runnable(page)], ids=lambda page: page.stem)
def test_every_example_on_the_page_runs(page: Path, tmp_path: Path) -> None:
    for language, title, text in blocks(page):
        if title:
            (tmp_path / title).write_text(text)
            if title.startswith("test_"):
                run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", title], tmp_path)
        elif language == "python" and text.strip() != "instructions = engine.handle(event)":
            run([sys.executable, "-W", "error", "-c", text], tmp_path)
        elif language == "sh":
            for command in commands(text):
                run([sys.executable, "-W", "error", "-m", "wattloom.cli.main", *shlex.split(command)[1:]], tmp_path)


def commands(text: str) -> list[str]:
    """The wattloom commands of a shell block, without their comments."""
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    return [line for line in lines if line.startswith("wattloom ")]


def run(command: list[str], folder: Path) -> None:
    own = os.environ | {"XDG_STATE_HOME": str(folder / "state")}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False, env=own)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}\n{done.stderr}"
