"""The proof: what was noted, what was done and what the journal says agree, over all lives.

Owns the rules. It reads the journal's log line by line on its own, so that a mistake in the journal's own reading
does not excuse itself.
"""

import json
import sqlite3
from collections import Counter, defaultdict
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from tests.local.chaos import notes

from wattloom import api
from wattloom.history.stored_log import ROWS_PER_RUN

ENDS = {"OutcomeUnknown": "unknown", "WorkerLost": "failed"}
"""How a future that has no result names its end."""
SHOWN = 5


@dataclass
class Told:
    """A task as the journal tells it."""

    accepted_in: list[int] = field(default_factory=list)
    placed_in: list[int] = field(default_factory=list)
    ends: list[tuple[int, str]] = field(default_factory=list)
    idempotent: bool = False


@dataclass
class Verdict:
    """What was found. Figures are for people, violations must be empty."""

    violations: list[str] = field(default_factory=list)
    tasks: int = 0
    accepted: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    reruns: int = 0
    """Lines that idempotent tasks left beyond their first."""
    unknown_undone: int = 0
    """Tasks that ended as unknown and had no effect."""
    recovered: int = 0
    runs: int = 0
    ready_s: list[float] = field(default_factory=list)
    """From the opening of the journal until all that was left is taken over."""


def check(folder: Path, *, replay: bool = True) -> Verdict:
    """Everything there is to check after the last life."""
    return _Check(folder).verdict(replay)


class _Check:
    def __init__(self, folder: Path) -> None:
        self._journal = folder / "work.journal"
        self._found = Verdict()
        self._noted: dict[str, list[notes.Note]] = defaultdict(list)
        for note in notes.read(folder / notes.NOTES):
            self._noted[note.what].append(note)
        self._effects: dict[str, list[float]] = defaultdict(list)
        for note in notes.read(folder / notes.EFFECTS):
            self._effects[note.words[0]].append(note.time)
        self._told = self._read_journal()
        self._identity = {
            note.words[0]: note.words[1] for what in ("submitted", "result") for note in self._noted[what]
        }

    def verdict(self, replay: bool) -> Verdict:
        self._one_end_each()
        self._futures_agree()
        self._effects_agree()
        self._nothing_runs_after_its_result()
        self._journal_is_whole(replay)
        self._count()
        return self._found

    def _wrong(self, what: str, whom: list[str]) -> None:
        if whom:
            more = f" and {len(whom) - SHOWN} more" if len(whom) > SHOWN else ""
            self._found.violations.append(f"{what}: {', '.join(whom[:SHOWN])}{more}")

    # -- the journal ---------------------------------------------------------------------------------------------------

    def _read_journal(self) -> dict[str, Told]:
        told: dict[str, Told] = defaultdict(Told)
        with closing(sqlite3.connect(self._journal)) as connection:
            for row, records in connection.execute("SELECT id, records FROM log ORDER BY id"):
                for line in records.splitlines():
                    self._take(json.loads(line), row // ROWS_PER_RUN, told)
            self._found.runs = connection.execute("SELECT count(*) FROM runs").fetchone()[0]
        return dict(told)

    @staticmethod
    def _take(record: dict[str, object], run: int, told: dict[str, Told]) -> None:
        kind, task = record.get("event") or record.get("instruction"), record.get("task")
        if kind in ("task-submitted", "task-orphaned", "task-found"):
            assert isinstance(task, dict)
            told[task["id"]].accepted_in.append(run)
            told[task["id"]].idempotent = bool(task.get("idempotent", False))
        elif kind == "place":
            told[str(task)].placed_in.append(run)
        elif kind == "task-finished":
            told[str(task)].ends.append((run, "finished"))
        elif kind == "conclude":
            told[str(task)].ends.append((run, str(record["outcome"])))

    def _one_end_each(self) -> None:
        accepted = {note.words[0] for note in self._noted["accepted"]}
        self._found.accepted = len(accepted)
        self._wrong("accepted and not in the journal", sorted(accepted - self._told.keys()))
        self._wrong("no end", [task for task, told in self._told.items() if not told.ends])
        self._wrong(
            "more than one end", [f"{task} {told.ends}" for task, told in self._told.items() if len(told.ends) > 1]
        )
        self._wrong(
            "mentioned in a run after its end",
            [t for t, told in self._told.items() if told.ends and max(told.accepted_in) > told.ends[0][0]],
        )
        self._wrong(
            "accepted twice in one run",
            [t for t, told in self._told.items() if len(set(told.accepted_in)) < len(told.accepted_in)],
        )

    def _journal_is_whole(self, replay: bool) -> None:
        with closing(sqlite3.connect(self._journal)) as connection:
            integrity = connection.execute("PRAGMA integrity_check").fetchall()
            runs = [row[0] for row in connection.execute("SELECT DISTINCT id >> 40 FROM log")]
            payloads = connection.execute("SELECT count(*) FROM payloads").fetchone()[0]
        self._wrong("the journal is damaged", [] if integrity == [("ok",)] else [str(integrity)])
        self._wrong("payloads are left behind", [str(payloads)] if payloads else [])
        left = sorted(entry.name for entry in Path(f"{self._journal}.spool").glob("*"))
        self._wrong("spool files are left behind", left)
        if replay:
            self._wrong("runs that do not replay", [str(run) for run in runs if not self._replays(run)])

    def _replays(self, run: int) -> bool:
        return api.replay(f"{self._journal}#{run}").same_decisions is True

    # -- the futures ---------------------------------------------------------------------------------------------------

    def _end_of(self, task: str) -> str:
        told = self._told.get(task)
        return told.ends[0][1] if told is not None and told.ends else "none"

    def _futures_agree(self) -> None:
        ends = [note.words for note in self._noted["end"]]
        results = [note.words for note in self._noted["result"]]
        seen = Counter(words[0] for words in [*ends, *results])
        self._wrong("futures with more than one end", [task for task, times in seen.items() if times > 1])
        self._wrong(
            "a result, not finished in the journal", [w[0] for w in results if self._end_of(w[0]) != "finished"]
        )
        submitted = {note.words[0]: note.words[1] for note in self._noted["submitted"]}
        self._wrong("the result of another task", [w[0] for w in results if submitted.get(w[0], w[1]) != w[1]])
        self._wrong(
            "an end that the journal does not have",
            [" ".join(words) for words in ends if ENDS.get(words[1], words[1]) != self._end_of(words[0])],
        )

    # -- the effects ---------------------------------------------------------------------------------------------------

    def _effects_agree(self) -> None:
        twice = [who for who, times in self._effects.items() if who.startswith("n") and len(times) > 1]
        self._wrong("not idempotent and done more than once", twice)
        finished = [self._identity[task] for task in self._told if self._known_as_finished(task)]
        self._wrong("finished without effect", [who for who in finished if not self._effects.get(who)])
        never = [who for task, who in self._identity.items() if self._effects.get(who) and task not in self._told]
        self._wrong("done and not in the journal", never)

    def _known_as_finished(self, task: str) -> bool:
        """A task that was killed between its acceptance and our note of its name cannot be told from others."""
        return task in self._identity and self._end_of(task) == "finished"

    def _nothing_runs_after_its_result(self) -> None:
        late = [
            note.words[1] for note in self._noted["result"] if max(self._effects.get(note.words[1], [0.0])) > note.time
        ]
        self._wrong("run again after its result was seen", late)

    def _count(self) -> None:
        found = self._found
        found.tasks = len(self._told)
        found.ends = Counter(self._end_of(task) for task in self._told)
        found.reruns = sum(len(times) - 1 for times in self._effects.values())
        found.unknown_undone = sum(
            not self._effects.get(who) for task, who in self._identity.items() if self._end_of(task) == "unknown"
        )
        found.recovered = len(self._noted["recovered"])
        found.ready_s = [float(note.words[1]) for note in self._noted["ready"]]
