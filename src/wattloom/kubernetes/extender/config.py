"""The configuration by which an unmodified kube-scheduler asks the extender.

Owns its text. Every field is one that kube-scheduler reads; see its reference for v1.
"""

import json
from typing import Final

LISTEN: Final = "127.0.0.1:10263"
WEIGHT: Final = 3
"""kube-scheduler's own resource scores weigh 2 together, stated wishes of pods 2 each."""
CONFIG: Final = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
{connection}
extenders:
- urlPrefix: {url}
  filterVerb: filter
  prioritizeVerb: prioritize
  weight: {weight}
  nodeCacheCapable: true
  ignorable: true
  httpTimeout: 2s
"""
CONNECTION: Final = """\
# Beside --config kube-scheduler does not look at --kubeconfig: outside of a pod it does not start without these lines.
# `wattloom kubernetes extender --print-config --scheduler-kubeconfig FILE` puts them in.
# clientConnection:
#   kubeconfig: /etc/kubernetes/scheduler.conf"""
ENCRYPTED: Final = """  enableHTTPS: true
  tlsConfig:
    caFile: /etc/kubernetes/wattloom/ca.crt
"""
KNOWN_CALLERS: Final = """    certFile: /etc/kubernetes/wattloom/client.crt
    keyFile: /etc/kubernetes/wattloom/client.key
"""


def scheduler_config(
    listen: str = LISTEN,
    *,
    encrypted: bool = False,
    client_ca: bool = False,
    token: bool = False,
    weight: int = WEIGHT,
    kubeconfig: str = "",
) -> str:
    """YAML of a KubeSchedulerConfiguration. Names of files and a token are for the reader to put in; `kubeconfig` is
    kube-scheduler's own."""
    host = f"HOST{listen[listen.rindex(':') :]}" if listen.startswith((":", "0.0.0.0:", "[::]:")) else listen
    url = f"http{'s' if encrypted else ''}://{'wattloom:TOKEN@' if token else ''}{host}"
    connection = f"clientConnection:\n  kubeconfig: {json.dumps(kubeconfig)}" if kubeconfig else CONNECTION
    text = CONFIG.format(url=url, weight=weight, connection=connection)
    return text + (ENCRYPTED if encrypted else "") + (KNOWN_CALLERS if encrypted and client_ca else "")
