"""The `wattloom` command: finds the module of the command that was typed, and turns errors into words and exit codes.

Owns the list of commands. A command's module is loaded when it is used, so that `wattloom --help` answers at once.
"""

import codecs
import os
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import Any, Final

import click

from wattloom.cli.failing import TRACEBACK, WORDS, defect, output_lost
from wattloom.cli.printing import say

COMMANDS: Final = {
    "run": "Run a command or a function here, and say what it cost.",
    "workload": "List, install and run 22 real functions in five runtimes.",
    "measure": "Say how many joules a command takes, with its children.",
    "tasks": "List what was run here; remove old runs.",
    "functions": "Say what each function costs here.",
    "logs": "Print what a task printed.",
    "top": "Show who draws power on this machine, live.",
    "exporter": "Show this machine's joules to Prometheus and OpenTelemetry.",
    "meter": "List the meters, whether they work here; read one.",
    "attribute": "Say what each function drew of a whole machine's recorded power.",
    "validate": "Hold the joules of calls against the meter.",
    "demo": "Run some functions here, then compare the policies.",
    "simulate": "Run a scenario under one policy.",
    "compare": "Run several policies on the very same work.",
    "experiment": "Run a published study's experiment, theirs beside ours.",
    "replay": "Say what a log cost, and what it would have cost under another policy.",
    "why": "Say why a task went where it went.",
    "policies": "List the policies and their options.",
    "scenarios": "List, print and describe scenarios.",
    "plan": "Plan which function runs on which server, with a proven bound.",
    "profile": "Measure what a machine draws at each load; show and compare.",
    "machines": "List the machines of the catalogue; tell curves of others.",
    "kubernetes": "Schedule pods of a Kubernetes cluster.",
    "completion": "Print the script that completes commands in your shell.",
}
"""Each command and its line in the help; `wattloom.cli.<name>` holds the command `<name>`."""
HIDDEN: Final = {"meters": "meter_list"}
"""Names that commands had before, and their modules: they work on."""

EXAMPLES: Final = """\b
Examples:
  wattloom run -- make -j2
  wattloom tasks
  wattloom scenarios
  wattloom simulate hsc-cpu --policy least-joules
  wattloom compare hsc-cpu --policies spread,pack,least-joules --report out
  wattloom simulate hsc-cpu --log run.log && wattloom why t1 --log run.log
"""


class Commands(click.Group):
    """Commands that are loaded when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS and cmd_name not in HIDDEN:
            return None
        command = getattr(import_module(f"wattloom.cli.{HIDDEN.get(cmd_name, cmd_name)}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        ctx.meta[WORDS] = args
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as problem:
            raise click.UsageError(f"{problem.message} {_instead(args[0])}", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        from wattloom.cli.failing import failures_in_words, warnings_in_words

        with failures_in_words(ctx), warnings_in_words():
            return super().invoke(ctx)


def _instead(wrong: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(wrong, COMMANDS, n=1)
    return f"Did you mean {close[0]!r}?" if close else "`wattloom --help` lists the commands."


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        import wattloom

        say(f"wattloom {wattloom.__version__}")
        ctx.exit()


def _traceback(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        os.environ[TRACEBACK] = "1"


@click.command(cls=Commands, epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--traceback",
    is_flag=True,
    expose_value=False,
    callback=_traceback,
    help=f"Show where a defect of Wattloom is, for a report; as {TRACEBACK}=1 does.",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version and exit."
)
def cli() -> None:
    """Energy-aware scheduling: run work and know its joules, compare policies, replay logs, ask why."""


PLAIN: Final = {"±": "+/-", "µ": "u", "★": "*", "●": "*", "◐": "o", "○": ".", "°": "", "·": "-", "…": "...", "×": "x"}
"""Signs that we print, for terminals that have none of them."""


def _plainly(problem: UnicodeError) -> tuple[str, int]:
    """In place of what a terminal's encoding, or any (bytes of a file's name), has no sign for."""
    assert isinstance(problem, UnicodeEncodeError)
    found = problem.object[problem.start : problem.end]
    return "".join(PLAIN.get(sign, ascii(sign)[1:-1]) for sign in found), problem.end


def _print_everywhere() -> None:
    """No sign that cannot be shown stops a command."""
    codecs.register_error("wattloom.plain", _plainly)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="wattloom.plain")


def main() -> None:
    """Where the installed command begins."""
    _print_everywhere()
    if "_WATTLOOM_COMPLETE" in os.environ:
        import wattloom.cli.shells  # noqa: F401  (it replaces what click knows of bash)
    try:
        cli(prog_name="wattloom")
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as problem:
        sys.exit(defect(problem) if problem.errno is None else output_lost(problem))
    except Exception as problem:
        sys.exit(defect(problem))


if __name__ == "__main__":
    main()
