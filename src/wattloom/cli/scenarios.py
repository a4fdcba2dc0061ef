"""`wattloom scenarios`: the built-in ones, their files, and the schema of a scenario file."""

import click
import msgspec

from wattloom.cli.options import as_json, builtin_scenarios
from wattloom.cli.printing import say
from wattloom.errors import ScenarioError


@click.group(invoke_without_command=True, short_help="List, print and describe scenarios.")
@as_json
@click.pass_context
def scenarios(ctx: click.Context, as_json: bool) -> None:
    """List the built-in scenarios, print one, or print the JSON schema of a scenario file.

    \b
    Examples:
      wattloom scenarios
      wattloom scenarios show hsc-cpu > my.toml
      wattloom scenarios schema > scenario.schema.json
    """
    if ctx.invoked_subcommand is None:
        _list(as_json)


@scenarios.command(short_help="Print a built-in scenario's file.")
@click.argument("name", shell_complete=builtin_scenarios)
def show(name: str) -> None:
    """Print a built-in scenario's TOML file, with its sources, assumptions and where it contradicts its source: a good
    start for one of your own.

    \b
    Example:
      wattloom scenarios show hsc-cpu
    """
    from wattloom.simulation.listing import shown
    from wattloom.simulation.scenario import builtin_names, known_instead

    if name not in builtin_names():
        raise ScenarioError(name, f"is not a built-in scenario{known_instead(name)}")
    say(shown(name), nl=False)


@scenarios.command(short_help="Print the JSON schema of scenario files.")
def schema() -> None:
    """Print the JSON schema of scenario files, for editors and checks.

    \b
    Example:
      wattloom scenarios schema > scenario.schema.json
    """
    from wattloom.cli.printing import print_json
    from wattloom.simulation.scenario import schema as schema_of_scenarios

    print_json(schema_of_scenarios())


def _list(as_json: bool) -> None:
    from wattloom import api
    from wattloom.cli.printing import console, literal, print_json, table

    found = api.scenarios()
    if as_json:
        print_json([msgspec.to_builtins(scenario) for scenario in found])
        return
    numbers = ("nodes", "machine types", "functions", "assumptions")
    shown = table("scenario", "title", *numbers, numbers=numbers)
    for one in found:
        counts = (one.nodes, one.machines, one.functions, len(one.assumptions))
        shown.add_row(one.name, literal(one.title), *(f"{count:,}" for count in counts))
    console().print(shown)
    contrary = [one.name for one in found if any(held.contradicts for held in one.published)]
    if contrary:
        out = f"{', '.join(contrary)} contradict their sources in part: `wattloom scenarios show NAME` says in what."
        console().print(out, style="dim")
