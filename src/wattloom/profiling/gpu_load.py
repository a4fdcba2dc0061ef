"""Our own load for NVIDIA GPUs: `python -m wattloom.profiling.gpu_load SHARE time|units`, until it is ended.

Owns what a share means. Of the time: all multiprocessors work for that share of every tenth of a second, which is what
the driver calls utilisation. Of the units: that share of the multiprocessors works all the time, as under MPS. Prints
the work done, in billions of floating-point operations, a line every tenth of a second.
"""

import sys
import time
from collections.abc import Callable
from typing import Final

from wattloom.profiling.gpu_kernel import Cuda, CudaError

PERIOD_S: Final = 0.1
SPIN_S: Final = 0.004
"""How long one launch should take: short against the period, long against the launch itself."""
MOST_ROUNDS: Final = 1 << 30


def rounds_for(spin: Callable[[int], float], now: Callable[[], float]) -> int:
    """So many that one launch takes about `SPIN_S`. Twice as many each time, until it takes a quarter of that."""
    rounds = 64
    spin(rounds)  # the first launch also translates and loads
    while rounds < MOST_ROUNDS:
        began = now()
        spin(rounds)
        took = now() - began
        if took >= SPIN_S / 4.0:
            return max(1, round(rounds * SPIN_S / took))
        rounds *= 2
    return rounds


def main() -> None:
    share, by = int(sys.argv[1]) / 100.0, sys.argv[2]
    try:
        cuda = Cuda()
    except CudaError as problem:
        sys.exit(str(problem))
    # Two blocks of this size fill a multiprocessor; for a share of the units each gets one of its own.
    blocks = 2 * cuda.multiprocessors if by == "time" else max(1, round(share * cuda.multiprocessors))
    busy_s = PERIOD_S * share if by == "time" else PERIOD_S
    rounds = rounds_for(lambda many: cuda.spin(blocks, many), time.monotonic)
    begin, owed_s = time.monotonic(), 0.0
    while True:
        work = 0.0
        owed_s += busy_s
        while owed_s > 0.0:  # what one period does too much, the next does less
            began = time.monotonic()
            work += cuda.spin(blocks, rounds)
            owed_s -= time.monotonic() - began
        print(f"{work * 1e-9:.6f}", flush=True)  # noqa: T201
        begin = max(begin + PERIOD_S, time.monotonic() - PERIOD_S)
        time.sleep(max(begin - time.monotonic(), 0.0))


if __name__ == "__main__":
    main()
