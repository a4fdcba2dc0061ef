"""What a policy answers: a node, or why there is none now; and what it would change of what runs.

Owns the answers. They are values: the engine decides what comes of them.
"""

from typing import Final

from wattloom.cluster.reasons import Reason


class Proposal:
    """A node for a task. The engine checks it before anything happens.

    `evicts` names tasks on that node that are to make room. They must come later in the queue's order than the task and
    be such as can be run again; they are stopped, the node is kept free meanwhile, and the policy is asked again when
    there is room. `variant` names the build that is to run there; empty: the engine takes the best that fits.
    """

    __slots__ = ("cost", "evicts", "node", "variant")

    def __init__(self, node: str, cost: float, evicts: tuple[str, ...] = (), variant: str = "") -> None:
        self.node: Final = node
        self.cost: Final = cost
        self.evicts: Final = evicts
        self.variant: Final = variant


class Refusal:
    """No node for now, and why; `until` asks to be asked again then at the latest."""

    __slots__ = ("reason", "until")

    def __init__(self, reason: Reason, until: float | None = None) -> None:
        self.reason: Final = reason
        self.until: Final = until


class Citation:
    """What a plan says of a task, and how far it was followed."""

    __slots__ = ("cores", "in_use", "instead", "plan", "rate", "server", "variant")

    def __init__(
        self, plan: str, server: str, variant: str, cores: int, in_use: float, rate: float, instead: Reason | None
    ) -> None:
        self.plan: Final = plan
        """Its digest; empty: there is none."""
        self.server: Final = server
        """Where the plan has the function; empty: nowhere."""
        self.variant: Final = variant
        self.cores: Final = cores
        """That are the function's own there."""
        self.in_use: Final = in_use
        """Of them, when it was asked."""
        self.rate: Final = rate
        """Requests per second that the function was planned for there."""
        self.instead: Final = instead
        """Why the plan was not followed, or the task has to wait; None: it was followed."""


class Migration:
    """A running task is to go on on another node."""

    __slots__ = ("node", "task")

    def __init__(self, task: str, node: str) -> None:
        self.task: Final = task
        self.node: Final = node


class Resizing:
    """A running task is to have other cores and bytes kept for it, where it is."""

    __slots__ = ("cpu", "memory", "task")

    def __init__(self, task: str, cpu: float, memory: int) -> None:
        self.task: Final = task
        self.cpu: Final = cpu
        self.memory: Final = memory


class Eviction:
    """A task is to go back to the queue."""

    __slots__ = ("task",)

    def __init__(self, task: str) -> None:
        self.task: Final = task


class Frequency:
    """A node is to run at this share of the frequency it has by itself."""

    __slots__ = ("node", "share")

    def __init__(self, node: str, share: float) -> None:
        self.node: Final = node
        self.share: Final = share


class Preparation:
    """An instance of a function is to be loaded on a node, before a task wants it."""

    __slots__ = ("function", "node", "variant")

    def __init__(self, node: str, function: str, variant: str = "default") -> None:
        self.node: Final = node
        self.function: Final = function
        self.variant: Final = variant


class Dismissal:
    """An instance that is ready on a node is not wanted any more."""

    __slots__ = ("function", "node", "variant")

    def __init__(self, node: str, function: str, variant: str = "default") -> None:
        self.node: Final = node
        self.function: Final = function
        self.variant: Final = variant


Move = Migration | Resizing | Eviction | Frequency | Preparation | Dismissal
"""What a policy that reconsiders may name."""
