"""Real files of every kind that commands read, made by real runs when fuzzing begins.

Owns them and the commands that read each: a new file format needs one line in `FORMATS`, a new command none.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import sin
from pathlib import Path
from typing import Final

import msgspec
from tests.cli.conftest import SCENARIO
from tests.fuzz import mutation
from tests.fuzz.mutation import Mutation
from tests.profiling.made import cpu_profile
from tests.profiling.test_gpu_profile import saturating

from wattloom.machines.profile_file import encode_profile

PROGRAM: Final = """
import sys, wattloom
def double(x): print("doubling", x); return 2 * x
def fails(): raise ValueError("no")
for _ in range(2):
    with wattloom.Executor(journal=sys.argv[1]) as executor:
        done = [executor.submit(double, n) for n in range(6)] + [executor.submit(fails)]
        for each in done: each.exception()
"""
SCENARIO_OF_ALL: Final = (
    SCENARIO.replace('assumptions = ["both', 'power_cap_w = 900\nassumptions = ["both')
    + """
[[arrivals]]
kind = "bursts"
bursts = 2
every_s = 30
within_s = 3
count = 4
functions = { f = 1, g = 2 }

[[arrivals]]
kind = "at-once"
count = 3
functions = { g = 1 }

[functions.g]
cpu = 2
seconds = { big = 3, small = 5 }
cold_start_s = 0.5
keep_alive_s = 20
deadline_s = 100
retries = 1

[[faults]]
node = "big-1"
at_s = 20
back_after_s = 15
"""
)
TRACE: Final = SCENARIO[: SCENARIO.index("[[arrivals]]")] + '[[arrivals]]\nkind = "trace"\nfile = "trace.csv"\n'
MEASURED: Final = """
name = "measured"
[[nodes]]
machine = "cpu.json"
[functions.f]
work_s = 3
[[arrivals]]
kind = "at-once"
count = 5
functions = { f = 1 }
"""
SETTINGS: Final = """
[local]
durability = "process"
retention_days = 14.0
retention_megabytes = 512.0
idle_timeout_s = 60.0
max_workers = 2
policy = "least-joules"

[recording]
path = "recording.csv"
quantity = "wall"

[powerapi]
reports = "reports.json"
target = "rapl"

[host_share]
path = "share"
"""
PROJECT: Final = '[project]\nname = "x"\n' + SETTINGS.replace("\n[", "\n[tool.wattloom.")
KUBECONFIG: Final = """apiVersion: v1
kind: Config
current-context: here
clusters:
- name: home
  cluster:
    server: "http://127.0.0.1:1"
users:
- name: me
  user:
    token: "secret"
contexts:
- name: here
  context:
    cluster: home
    user: me
    namespace: mine
"""
SHARE: Final = {"guest": "web", "run": "r1", "energy_uj": 123456, "time_s": 12.5, "every_s": 1.0, "unix_s": 1.7e9}


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file: how it is made wrong, and commands that read it, one in a line (`{}` is its name)."""

    file: str
    mutations: tuple[Mutation, ...]
    lines: str

    @property
    def commands(self) -> list[str]:
        return [line.strip() for line in self.lines.strip().splitlines()]


_LOG: Final = """
    replay {}
    replay {} --policy pack
    replay {} --json
    why t1 --log {}
    why t7 --log {} --all --json
    tasks --journal {}
    tasks --journal {} --json --state finished
    functions --journal {}
    functions --journal {} --idle pro-rata --json
    logs --journal {}
    logs t2 --journal {}
"""
_JOURNAL: Final = """
    replay {}
    replay {}#1 --json
    why 1-3 --journal {}
    why 1-3 --journal {} --json
    tasks --journal {}
    tasks --journal {}#2 --json
    tasks --journal {} --state failed
    functions --journal {}
    functions --journal {} --idle reserved
    logs --journal {}
    logs 1-2 --journal {}
    logs 1-7 --journal {} --json
    tasks prune --journal {} --older-than 0
    tasks prune --journal {} --larger-than 0 --dry-run --json
    run --journal {} -- true
"""
_SCENARIO: Final = """
    simulate {}
    simulate {} --json --log new.log
    simulate {} --policy exec
    compare {} --policies fifo,least-joules
    compare {} --policies spread,marginal-energy:guarantee=0.8 --seeds 2 --json
"""
_PROFILE: Final = """
    profile show {}
    profile show {} --json
    profile diff {} other.json
    profile diff other.json {} --json
    profile diff {} other.json --package-to-wall 1.2,10
    simulate measured.toml
"""
_POWER: Final = """
    attribute --power {} --runs runs.csv
    attribute --power {} --runs runs.csv --json --mode full
    attribute --power {} --runs runs.csv --every 10
    attribute --power {} --runs runs.csv --package package.csv
"""
_SETTINGS: Final = """
    tasks
    functions --json
    run -q -- true
    meter read recording --count 1 --interval 0.05
"""
_KUBECONFIG: Final = """
    kubernetes profile n1 cpu.json --kubeconfig {}
    kubernetes scheduler --kubeconfig {} --first-answer 0.1 --http ''
    kubernetes extender --kubeconfig {} --print-config
"""
FORMATS: Final = (
    Format("scenario.toml", mutation.TOML, _SCENARIO),
    Format("measured.toml", mutation.TOML, "simulate {}"),
    Format("trace.csv", mutation.CSV, "simulate trace.toml\ncompare trace.toml --policies fifo,pack"),
    Format("run.log", mutation.JSON, _LOG),
    Format("run-1.log", mutation.JSON, _LOG),
    Format("run-2.log", mutation.JSON, _LOG),
    Format("work.journal", mutation.JOURNAL, _JOURNAL),
    Format("cpu.json", mutation.JSON, _PROFILE),
    Format("gpu.json", mutation.JSON, "profile show {}\nprofile show {} --json"),
    Format("power.csv", mutation.CSV, _POWER),
    Format("runs.csv", mutation.CSV, "attribute --power power.csv --runs {}"),
    Format("package.csv", mutation.CSV, "attribute --power power.csv --runs runs.csv --package {}"),
    Format("samples.csv", mutation.CSV, "machines curve --samples {}\nmachines curve --samples {} --json"),
    Format("wattloom.toml", mutation.TOML, _SETTINGS),
    Format("pyproject.toml", mutation.TOML, _SETTINGS),
    Format("recording.csv", mutation.CSV, "meter read recording --count 2 --interval 0.05\nmeter list"),
    Format("reports.json", mutation.JSON, "meter read powerapi --count 2 --interval 0.05"),
    Format("share/wattloom.json", mutation.JSON, "meter read host-share --count 2 --interval 0.05"),
    Format("kubeconfig", mutation.YAML, _KUBECONFIG),
    Format("token", mutation.BYTES, "kubernetes extender --kubeconfig kubeconfig --token-file {}"),
)


def make(folder: Path) -> None:
    """All of them. Takes a second or two: work is really run, simulated and written down."""
    (folder / "share").mkdir()
    for name, text in _texts().items():
        (folder / name).write_text(text)
    (folder / "cpu.json").write_bytes(encode_profile(cpu_profile(stressors=("integer", "matrix"))))
    (folder / "other.json").write_bytes(
        encode_profile(cpu_profile(watts=lambda level: 5.0 + 12.0 * level, name="other"))
    )
    (folder / "gpu.json").write_bytes(encode_profile(saturating()))
    (folder / "share" / "wattloom.json").write_bytes(msgspec.json.encode(SHARE))
    wattloom = (sys.executable, "-m", "wattloom.cli.main")
    _run(folder, *wattloom, "simulate", "scenario.toml", "--policy", "pack", "--log", "run.log")
    _run(folder, sys.executable, "program.py", "work.journal")
    log = (folder / "run.log").read_text()
    for version in (1, 2):
        (folder / f"run-{version}.log").write_text(log.replace('"wattloom_log":3', f'"wattloom_log":{version}', 1))


def _run(folder: Path, *words: str) -> None:
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "HOME": str(folder)}
    subprocess.run(words, cwd=folder, env=environment, check=True, capture_output=True, timeout=300)


def _texts() -> dict[str, str]:
    watts = [round(60 + 40 * (at % 20 > 9) + sin(at), 2) for at in range(160)]
    calls = [(at, at + 9, "fg"[at % 3 > 0], 8.5) for at in range(10, 150, 20)]
    samples = [(at, at % 8, round(50 + 9 * (at % 8) + sin(at), 2)) for at in range(80)]
    return {
        "program.py": PROGRAM,
        "scenario.toml": SCENARIO_OF_ALL,
        "trace.toml": TRACE,
        "measured.toml": MEASURED,
        "trace.csv": "time_s,function,seconds,count,priority,deadline_s\n0,f,3,2,0,50\n1.5,f,4,1,2,\n9,f,1,3,1,9\n",
        "power.csv": _csv("time_s,watts", list(enumerate(watts))),
        "package.csv": _csv("time_s,watts", [(at, round(0.6 * value, 2)) for at, value in enumerate(watts)]),
        "recording.csv": _csv("time_s,watts", list(enumerate(watts[:30]))),
        "runs.csv": _csv("start_s,end_s,function,cpu_s", calls),
        "samples.csv": _csv("time_s,cpu_cores,watts", samples),
        "wattloom.toml": SETTINGS,
        "pyproject.toml": PROJECT,
        "kubeconfig": KUBECONFIG,
        "token": "secret\n",
        "reports.json": "".join(f"{_report(at)}\n" for at in range(9)),
    }


def _report(at: int) -> str:
    report = {"timestamp": f"2026-01-01T00:00:{at:02d}", "sensor": "s", "target": "rapl", "power": 40 + at}
    return msgspec.json.encode(report).decode()


def _csv(head: str, rows: Sequence[tuple[object, ...]]) -> str:
    return "\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n"
