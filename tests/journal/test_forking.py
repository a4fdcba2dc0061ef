"""Forks wait for SQLite, whoever uses it."""

import threading

from wattloom.journal import forking


def test_a_thread_that_comes_while_a_fork_is_under_way_waits_for_its_end() -> None:
    """Its lock is not among those that the fork has taken."""
    done: list[str] = []

    @forking.unforked
    def work() -> None:
        done.append("worked")

    newcomer = threading.Thread(target=work)
    forking._before()
    try:
        newcomer.start()
        newcomer.join(0.2)
        done.append("forked")
    finally:
        forking._after()
    newcomer.join()
    assert done == ["forked", "worked"]
