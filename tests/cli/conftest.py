"""A small cluster, written as a user would, and the command line in this process."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from wattloom.cli.main import cli

SCENARIO = """
name = "tiny"
title = "A tiny cluster"
assumptions = ["both machines are made up"]

[machines.big]
arch = "x86_64"
cores = 4
threads = 8
memory_gib = 16
load_watts = [50, 60, 70, 78, 84, 90, 95, 100, 104, 107, 110]
sleep_w = 5
wake_s = 10
wake_j = 600

[machines.small]
arch = "aarch64"
cores = 4
memory_gib = 8
load_watts = [5, 8, 10]
speed = 0.5

[[nodes]]
machine = "big"
count = 2

[[nodes]]
machine = "small"
count = 2

[functions.f]
work_s = 10
memory_mib = 100
spread = 0.3

[[arrivals]]
kind = "poisson"
rate_per_s = 0.8
count = 60
functions = { f = 1 }
"""

Wattloom = Callable[..., Result]


def commands(group: click.Command = cli, *words: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command there is, with the words that name it."""
    if isinstance(group, click.Group):
        ctx = click.Context(group)
        for name in group.list_commands(ctx):
            found = group.get_command(ctx, name)
            assert found is not None
            yield from commands(found, *words, name)
    if not isinstance(group, click.Group) or group.invoke_without_command:
        yield words, group


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture
def wattloom(monkeypatch: pytest.MonkeyPatch) -> Wattloom:
    """Run a command in this process; an unexpected exception fails the test."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*words: Any) -> Result:
        return CliRunner().invoke(cli, [str(word) for word in words], prog_name="wattloom", catch_exceptions=False)

    return run


@pytest.fixture
def log(scenario: Path, tmp_path: Path, wattloom: Wattloom) -> Path:
    path = tmp_path / "run.log"
    assert wattloom("simulate", scenario, "--policy", "pack", "--log", path).exit_code == 0
    return path
