"""The benchmarks as files: none takes the place of a package that it, or a peer it starts, wants to import."""

import re
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PEERS_OPTIONAL = {"kubernetes", "pandas", "psutil", "paramiko", "globus_sdk", "flux", "sqlalchemy"}
"""What Ray, Dask and Parsl import where it is there: a file of that name beside the script would be taken for it."""


def peers() -> set[str]:
    """The packages that the Makefile installs beside ours, by name."""
    lists = re.findall(r"^BENCH_(?:PEERS|EXECUTORS|KUBERNETES) := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return {name for each in lists for name in each.split()}


@pytest.mark.parametrize("script", sorted(each.name for each in (ROOT / "benchmarks").glob("*.py")))
def test_a_benchmark_hides_no_package(script: str) -> None:
    name = script.removesuffix(".py")
    assert name not in set(sys.stdlib_module_names) | set(packages_distributions()) | peers() | PEERS_OPTIONAL
