"""`wattloom top`: who draws power on this machine, live.

Owns the terminal's mode while keys are read from it, and restores it whatever happens.
"""

import os
import select
import sys
import termios
import tty
from time import sleep
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import click

from wattloom.cli.options import COUNT, Finite, as_json, meter_names
from wattloom.cli.printing import say_json


class Keyboard:
    """Keys while in use. Where there is no terminal to type at, it only waits."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None

    def __enter__(self) -> "Keyboard":
        if sys.stdin.isatty():
            self._before = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        if self._before is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._before)

    def wait(self, seconds: float) -> str:
        """The next key, or nothing if none comes in time. The end of the terminal is a `q`."""
        seconds = max(seconds, 0.0)
        if self._before is None:
            sleep(seconds)
            return ""
        ready, _, _ = select.select([sys.stdin], [], [], seconds)
        if not ready:
            return ""
        return os.read(sys.stdin.fileno(), 1).decode(errors="replace") or "q"


if TYPE_CHECKING:
    from wattloom.cli.top_view import Sort
    from wattloom.monitoring.accountant import Accountant
    from wattloom.monitoring.snapshot import Kind

BY: Final = ("process", "container", "pod", "vm", "unit")
SORTS: Final = ("watts", "joules", "cpu")
HEAD_ROWS: Final = 9
"""Lines of the screen that are not of the table."""
KEYS: Final = "q end   p c o v u: processes, containers, pods, vms, units   w j t: by watts, joules, CPU time"


@click.command(short_help="Show who draws power on this machine, live.")
@click.option("--by", type=click.Choice(BY), default="process", show_default=True, help="Whom to list.")
@click.option("--sort", type=click.Choice(SORTS), default="watts", show_default=True, help="Largest first, by what.")
@click.option("--interval", type=Finite(0.1, 3600.0), default=1.0, show_default=True, help="Seconds between looks.")
@click.option("--limit", type=COUNT, metavar="N", help="List so many. Left out: what fits; of JSON, all.")
@click.option("--meter", default="auto", shell_complete=meter_names, metavar="M", help="Which meter. auto: the best.")
@click.option(
    "--idle",
    type=click.Choice(["node", "pro-rata", "reserved"]),
    default="node",
    show_default=True,
    help="Who bears the idle draw: the node, everybody by active joules, or by reserved CPU.",
)
@click.option("--once", is_flag=True, help="Look once, over one interval, and end.")
@as_json
def top(
    by: str, sort: str, interval: float, limit: int | None, meter: str, idle: str, once: bool, as_json: bool
) -> None:
    """Show what this machine draws and who makes it: processes, containers, pods, virtual machines, units;
    accelerators; and functions of programs that use Wattloom.

    ● is measured, ◐ modelled, ○ estimated. Watts are of the last interval, joules from the start of this command; ± is
    one standard deviation. What nobody who was seen has used is nobody's. In a terminal: q ends, p, c, o, v, u list
    processes, containers, pods, virtual machines, units, and w, j, t sort by watts, joules, CPU time. Elsewhere a table
    is printed at each look; with --json one line of JSON.

    \b
    Examples:
      wattloom top
      wattloom top --once --by container
      wattloom top --json --interval 5
    """
    import msgspec

    from wattloom.attribution.idle_policy import IdlePolicy
    from wattloom.cli.top_view import Sort
    from wattloom.monitoring.sampler import accountant_here
    from wattloom.monitoring.snapshot import Kind

    policy: IdlePolicy = msgspec.convert(idle, IdlePolicy)
    accountant = accountant_here(meter, policy=policy)
    listed: Kind = msgspec.convert(by, Kind)
    order: Sort = msgspec.convert(sort, Sort)
    live = sys.stdout.isatty() and not (once or as_json)
    if live:
        _live(accountant, listed, order, limit, interval)
    else:
        _lines(accountant, listed, order, limit, interval, once=once, as_json=as_json)


def _lines(
    accountant: "Accountant", by: "Kind", sort: "Sort", limit: int | None, interval: float, *, once: bool, as_json: bool
) -> None:
    """One table or one line of JSON at each look."""
    from time import monotonic, sleep, time

    import msgspec

    from wattloom.cli.printing import console
    from wattloom.cli.top_view import History, as_object, picture
    from wattloom.metering.count import seconds_asleep

    history, out = History(), console()
    accountant.sample(monotonic(), seconds_asleep())
    while True:
        sleep(interval)
        shown = accountant.sample(monotonic(), seconds_asleep())
        history.add(shown)
        if as_json:
            line = msgspec.json.encode(as_object(shown, by, sort, limit, time()))
            say_json(line.decode())
            sys.stdout.flush()
        else:
            out.print(picture(shown, history, by, sort, limit or 20, out.width))
        if once:
            return


def _live(accountant: "Accountant", by: "Kind", sort: "Sort", limit: int | None, interval: float) -> None:
    """The whole screen, until q or Ctrl-C."""
    from time import monotonic

    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from wattloom.cli.printing import console
    from wattloom.cli.top_view import History, picture
    from wattloom.metering.count import seconds_asleep

    lists: dict[str, Kind] = {"p": "process", "c": "container", "o": "pod", "v": "vm", "u": "unit"}
    orders: dict[str, Sort] = {"w": "watts", "j": "joules", "t": "cpu"}
    history, out = History(), console()
    shown = accountant.sample(monotonic(), seconds_asleep())
    with Keyboard() as keyboard, Live(console=out, screen=True, auto_refresh=False) as screen:
        due = monotonic() + interval
        while True:
            rows = limit or max(out.height - HEAD_ROWS - len(shown.devices) - min(len(shown.tasks), 10), 3)
            screen.update(
                Group(picture(shown, history, by, sort, rows, out.width), Text(KEYS, style="dim")), refresh=True
            )
            key = keyboard.wait(due - monotonic())
            if key == "q":
                return
            by, sort = lists.get(key, by), orders.get(key, sort)
            if monotonic() >= due:
                shown = accountant.sample(monotonic(), seconds_asleep())
                history.add(shown)
                due = max(due + interval, monotonic() + interval / 2)
