"""The cluster's nodes, as the engine is told of them.

Owns which nodes the engine knows, of which machines they are, and when a node that was deleted is given up: not
before the bindings to it that are under way are known. Knows no pod but by name.
"""

import logging
from collections.abc import Callable, Set
from typing import Final

import msgspec

from wattloom.cluster.node import Node as EngineNode
from wattloom.errors import InputError
from wattloom.kubernetes.model.nodes import ALWAYS_OWN, node_of, own_labels
from wattloom.kubernetes.model.objects import MachineProfile, Node
from wattloom.kubernetes.model.processors import unknown_machine
from wattloom.kubernetes.model.profiles import Found, Profiles
from wattloom.kubernetes.state.driver import TimedDriver
from wattloom.machines.profile import MachineProfile as Machine
from wattloom.scheduling import events as ev

LOG: Final = logging.getLogger(__name__)
Form = Callable[[Node, str, Set[str], float | None], EngineNode]
"""What the engine is told of a node: the object, its machine, the labels that are its own, its cap."""
SHARED: Final = ""
REFERENCE: Final = "reference"
"""A machine of speed 1 that no node is of: run times that owners of pods declare are of it."""


class NodeCache:
    """`here` is told when pods on a node begin to count, `left` just before the engine loses the node and them; `busy`
    says whether bindings to a node are under way."""

    def __init__(
        self,
        driver: TimedDriver,
        *,
        here: Callable[[str], None],
        left: Callable[[str], None],
        busy: Callable[[str], bool],
        form: Form = node_of,
    ) -> None:
        self.objects: dict[str, Node] = {}
        self.problems: dict[str, str] = {}
        """By node: what is wrong with its profile."""
        self._driver = driver
        self._here, self._left, self._busy = here, left, busy
        self._form = form
        self._told: dict[str, EngineNode] = {}
        """As the engine knows them."""
        self._machines: dict[str, Machine] = {}
        self._by_profile: dict[str, Machine] = {}
        """Machines of profiles so far, by what they are."""
        self._profiles = Profiles(machines=self._by_profile)
        self._given: dict[str, MachineProfile] = {}
        self._said: dict[str, set[str]] = {}
        """Warnings about profiles: by node those about its annotation, under SHARED those about what nodes share."""
        self._said_before: set[str] = set()
        """Those that were shared before profiles changed."""
        self._own = ALWAYS_OWN
        self._own_at = 0
        self._define(Machine(name=REFERENCE, arch="any", cores=1, threads=1, memory=0))

    def knows(self, name: str) -> bool:
        """Whether the engine has it, and it was not deleted."""
        return name in self._told and name in self.objects

    def counts(self, name: str) -> bool:
        """Whether the engine has it, be it deleted or not."""
        return name in self._told

    def machine_of(self, name: str) -> Found | None:
        """The machine that a node is taken for; None: there is no such node."""
        node = self.objects.get(name)
        return None if node is None else self._profiles.of(node)

    @property
    def idle_w(self) -> float:
        """What nodes whose power is known draw together without any load."""
        machines = (self._machines[each.machine] for each in self._told.values())
        return sum(machine.watts[0][1] for machine in machines if machine.watts)

    # -- nodes -------------------------------------------------------------------------------------------------------

    def changed(self, node: Node) -> None:
        name = node.metadata.name
        self.objects[name] = node
        if len(self.objects) > 2 * self._own_at:
            self._look_at_labels()
        self._tell(node)

    def deleted(self, name: str) -> None:
        """Nothing more goes there; it is gone for the engine once nothing is on its way there."""
        self.objects.pop(name, None)
        self.problems.pop(name, None)
        self._said.pop(name, None)
        known = self._told.get(name)
        if known is None:
            return
        if self._busy(name):
            none = {**known.resources, "pods": 0}  # some tolerate that it is closed
            closed = msgspec.structs.replace(known, closed=True, resources=none)
            if self._driver.tell(ev.NodeChanged(self._driver.now, closed)):
                self._told[name] = closed
        else:
            self._give_up(name)

    def settled(self, name: str) -> None:
        """A binding to this node is known: one that was deleted may be given up now."""
        if name in self._told and name not in self.objects and not self._busy(name):
            self._give_up(name)

    def _give_up(self, name: str) -> None:
        self._left(name)
        if self._driver.tell(ev.NodeLost(self._driver.now, name)):
            del self._told[name]

    def _tell(self, node: Node) -> None:
        """Cordons and taints must not depend on watts: where the engine refuses the machine, it is told of the rest."""
        name = node.metadata.name
        found = self._found(node)
        try:
            made = self._form(node, found.machine.name, self._own, found.cap_w)
        except InputError as error:
            LOG.error("node %s cannot be used: %s", name, error)
            return
        known = self._told.get(name)
        if known == made or self._tell_as(made, found.machine):
            return
        spare = unknown_machine(node) if known is None else self._machines[known.machine]
        kept = msgspec.structs.replace(made, machine=spare.name)
        if kept not in (known, made) and self._tell_as(kept, spare):
            LOG.warning("node %s counts as a machine %s, not %s", name, kept.machine, made.machine)

    def _tell_as(self, made: EngineNode, machine: Machine) -> bool:
        if not self._define(machine):
            return False
        now, joins = self._driver.now, made.name not in self._told
        if not self._driver.tell(ev.NodeJoined(now, made) if joins else ev.NodeChanged(now, made)):
            return False
        self._told[made.name] = made
        if joins:
            self._here(made.name)
        return True

    def _look_at_labels(self) -> None:
        """Which labels tell single nodes apart; looked at again whenever there are twice as many nodes."""
        self._own_at = max(8, len(self.objects))
        own = own_labels(self.objects.values())
        if own != self._own:
            self._own = own
            self._tell_all()

    # -- machines ----------------------------------------------------------------------------------------------------

    def profile_changed(self, profile: MachineProfile) -> None:
        """`refresh` makes it count, so that many at once cost one look at the nodes."""
        self._given[profile.metadata.name] = profile

    def profile_deleted(self, name: str) -> None:
        self._given.pop(name, None)

    def refresh(self) -> None:
        """Profiles have changed: look at every node again."""
        self._profiles = Profiles(self._given.values(), self._by_profile)
        self._said_before = self._said.pop(SHARED, set())
        for name, problem in self._profiles.problems.items():
            self._warn("", f"MachineProfile {name} is not used: {problem}", SHARED, self._said_before)
        self._tell_all()
        self._said_before = set()

    def _tell_all(self) -> None:
        for node in self.objects.values():
            if node.metadata.name in self._told:
                self._tell(node)

    def _found(self, node: Node) -> Found:
        name = node.metadata.name
        found = self._profiles.of(node)
        if found.problem:
            self.problems[name] = found.problem
        else:
            self.problems.pop(name, None)
        wrong = [f"counts as of unknown power: {found.problem}"] if found.problem else []
        before = self._said.pop(name, set())
        for words in (*wrong, *found.odd):
            if found.by == "annotation":
                self._warn(f"node {name}: ", words, name, before)
            else:
                self._warn(f"node {name}: ", words, SHARED, self._said_before)
        return found

    def _warn(self, at: str, words: str, whose: str, before: Set[str]) -> None:
        """Once: of what nodes share, that is for all of them together."""
        said = self._said.setdefault(whose, set())
        if words not in said and words not in before:
            LOG.warning("%s%s", at, words)
        said.add(words)

    def _define(self, machine: Machine) -> bool:
        """Kubernetes' nodes are not sent to sleep by us: to the engine they cannot."""
        awake = msgspec.structs.replace(machine, sleep_w=None) if machine.sleep_w is not None else machine
        if self._machines.get(awake.name) == awake:
            return True
        if not self._driver.tell(ev.MachineDefined(self._driver.now, awake)):
            return False
        self._machines[awake.name] = awake
        return True
