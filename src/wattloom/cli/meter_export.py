"""`wattloom meter export`: on a host, writes each virtual machine's share into a folder that the guests read."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from wattloom.cli.options import LOG_FILE, Finite, meter_names
from wattloom.cli.printing import say

if TYPE_CHECKING:
    from wattloom.monitoring.snapshot import Snapshot


@click.command(name="export", short_help="Write each virtual machine's share for its guest to read.")
@click.option(
    "--vms", type=LOG_FILE, required=True, metavar="DIR", help="The folder; each guest has one of its own in it."
)
@click.option(
    "--meter",
    shell_complete=meter_names,
    default="auto",
    show_default=True,
    metavar="M",
    help="A meter (`wattloom meter list` shows them); auto: the best that works.",
)
@click.option(
    "--interval",
    type=Finite(0.1, 60.0),
    default=1.0,
    show_default=True,
    metavar="S",
    help="Seconds from one writing to the next.",
)
@click.option(
    "--idle",
    type=click.Choice(["node", "pro-rata", "reserved"]),
    default="node",
    show_default=True,
    help="The host's idle joules: kept by the host, or borne by the guests.",
)
@click.option("--quiet", "-q", is_flag=True, help="Say nothing but what goes wrong.")
def export(vms: Path, meter: str, interval: float, idle: str, quiet: bool) -> None:
    """Watch this host's virtual machines and write what each one draws, until Ctrl-C.

    For a guest called web, DIR/web holds wattloom.json (our meter host-share reads it) and Scaphandre's tree. Share
    DIR/web into the guest read-only, with 9p or virtiofs, and mount it at /var/wattloom there: `wattloom meter list` in
    the guest then shows host-share as working, and everything that meters goes by it.

    \b
    Examples:
      sudo wattloom meter export --vms /run/wattloom/vms
      sudo wattloom meter export --vms /run/wattloom/vms --interval 0.5 --idle pro-rata
    """
    import signal
    from threading import Event

    from wattloom.monitoring.sharing_out import share_out_to_guests

    begins = f"writing shares into {vms} every {interval:g} s; Ctrl-C ends it and removes them"
    stop, said = Event(), _Said(quiet, begins)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    share_out_to_guests(vms, meter=meter, every_s=interval, idle=idle, stop=stop, told=said.hear)  # type: ignore[arg-type]


class _Said:
    """Says a thing once, and again when it has changed. That it begins only when meter and folder were found good."""

    def __init__(self, quiet: bool, begins: str) -> None:
        self._quiet = quiet
        self._begins = "" if quiet else begins
        self._problems: tuple[str, ...] = ()
        self._guests: tuple[str, ...] | None = None

    def hear(self, seen: "Snapshot", problems: list[str]) -> None:
        if self._begins:
            say(self._begins, err=True)
            self._begins = ""
        wrong = (*([seen.problem] if seen.problem else []), *problems)
        if wrong != self._problems:
            self._problems = wrong
            for each in wrong or ("all is well again",):
                say(f"[wattloom] {each}", err=True)
        guests = tuple(sorted(vm.name for vm in seen.vms if not vm.ended))
        if guests != self._guests and not self._quiet:
            self._guests = guests
            say(f"[wattloom] guests: {', '.join(guests) or 'none'}", err=True)
