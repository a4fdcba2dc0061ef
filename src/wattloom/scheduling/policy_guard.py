"""Asking a policy, which is other people's code.

Owns the guard around it: what it returns is looked at before it is used, and what it raises becomes a message that
names the line, so that a policy cannot take the engine down with it.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Final

from wattloom.bounds import LATEST_S, MOST_FIGURE
from wattloom.cluster.node_class import NodeClass
from wattloom.cluster.reasons import Reason
from wattloom.errors import PolicyError
from wattloom.policies.answers import (
    Dismissal,
    Eviction,
    Frequency,
    Migration,
    Move,
    Preparation,
    Proposal,
    Refusal,
    Resizing,
)
from wattloom.policies.protocol import Policy, break_even_s
from wattloom.policies.view import Ask, View

MOST_MOVES: Final = 1_000
"""So many moves are looked at each time a policy reconsiders."""
LEAST_INTERVAL_S: Final = 1e-3
"""Between two readings, and between two times at which a policy wants to be asked: else nothing else would happen."""


def answer_of(policy: Policy, ask: Ask, view: View) -> Proposal | Refusal | str:
    """The policy's answer, or what went wrong when it was asked."""
    try:
        answer = policy.propose(ask, view)
        _require_an_answer(answer)
    except (Exception, SystemExit) as problem:
        return f"{type(problem).__name__}: {_words(problem)}{_line_of(problem, type(policy).__module__)}"
    return answer


def plan_of(policy: Policy, asks: Sequence[Ask], view: View) -> list[Proposal | None]:
    """Its answers for all of them together; whatever is wrong with one, or with all, leaves it to be asked alone."""
    try:
        answers = list(islice(policy.propose_many(asks, view), len(asks)))
    except (Exception, SystemExit):
        answers = []
    answers += [None] * (len(asks) - len(answers))
    return [_sound(each) for each in answers]


def _sound(answer: object) -> Proposal | None:
    """The answer, if it is one."""
    try:
        _require_an_answer(answer)
    except TypeError:
        return None
    return answer if isinstance(answer, Proposal) else None


def cost_of(proposal: Proposal) -> float | None:
    """What the policy says that the place costs; None: it does not know."""
    try:
        cost = float(proposal.cost)
    except OverflowError:  # a whole number that no float can hold
        return None
    return cost if -MOST_FIGURE <= cost <= MOST_FIGURE else None


def moves_of(policy: Policy, view: View) -> list[Move]:
    """What a policy would change of what runs; nothing, if it fails or says nonsense: what runs goes on."""
    try:
        said = list(islice(iter(policy.reconsider(view)), MOST_MOVES))
        for each in said:
            _require_a_move(each)
    except (Exception, SystemExit):
        return []
    return said


def _require_a_move(said: object) -> None:
    if isinstance(said, (Migration, Resizing, Eviction, Frequency, Preparation, Dismissal)):
        names = [getattr(said, field, "") for field in ("task", "node", "function", "variant")]
        figures = [getattr(said, field, 0) for field in ("cpu", "share")]
        fits = all(isinstance(each, str) for each in names) and isinstance(getattr(said, "memory", 0), int)
        if fits and all(isinstance(each, (float, int)) for each in figures):
            return
    raise TypeError(f"a policy that reconsiders names moves, not {said!r}")


def plan_problem_of(policy: Policy, digest: str) -> str:
    """Why the policy cannot go by a plan; empty: it can, or needs none."""
    try:
        return str(policy.plan_problem(digest))
    except (Exception, SystemExit) as problem:
        return f"the policy failed: {type(problem).__name__}: {_words(problem)}"


def reconsider_interval(policy: Policy) -> float | None:
    """How often a policy reconsiders. One from outside may never have heard of it."""
    interval: float | None = getattr(policy, "reconsider_interval_s", None)
    return interval


def linger_of(policy: Policy, cls: NodeClass, view: View) -> float | None:
    """How long an idle node stays awake; None: for good. That is also what a policy gets that fails or says nonsense:
    a node that stays awake is the lesser evil."""
    if policy.sleeps is False:
        return None
    try:
        said: object = policy.linger(cls, view)
        if said is None and policy.sleeps:
            said = break_even_s(cls)
        linger = float(said) if isinstance(said, (float, int)) else LATEST_S
    except (Exception, SystemExit):
        return None
    return max(linger, 0.0) if linger < LATEST_S else None


def require_sound(policy: Policy) -> None:
    """PolicyError if what a policy says once and for all cannot be followed."""
    guarantee, interval = policy.terms.guarantee, policy.reading_interval_s
    if not 0.0 <= guarantee <= 1.0:
        raise PolicyError("terms.guarantee", f"must be between 0 and 1, not {guarantee}")
    if interval is not None and not LEAST_INTERVAL_S <= interval < LATEST_S:
        raise PolicyError("reading_interval_s", f"must be at least {LEAST_INTERVAL_S} s, not {interval}")
    reconsiders = reconsider_interval(policy)
    if reconsiders is not None and not LEAST_INTERVAL_S <= reconsiders < LATEST_S:
        raise PolicyError("reconsider_interval_s", f"must be at least {LEAST_INTERVAL_S} s, not {reconsiders}")
    together: object = policy.most_at_once
    if not isinstance(together, int) or together < 1:
        raise PolicyError("most_at_once", f"must be a whole number of tasks, at least 1, not {together!r}")


def _require_an_answer(answer: object) -> None:
    if isinstance(answer, Proposal):
        node: object = answer.node
        cost: object = answer.cost
        if not isinstance(node, str) or not isinstance(cost, (float, int)):
            raise TypeError(f"a proposal names a node and a cost, not {node!r} and {cost!r}")
        evicts: object = answer.evicts
        if evicts != () and not (isinstance(evicts, tuple) and all(isinstance(each, str) for each in evicts)):
            raise TypeError(f"a proposal names tasks to evict, not {evicts!r}")
        variant: object = answer.variant
        if not isinstance(variant, str):
            raise TypeError(f"a proposal names a build, not {variant!r}")
    elif isinstance(answer, Refusal):
        reason: object = answer.reason
        until: object = answer.until
        if not isinstance(reason, Reason) or not (until is None or isinstance(until, (float, int))):
            raise TypeError(f"a refusal names a reason and maybe a time, not {reason!r} and {until!r}")
    else:
        raise TypeError(f"a policy answers with a Proposal or a Refusal, not {type(answer).__name__}")


def _words(problem: BaseException) -> str:
    """What it says, if it can say it."""
    try:
        return str(problem)
    except Exception:
        return "(it cannot be printed)"


def _line_of(problem: BaseException, module: str) -> str:
    """The innermost line of the policy's own module that led to the problem."""
    found = ""
    at = problem.__traceback__
    while at is not None:
        if at.tb_frame.f_globals.get("__name__") == module:
            file = at.tb_frame.f_code.co_filename.replace("\\", "/").rpartition("/")[2]
            found = f" ({file}, line {at.tb_lineno})"
        at = at.tb_next
    return found
