"""Asking a policy, which is other people's code.

Owns the guard around it: what it returns is looked at before it is used, and what it raises becomes a message that
names the line, so that a policy cannot take the engine down with it.
"""

from typing import Final

from wattloom.bounds import LATEST_S, MOST_FIGURE
from wattloom.cluster.node_class import NodeClass
from wattloom.cluster.reasons import Reason
from wattloom.errors import PolicyError
from wattloom.policies.answers import Proposal, Refusal
from wattloom.policies.protocol import Policy
from wattloom.policies.view import Ask, View

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


def cost_of(proposal: Proposal) -> float | None:
    """What the policy says that the place costs; None: it does not know."""
    try:
        cost = float(proposal.cost)
    except OverflowError:  # a whole number that no float can hold
        return None
    return cost if -MOST_FIGURE <= cost <= MOST_FIGURE else None


def linger_of(policy: Policy, cls: NodeClass, view: View) -> float | None:
    """How long an idle node stays awake; None: for good. That is also what a policy gets that fails or says nonsense:
    a node that stays awake is the lesser evil."""
    try:
        said: object = policy.linger(cls, view)
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


def _require_an_answer(answer: object) -> None:
    if isinstance(answer, Proposal):
        node: object = answer.node
        cost: object = answer.cost
        if not isinstance(node, str) or not isinstance(cost, (float, int)):
            raise TypeError(f"a proposal names a node and a cost, not {node!r} and {cost!r}")
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
