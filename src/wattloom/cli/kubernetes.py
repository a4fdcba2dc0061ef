"""`wattloom kubernetes`: the scheduler beside kube-scheduler, and what is applied to a cluster for it."""

import click

from wattloom.cli.kubernetes_extender import extender
from wattloom.cli.kubernetes_manifests import manifests
from wattloom.cli.kubernetes_profile import profile
from wattloom.cli.kubernetes_scheduler import scheduler


@click.group(short_help="Schedule pods of a Kubernetes cluster.")
def kubernetes() -> None:
    """Schedule pods of a Kubernetes cluster where they cost the least.

    \b
    Examples:
      wattloom kubernetes manifests --image registry.example/wattloom:1 > wattloom.yaml
      wattloom kubernetes scheduler --policy least-joules
      wattloom why default/web-0
    """


kubernetes.add_command(scheduler)
kubernetes.add_command(extender)
kubernetes.add_command(profile)
kubernetes.add_command(manifests)
