"""Asking a policy, which is other people's code.

Owns the guard around it: what it returns is looked at before it is used, and what it raises becomes a message that
names the line, so that a policy cannot take the engine down with it.
"""

from wattloom.cluster.reasons import Reason
from wattloom.policies.answers import Proposal, Refusal
from wattloom.policies.protocol import Policy
from wattloom.policies.view import Ask, View


def answer_of(policy: Policy, ask: Ask, view: View) -> Proposal | Refusal | str:
    """The policy's answer, or what went wrong when it was asked."""
    try:
        answer = policy.propose(ask, view)
        _require_an_answer(answer)
    except (Exception, SystemExit) as problem:
        return f"{type(problem).__name__}: {problem}{_line_of(problem, type(policy).__module__)}"
    return answer


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
