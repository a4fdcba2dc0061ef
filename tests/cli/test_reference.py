"""The reference pages say what the commands and policies are."""

import re
import shlex
from pathlib import Path

import click
import pytest

from wattloom.cli.main import COMMANDS, cli
from wattloom.cli.reference import pages

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
ROOT = click.Context(cli, info_name="wattloom", **cli.context_settings)


def commands(group: click.Group = cli, ctx: click.Context = ROOT) -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        path = f"{ctx.command_path} {name}"
        found[path] = command
        if isinstance(command, click.Group):
            found |= commands(command, click.Context(command, info_name=name, parent=ctx))
    return found


EXAMPLES = [
    line.strip()
    for command in commands().values()
    for line in (command.help or "").splitlines()
    if "  wattloom " in line
]


@pytest.mark.parametrize("name", ["cli.md", "policies.md"])
def test_the_page_is_up_to_date(name: str) -> None:
    again = "regenerate it: python -m wattloom.cli.reference docs/reference"
    assert (FOLDER / name).read_text() == pages()[name], again


def test_every_command_and_option_is_on_the_page() -> None:
    page = (FOLDER / "cli.md").read_text()
    for path, command in commands().items():
        section = page.partition(f"\n## {path}\n")[2].partition("\n## ")[0]
        assert section, f"{path} is not on the page"
        for param in command.params:
            if isinstance(param, click.Option):
                for form in (*param.opts, *param.secondary_opts):
                    assert re.search(rf"(?<![\w-]){form}(?![\w-])", section), f"{path} {form} is not on the page"


def test_an_option_with_two_forms_shows_both_and_which_of_them_holds() -> None:
    rows = pages()["cli.md"].splitlines()
    assert [row for row in rows if row.startswith("| `--leader-elect / --no-leader-elect` |")]
    for row in rows:
        if " / --" in row:
            assert not re.search("Default: `(True|False)`", row), row


def test_the_overview_has_each_commands_own_line() -> None:
    for name, line in COMMANDS.items():
        assert commands()[f"wattloom {name}"].short_help == line


@pytest.mark.parametrize("path", commands())
def test_every_command_has_an_example(path: str) -> None:
    assert re.search(r"Examples?:", commands()[path].help or "")


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_is_a_command_that_can_be_typed(example: str) -> None:
    words = shlex.split(example.partition(" >")[0])[1:]
    command: click.Command = cli
    ctx = ROOT
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name, found, words = command.resolve_command(ctx, words)
        assert found is not None
        command, ctx = found, click.Context(found, info_name=name, parent=ctx)
    command.make_context("wattloom", words)
