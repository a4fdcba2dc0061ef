"""Which versions of Kubernetes' programs the test bed builds, and where in Go's modules they are.

The one place that pins them. Knows nothing of how they are built or started.
"""

from typing import Final, NamedTuple

KUBERNETES: Final = "1.37.1"
ETCD: Final = "3.6.16"
KWOK: Final = "0.8.0"
GO: Final = "1.26"
"""What these versions need to be built."""


class Program(NamedTuple):
    """A program of the test bed: its name, the Go module it is part of, and the package that is built."""

    name: str
    module: str
    version: str
    package: str


def _kubernetes(name: str) -> Program:
    return Program(name, "k8s.io/kubernetes", KUBERNETES, f"k8s.io/kubernetes/cmd/{name}")


PROGRAMS: Final = {
    program.name: program
    for program in (
        Program("etcd", "go.etcd.io/etcd/server/v3", ETCD, "go.etcd.io/etcd/server/v3"),
        _kubernetes("kube-apiserver"),
        _kubernetes("kube-scheduler"),
        Program("kwok", "sigs.k8s.io/kwok", KWOK, "sigs.k8s.io/kwok/cmd/kwok"),
        _kubernetes("kube-controller-manager"),
        _kubernetes("kubectl"),
        _kubernetes("kubelet"),
    )
}
"""In the order in which they are built: what most tests need comes first."""
