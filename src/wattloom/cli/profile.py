"""`wattloom profile`: what a machine draws and how fast it is; take a profile, show it, compare two.

Owns the commands and their options. How profiles look is `profile_shown`'s; `profile gpu` has a module of its own.
"""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from wattloom.cli.options import Whole, as_json, meter_names
from wattloom.cli.printing import say
from wattloom.cli.profile_options import FILE, how_long, which_file

if TYPE_CHECKING:
    from wattloom.machines.profile_file import CpuProfile
    from wattloom.metering.protocol import Meter
    from wattloom.profiling.taking import ProfileRequest

ELSEWHERE: Final = {
    "gpu": ("wattloom.cli.profile_gpu", "gpu"),
    "functions": ("wattloom.cli.profile_functions", "functions"),
    "export": ("wattloom.cli.profile_functions", "export"),
    "import": ("wattloom.cli.profile_functions", "import_"),
}
"""Commands of this group that live in modules of their own, loaded when they are used: where, and its name there."""


class Profiles(click.Group):
    """The commands here, and those elsewhere."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        elsewhere = [name for name, (module, _) in ELSEWHERE.items() if find_spec(module) is not None]
        return [*super().list_commands(ctx), *elsewhere]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in ELSEWHERE and cmd_name in self.list_commands(ctx):
            module, name = ELSEWHERE[cmd_name]
            command = getattr(import_module(module), name)
            assert isinstance(command, click.Command)
            return command
        return super().get_command(ctx, cmd_name)


@click.group(cls=Profiles, short_help="Measure what a machine draws at each load; show and compare.")
def profile() -> None:
    """Find out what a machine draws and how fast it is, from idle to all of its CPUs; and what functions cost on it.

    The profile of this machine is used by the scheduler and by the estimate as soon as it is there. Those of functions
    are what plans are made of.

    \b
    Examples:
      wattloom profile cpu
      wattloom profile show
      wattloom profile diff old.json new.json
      wattloom profile functions app:resize app:tokens
    """
    from wattloom.machines.own_profile import profiles_folder
    from wattloom.profiling.restoring import FILE as BEFORE

    if (profiles_folder() / BEFORE).exists():
        _put_frequencies_back(profiles_folder())


@profile.command(short_help="Load the CPUs level by level, and read the meter.")
@click.option("--levels", default="", metavar="L", help="CPUs under load, as 1-4,8, or all. Left out: all up to 16.")
@click.option("--stressors", metavar="S", help="Kinds of load, with commas. Left out: integer,matrix,memory.")
@how_long
@click.option(
    "--attempts",
    type=Whole(1, 1_000),
    default=3,
    show_default=True,
    metavar="N",
    help="Try a level so often if others are at work or the meter fails.",
)
@click.option("--meter", default="", shell_complete=meter_names, metavar="M", help="Which meter. Left out: the best.")
@which_file
@click.option(
    "--frequencies",
    default="",
    metavar="F",
    help="Under each of these, with commas: governors (all of them), the name of one, min, max, or kHz. What was set "
    "before is put back, whatever happens. Needs root.",
)
@click.option("--builtin", is_flag=True, help="Use loops of our own instead of stress-ng.")
@as_json
def cpu(
    levels: str,
    stressors: str | None,
    seconds: int,
    settle: float,
    attempts: int,
    meter: str,
    output: Path | None,
    resume: bool,
    frequencies: str,
    builtin: bool,
    as_json: bool,
) -> None:
    """Load 1, 2, ... all CPUs with several kinds of work, and read the meter at each level.

    Levels take physical cores first and their siblings afterwards. The file is written after every level; after an
    interruption the same command goes on where it stopped. Leave the machine alone meanwhile: other work is noticed,
    and the level repeated.

    \b
    Examples:
      wattloom profile cpu
      wattloom profile cpu --levels 1,2 --stressors integer,kmeans --seconds 5
      wattloom profile cpu --frequencies min,max --stressors matrix,kmeans
      wattloom profile cpu --meter powercap --output node7.json
    """
    from wattloom.profiling.bench import Terms
    from wattloom.profiling.stressors import USUAL
    from wattloom.profiling.taking import ProfileRequest, check, meter_for

    kinds = ",".join(USUAL) if stressors is None else stressors
    terms = Terms(seconds=float(seconds), settle_s=settle, attempts=attempts)
    request = ProfileRequest(levels, kinds, frequencies, output, not resume, builtin, terms)
    check(request)
    chosen = meter_for("" if meter == "auto" else meter)
    _warn_of_estimates(chosen)
    made, path = _taken(request, chosen)
    _print(made, path, as_json)


@profile.command(short_help="Print a profile as a table, and draw it.")
@click.argument("file", type=FILE, required=False)
@click.option("--plot", type=FILE, metavar="FILE", help="Draw it into this file: .png, .svg or .pdf.")
@click.option("--functions", is_flag=True, help="What is known of functions, without a file.")
@click.option(
    "--reference", default="", metavar="M", help="Of function profiles: the machine that others are held against."
)
@as_json
def show(file: Path | None, plot: Path | None, functions: bool, reference: str, as_json: bool) -> None:
    """Print a profile: watts, watts per core added, work and joules per unit of work at each level.

    Without a file, that of this machine. In the terminal there is a chart of text; --plot draws a picture. A file of
    function profiles is shown as a table of functions and machines; its picture is against one machine.

    \b
    Examples:
      wattloom profile show
      wattloom profile show node7.json --plot node7.png
      wattloom profile show --functions --plot affinity.png --reference epyc-7742-1s
    """
    from wattloom.cli.profile_functions import show_known, shown_if_functions
    from wattloom.cli.profile_gpu import shown_if_gpu
    from wattloom.machines.own_profile import read_profile
    from wattloom.profiling.taking import own_path

    if functions and file is None:
        show_known(plot, reference, as_json)
        return
    path = own_path() if file is None else file
    if file is None and not path.exists():
        raise click.UsageError("This machine has no profile yet: `wattloom profile cpu` takes one.")
    if shown_if_functions(path, plot, reference, as_json) or shown_if_gpu(path, plot, as_json):
        return
    made = read_profile(path)
    if plot is not None:
        from wattloom.report.profiles import profile_picture

        say(f"Drawn: {profile_picture(made, plot)}", err=True)
    _print(made, path, as_json)


@profile.command(short_help="Compare the profiles of two machines.")
@click.argument("a", type=FILE)
@click.argument("b", type=FILE)
@click.option("--plot", type=FILE, metavar="FILE", help="Draw both into this file: .png, .svg or .pdf.")
@click.option(
    "--package-to-wall",
    metavar="SLOPE,WATTS",
    help="Where one is of the processor package and one of the plug: watts at the plug are SLOPE times those of the "
    "package and WATTS more. Without it such profiles are not compared.",
)
@as_json
def diff(a: Path, b: Path, plot: Path | None, package_to_wall: str | None, as_json: bool) -> None:
    """Compare two machines: watts at each level, watts per core added, work, joules per unit of work, and which of the
    two is cheaper at which load. Levels that other work disturbed are marked, and nothing is concluded from them.

    \b
    Examples:
      wattloom profile diff node1.json node7.json
      wattloom profile diff node1.json node7.json --plot both.svg
    """
    import msgspec

    from wattloom.cli.printing import print_json
    from wattloom.cli.profile_compared import conversion, names, print_comparison
    from wattloom.machines.own_profile import read_profile
    from wattloom.profiling.comparing import compare

    one, other = read_profile(a), read_profile(b)
    found = compare(one, other, conversion(package_to_wall), names((one.name, other.name), (a, b)))
    if plot is not None:
        from wattloom.report.profiles import comparison_picture

        say(f"Drawn: {comparison_picture(found, plot)}", err=True)
    if as_json:
        print_json(msgspec.to_builtins(found))
    else:
        print_comparison(found)


# -- what the commands do ----------------------------------------------------------------------------------------------


def _taken(request: "ProfileRequest", meter: "Meter") -> "tuple[CpuProfile, Path]":
    from wattloom.cli.profile_bar import progress_of_steps
    from wattloom.profiling.storing import date
    from wattloom.profiling.taking import own_path, profile_cpu

    path = own_path() if request.output is None else request.output
    with progress_of_steps(path) as tell:
        return profile_cpu(request, meter, date, tell), path


def _warn_of_estimates(meter: "Meter") -> None:
    if meter.provenance != "measured":
        say(
            f"warning: meter {meter.name} does not measure, its watts are {meter.provenance}: this profile will only "
            "say what the estimate believed before. How much work is done at each level is counted for real, and only "
            "that will be used. `wattloom meter list` says what a real meter would need here.",
            err=True,
        )


def _put_frequencies_back(folder: Path) -> None:
    from wattloom.profiling.restoring import left_behind
    from wattloom.profiling.storing import Busy, alone

    try:
        with alone(folder, patience_s=0.0):
            say(left_behind(folder), err=True)
    except Busy:
        pass  # its owner lives, and will put them back


def _print(made: "CpuProfile", path: Path, as_json: bool) -> None:
    from wattloom.cli.printing import print_json
    from wattloom.cli.profile_shown import as_data, print_profile

    if as_json:
        print_json(as_data(made, path))
    else:
        print_profile(made, path)
