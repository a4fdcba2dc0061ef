"""How a scheduler for Kubernetes is run, and why it may not be.

Owns the options, the policies that can decide here, and the errors with which a scheduler ends.
"""

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from wattloom.cluster.fit import tdp_doubts
from wattloom.errors import InputError, WattloomError
from wattloom.kubernetes.client.errors import ApiError, Forbidden
from wattloom.machines.machine import Machine
from wattloom.policies.loading import as_recorded, given_options, load_policy, with_options
from wattloom.policies.protocol import Policy

LOG: Final = logging.getLogger(__name__)
HTTP: Final = "127.0.0.1:10262"


class Options(msgspec.Struct, frozen=True):
    """How a scheduler is run; the command's options."""

    name: str = "wattloom"
    """Pods with this `schedulerName` are ours."""
    policy: str = "least-joules"
    leader_elect: bool = True
    lease_namespace: str = ""
    """Left out: the namespace of the context or of this pod."""
    lease_name: str = "wattloom-scheduler"
    lease_s: float = 10.0
    renew_s: float = 7.0
    retry_s: float = 2.0
    identity: str = ""
    bind_concurrency: int = 48
    pods_per_second: float = 0.0
    """0: as fast as it goes."""
    publish_watts: bool = True
    """Write `wattloom.dev/milliwatts` on nodes, while this replica leads."""
    http: str = HTTP
    """Empty: no web server."""
    probes: str = ""
    """Where health and readiness alone are answered, to everybody. Empty: only at `http`."""
    token: str = ""
    first_answer_s: float = 20.0
    """How long the API server may take for its first answer."""
    log: Path | None = None
    log_size: int = 128 << 20
    """Bytes after which a new log begins; the one before it is kept."""


class LeaseLost(WattloomError):
    """Another replica leads now, or may."""


class NoCluster(WattloomError):
    """Nobody answers where the API server should be."""


def usable_spec(spec: str) -> str:
    """The policy as it is used here: a kubelet turns away what goes beyond a node's allocatable CPU (`OutOfcpu`), so
    one that overcommits unless told otherwise is told otherwise."""
    policy, spec = load_policy(spec), as_recorded(spec)
    return with_options(spec, policy.in_full) if policy.terms.overcommits else spec


def usable_policy(spec: str) -> Policy:
    """The policy, if it can decide here."""
    policy = load_policy(usable_spec(spec))
    if policy.terms.overcommits:
        raise InputError(
            "policy",
            f"{spec} would give a node more pods than its allocatable CPU holds (it sets aside "
            f"{policy.terms.guarantee:.0%} of what they request), and kubelets refuse the excess (OutOfcpu): use "
            f"{_instead_of(policy)}",
        )
    if policy.reading_interval_s is not None:
        raise InputError("policy", f"{policy.name} goes by meters' readings, which Kubernetes does not bring: another")
    asked = _asks_for_sleep(policy, given_options(spec))
    if asked:
        raise InputError("policy", f"{asked} sends idle nodes to sleep, which is not done on Kubernetes: leave it out")
    return policy


def _asks_for_sleep(policy: Policy, given: dict[str, str]) -> str:
    """The option by which the user asks for sleep; that a policy lets nodes sleep by itself does no harm here."""
    of_its_own = [f"{option}=" for option in policy.sleep_options if option in given]
    switched = ["sleep=true"] if given.get("sleep") and policy.sleeps else []
    return next(iter((*of_its_own, *switched)), "")


def tell_how_it_is_used(spec: str) -> None:
    """Once, at the start."""
    used = usable_spec(spec)
    if used != spec:
        LOG.info("%s is used as %s: a node is never given more than its allocatable CPU here", spec, used)


def tell_where_tdp_is_not_kept(policy: Policy, machines: Iterable[Machine]) -> None:
    """Once, when the nodes are known."""
    for note in tdp_doubts(machines) if policy.terms.tdp else ():
        LOG.warning("%s: %s", policy.name, note)


def _instead_of(policy: Policy) -> str:
    """What to use where a policy overcommits."""
    if policy.in_full:
        return " and ".join(f"{key}={value}" for key, value in policy.in_full.items()) + ", or leave the option out"
    return "it without that option, or another policy"


def in_words(error: ApiError) -> WattloomError:
    """What to do about it."""
    if isinstance(error, Forbidden):
        return WattloomError(f"{error}; `wattloom kubernetes manifests --what rbac` has all that is needed")
    return error
