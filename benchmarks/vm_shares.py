"""Host to guest: how late a guest learns what it draws, and how far the figure is off, with 1, 4 and 8 real guests.

Guests are real virtual machines (QEMU in software, one CPU each) that sleep, work and sleep again, and print the
counter that the host shares into them. The silicon is simulated: a powercap tree whose counter rises by 10 W and 15 W
for each busy CPU of this machine, so the truth is known: 15 J for every CPU second of a guest's process. The latency is
the time from the line with which a guest says that it works to the line in which its own counter rises at that pace.
"""

import argparse
import os
import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any

from reporting import Goal, finish
from tests.beds.guest import SHARE, Guest, Line, problem

from wattloom.metering.powercap import Powercap
from wattloom.metering.proc import busy_seconds, process_seconds
from wattloom.monitoring.sharing_out import share_out_to_guests
from wattloom.monitoring.snapshot import Snapshot

IDLE_W, CORE_W = 10.0, 15.0
WORK_S, REST_S = 10, 6
BEFORE_S = 5.0
"""The host watches for so long before the first guest comes."""
SCAPHANDRE_S = 7.0
"""Published for Scaphandre: seconds until a guest's figure has followed (Escheduler, chapter 5)."""
JOB = f"""
show() {{ read -r now rest < /proc/uptime; read -r uj < "{SHARE}/intel-rapl:0/energy_uj"; echo "counter $now $uj"; }}
until [ -e "{SHARE}/intel-rapl:0/energy_uj" ]; do sleep 0.2; done
end=$(($(date +%s) + {REST_S})); while [ $(date +%s) -lt $end ]; do show; sleep 0.2; done
echo working
while :; do :; done & pid=$!
end=$(($(date +%s) + {WORK_S})); while [ $(date +%s) -lt $end ]; do show; sleep 0.2; done
kill $pid
echo resting
end=$(($(date +%s) + 3)); while [ $(date +%s) -lt $end ]; do show; sleep 0.2; done
"""


class Silicon:
    """A powercap tree that counts what this machine would draw."""

    def __init__(self, root: Path) -> None:
        self._zone = root / "intel-rapl:0"
        self._zone.mkdir(parents=True)
        (self._zone / "name").write_text("package-0\n")
        (self._zone / "max_energy_range_uj").write_text("262143328850\n")
        self._over = Event()
        self._write(0.0)
        self._thread = Thread(target=self._run)

    def _write(self, joules: float) -> None:
        new = self._zone / "new"
        new.write_text(f"{round(joules * 1e6)}\n")
        os.replace(new, self._zone / "energy_uj")

    def _run(self) -> None:
        began, busy = monotonic(), busy_seconds(Path("/proc")) or 0.0
        while not self._over.wait(0.02):
            used = (busy_seconds(Path("/proc")) or busy) - busy
            self._write(IDLE_W * (monotonic() - began) + CORE_W * used)

    def __enter__(self) -> "Silicon":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


class Seen:
    """Of each guest: what the host ascribed to it, and what its process had used by then."""

    def __init__(self) -> None:
        self.pids: dict[str, int] = {}
        self.first: dict[str, tuple[float, float]] = {}
        self.last: dict[str, tuple[float, float]] = {}

    def hear(self, seen: Snapshot, problems: list[str]) -> None:
        for each in problems:
            print(f"*** {each}")
        for vm in seen.vms:
            used = process_seconds(Path(f"/proc/{self.pids[vm.name]}")) if vm.name in self.pids else None
            if used is not None and not vm.ended:
                self.first.setdefault(vm.name, (vm.active_j, used))
                self.last[vm.name] = (vm.active_j, used)

    def error(self, name: str) -> float:
        """Relative, over the time from the first to the last look at it."""
        (first_j, first_s), (last_j, last_s) = self.first[name], self.last[name]
        truth = CORE_W * (last_s - first_s)
        return (last_j - first_j - truth) / truth


def latency(lines: list[Line]) -> float | None:
    """Seconds from `working` to the first rise that is more than half of the pace of work."""
    began = next((line.time for line in lines if line.text == "working"), None)
    counts = [(line.time, int(line.text.split()[2])) for line in lines if line.text.startswith("counter ")]
    done = next((line.time for line in lines if line.text == "resting"), None)
    if began is None or done is None:
        return None
    during = [each for each in counts if began <= each[0] <= done]
    pace = (during[-1][1] - during[0][1]) / (during[-1][0] - during[0][0])
    before = [each for each in counts if each[0] < began][-1][1]
    for time, count in during:
        if count > before:
            since, before_time = count - before, time
            if since > 0.5 * pace * min(before_time - began, 1.0):
                return time - began
    return None


def run(guests: int, kernels: Path, every_s: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as made, ExitStack() as stack:
        folder, seen, stop = Path(made), Seen(), Event()
        stack.enter_context(Silicon(folder / "powercap"))
        names = [f"guest{number}" for number in range(guests)]
        for name in names:
            (folder / "vms" / name).mkdir(parents=True)
        exporting = Thread(
            target=share_out_to_guests,
            args=(folder / "vms",),
            kwargs={"meter": Powercap(folder / "powercap"), "every_s": every_s, "stop": stop, "told": seen.hear},
        )
        exporting.start()
        sleep(BEFORE_S)
        running = []
        for name in names:
            guest = stack.enter_context(Guest(name, folder, kernels, folder / "vms" / name, JOB, memory_mb=192))
            seen.pids[name] = guest.process.pid
            running.append(guest)
        lines = {guest.name: list(guest.lines(600.0)) for guest in running}
        stop.set()
        exporting.join()
    late = [found for each in lines.values() if (found := latency(each)) is not None]
    errors = [abs(seen.error(name)) for name in names]
    return {
        "guests": guests,
        "latency s, median": statistics.median(late) if late else None,
        "latency s, worst": max(late) if late else None,
        "energy error, median": statistics.median(errors),
        "energy error, worst": max(errors),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--guests", default="1,4,8", help="how many, separated by commas")
    parser.add_argument("--interval", type=float, default=0.5, help="seconds between two writings of the host")
    parser.add_argument("--kernel", type=Path, default=Path(".tools/guest"), help="an unpacked kernel package")
    given, _ = parser.parse_known_args()
    missing = problem(given.kernel)
    if missing is not None:
        raise SystemExit(f"no guest can be booted here: {missing}")
    rows = [run(int(guests), given.kernel, given.interval) for guests in given.guests.split(",")]
    goals = [
        Goal.at_most(
            "seconds until a guest learns, worst (Scaphandre: 7)", SCAPHANDRE_S / 7, _worst(rows, "latency s, worst")
        ),
        Goal.at_most("relative error of a guest's joules, worst", 0.05, _worst(rows, "energy error, worst")),
    ]
    finish("vm-shares", rows, goals)


def _worst(rows: list[dict[str, Any]], column: str) -> float | None:
    found = [row[column] for row in rows if row[column] is not None]
    return max(found) if found else None


if __name__ == "__main__":
    main()
