"""Lives and deaths: starts the program again and again, and kills it, or its workers, at random moments.

Owns the kills and what is seen from outside after each: no process may be left. What the journal and the effects say is
the checker's business.
"""

import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.local.chaos import notes, processes

ROOT = Path(__file__).parents[3]
KINDS = ("worker", "parent", "both", "all")
ORPHANS_GONE_S = 1.0
START_S = 20.0
LAST_LIFE_S = 60.0


@dataclass
class Killing:
    """What was done, and what was wrong already then."""

    kills: Counter[str] = field(default_factory=Counter)
    lives: int = 0
    violations: list[str] = field(default_factory=list)


class Controller:
    """One chaos run in a folder of its own."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self._seed = seed
        self._chance = random.Random(seed)
        self.done = Killing()

    def run(self, kills: int) -> Killing:
        """So many kills, then a last life that ends properly."""
        while self.done.kills.total() < kills and len(self.done.violations) < 10:
            self._live(kills - self.done.kills.total())
        return self.live_to_the_end("--last")

    # -- one life ------------------------------------------------------------------------------------------------------

    def _live(self, left: int) -> None:
        mark, program = self._start()
        try:
            self._wait_for_a_moment(program)
            for _ in range(min(self._chance.choice([0, 0, 1, 2]), left - 1)):
                if program.poll() is None and self._kill_a_worker(program.pid):
                    time.sleep(self._chance.uniform(0.0, 0.1))
            self._kill(self._chance.choice(KINDS[1:]), program)
        finally:
            self._no_one_left(mark, program)

    def _start(self, *options: str) -> tuple[str, "subprocess.Popen[bytes]"]:
        self.done.lives += 1
        mark = uuid.uuid4().hex
        command = [sys.executable, "-m", "tests.local.chaos.program", str(self.folder), str(self.done.lives)]
        with (self.folder / "stderr").open("ab") as errors:
            program = subprocess.Popen(
                [*command, str(self._seed), *options],
                cwd=ROOT,
                env=os.environ | {processes.MARK: mark},
                stdin=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        return mark, program

    def _wait_for_a_moment(self, program: "subprocess.Popen[bytes]") -> None:
        """Sometimes while it takes over what was left, mostly while it works."""
        if self._chance.random() < 0.3:
            self._wait_for("opening", program)
            time.sleep(self._chance.uniform(0.0, 0.15))
        else:
            self._wait_for("ready", program)
            time.sleep(self._chance.uniform(0.0, 0.6))

    def _wait_for(self, what: str, program: "subprocess.Popen[bytes]") -> None:
        wanted = f" {what} {self.done.lives}".encode()
        path = self.folder / notes.NOTES
        begin = 0

        def said() -> bool:
            nonlocal begin
            if program.poll() is not None:
                return True
            if not path.exists():
                return False
            with path.open("rb") as file:
                file.seek(max(0, begin - 100))
                news = file.read()
            begin += len(news)
            return any(line.endswith(wanted) or wanted + b" " in line for line in news.splitlines())

        if not processes.within(START_S, said):
            self.done.violations.append(f"life {self.done.lives}: not {what} within {START_S:g} s")

    # -- kills ---------------------------------------------------------------------------------------------------------

    def _kill_a_worker(self, parent: int) -> bool:
        workers = processes.workers_of(parent)
        if not workers:
            return False
        victim = self._chance.choice(workers)
        _shoot(victim)
        self.done.kills["worker"] += 1
        if not processes.within(ORPHANS_GONE_S, lambda: not processes.group_of(victim)):
            self.done.violations.append(f"life {self.done.lives}: what a killed worker had started lives on")
        return True

    def _kill(self, kind: str, program: "subprocess.Popen[bytes]") -> None:
        if program.poll() is not None:
            self.done.violations.append(f"life {self.done.lives}: the program ended with code {program.returncode}")
            return
        workers = processes.workers_of(program.pid) if kind != "parent" else []
        victims = [program.pid, *(workers if kind == "all" else workers[:1])]
        self._chance.shuffle(victims)
        for victim in victims:
            _shoot(victim)
        self.done.kills[kind] += 1

    def _no_one_left(self, mark: str, program: "subprocess.Popen[bytes]") -> None:
        if program.poll() is None:
            program.wait(timeout=START_S)
        if processes.within(ORPHANS_GONE_S, lambda: not processes.marked(mark)):
            return
        left = processes.marked(mark)
        self.done.violations.append(f"life {self.done.lives}: {len(left)} processes outlive their program")
        for pid in left:
            _shoot(pid)

    def live_until_statement(self, number: int) -> bool:
        """A life that ends by its own hand just before that statement to its journal; False: it had fewer."""
        mark, program = self._start("--calm", f"--die-at={number}")
        try:
            died = program.wait(timeout=LAST_LIFE_S) == -signal.SIGKILL
            self.done.kills["statement"] += died
            return died
        finally:
            self._no_one_left(mark, program)

    def live_to_the_end(self, option: str) -> Killing:
        """A life that nobody cuts short."""
        mark, program = self._start(option)
        try:
            code = program.wait(timeout=LAST_LIFE_S)
            if code:
                self.done.violations.append(f"a life that nobody cut short ended with code {code}")
        except subprocess.TimeoutExpired:
            self.done.violations.append(f"a life that nobody cut short did not end within {LAST_LIFE_S:g} s")
            _shoot(program.pid)
        finally:
            self._no_one_left(mark, program)
        return self.done


def _shoot(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
