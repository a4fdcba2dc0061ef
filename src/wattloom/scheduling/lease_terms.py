"""How long one decision may hold for many equal, short tasks.

Owns the terms, which stand in a log's header because decisions hang on them. What a lease does is in `leases`.
"""

import msgspec


class LeaseTerms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task shorter than a round trip is not worth a decision of its own: those behind it follow on its share."""

    seconds: float = 0.2
    """So long after the decision tasks of the same shape may follow; then the policy is asked again."""
    ahead_s: float = 0.06
    """So much work, as forecast, is placed behind a running task, so that its worker never waits."""
    most: int = 256
    """So many tasks at most stand behind one."""
