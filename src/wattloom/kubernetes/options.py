"""How a scheduler for Kubernetes is run, and why it may not be.

Owns the options, the policies that can decide here, and the errors with which a scheduler ends.
"""

from pathlib import Path

import msgspec

from wattloom.errors import InputError, WattloomError
from wattloom.kubernetes.errors import ApiError, Forbidden
from wattloom.kubernetes.health import DEFAULT
from wattloom.policies.loading import load_policy
from wattloom.policies.protocol import Policy


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
    http: str = DEFAULT
    """Empty: no web server."""
    token: str = ""
    first_answer_s: float = 20.0
    """How long the API server may take for its first answer."""
    log: Path | None = None
    log_size: int = 128 << 20
    """Bytes after which a new log begins; the one before it is kept."""
    why_command: tuple[str, ...] = ()
    """The command that explains a task from a log, as JSON; `--log LOG -- TASK` is added."""


class LeaseLost(WattloomError):
    """Another replica leads now, or may."""


class NoCluster(WattloomError):
    """Nobody answers where the API server should be."""


def usable_policy(spec: str) -> Policy:
    """The policy, if it can decide here."""
    policy = load_policy(spec)
    if policy.reading_interval_s is not None:
        raise InputError("policy", f"{policy.name} goes by meters' readings, which Kubernetes does not bring: another")
    if "linger=" in spec.partition(":")[2]:
        raise InputError("policy", "linger= sends idle nodes to sleep, which is not done on Kubernetes: leave it out")
    return policy


def in_words(error: ApiError) -> WattloomError:
    """What to do about it."""
    if isinstance(error, Forbidden):
        return WattloomError(f"{error}; `wattloom kubernetes manifests --what rbac` has all that is needed")
    return error
