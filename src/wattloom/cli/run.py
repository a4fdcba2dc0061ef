"""`wattloom run`: a command or a function as a task on this machine, and its joules at the end."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from wattloom.cli.options import LOG_FILE, Finite, Whole, meter_names, policy_names, size
from wattloom.cli.printing import safe_json, say, say_json

if TYPE_CHECKING:
    from wattloom.local.future import TaskFuture
    from wattloom.local.running import Ran, RanCall

COMMAND: Final = "wattloom.run.command"
BEHIND: Final = "a command and its options go behind --, as in: wattloom run -- COMMAND ..."
"""What is said when something stands there that looks like an option of ours."""
MOST_CALLS: Final = 20
"""Shown one by one."""


class CommandBehind(click.Command):
    """What stands behind `--` is a command, whatever it looks like."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta[COMMAND] = args[at + 1 :]
            args = args[:at]
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as problem:
            raise click.UsageError(
                f"{problem.message} ({BEHIND.replace('wattloom run', ctx.command_path)})", ctx
            ) from None


@click.command(cls=CommandBehind, short_help="Run a command or a function here, and say what it cost.")
@click.argument("function", required=False, metavar="[MODULE:FUNCTION | FILE[:FUNCTION] | -- COMMAND...]")
@click.option("--args", "args", metavar="JSON", help="The function's arguments, a list: --args '[1, \"two\"]'.")
@click.option("--kwargs", metavar="JSON", help="The function's named arguments, an object: --kwargs '{\"n\": 3}'.")
@click.option("--cpu", type=Finite(), metavar="N", help="Cores it keeps busy. Left out: 1.")
@click.option("--memory", type=size, metavar="SIZE", help="Memory it needs: bytes, or as in 512M, 2G.")
@click.option("--timeout", type=Finite(), metavar="S", help="End it after so many seconds; the exit code is then 124.")
@click.option("--retries", type=Whole(0, 1_000_000), metavar="N", help="Run it again if it fails, so many times.")
@click.option(
    "--idempotent",
    is_flag=True,
    default=None,
    help="It may be run again: after a crash the next `wattloom run` does so.",
)
@click.option("--energy-weight", type=Finite(), metavar="W", help="From 0, all for speed, to 1, all for energy.")
@click.option("--repeat", type=Whole(1, 1_000_000), default=1, metavar="N", help="Run it N times, one by one.")
@click.option("--policy", shell_complete=policy_names, metavar="P", help="A policy. Left out: that of the settings.")
@click.option("--journal", type=LOG_FILE, metavar="F", help="Write it down here. Left out: in the state folder.")
@click.option(
    "--meter",
    shell_complete=meter_names,
    default="auto",
    show_default=True,
    metavar="M",
    help="A meter (`wattloom meter list` shows them), auto: the best that works, or off.",
)
@click.option("--quiet", "-q", is_flag=True, help="Say nothing about joules.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Figures as one line of JSON: of a function on stdout, with its result and nothing else; of a command on "
    "stderr, its last line, since stdout is the command's.",
)
@click.pass_context
def run(
    ctx: click.Context,
    /,
    function: str | None,
    args: str | None,
    kwargs: str | None,
    repeat: int,
    policy: str | None,
    journal: Path | None,
    meter: str,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Run a command, or a function of a module, as a task on this machine, and say on stderr what it cost.

    A command has your terminal: its input, output and signals are its own, and its exit code is ours (128 and the
    signal's number if it was killed, 124 after --timeout, 126 if it may not be run, 127 if there is none). Ctrl-C goes
    to the command; at the second, or after ten seconds, it is killed. What it leaves in the background ends with it.
    Its output is kept for `wattloom logs`.

    A function is imported, last of all from the working folder, called in a worker, and its result printed: as JSON if
    it can be, else as Python writes it. If it raises, the traceback is printed and the exit code is 1.

    A function of another language is named by its file: JavaScript (f.js:handler), Java (F.java:handler,
    app.jar:org.example.F.handler), WebAssembly (f.wasm), or a program that reads JSON and writes JSON (./program).

    With --repeat, the joules of each call are printed, their mean, and their standard deviation from call to call.

    \b
    Examples:
      wattloom run -- make -j2
      wattloom run --cpu 2 --timeout 600 -- ./train.sh --epochs 3
      wattloom run app:resize --args '["cat.png", 800]'
      wattloom run app:resize --kwargs '{"width": 800}' --repeat 10
      wattloom run resize.js:handler --args '["cat.png", 800]'
    """
    from wattloom.local.running import RunRequest, run_command, run_function

    command: list[str] | None = ctx.meta.get(COMMAND)
    _check_words(function, command, args, kwargs)
    request = RunRequest(
        {name: value for name, value in options.items() if value is not None},
        policy,
        None if journal is None else str(journal),
        meter,
        quiet_stdout=as_json,
        recovered=None if quiet else _say_recovered,
    )
    if command is not None:
        ran = _run_command(ctx, lambda: run_command(command, repeat, request))
        _report_command(ran, quiet, as_json)
    else:
        assert function is not None
        ran = run_function(function, _list(args), _object(kwargs), repeat, request)
        _report_function(ran, quiet, as_json)
    ctx.exit(ran.exit_code)


# -- what was typed ----------------------------------------------------------------------------------------------------


def _check_words(function: str | None, command: list[str] | None, args: str | None, kwargs: str | None) -> None:
    from wattloom.local.running import is_function_file

    if command is None and function is None:
        raise click.UsageError(f"Name a function, as in: wattloom run module:function; {BEHIND}")
    if command is None:
        assert function is not None
        if ":" not in function and not is_function_file(function):
            raise click.UsageError(f"{function!r} is no module:function; {BEHIND.replace('COMMAND', function)}")
        return
    if function is not None:
        raise click.UsageError(f"{function!r} stands before --, and only options may; {BEHIND}")
    if not command:
        raise click.UsageError("There is no command behind --.")
    if args is not None or kwargs is not None:
        raise click.UsageError("--args and --kwargs are for functions; a command has its arguments behind its name.")


def _list(text: str | None) -> list[Any]:
    found = [] if text is None else _parsed("--args", text)
    if not isinstance(found, list):
        raise click.BadParameter(f"must be a JSON list, as in '[{text}]'", param_hint="--args")
    return found


def _object(text: str | None) -> dict[str, Any]:
    found = {} if text is None else _parsed("--kwargs", text)
    if not isinstance(found, dict):
        raise click.BadParameter("must be a JSON object, as in '{\"name\": 1}'", param_hint="--kwargs")
    return found


def _parsed(option: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        shown = text if len(text) <= 200 else f"{text[:200]}..."
        raise click.BadParameter(f"is not JSON: {problem}: {shown}", param_hint=option) from None


def _run_command(ctx: click.Context, begin: Any) -> "Ran":
    from wattloom.local.running import CommandNotFound

    try:
        ran: Ran = begin()
    except CommandNotFound as problem:
        say(f"error: {problem}", err=True)
        ctx.exit(problem.code)
    return ran


def _say_recovered(futures: "list[TaskFuture]") -> None:
    names = ", ".join(future.task_id for future in futures)
    say(f"[wattloom] left by an earlier run: {names} (`wattloom tasks` says what becomes of it)", err=True)


# -- what became of it -------------------------------------------------------------------------------------------------


def _report_command(ran: "Ran", quiet: bool, as_json: bool) -> None:
    from wattloom.local.command import CommandFailed

    if ran.error is not None and not isinstance(ran.error, CommandFailed):
        say(f"error: {ran.error}", err=True)
    if as_json:
        say_json(json.dumps(ran.to_json(), ensure_ascii=False), err=True)
    elif not quiet:
        told = isinstance(ran.error, CommandFailed)
        _say_cost(ran, f"{ran.error}; " if told else "" if ran.error is None else "failed; ")


def _report_function(ran: "Ran", quiet: bool, as_json: bool) -> None:
    if as_json:
        say_json(json.dumps(ran.to_json() | {"result": _as_plain(ran.value)}, ensure_ascii=False))
    elif ran.error is None:
        say(_shown(ran.value))
    if ran.error is not None:
        _say_error(ran.error)
    if not quiet and not as_json:
        _say_cost(ran, "" if ran.error is None else "failed; ")


def _shown(value: Any) -> str:
    """JSON if it can be that without loss, else as Python writes it."""
    try:
        return safe_json(json.dumps(value, ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def _as_plain(value: Any) -> Any:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return repr(value)
    return value


def _say_error(error: BaseException) -> None:
    """The traceback of the worker, where the function raised."""
    cause = error.__cause__
    if type(cause).__name__ == "RemoteTraceback" and cause is not None:
        say(str(cause.args[0]).rstrip("\n"), err=True)
    else:
        say(f"error: {error}", err=True)


def _say_cost(ran: "Ran", failed: str) -> None:
    if len(ran.calls) > 1:
        for line in _lines(ran):
            say(f"[wattloom] {line}", err=True)
        if failed:
            say(f"[wattloom] {failed}not run again", err=True)
        return
    call = ran.calls[-1]
    say(f"[wattloom] {failed}{_cost(call)}, task {call.task}", err=True)


def _lines(ran: "Ran") -> list[str]:
    from wattloom.cli.figures import joules, seconds

    lines = [f"task {call.task}: {_cost(call)}" for call in ran.calls[:MOST_CALLS]]
    if len(ran.calls) > MOST_CALLS:
        lines.append(f"and {len(ran.calls) - MOST_CALLS:,} more: --json shows them")
    times = [call.seconds for call in ran.calls if call.seconds is not None]
    if ran.mean_j is not None and times:
        mean = joules(ran.mean_j, ran.deviation_j, _provenances(ran))
        lines.append(f"mean of {len(ran.calls)}: {mean} from call to call, {seconds(sum(times) / len(times))}")
    return lines


def _provenances(ran: "Ran") -> str:
    from wattloom.energy.measured import Energy

    return ", ".join(sorted({call.energy.provenance for call in ran.calls if isinstance(call.energy, Energy)}))


def _cost(call: "RanCall") -> str:
    from wattloom.cli.figures import seconds
    from wattloom.energy.measured import Energy

    known = isinstance(call.energy, Energy)
    energy = str(call.energy) if known else f"joules unknown ({call.energy.reason})"  # type: ignore[union-attr]
    return energy if call.seconds is None else f"{energy}, {seconds(call.seconds)}"
