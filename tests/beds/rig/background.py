"""A process that is not ours and keeps a share of a core busy, now more, now less. Run by the rig.

`python -m tests.beds.rig.background SHARE SEED`, until it is ended or its parent is gone.
"""

import os
import sys
import time
from random import Random
from typing import Final

TURN_S: Final = 0.02


def main() -> None:
    share, chance, parent = float(sys.argv[1]), Random(int(sys.argv[2])), os.getppid()
    while os.getppid() == parent:
        wanted = min(share * chance.choice((0.25, 0.75, 1.0, 2.0)), 1.0)
        for _ in range(chance.randrange(10, 60)):
            _turn(wanted)


def _turn(share: float) -> None:
    end = time.process_time() + TURN_S * share
    while time.process_time() < end:
        sum(range(300))
    time.sleep(TURN_S * (1.0 - share))


if __name__ == "__main__":
    main()
