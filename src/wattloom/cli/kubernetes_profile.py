"""`wattloom kubernetes profile`: tells a cluster what one of its nodes draws."""

from pathlib import Path

import click

from wattloom.cli.options import LOG_FILE, WATTS, as_json
from wattloom.cli.printing import say, say_json


@click.command(short_help="Publish a machine's profile for a node.")
@click.argument("node")
@click.argument("file", type=LOG_FILE)
@click.option("--as-annotation", is_flag=True, help="On the node itself, instead of as a MachineProfile object.")
@click.option("--cap", type=WATTS, metavar="W", help="Also a limit on the node's draw, in watts.")
@click.option("--kubeconfig", type=LOG_FILE, metavar="F", help="Left out: $KUBECONFIG, ~/.kube/config, or this pod's.")
@click.option("--context", default="", metavar="C", help="A context of it. Left out: the current one.")
@as_json
def profile(
    node: str, file: Path, as_annotation: bool, cap: float | None, kubeconfig: Path | None, context: str, as_json: bool
) -> None:
    """Publish a profile that `wattloom profile cpu` has written, so that the scheduler and the extender know what the
    node draws. What was published for the node before is replaced. Nodes that are equal may share one object: change
    nodeName into a selector, as `kubectl edit machineprofile NODE` lets you.

    \b
    Examples:
      wattloom kubernetes profile node7 node7.json
      wattloom kubernetes profile node7 node7.json --as-annotation
      wattloom kubernetes profile node7 node7.json --cap 300
    """
    import asyncio

    import msgspec

    from wattloom.errors import InputError, MissingExtra
    from wattloom.machines.own_profile import read_profile
    from wattloom.machines.profile_curve import machine_profile

    try:
        from wattloom.kubernetes.client.api import Api
        from wattloom.kubernetes.client.kubeconfig import target_of
        from wattloom.kubernetes.publishing.profiles import Published, publish
    except ModuleNotFoundError as missing:
        if missing.name not in ("httptools", "yaml"):
            raise
        raise MissingExtra("wattloom kubernetes", "kubernetes") from None

    measured = read_profile(file)
    try:
        machine = machine_profile(measured)
    except InputError as error:
        raise InputError(str(file), str(error)) from None

    async def write() -> Published:
        async with Api(target_of(kubeconfig, context), connections=2) as api:
            return await publish(api, machine, node, as_annotation=as_annotation, cap_w=cap)

    made = asyncio.run(write())
    if made.warning:
        say(f"Warning: {made.warning}.", err=True)
    if as_json:
        say_json(msgspec.json.encode(made).decode())
    else:
        say(f"Published: {made.where}.")
