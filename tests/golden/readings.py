"""What `tasks`, `replay` and `why` say of logs and journals that earlier code wrote.

Owns the questions and the file of the answers.
"""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from click.testing import CliRunner
from tests.golden import journals
from tests.golden.comparing import lost

from wattloom.cli.main import cli

FOLDER: Final = Path(__file__).parent
FILE: Final = FOLDER / "readings.json"
LOGS: Final = FOLDER / "logs"
OTHER: Final = "spread"
"""The policy under which the same work is simulated as well."""
ASKED: Final = ("t1", "t9", "t10", "t20")
"""Tasks of a simulation that `why` is asked about."""

Said = dict[str, Any]
"""By the words of the command, what it printed with `--json`."""
Tell = Callable[[str], None]


def names() -> list[str]:
    """Every log and journal that is kept."""
    return [*sorted(path.name for path in LOGS.glob("*.log")), *journals.NAMES]


def said(name: str) -> Said:
    if name in journals.NAMES:
        with tempfile.TemporaryDirectory(prefix="wattloom-golden-") as folder:
            return _said_of_journal(journals.unpacked(name, Path(folder)))
    return dict(_said_of_log(LOGS / name))


def recorded() -> dict[str, Said]:
    found: dict[str, Said] = json.loads(FILE.read_text())
    return found


def record(tell: Tell) -> None:
    lines = []
    for number, name in enumerate(names(), start=1):
        answers = ",\n".join(f"  {json.dumps(words)}: {json.dumps(said)}" for words, said in said(name).items())
        lines.append(f"{json.dumps(name)}: {{\n{answers}\n}}")
        tell(f"readings {number} of {len(names())}: {name}")
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def different(tell: Tell) -> list[str]:
    found = []
    for number, (name, before) in enumerate(recorded().items(), start=1):
        found += [f"{name}: {each}" for each in lost(before, said(name))]
        tell(f"readings {number} of {len(names())}: {name}")
    return found


# -- questions ---------------------------------------------------------------------------------------------------------


def _said_of_log(path: Path) -> Iterator[tuple[str, Any]]:
    yield "replay", _asked("replay", path)
    yield f"replay --policy {OTHER}", _asked("replay", path, "--policy", OTHER)
    for task in _asked_about(path):
        yield f"why {task}", _asked("why", task, "--log", path)


def _asked_about(path: Path) -> Iterable[str]:
    """Of a simulation some tasks, of a Kubernetes scheduler all."""
    if not path.name.startswith("kubernetes"):
        return ASKED
    events = (json.loads(line) for line in path.read_text().splitlines())
    return [event["task"]["id"] for event in events if event.get("event") == "task-submitted"]


def _said_of_journal(path: Path) -> Said:
    found: Said = {"tasks": _asked("tasks", "--journal", path, "--limit", "100")}
    for run in sorted({task["run"] for task in found["tasks"]}):
        found[f"replay #{run}"] = _asked("replay", f"{path}#{run}")
        found[f"replay #{run} --policy {OTHER}"] = _asked("replay", f"{path}#{run}", "--policy", OTHER)
    for task in found["tasks"]:
        found[f"why {task['task']}"] = _asked("why", task["task"], "--log", path)
        found[f"logs {task['task']}"] = _asked("logs", task["task"], "--journal", path)
    return found


def _asked(command: str, *words: object) -> Any:
    paths = [word for word in words if isinstance(word, Path)]
    done = CliRunner().invoke(cli, [command, *map(str, words), "--json"], prog_name="wattloom", catch_exceptions=False)
    assert done.exit_code == 0, done.output
    text = done.stdout
    for path in paths:
        text = text.replace(str(path.parent), "FOLDER")
    return json.loads(text)
