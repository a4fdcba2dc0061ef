"""`wattloom kubernetes manifests`: what a cluster needs for Wattloom, as YAML."""

import click

from wattloom.cli.printing import say


@click.command(short_help="Print what a cluster needs for Wattloom, for kubectl apply.")
@click.option(
    "--what",
    default="all",
    show_default=True,
    metavar="W",
    help="namespace, crd, rbac, publishing, deployment, or all of these in order. Or extender: a kube-scheduler that "
    "asks it.",
)
@click.option(
    "--image", default="", metavar="I", help="The image with Wattloom in it. Left out: wattloom with this version."
)
@click.option(
    "--kube-scheduler-image",
    default="kube-scheduler:v1.37.1",
    show_default=True,
    metavar="I",
    help="For `--what extender`: the image of your cluster's kube-scheduler.",
)
@click.option("--namespace", default="wattloom-system", show_default=True, metavar="N", help="Where it runs.")
@click.option(
    "--publish-watts/--no-publish-watts",
    default=True,
    show_default=True,
    help="Whether it writes wattloom.dev/milliwatts on nodes, and has the right to.",
)
def manifests(what: str, image: str, kube_scheduler_image: str, namespace: str, publish_watts: bool) -> None:
    """Print YAML for `kubectl apply -f -`: a namespace, the resource MachineProfile, an account that may do just what
    the scheduler does, and two replicas of the scheduler with a disruption budget and a network policy.

    With `--what extender` instead: a second kube-scheduler with the extender beside it in one pod, for pods with
    `schedulerName: wattloom-extended`, and its account. It needs the namespace, and the resource for profiles.

    \b
    Examples:
      wattloom kubernetes manifests --image registry.example/wattloom:1 > wattloom.yaml
      wattloom kubernetes manifests --what rbac
      wattloom kubernetes manifests --what extender --kube-scheduler-image registry.example/kube-scheduler:v1.37.1
    """
    from wattloom.kubernetes.manifests import manifest

    text = manifest(
        what,
        image=image,
        kube_scheduler_image=kube_scheduler_image,
        namespace=namespace,
        publish_watts=publish_watts,
    )
    say(text, nl=False)
