"""`wattloom exporter`: this machine's joules for Prometheus and OpenTelemetry."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from wattloom.cli.options import LOG_FILE, WATTS, Finite, Whole, meter_names
from wattloom.cli.printing import say

if TYPE_CHECKING:
    from wattloom.monitoring.exporter import Exporter


@click.command(short_help="Show this machine's joules to Prometheus and OpenTelemetry.")
@click.option("--listen", default="127.0.0.1:9909", show_default=True, metavar="HOST:PORT", help="Where to answer.")
@click.option("--meter", default="auto", shell_complete=meter_names, metavar="M", help="Which meter. auto: the best.")
@click.option(
    "--idle",
    type=click.Choice(["node", "pro-rata", "reserved"]),
    default="node",
    show_default=True,
    help="Who bears idle draw and this program's own joules: the node, everybody by active joules, or by reserved CPU.",
)
@click.option("--interval", type=Finite(0.1, 3600.0), default=1.0, show_default=True, help="Seconds between looks.")
@click.option(
    "--processes",
    type=Whole(0, 1_000_000),
    default=0,
    show_default=True,
    metavar="N",
    help="Series for so many processes, the largest; all others are in one.",
)
@click.option(
    "--least-watts",
    type=WATTS,
    default=0.1,
    show_default=True,
    help="With --processes: only for such that have drawn this much at a look.",
)
@click.option("--node", default="", metavar="NAME", help="The node's name. Left out: $NODE_NAME, else the host's.")
@click.option("--journals", type=LOG_FILE, metavar="DIR", help="Folder of journals. Left out: yours.")
@click.option("--token-file", type=LOG_FILE, metavar="F", help="A file with the token that callers must bring.")
@click.option("--certificate", type=LOG_FILE, metavar="F", help="A TLS certificate (PEM): answer by HTTPS.")
@click.option("--key", type=LOG_FILE, metavar="F", help="Its private key. Left out: it is in the certificate's file.")
@click.option("--insecure", is_flag=True, help="Other addresses than loopback without TLS.")
@click.option("--dashboard", is_flag=True, help="Print the Grafana dashboard (JSON, to import there), and end.")
def exporter(
    listen: str,
    meter: str,
    idle: str,
    interval: float,
    processes: int,
    least_watts: float,
    node: str,
    journals: Path | None,
    token_file: Path | None,
    certificate: Path | None,
    key: Path | None,
    insecure: bool,
    dashboard: bool,
) -> None:
    """Show this machine's joules to Prometheus: of the node, its containers, pods, virtual machines, units and, by the
    journals of your programs, functions. docs/reference/metrics.md lists the metrics.

    On loopback anybody on this machine may ask. Any other address needs a token, by --token-file or in
    WATTLOOM_EXPORTER_TOKEN, and a certificate or --insecure. /healthz says whether the exporter is well.

    If OTEL_EXPORTER_OTLP_ENDPOINT is set, the same metrics are sent there by OpenTelemetry (OTLP over HTTP) as well;
    its other usual variables hold too. That needs: pip install 'wattloom[otel]'

    \b
    Examples:
      wattloom exporter
      wattloom exporter --idle pro-rata --processes 20
      wattloom exporter --dashboard > wattloom.json
      wattloom exporter --listen :9909 --token-file token --certificate node.pem
      OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 wattloom exporter
    """
    import os
    from importlib.resources import files

    import msgspec

    from wattloom.attribution.idle_policy import IdlePolicy
    from wattloom.monitoring.exporter import Exporter
    from wattloom.monitoring.sampler import accountant_here
    from wattloom.monitoring.top_processes import Detail
    from wattloom.serving.access import Access, read_token
    from wattloom.serving.address import parse_address

    if dashboard:
        say((files("wattloom.monitoring") / "dashboards" / "wattloom.json").read_text(), nl=False)
        return
    address = parse_address(listen)
    token = read_token(token_file) if token_file is not None else os.environ.get("WATTLOOM_EXPORTER_TOKEN", "").strip()
    policy: IdlePolicy = msgspec.convert(idle, IdlePolicy)
    accountant = accountant_here(meter, policy=policy, node=node, journals=journals)
    made = Exporter(
        accountant,
        address,
        access=Access(token, certificate, key),
        insecure=insecure,
        detail=Detail(processes, least_watts),
        interval_s=interval,
    )
    _serve(made, f"{'https' if certificate else 'http'}://{made.address}/metrics")


def _serve(exporter: "Exporter", url: str) -> None:
    """Until somebody ends it."""
    import signal
    from threading import Event

    from wattloom.monitoring.otel import send_metrics

    over = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    end_sending = send_metrics(exporter.latest)
    with exporter:
        shown, _ = exporter.latest()
        say(f"{url}: {shown.provenance} joules ({shown.quantity}) by {shown.meter}. End: Ctrl-C.", err=True)
        while not over.wait(1.0):
            if exporter.failure:
                raise click.ClickException(exporter.failure)
        if end_sending is not None:
            end_sending()
