"""The ISA study's simple policies: round-robin, x86-first and arm-first, function by function.

Owns their rules and ties. Functions come in the order of the demand, servers in their order; a function that does not
fit where its turn is goes to the next server that has room. No solver is needed.
"""

from collections.abc import Iterable, Sequence

from wattloom.planning.problem import Problem

ARM: tuple[str, ...] = ("aarch64", "arm64")
X86: tuple[str, ...] = ("x86_64", "amd64", "x86")


class Room:
    """What is left of each server."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._cores = [server.cores for server in problem.servers]
        self._memory = [server.memory for server in problem.servers]
        self.kind_of = {place: t for t, kind in enumerate(problem.kinds) for place in kind.members}
        self._allowed = problem.cost < float("inf")

    def take(self, i: int, place: int) -> bool:
        """Put a function there, if it may and fits."""
        t = self.kind_of[place]
        cores, memory = int(self._problem.cores[i, t]), int(self._problem.memory[i, t])
        counted = self._problem.servers[place].memory > 0
        if not self._allowed[i, t] or cores > self._cores[place] or (counted and memory > self._memory[place]):
            return False
        self._cores[place] -= cores
        self._memory[place] -= memory
        return True


def round_robin(problem: Problem) -> list[int]:
    """The next function to the next server; -1: it fits nowhere."""
    room, many = Room(problem), len(problem.servers)
    turn, found = 0, []
    for i in range(len(problem.demand)):
        place = _first(room, i, ((turn + step) % many for step in range(many)))
        found.append(place)
        turn = (turn + 1) % many
    return found


def first(problem: Problem, archs: Sequence[str]) -> list[int]:
    """Fill servers of one architecture in their order, then the others in theirs; -1: it fits nowhere."""
    room = Room(problem)
    places = sorted(range(len(problem.servers)), key=lambda place: problem.servers[place].arch not in archs)
    return [_first(room, i, places) for i in range(len(problem.demand))]


def _first(room: Room, i: int, places: Iterable[int]) -> int:
    return next((place for place in places if room.take(i, place)), -1)
