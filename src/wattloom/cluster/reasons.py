"""Why a node was not taken, why a task waits, why it ended: values with stable names.

Owns the names. They are part of the log format and of what users grep for: never rename one.
"""

from enum import StrEnum


class Reason(StrEnum):
    """Stable names for refusals and ends."""

    ARCHITECTURE = "architecture-differs"
    LABELS = "labels-differ"
    NO_SUCH_DEVICE = "no-such-device"
    TOO_SMALL = "node-too-small"
    CPU = "not-enough-cpu"
    MEMORY = "not-enough-memory"
    DEVICES = "devices-in-use"
    NODE_WATTS = "node-watts-exceeded"
    TDP = "tdp-exceeded"
    CLUSTER_WATTS = "cluster-watts-exceeded"
    POWER_UNKNOWN = "power-unknown"
    RUNTIME_UNKNOWN = "run-time-unknown"
    HELD = "kept-for-a-waiting-task"
    TOO_SLOW = "too-slow"
    DEARER = "costs-more"
    TIE = "equal-cost-later-name"
    TAKEN = "taken"
    NO_NODES = "no-nodes"
    NEVER_FITS = "no-node-is-large-enough"
    NO_ROOM = "no-node-has-room"
    WAITING_IS_CHEAPER = "waiting-is-cheaper"
    WAITING_IS_SOONER = "waiting-ends-sooner"
    POLICY_FAILED = "policy-failed"
    BAD_PROPOSAL = "policy-proposed-an-unknown-node"
    STARVED_AHEAD = "older-task-goes-first"
    BACKING_OFF = "backing-off"
    DEPENDENCIES = "waits-for-other-tasks"
    DEPENDENCY_ENDED = "a-task-it-comes-after-did-not-finish"
    NODE_LOST = "node-lost"
    START_REFUSED = "start-refused"
    FUNCTION_FAILED = "function-failed"
    RETRIES_EXHAUSTED = "retries-exhausted"
    OUTCOME_UNKNOWN = "outcome-unknown"
    CANCELLED = "cancelled"
