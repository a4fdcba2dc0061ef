"""The next program on a journal in the current folder: prints, as JSON, what it finds and what becomes of it."""

import json
import sys
from pathlib import Path
from typing import Any

import golden_calls as calls  # type: ignore[import-not-found]

import wattloom

SOON_S = 60.0
KEYS = ("ended", "under-way", "queued", "again")


def main() -> None:
    with wattloom.Executor(2, journal="work.journal", policy="fifo") as executor:
        found = {each.task_id: end_of(each) for each in executor.recovered}
        keyed = wattloom.function(executor=executor)(calls.mark)
        keys = {
            key: end_of(keyed.options(key=key).remote(f"key-{key}-anew"))
            for key in ("ended", "under-way", "queued", "again")
        }
    with wattloom.Executor(1, journal="work.journal", policy="fifo") as executor:
        left = [each.task_id for each in executor.recovered]
    files = {path.name: len(path.read_text()) for path in Path().iterdir() if path.suffix == "" and path.is_file()}
    json.dump({"recovered": found, "keys": keys, "left": left, "called": dict(sorted(files.items()))}, sys.stdout)


def end_of(future: wattloom.TaskFuture) -> dict[str, Any]:
    problem = future.exception(timeout=SOON_S)
    if problem is None:
        return {"result": future.result()}
    return {"error": type(problem).__name__, "message": str(problem)}


if __name__ == "__main__":
    main()
