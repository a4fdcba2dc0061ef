"""`wattloom profile functions`, `export` and `import`: how fast functions are on a machine and what they cost there.

Owns the commands and their words. How the table looks is `profile_functions_shown`'s.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from wattloom.cli.options import Finite, Whole, as_json, journal_names, meter_names
from wattloom.cli.printing import say
from wattloom.cli.profile_options import FILE

if TYPE_CHECKING:
    from wattloom.affinity.taking import FunctionsRequest, Taken
    from wattloom.workload.function_profile import FunctionProfiles

LONGEST_BAG_S = 86_400.0


@click.command(short_help="Run bags of functions here: executions per second and joules of each.")
@click.argument("functions", nargs=-1)
@click.option("--bags", type=Whole(1, 10_000), default=20, show_default=True, metavar="N", help="So many bags.")
@click.option(
    "--size", type=Whole(1, 1_000), default=8, show_default=True, metavar="N", help="Functions in a bag, at most."
)
@click.option(
    "--least", type=Whole(1, 1_000), default=2, show_default=True, metavar="N", help="Bags that every function is in."
)
@click.option(
    "--seconds",
    type=Finite(min=0.1, max=LONGEST_BAG_S),
    default=10.0,
    show_default=True,
    metavar="S",
    help="Of each bag.",
)
@click.option("--seed", type=Whole(0, 1 << 62), default=1, show_default=True, metavar="N", help="Of the lots.")
@click.option(
    "--machine",
    default="",
    metavar="M",
    help="Play this machine of the catalogue, or this node of --nodes, on a virtual node. Left out: this machine.",
)
@click.option("--nodes", type=FILE, metavar="FILE", help="A file of virtual nodes, of which --machine names one.")
@click.option("--meter", default="", shell_complete=meter_names, metavar="M", help="Which meter. Left out: the best.")
@click.option(
    "--timeout",
    type=Finite(min=0.001, max=LONGEST_BAG_S),
    default=600.0,
    show_default=True,
    metavar="S",
    help="A call that takes longer has crashed.",
)
@click.option("--from-journal", is_flag=True, help="Run nothing: take the figures from calls that were made before.")
@click.option(
    "--journal",
    type=FILE,
    multiple=True,
    shell_complete=journal_names,
    metavar="J",
    help="With --from-journal: from this journal or log only, of this machine, the simulator or Kubernetes. May be "
    "given several times.",
)
@click.option(
    "--output",
    "-o",
    type=FILE,
    metavar="FILE",
    help="Put them into this file. Left out: your own, where plans find them; what --from-journal finds is then only "
    "shown, since plans ask the journals anyway.",
)
@click.option("--resume/--fresh", default=True, help="Go on with bags that were begun (the default), or begin anew.")
@as_json
def functions(
    functions: tuple[str, ...],
    bags: int,
    size: int,
    least: int,
    seconds: float,
    seed: int,
    machine: str,
    nodes: Path | None,
    meter: str,
    timeout: float,
    from_journal: bool,
    journal: tuple[Path, ...],
    output: Path | None,
    resume: bool,
    as_json: bool,
) -> None:
    """Find out E, executions per second on a core, and W, joules of one execution, of functions on this machine.

    Random bags of functions run beside each other, one function on each core and no core idle; a bag larger than the
    machine runs in rounds. Each figure is the mean over bags, with an interval that holds the truth nine times out
    of ten. After every bag all is on the disk; after an interruption the same command goes on. Leave the machine alone
    meanwhile.

    FUNCTIONS are module:function or file.py:function, a file of another language as `wattloom.load` takes it, or names
    of the suite's; arguments are a JSON list behind =. Left out: those of the suite that can run here.

    \b
    Examples:
      wattloom profile functions app:resize=[800] app:tokens other.py:report
      wattloom profile functions app:resize=[800] app:tokens --bags 4 --seconds 5 -o node7.json
      wattloom profile functions app:tokens --machine epyc-7742-1s
      wattloom profile functions --from-journal
      wattloom profile functions --from-journal --journal run.log -o from-log.json
    """
    if journal and not from_journal:
        raise click.UsageError("--journal is for --from-journal.")
    if from_journal:
        _from_journal(functions, journal, machine, output, as_json)
        return
    from wattloom.affinity.bags import Lots
    from wattloom.affinity.taking import FunctionsRequest

    lots = Lots(bags, size, least, seed)
    request = FunctionsRequest(functions, lots, seconds, machine, nodes, meter, output, not resume, timeout)
    _print_taken(_taken(request), as_json)


@click.command(short_help="Write function profiles into a file for another machine.")
@click.argument("file", type=FILE)
@click.option("--machine", "machines", multiple=True, metavar="M", help="Of this machine only; may be repeated.")
@click.option("--function", "chosen", multiple=True, metavar="F", help="Of this function only; may be repeated.")
@click.option("--journals/--no-journals", default=True, help="With what ordinary runs have shown, or bags alone.")
def export(file: Path, machines: tuple[str, ...], chosen: tuple[str, ...], journals: bool) -> None:
    """Write what is known of functions here into a file, for `wattloom profile import` elsewhere.

    \b
    Examples:
      wattloom profile export node7.json
      wattloom profile export two.json --function app.resize --function app.tokens
    """
    from wattloom.affinity.exchange import selected
    from wattloom.affinity.online import known_profiles
    from wattloom.affinity.taking import own_path
    from wattloom.profiling.storing import refuse_missing_folder, store
    from wattloom.workload.function_profile import encode_function_profiles

    refuse_missing_folder(file)
    found = selected(known_profiles(own_path(), journals), machines, chosen)
    if not found.rows:
        raise click.UsageError("There are no function profiles yet: `wattloom profile functions` takes some.")
    store(file, encode_function_profiles(found))
    say(f"{file}: {len(found.functions)} functions on {', '.join(found.machines)}")


@click.command("import", short_help="Take function profiles of other machines from files.")
@click.argument("files", type=FILE, nargs=-1, required=True)
@click.option("--replace", is_flag=True, help="Where they contradict what is here, the files are right.")
@click.option("--output", "-o", type=FILE, metavar="FILE", help="Into this file. Left out: your own.")
def import_(files: tuple[Path, ...], replace: bool, output: Path | None) -> None:
    """Take function profiles from files that `wattloom profile export` or `profile functions -o` has written.

    Rows of functions and machines that are not known here are added; of two that agree, the one that rests on more
    executions stays. Where intervals of the same function on the same machine lie apart, nothing is imported.

    \b
    Examples:
      wattloom profile import node7.json
      wattloom profile import node7.json node8.json --replace
    """
    from wattloom.affinity.exchange import imported, read_or_none
    from wattloom.affinity.taking import own_path
    from wattloom.profiling.storing import refuse_missing_folder, store
    from wattloom.workload.function_profile import encode_function_profiles

    refuse_missing_folder(output)
    path = own_path() if output is None else output
    merged, news = imported(read_or_none(path), files, replace)
    if news:
        store(path, encode_function_profiles(merged))
    machines = ", ".join(dict.fromkeys(row.machine for row in news))
    say(f"{path}: {len(news)} rows of {machines} are new" if news else f"{path}: all of it was known already")


def shown_if_functions(path: Path, plot: Path | None, reference: str, as_json: bool) -> bool:
    """Show a file if it holds function profiles. False: it is something else, or cannot be read."""
    from wattloom.machines.own_profile import profile_bytes
    from wattloom.workload.function_profile import MARK, read_function_profiles

    if not path.is_file() or f'"{MARK}"'.encode() not in profile_bytes(path):
        return False
    _show(read_function_profiles(path), path, plot, reference, as_json)
    return True


def show_known(plot: Path | None, reference: str, as_json: bool) -> None:
    """What plans are made of if nothing else is named: bags, and what ordinary runs add to them."""
    from wattloom.affinity.online import known_profiles
    from wattloom.affinity.taking import own_path

    found = known_profiles(own_path())
    if not found.rows:
        raise click.UsageError("There are no function profiles yet: `wattloom profile functions` takes some.")
    _show(found, own_path(), plot, reference, as_json)


def _show(found: "FunctionProfiles", path: Path, plot: Path | None, reference: str, as_json: bool) -> None:
    from wattloom.cli.profile_functions_shown import show_functions

    if plot is not None:
        from wattloom.report.function_profiles import function_picture

        say(f"Drawn: {function_picture(found, plot, reference)}", err=True)
    show_functions(found, path, as_json, reference)


# -- what the commands do ----------------------------------------------------------------------------------------------


def _taken(request: "FunctionsRequest") -> "Taken":
    from wattloom.affinity.taking import own_path, profile_functions
    from wattloom.cli.profile_bar import progress_of_steps
    from wattloom.profiling.storing import date

    path = own_path() if request.output is None else request.output
    with progress_of_steps(path) as tell:
        return profile_functions(request, date, tell, lambda words: say(f"warning: {words}", err=True))


def _print_taken(taken: "Taken", as_json: bool) -> None:
    from wattloom.cli.profile_functions_shown import disturbed, show_functions

    if not taken.news:
        say("These bags were all run before; --fresh runs them anew.", err=True)
    words = disturbed(taken.bags)
    if words:
        say(f"warning: {words}", err=True)
    show_functions(taken.profiles, taken.path, as_json)


def _from_journal(
    functions: tuple[str, ...], journals: tuple[Path, ...], machine: str, output: Path | None, as_json: bool
) -> None:
    from wattloom.affinity.exchange import selected
    from wattloom.affinity.online import from_journals
    from wattloom.cli.profile_functions_shown import show_functions
    from wattloom.profiling.storing import refuse_missing_folder, store
    from wattloom.workload.function_profile import FunctionProfiles, encode_function_profiles

    refuse_missing_folder(output)
    found = from_journals(journals)
    found = selected(found, [machine] if machine else (), functions)
    if not found.rows:
        raise click.UsageError("No function has finished a call in these journals.")
    if output is not None:
        store(output, encode_function_profiles(FunctionProfiles(found.rows)))
    show_functions(found, output, as_json)
