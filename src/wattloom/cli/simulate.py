"""`wattloom simulate`: one scenario, one policy."""

from pathlib import Path

import click

from wattloom.cli.options import LOG_FILE, Whole, as_json, policy_names, scenario_argument, sleep_option
from wattloom.cli.printing import say


@click.command(short_help="Run a scenario under one policy.")
@scenario_argument
@click.option(
    "--policy",
    shell_complete=policy_names,
    default="least-joules",
    show_default=True,
    metavar="P",
    help="A policy: NAME, NAME:key=value,... or FILE.py:Class.",
)
@click.option(
    "--seed",
    type=Whole(-(2**63), 2**63 - 1),
    default=0,
    show_default=True,
    metavar="N",
    help="Seed of the tasks and their lengths.",
)
@click.option(
    "--predictor",
    default="table",
    show_default=True,
    metavar="R",
    help="Whose forecasts the policy goes by: NAME, NAME:key=value,... or FILE.py:Class.",
)
@click.option("--log", type=LOG_FILE, metavar="F", help="Write every event and decision to this file.")
@sleep_option
@as_json
def simulate(
    scenario: str, policy: str, seed: int, predictor: str, log: Path | None, sleep: bool | None, as_json: bool
) -> None:
    """Run a scenario under one policy, in virtual time.

    SCENARIO is a built-in one (`wattloom scenarios` lists them) or a TOML file. The same seed gives the same output,
    bit for bit. A log can be replayed under another policy (`wattloom replay`) and asked about (`wattloom why`).

    \b
    Examples:
      wattloom simulate hsc-cpu
      wattloom simulate hsc-cpu --policy marginal-energy:tdp=true,guarantee=0.8 --seed 3
      wattloom simulate my.toml --policy mine.py:MyPolicy --log run.log --json
    """
    from wattloom import api
    from wattloom.cli.printing import print_json, stdout_kept_for_json
    from wattloom.cli.progress import progress_bar

    with progress_bar(f"{policy} on {Path(scenario).name}") as progress, stdout_kept_for_json(as_json):
        result = api.simulate(scenario, policy, seed, log, progress, predictor=predictor, sleep=sleep)
    if as_json:
        print_json(result.to_json())
        return
    from wattloom.cli.results import print_result

    print_result(result)
    if log is not None:
        say(f"Log: {log}  (wattloom why TASK --log {log}, wattloom replay {log} --policy P)")
