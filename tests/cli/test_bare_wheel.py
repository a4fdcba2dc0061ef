"""The wheel as a plain `pip install wattloom` gives it: nothing but what it says it needs is there, and no extra."""

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import urllib.request
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
SOURCES = ("src", "pyproject.toml", "setup.py", "README.md", "LICENSE")
TOO_LONG_S = 300


def needed(wheel: Distribution) -> Iterator[Distribution]:
    """What a distribution asks for without an extra, and what that asks for."""
    for each in map(Requirement, wheel.requires or ()):
        if each.marker is None or each.marker.evaluate({"extra": ""}):
            found = distribution(each.name)
            yield found
            yield from needed(found)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel. No network: what it needs is linked from the environment of the tests."""
    folder = tmp_path_factory.mktemp("bare")
    for name in SOURCES:
        source = ROOT / name
        skipped = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(source, folder / name, ignore=skipped) if source.is_dir() else shutil.copy(source, folder)
    pip = (sys.executable, "-m", "pip", "-q", "--disable-pip-version-check")
    offline = ("--no-deps", "--no-index")
    run(*pip, "wheel", *offline, "--no-build-isolation", "--wheel-dir", folder / "dist", folder)
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
    python = folder / "venv" / "bin" / "python"
    (wheel,) = (folder / "dist").glob("wattloom-*.whl")
    run(*pip, "--python", python, "install", *offline, wheel)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "venv")}))
    (installed,) = site.glob("wattloom-*.dist-info")
    for each in needed(Distribution.at(installed)):
        for top in {Path(file).parts[0] for file in each.files or ()} - {".."}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(each.locate_file(top))))
    return python


def run(*words: object) -> str:
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=TOO_LONG_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_it_has_neither_extras_nor_our_own_sources(python: Path) -> None:
    code = "import importlib.util as u, wattloom; print(wattloom.__file__, *map(u.find_spec, {!r}))"
    said = run(python, "-P", "-c", code.format(["matplotlib", "httptools", "opentelemetry", "yaml"]))
    assert said.startswith(str(python.parents[1]))
    assert said.split()[1:] == ["None"] * 4


@pytest.mark.slow
def test_its_exporter_is_scraped(python: Path, tmp_path: Path) -> None:
    words = [str(python.with_name("wattloom")), "exporter", "--listen", "127.0.0.1:0", "--journals", str(tmp_path)]
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    exporter = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    try:
        assert exporter.stdout is not None
        said = next((found for line in exporter.stdout if (found := re.search(r"http://[\d.]+:\d+", line))), None)
        assert said is not None, "it never said where it answers"
        with urllib.request.urlopen(f"{said[0]}/metrics", timeout=60) as answer:
            text = answer.read().decode()
        exporter.send_signal(signal.SIGTERM)
        assert exporter.wait(30) in (0, -signal.SIGTERM, 143)
    finally:
        exporter.kill()
        exporter.communicate()
    assert re.search(r"^wattloom_node_energy_joules_total\{", text, re.MULTILINE), text[:2000]
