"""A journal with a proper end, in the current folder: results, retries, failures, keys, a cancelled call."""

from concurrent.futures import wait
from contextlib import suppress

import golden_calls as calls  # type: ignore[import-not-found]

import wattloom


def main() -> None:
    with wattloom.Executor(2, journal="work.journal", policy="least-joules") as executor:
        every(executor)
    with wattloom.Executor(1, journal="work.journal", policy="least-joules") as executor:
        keyed = wattloom.function(executor=executor)(calls.mark).options(key="order-17")
        assert keyed.remote("keyed").result() == 1
        assert executor.submit(calls.double, 21).result() == 42


def every(executor: wattloom.Executor) -> None:
    remote = wattloom.function(executor=executor)
    made = [executor.submit(calls.double, number) for number in range(6)]
    made.append(remote(calls.third_time).options(retries=2).remote("thrice"))
    made.append(remote(calls.refuse).options(retries=1).remote("refused"))
    made.append(remote(calls.mark).options(timeout=0.3).remote("too-long", 60.0))
    made.append(executor.submit(calls.length, bytes(2_000_000), "large"))
    made.append(remote(calls.mark).options(key="order-17").remote("keyed"))
    made.append(remote(calls.mark).options(cpu=2.0, priority=3, energy_weight=1.0).remote("whole", 0.2))
    for _ in range(2):  # both workers are busy while the next one is cancelled
        made.append(executor.submit(calls.mark, "busy", 0.5))
    unwanted = executor.submit(calls.mark, "never")
    executor.sync()
    assert unwanted.cancel()
    wait(made)
    for each in made:
        with suppress(wattloom.WattloomError):
            each.energy  # noqa: B018 - the meter has counted it then


if __name__ == "__main__":
    main()
