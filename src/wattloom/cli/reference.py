"""The reference pages, written from the commands and policies themselves.

Owns their form. `python -m wattloom.cli.reference docs/reference` writes cli.md and policies.md; a test compares them.
"""

import sys
from inspect import cleandoc
from pathlib import Path
from typing import Final

import click

from wattloom.cli.main import cli

GENERATED: Final = "<!-- Written by `python -m wattloom.cli.reference docs/reference`: do not edit. -->"


def markdown() -> str:
    """Every command with its arguments, options and examples."""
    root = click.Context(cli, info_name="wattloom", **cli.context_settings)
    sections = [
        "# Commands",
        GENERATED,
        "Errors go to stderr. Exit codes: 0 done, 1 something failed, 2 the input is wrong, 130 after Ctrl-C, 70 a "
        "defect of Wattloom (`--traceback` or `WATTLOOM_TRACEBACK=1` shows where). "
        "`NO_COLOR=1` switches colours off. With `--json`, stdout holds JSON and nothing else.",
        *_sections(cli, root),
    ]
    return "\n\n".join(sections) + "\n"


def _sections(command: click.Command, ctx: click.Context) -> list[str]:
    found = [_section(command, ctx)]
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            child = command.get_command(ctx, name)
            assert child is not None
            found += _sections(child, click.Context(child, info_name=name, parent=ctx))
    return found


def _section(command: click.Command, ctx: click.Context) -> str:
    usage = " ".join([ctx.command_path, *command.collect_usage_pieces(ctx)])
    blocks = [f"## {ctx.command_path}", _block(usage), *_prose(command.help or "")]
    blocks += _prose(command.epilog or "")
    rows = [_row(param) for param in command.params if isinstance(param, click.Option)]
    rows.append(f"| `{', '.join(ctx.help_option_names)}` | Show this message and exit. |")
    blocks.append("\n".join(["| Option | Meaning |", "|---|---|", *rows]))
    return "\n\n".join(blocks)


def _row(option: click.Option) -> str:
    names = " / ".join(", ".join(forms) for forms in (option.opts, option.secondary_opts) if forms)
    names += f" {option.metavar}" if option.metavar else ""
    default = f" Default: `{_default(option)}`." if option.show_default else ""
    must = " Required." if option.required else ""
    return f"| `{_cell(names)}` | {_cell(option.help or '')}{default}{must} |"


def _default(option: click.Option) -> object:
    """Of two forms of one option, the one that holds."""
    if option.secondary_opts:
        return (option.opts if option.default else option.secondary_opts)[0]
    return option.default


def _prose(text: str) -> list[str]:
    """Paragraphs as they are; the examples as code."""
    blocks: list[str] = []
    for paragraph in cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b\n"):
            title, *lines = paragraph.strip().removeprefix("\b\n").splitlines()
            blocks += [title, _block("\n".join(line.strip() for line in lines))]
        elif paragraph:
            blocks.append(" ".join(line.strip() for line in paragraph.splitlines()))
    return blocks


def _block(text: str) -> str:
    return f"```console\n{text}\n```"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def policies_markdown() -> str:
    """Every installed policy with its options."""
    from wattloom.policies.listing import builtin_policies, policies

    built_in = builtin_policies()
    sections = [
        "# Policies",
        GENERATED,
        "Written as `NAME`, `NAME:key=value,key=value` or, for one of your own, `FILE.py:Class`.",
        "Every policy has the option `sleep` (true or false): whether idle nodes go to sleep. Left out, only those of "
        "`least-joules` and `planned` do. A node sleeps after as long as idling costs what a wake-up does, unless the "
        "policy says otherwise. `--sleep` and `--no-sleep` of the commands write it for all policies that do not.",
    ]
    for policy in policies():
        if policy.name in built_in:
            sections += [f"## {policy.name}", f"{policy.summary[0].upper()}{policy.summary[1:]}."]
            rows = [f"| `{name}` | {_cell(meaning)} |" for name, meaning in policy.options.items()]
            sections.append(
                "\n".join(["| Option | Meaning |", "|---|---|", *rows]) if rows else "No options of its own."
            )
    return "\n\n".join(sections) + "\n"


def pages() -> dict[str, str]:
    """Each page by its file's name."""
    return {"cli.md": markdown(), "policies.md": policies_markdown()}


if __name__ == "__main__":
    for name, text in pages().items():
        Path(sys.argv[1], name).write_text(text)
