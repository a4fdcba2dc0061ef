"""Who bears the machine's idle joules: what each function carries of them, by the policy that is asked for.

Owns the sums over a log's usage. Joules of calls are those above idle, as the scheduler needs them; this is the other
question, of who would have to pay for the machine as a whole. Only intervals count in which somebody worked: a machine
that waits is nobody's.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from wattloom.attribution.idle_policy import Claim, IdlePolicy, share_out
from wattloom.attribution.sharing import to_grain
from wattloom.energy.used import Used
from wattloom.journal.story import EVENT
from wattloom.scheduling.log import Log

USAGE: Final = EVENT + b'usage-arrived"'
MACHINE: Final = EVENT + b'machine-defined"'
JOINED: Final = EVENT + b'node-joined"'


class _Usage(msgspec.Struct, gc=False):
    node: str
    seconds: float = 0.0
    idle_j: float = 0.0
    unattributed_j: float = 0.0
    running_j: float = 0.0
    functions: dict[str, Used] = {}


class _Machine(msgspec.Struct, gc=False):
    name: str
    threads: float


class _Defined(msgspec.Struct, gc=False):
    machine: _Machine


class _Node(msgspec.Struct, gc=False):
    name: str
    machine: str
    cpu: float | None = None


class _Joined(msgspec.Struct, gc=False):
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


def idle_by_function(logs: Iterable[Log], policy: IdlePolicy) -> dict[str, float]:
    """Idle joules that each function bears, over all these logs."""
    borne: dict[str, float] = {}
    for log in logs:
        for function, joules in _of_one(log, policy).items():
            borne[function] = borne.get(function, 0.0) + joules
    return borne


def _of_one(log: Log, policy: IdlePolicy) -> dict[str, float]:
    threads: dict[str, float] = {}
    cores: dict[str, float] = {}
    sums: dict[str, _Sums] = {}
    for line in log.lines():
        if line.startswith(USAGE):
            usage = msgspec.json.decode(line, type=_Usage)
            sums.setdefault(usage.node, _Sums()).add(usage)
        elif line.startswith(MACHINE):
            machine = msgspec.json.decode(line, type=_Defined).machine
            threads[machine.name] = machine.threads
        elif line.startswith(JOINED):
            node = msgspec.json.decode(line, type=_Joined).node
            cores[node.name] = node.cpu or threads.get(node.machine, 0.0)
    borne: dict[str, float] = {}
    for name, each in sums.items():
        for function, joules in each.shared(policy, cores.get(name, 0.0)).items() if each.seconds > 0.0 else ():
            borne[function] = borne.get(function, 0.0) + joules
    return borne
