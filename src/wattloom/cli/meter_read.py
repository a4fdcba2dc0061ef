"""`wattloom meter read`: live readings of one meter, the first check that it works."""

from typing import TYPE_CHECKING, Any, Final

import click

from wattloom.cli.options import COUNT, Finite, as_json, meter_names
from wattloom.cli.printing import say, say_json

if TYPE_CHECKING:
    from wattloom.metering.live import Reading

OF: Final = {
    "wall": "the whole machine",
    "package": "the processors with their memory",
    "device": "devices",
    "share": "this virtual machine, as its host tells",
}


@click.command(short_help="Read a meter now and then, and print its watts.")
@click.argument("name", default="auto", shell_complete=meter_names)
@click.option(
    "--interval",
    type=Finite(0.01, 3600.0),
    default=1.0,
    show_default=True,
    metavar="S",
    help="Seconds between two readings.",
)
@click.option("--count", type=COUNT, metavar="N", help="So many readings. Left out: until Ctrl-C.")
@as_json
def read(name: str, interval: float, count: int | None, as_json: bool) -> None:
    """Read one meter again and again and print what it draws since the last reading: a first check that it works.

    NAME is one of `wattloom meter list`; auto, or left out, is the one that is used. Watts are of the whole machine,
    the package or devices, as the first line says; the figure after ± is one standard deviation; where joules are not
    measured, the error of the power curve is in it. The zones after it overlap: a package holds its cores. With --json
    each reading is a line of its own.

    \b
    Examples:
      wattloom meter read --count 5
      wattloom meter read estimate --interval 0.5 --count 3 --json
    """
    from wattloom.machines.this_machine import this_machine
    from wattloom.metering.choosing import choose_meter
    from wattloom.metering.live import Live

    meter = choose_meter(this_machine(), "" if name == "auto" else name)
    if not as_json:
        say(f"{meter.name}: {meter.summary}; {meter.provenance}, of {OF[meter.quantity]}")
    _loop(Live(meter), interval, count, as_json)


def _loop(live: Any, interval: float, count: int | None, as_json: bool) -> None:
    from itertools import count as numbers
    from time import monotonic, sleep

    import msgspec

    began = monotonic()
    for number in numbers() if count is None else range(count):
        wait = began + number * interval - monotonic()
        if wait > 0.0:
            sleep(wait)
        reading = live.read(monotonic())
        if as_json:
            say_json(msgspec.json.encode(reading).decode())
        else:
            say(_line(reading))


def _line(reading: "Reading") -> str:
    front = f"{reading.time_s:8.2f} s  "
    if reading.problem:
        return f"{front}unknown: {reading.problem}"
    if reading.watts is None:
        return f"{front}{'nothing new' if reading.joules else 'counting from here'}"
    zones = "  ".join(f"{name} {watts:.1f}" for name, watts in reading.zones.items())
    return f"{front}{reading.watts:8.2f} ± {reading.spread_w:.2g} W  {reading.joules:10.1f} J  {zones}".rstrip()
