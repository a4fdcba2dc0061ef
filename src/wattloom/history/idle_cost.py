"""Who bears the machine's idle joules: what each function carries of them, by the policy that is asked for.

Owns the sums over a log's usage. Joules of calls are those above idle, as the scheduler needs them; this is the other
question, of who would have to pay for the machine as a whole. Only intervals count in which somebody worked: a machine
that waits is nobody's.
"""

import msgspec

from wattloom.attribution.idle_policy import Claim, IdlePolicy, share_out
from wattloom.energy.grains import to_grain
from wattloom.energy.used import Used
from wattloom.history.records import Happened, Walk
from wattloom.scheduling import events as ev


class _Usage(Happened, gc=False):
    node: str = ""
    seconds: float = 0.0
    idle_j: float = 0.0
    unattributed_j: float = 0.0
    running_j: float = 0.0
    functions: dict[str, Used] = msgspec.field(default_factory=dict)


class _Machine(msgspec.Struct, gc=False):
    name: str
    threads: float


class _Defined(Happened, gc=False):
    machine: _Machine


class _Node(msgspec.Struct, gc=False):
    name: str
    machine: str
    cpu: float | None = None


class _Joined(Happened, gc=False):
    node: _Node


class _Sums:
    """Of one node: the idle joules while it worked, and what its functions used and reserved."""

    def __init__(self) -> None:
        self.seconds = self.idle_j = self.others_j = 0.0
        self.used: dict[str, Used] = {}

    def add(self, usage: _Usage) -> None:
        if not usage.functions and usage.running_j <= 0.0:
            return
        self.seconds += usage.seconds
        self.idle_j += usage.idle_j
        self.others_j += usage.unattributed_j
        for function, used in usage.functions.items():
            self.used[function] = self.used.get(function, Used()) + used

    def shared(self, policy: IdlePolicy, cores: float) -> dict[str, float]:
        claims = {name: Claim(used.joules, used.core_s / self.seconds) for name, used in self.used.items()}
        found = share_out(policy, to_grain(self.idle_j), claims, unattributed_j=self.others_j, cores=cores)
        return dict(found.parts)


class IdleCost:
    """Idle joules of one log, gathered as a walk goes by."""

    def __init__(self, walk: Walk) -> None:
        self._threads: dict[str, float] = {}
        self._cores: dict[str, float] = {}
        self._sums: dict[str, _Sums] = {}
        walk.on_event(ev.MachineDefined, _Defined, self._defined)
        walk.on_event(ev.NodeJoined, _Joined, self._joined)
        walk.on_event(ev.UsageArrived, _Usage, self._usage)

    def by_function(self, policy: IdlePolicy) -> dict[str, float]:
        """What each function bears."""
        borne: dict[str, float] = {}
        for name, each in self._sums.items():
            shared = each.shared(policy, self._cores.get(name, 0.0)) if each.seconds > 0.0 else {}
            for function, joules in shared.items():
                borne[function] = borne.get(function, 0.0) + joules
        return borne

    def _defined(self, event: _Defined) -> None:
        self._threads[event.machine.name] = event.machine.threads

    def _joined(self, event: _Joined) -> None:
        node = event.node
        self._cores[node.name] = node.cpu or self._threads.get(node.machine, 0.0)

    def _usage(self, event: _Usage) -> None:
        self._sums.setdefault(event.node, _Sums()).add(event)
