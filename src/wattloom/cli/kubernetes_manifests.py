"""`wattloom kubernetes manifests`: what a cluster needs for Wattloom, as YAML."""

import click


@click.command(short_help="Print what a cluster needs for Wattloom, for kubectl apply.")
@click.option(
    "--what",
    default="all",
    show_default=True,
    metavar="W",
    help="namespace, crd, rbac, deployment, or all of them in order; extender where it is installed.",
)
@click.option(
    "--image", default="wattloom:latest", show_default=True, metavar="I", help="The image with Wattloom in it."
)
@click.option("--namespace", default="wattloom-system", show_default=True, metavar="N", help="Where it runs.")
def manifests(what: str, image: str, namespace: str) -> None:
    """Print YAML for `kubectl apply -f -`: a namespace, the resource MachineProfile, an account that may do just what
    the scheduler does, and two replicas of the scheduler.

    \b
    Examples:
      wattloom kubernetes manifests --image registry.example/wattloom:1 > wattloom.yaml
      wattloom kubernetes manifests --what rbac
      wattloom kubernetes manifests --what crd > wattloom.yaml
    """
    from wattloom.kubernetes.manifests import manifest

    click.echo(manifest(what, image=image, namespace=namespace), nl=False)
