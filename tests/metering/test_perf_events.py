"""The kernel's counters, through the real system call: what this machine counts, and words for what it does not."""

import os
import subprocess
import sys
import threading
from time import process_time

import pytest

from wattloom.metering.perf_events import CYCLES, TASK_CLOCK, WANTED, Event, ProcessCounters, countable, problem

pytestmark = pytest.mark.skipif(
    problem(TASK_CLOCK) is not None, reason=f"perf events do not work here at all: {problem(TASK_CLOCK)}"
)


def burn(seconds: float) -> None:
    end = process_time() + seconds
    while process_time() < end:
        pass


def test_the_task_clock_of_this_process_is_its_cpu_time() -> None:
    with ProcessCounters((TASK_CLOCK,)) as counters:
        assert counters.watch(os.getpid()) is None
        before, began = counters.read(os.getpid()), process_time()
        burn(0.2)
        after, used = counters.read(os.getpid()), process_time() - began
    assert before is not None
    assert after is not None
    assert (after[0] - before[0]) * 1e-9 == pytest.approx(used, rel=0.1)


def test_threads_and_children_that_start_later_are_counted_too() -> None:
    with ProcessCounters((TASK_CLOCK,)) as counters:
        counters.watch(os.getpid())
        threads = [threading.Thread(target=burn, args=(0.1,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.2: pass"], check=True)
        for thread in threads:
            thread.join()
        counted = counters.read(os.getpid())
    assert counted is not None
    assert counted[0] * 1e-9 >= 0.28


def test_threads_that_run_already_are_counted() -> None:
    over = threading.Event()
    thread = threading.Thread(target=lambda: over.wait(20))
    thread.start()
    try:
        with ProcessCounters((TASK_CLOCK,)) as counters:
            counters.watch(os.getpid())
            assert len(counters._open[os.getpid()]) >= 2
    finally:
        over.set()
        thread.join()


def test_a_process_that_is_gone_is_refused_in_words() -> None:
    done = subprocess.Popen(["true"])
    done.wait()
    with ProcessCounters((TASK_CLOCK,)) as counters:
        assert counters.watch(done.pid) == "the process is gone"
        assert counters.read(done.pid) is None


def test_a_process_that_ends_while_it_is_counted_keeps_its_count() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", "import time\ntime.sleep(0.3)\nwhile time.process_time() < 0.2: pass"]
    )
    with ProcessCounters((TASK_CLOCK,)) as counters:
        counters.watch(process.pid)
        process.wait()
        counted = counters.read(process.pid)
    assert counted is not None
    assert counted[0] > 0.0


def test_every_descriptor_is_given_back() -> None:
    before = len(os.listdir("/proc/self/fd"))
    counters = ProcessCounters((TASK_CLOCK,))
    counters.watch(os.getpid())
    assert len(os.listdir("/proc/self/fd")) > before
    counters.close()
    assert len(os.listdir("/proc/self/fd")) == before
    assert counters.read(os.getpid()) is None


def test_an_event_that_does_not_exist_is_said_not_to_be_counted() -> None:
    assert "does not count nonsense" in (problem(Event("nonsense", 0, 999)) or "")


def test_what_can_be_counted_here_counts_up() -> None:
    """On a machine with counters this is about cycles; on one without it says that there are none."""
    found = countable(WANTED)
    if CYCLES not in found:
        assert "does not count cycles" in (problem() or "") or "not allowed" in (problem() or "")
        return
    with ProcessCounters(found) as counters:
        counters.watch(os.getpid())
        burn(0.05)
        counts = counters.read(os.getpid())
    assert counts is not None
    assert all(count > 0 for count in counts[:1])


def test_without_permission_the_setting_and_the_way_out_are_named() -> None:
    nobody = 65534
    code = (
        "import os\n"
        "from wattloom.metering.perf_events import TASK_CLOCK, ProcessCounters\n"
        f"os.setgid({nobody}); os.setuid({nobody})\n"
        "print(ProcessCounters((TASK_CLOCK,)).watch(1))"
    )
    if os.getuid() != 0:
        pytest.skip("only root can become nobody to try this: run the tests as root")
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "perf_event_paranoid" in shown.stdout, shown.stderr
