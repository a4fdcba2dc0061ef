"""The commands as Python functions, under the same names.

Owns what a caller may give (names, paths or objects) and what comes back. Prints nothing, draws nothing.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from wattloom.errors import InputError, LogError, ScenarioError
from wattloom.history import why as asking
from wattloom.history.log import VERSION, Header, Log, split_run
from wattloom.history.pod_names import task_meant
from wattloom.history.queries import FunctionInfo, LogInfo, TaskInfo, functions, logs, tasks
from wattloom.history.search import holding, last_run, wanted
from wattloom.history.stored_log import is_journal
from wattloom.history.why import Why
from wattloom.journal.retention import PruneInfo, prune
from wattloom.machines.catalogue import MachineInfo
from wattloom.machines.catalogue import machine_list as machines
from wattloom.machines.machine import Machine
from wattloom.metering.choosing import MeterInfo
from wattloom.metering.protocol import Meter
from wattloom.monitoring.measuring import Measurement
from wattloom.monitoring.repeated import Repeated, measure_repeatedly
from wattloom.policies.listing import PolicyInfo, compared_policies, policies, separate
from wattloom.policies.loading import as_recorded, both_ways, is_file, load_policy, load_recorded, with_sleep
from wattloom.policies.protocol import Policy, sleeping
from wattloom.prediction.loading import USUAL as USUAL_PREDICTOR
from wattloom.prediction.loading import load_predictor, predictor_with_settings
from wattloom.prediction.protocol import Predictor
from wattloom.scheduling.instructions import ALL_MOVES
from wattloom.simulation import replay as replaying
from wattloom.simulation.build import trial_of
from wattloom.simulation.comparison import Comparison, MachineUse, Row, reference_among
from wattloom.simulation.listing import ScenarioInfo, scenarios
from wattloom.simulation.log_file import log_writer
from wattloom.simulation.loop import Simulation
from wattloom.simulation.parallel_runs import Job, Progress, blamed_on, run_all
from wattloom.simulation.replay import Replay
from wattloom.simulation.result import Result
from wattloom.simulation.scenario import Scenario, load_scenario
from wattloom.simulation.trial import Trial
from wattloom.suite.listing import WorkloadInfo, workloads

if TYPE_CHECKING:
    from wattloom.disaggregation.result import PowerAttribution
    from wattloom.local.leave_one_out import Validation
    from wattloom.local.running import Ran
    from wattloom.machines.curve_estimate import Curve
    from wattloom.machines.power_from_cpu import FittedCurve
    from wattloom.machines.profile import MachineProfile
    from wattloom.machines.profile_file import CpuProfile
    from wattloom.planning.plan import Plan
    from wattloom.planning.rates_file import Rates
    from wattloom.profiling.profiler import Tell
    from wattloom.suite.running import WorkloadRun
    from wattloom.workload.function_profile import FunctionProfiles

__all__ = [
    "FunctionInfo",
    "LogInfo",
    "MachineInfo",
    "MachineMatch",
    "MeterInfo",
    "PolicyInfo",
    "PruneInfo",
    "ScenarioInfo",
    "TaskInfo",
    "WorkloadInfo",
    "attribute",
    "compare",
    "functions",
    "logs",
    "machine_curve",
    "machine_curve_from_samples",
    "machine_match",
    "machines",
    "meters",
    "plan",
    "policies",
    "profile_cpu",
    "profile_functions",
    "prune",
    "replay",
    "run",
    "run_workload",
    "scenarios",
    "simulate",
    "tasks",
    "why",
    "workloads",
]


class MachineMatch(msgspec.Struct, frozen=True):
    """What this machine's power curve was taken from."""

    machine: str
    cores: int
    threads: int
    idle_w: float
    full_w: float
    by: str
    """`profile` (measured here), `catalogue`, `processor` (results with the same), `family` or `kind`."""
    spread: float
    """Of the watts above idle: one relative standard deviation."""
    error: float
    """Of a function's joules per CPU second on this curve, functions differing as they do."""
    quantity: str
    provenance: str
    source: str
    virtual: bool = False
    """A virtual machine: its `threads` are vCPUs, and what is under them is not known."""


def simulate(
    scenario: str | Path | Scenario,
    policy: str | Policy = "least-joules",
    seed: int = 0,
    log: str | Path | None = None,
    progress: Progress | None = None,
    *,
    predictor: str | Predictor = USUAL_PREDICTOR,
    sleep: bool | None = None,
) -> Result:
    """Run a scenario under one policy, in virtual time.

    `scenario` is the name of a built-in one, a path or a Scenario; `policy` and `predictor` are written as on the
    command line. `sleep`: whether idle nodes sleep (None: as the policy has it). A log is overwritten; an interrupted
    run leaves one that can be read. (A ready policy or predictor is logged by its name alone, so a replay of that log
    makes it anew without options.)
    """
    loaded, folder = _scenario(scenario)
    spec, ready = _policy(policy, sleep)
    foreseen, foresees = _predictor(predictor)
    trial = _trial(scenario, loaded, seed, folder)
    moves = tuple(sorted(ALL_MOVES))
    header = Header(VERSION, spec, "simulation", seed, trial.name, predictor=foreseen, moves=moves)
    with ExitStack() as stack, blamed_on(ready, spec):
        writer = None if log is None else log_writer(stack, Path(log), header)
        result = Simulation(trial, ready, writer, progress, foresees).run()
    return msgspec.structs.replace(result, policy=spec, seed=seed)


def compare(
    scenario: str | Path | Scenario,
    policies: str | Sequence[str | Policy] | None = None,
    seeds: int = 1,
    progress: Progress | None = None,
    *,
    reference: str | None = None,
    processes: int | None = None,
    sleep: bool | None = None,
) -> Comparison:
    """Run several policies on the very same tasks, once for each of the seeds 0, 1, ... `seeds` - 1.

    `policies` is a list, or written in one line with commas; without, all built-in ones, each with idle nodes that
    sleep and without, if any node can. `sleep`: one way for all of them. `reference` is the one that
    savings are given against (default: `spread` if it is among them, else the first). `processes`: how many at a time
    (default: as many as pay); results do not depend on it.
    """
    loaded, folder = _scenario(scenario)
    trials = [_trial(scenario, loaded, 0, folder)]
    wanted = _wanted(policies)
    if policies is None and sleep is None and any(Machine(profile).can_sleep for profile in trials[0].machines):
        wanted = both_ways(compared_policies())
    found = [_policy(policy, sleep) for policy in wanted]
    specs = [spec for spec, _ in found]
    _check_comparison(specs, seeds, reference)
    trials += [_trial(scenario, loaded, seed, folder) for seed in range(1, seeds)]
    ready = [None if isinstance(each, str) else policy for each, (_, policy) in zip(wanted, found, strict=True)]
    jobs = [Job(seed, spec, seed, policy) for spec, policy in zip(specs, ready, strict=True) for seed in range(seeds)]
    results = run_all(trials, jobs, progress, processes)
    rows = [Row(spec, results[at * seeds : (at + 1) * seeds]) for at, spec in enumerate(specs)]
    return Comparison(
        scenario=loaded.name,
        title=loaded.title,
        seeds=list(range(seeds)),
        rows=rows,
        reference=reference or reference_among(specs),
        machines=_machines_of(trials[0]),
        assumptions=list(loaded.assumptions),
        sources=list(loaded.sources),
        published=list(loaded.published),
    )


def run(
    what: str | Sequence[str],
    args: Sequence[Any] = (),
    kwargs: dict[str, Any] | None = None,
    *,
    repeat: int = 1,
    policy: str | None = None,
    journal: str | Path | None = None,
    meter: str = "auto",
    **options: Any,
) -> "Ran":
    """Run `"module:function"` with arguments, or a command given as a list of words, in an executor of its own.

    A command has this process's standard streams, and its signals; with `repeat`, one call follows the other until one
    fails. `options` are those of `wattloom.function`. What a call raised is in `error`, not raised here.
    """
    from wattloom.local.running import (
        RunRequest,
        run_command,
        run_function,
    )  # the executor: only for those who run something

    if repeat < 1:
        raise InputError("repeat", f"must be at least 1, not {repeat}")
    request = RunRequest(options, policy, None if journal is None else str(journal), meter)
    if isinstance(what, str):
        return run_function(what, list(args), kwargs or {}, repeat, request)
    if args or kwargs:
        raise InputError("args", "a command has its arguments among its words")
    return run_command(list(what), repeat, request)


def replay(
    log: str | Path | None = None,
    policy: str | Policy | None = None,
    progress: Progress | None = None,
    *,
    trust_policy: bool = False,
    sleep: bool | None = None,
) -> Replay:
    """What a log cost, and, with a policy, what the same work would have cost under it. Without a log: the last run on
    this machine. Where the log names a file of Python as its policy, that is run only if it is trusted; not trusted,
    and with another policy given, nobody looks whether it would decide the same again. What really ran is compared by
    its simulation (`reference`), not by its times."""
    if policy is None and sleep is not None:
        raise InputError("sleep", "says how another policy would have done it: name one")
    path = last_run() if log is None else _log_named(log)
    recorded = None if policy is not None and _is_foreign(path, trust_policy) else _recorded_policy(path, trust_policy)
    if policy is None:
        return replaying.replay(path, recorded, None, progress, trusted=trust_policy)
    spec, ready = _policy(policy, sleep)
    with blamed_on(ready, spec):
        anew = None if recorded is None else _recorded_policy(path, trust_policy)
        found = replaying.replay(path, recorded, ready, progress, anew=anew, trusted=trust_policy)
    assert found.counterfactual is not None
    renamed = msgspec.structs.replace(found.counterfactual, policy=spec, seed=found.recorded.seed)
    return msgspec.structs.replace(found, counterfactual=renamed)


def why(
    task: str, log: str | Path | None = None, progress: Progress | None = None, *, trust_policy: bool = False
) -> Why:
    """Every decision on a task, laid open; and whether the log still leads to the decisions it holds.

    Without a log, the task is looked for in all journals of this user; in a journal, in all its runs. In the log of a
    Kubernetes scheduler, `NAMESPACE/POD` is the last pod of that name; where the log has no decision on it, the one
    before it (`LOG.1`) is read. A file of Python that the log names as its policy is run only if it is trusted.
    """
    path, meant = task_meant(_log_with(task, log), task)
    return asking.why(path, meant, _recorded_policy(path, trust_policy), progress, trusted=trust_policy)


def measure(meter: str | Meter = "auto") -> Measurement:
    """A block of code whose joules are wanted: `with measure() as measured: ...`, then `measured.energy`."""
    return Measurement(meter)


def measure_command(command: Sequence[str], repeat: int = 1, meter: str | Meter = "auto") -> Repeated:
    """Run a command so many times, and measure it with its children."""
    return measure_repeatedly(command, repeat, meter=meter)


def run_workload(what: str, calls: int = 10, seed: int = 1, *, meter: str = "auto") -> "list[WorkloadRun]":
    """Run functions of the suite here: one by its name, those of a category or family, or "all". Raises InputError if
    one of them cannot run here, WrongResult if a result is wrong, CallFailed if a call comes to none."""
    from wattloom import suite
    from wattloom.suite.running import raise_if_wrong, runs

    works = [suite.function(one.name) for one in suite.chosen(what)]
    return [raise_if_wrong(run) for run in runs(works, calls, seed, meter=meter)]


def attribute(
    power: "str | Path | Sequence[tuple[float, float]]",
    runs: "str | Path | Sequence[tuple[float, float, str]]",
    mode: str = "marginal",
    *,
    idle: str | None = None,
    idle_w: float | None = None,
    lag_s: float | None = None,
    package: str | Path | None = None,
    node: str | None = None,
    every_s: float | None = None,
) -> "PowerAttribution":
    """Joules of functions out of a whole machine's power, by who ran when.

    `power` is a file of `time_s,watts` or pairs; `runs` a file of `start_s,end_s,function` or triples. `mode`:
    `marginal` (what leaving a function out would save) or `full` (all above idle shared out). `idle`: `node` (idle is
    nobody's) or `pro-rata` (shared by running seconds); left out, `node` for marginal and `pro-rata` for full.
    `package`: a file of the CPU package's watts or joules, beside the wall's. `node`: only calls on this node.
    `every_s`: `over_time`, too, in windows of so many seconds, each from what the meter had said until then.
    """
    from wattloom.attribution.power_files import recorded_power, recorded_runs
    from wattloom.attribution.whole_machine import attribute_power
    from wattloom.disaggregation.disaggregate import Wanted
    from wattloom.disaggregation.result import way_of_counting

    counted, kept = way_of_counting(mode, idle)
    beside = None if package is None else recorded_power(package)
    return attribute_power(
        recorded_power(power), recorded_runs(runs, node), counted, kept, Wanted(idle_w, lag_s), beside, every_s
    )


def validate_attribution(
    functions: "Sequence[str | Callable[[], object]]" = (),
    *,
    seconds: float = 60.0,
    rounds: int = 3,
    meter: str = "auto",
    progress: Progress | None = None,
) -> "Validation":
    """How far the joules of calls are from what the meter sees when one function is left out of a mix. Functions are
    called without arguments, and given as `module:name` or themselves; none: four small ones of different kinds."""
    from wattloom.local.import_path import import_also_from, named_function
    from wattloom.local.leave_one_out import validate_attribution as validate
    from wattloom.local.sample_work import FUNCTIONS

    import_also_from(os.getcwd())
    named = [named_function(each) if isinstance(each, str) else each for each in functions]
    return validate(named or FUNCTIONS, seconds=seconds, rounds=rounds, meter=meter, progress=progress)


def profile_cpu(
    levels: str = "",
    stressors: str = "integer,matrix,memory",
    *,
    seconds: float = 10.0,
    settle_s: float = 60.0,
    attempts: int = 3,
    meter: str = "",
    output: str | Path | None = None,
    fresh: bool = False,
    frequencies: str = "",
    builtin: bool = False,
    progress: "Tell | None" = None,
) -> "CpuProfile":
    """Load this machine's CPUs level by level and read the meter: what it draws and how fast it is.

    It takes minutes to hours, and is written after every level; called again, it goes on where it was interrupted.
    Arguments are the command's options.
    """
    from wattloom.profiling import storing, taking
    from wattloom.profiling.bench import Terms

    terms = Terms(seconds=seconds, settle_s=settle_s, attempts=attempts)
    path = None if output is None else Path(output)
    request = taking.ProfileRequest(levels, stressors, frequencies, path, fresh, builtin, terms)
    return taking.profile_cpu(request, taking.meter_for(meter), storing.date, progress or (lambda step: None))


def profile_functions(
    functions: Sequence[str] = (),
    *,
    bags: int = 20,
    size: int = 8,
    least: int = 2,
    seconds: float = 10.0,
    seed: int = 1,
    machine: str = "",
    nodes: str | Path | None = None,
    meter: str = "",
    timeout_s: float = 600.0,
    output: str | Path | None = None,
    fresh: bool = False,
    progress: "Tell | None" = None,
    warn: Callable[[str], None] | None = None,
) -> "FunctionProfiles":
    """Run bags of functions here: how many executions a core makes in a second, and what one costs.

    It is written after every bag; called again, it goes on where it was interrupted. Arguments are the command's
    options; `warn` is told of functions that crashed. All that the file knows then comes back.
    """
    from wattloom.affinity.bags import Lots
    from wattloom.affinity.taking import FunctionsRequest
    from wattloom.affinity.taking import profile_functions as take
    from wattloom.profiling.storing import date

    request = FunctionsRequest(
        tuple(functions),
        Lots(bags, size, least, seed),
        seconds,
        machine,
        None if nodes is None else Path(nodes),
        meter,
        None if output is None else Path(output),
        fresh,
        timeout_s,
    )
    return take(request, date, progress or (lambda step: None), warn or (lambda words: None)).profiles


def meters() -> list[MeterInfo]:
    """Every installed meter, and whether it works here."""
    from wattloom.machines.this_machine import this_machine
    from wattloom.metering.choosing import meters as installed

    return installed(this_machine())


def machine_curve(
    idle: float | None = None,
    full: float | None = None,
    *,
    cpu: str | None = None,
    year: float | None = None,
    maker: str | None = None,
    points: "Mapping[float, float] | Sequence[tuple[float, float]]" = (),
) -> "Curve":
    """Watts at the plug at 0, 10 ... 100% load, from idle and full draw and whatever else is known.

    `points`: watts known at loads in percent. Without `idle` or `full` the processor's published results are asked.
    """
    from wattloom.machines.curve_estimate import curve

    pairs = list(points.items() if isinstance(points, Mapping) else points)
    if len({load for load, _ in pairs}) < len(pairs):
        raise InputError("point", "the same load is given twice")
    return curve(idle, full, cpu=cpu, year=year, maker=maker, points=dict(pairs))


def machine_curve_from_samples(samples: str | Path) -> "FittedCurve":
    """A curve over cores in use, learned from a file of `time_s,cpu_cores,watts`."""
    from wattloom.files import read_text
    from wattloom.machines.power_from_cpu import fit_curve, read_samples

    try:
        text = read_text(Path(samples))
    except UnicodeDecodeError as failed:
        raise InputError(str(samples), "is no text file in UTF-8") from failed
    except OSError as failed:
        raise InputError(str(samples), f"cannot be read: {failed.strerror or failed}") from failed
    try:
        return fit_curve(*read_samples(text, str(samples)))
    except InputError as failed:
        raise InputError(failed.field.replace("samples", str(samples), 1), failed.problem) from failed


def machine_match() -> MachineMatch:
    """What this machine's power curve comes from as long as nobody has measured it."""
    from wattloom.machines.curves import curve_error, match_of
    from wattloom.machines.this_machine import this_identity, this_machine

    profile = this_machine()
    found = match_of(profile)
    return MachineMatch(
        machine=profile.name,
        cores=profile.cores,
        threads=profile.threads,
        idle_w=profile.watts[0][1],
        full_w=profile.watts[-1][1],
        by=found.by,
        spread=found.spread,
        error=curve_error(profile),
        quantity=profile.quantity,
        provenance=profile.provenance,
        source=profile.source,
        virtual=this_identity().virtual,
    )


def plan(
    rates: "str | Path | Rates",
    *,
    goal: str | None = None,
    policy: str | None = None,
    profiles: "str | Path | FunctionProfiles | None" = None,
    core_price_w: float = 1.0,
    quantile: float = 0.5,
    split: bool = False,
    seconds: float = 30.0,
    gap: float = 0.0,
    old: "str | Path | Plan | None" = None,
    move_price_w: float = 1.0,
) -> "Plan":
    """Which function runs on which server, so that wanted rates are kept at the least energy; with a proven bound.

    `rates` is a RATES.toml, or what was read of one; arguments are the command's options. With `old`, that plan is
    changed with few moves: each must save `move_price_w`. `gap`: near enough to the best, as a part of the bound.
    """
    from wattloom.planning.making import POLICY_OF, Wishes, make_plan
    from wattloom.planning.plan_file import read_plan
    from wattloom.planning.problem import Terms
    from wattloom.planning.rates_file import Rates, read_rates, refuse_unknown_functions

    if goal is not None and goal not in POLICY_OF:
        raise InputError("goal", f"{goal!r} is none of {', '.join(POLICY_OF)}")
    if not 0.0 < quantile <= 0.5:
        raise InputError("quantile", f"must be above 0 and at most 0.5, not {quantile}")
    asked = rates if isinstance(rates, Rates) else read_rates(Path(rates), _machines_here())
    known, where = _function_profiles(asked.profiles if profiles is None else profiles)
    refuse_unknown_functions(asked.demand, known.functions, where)
    before = read_plan(Path(old)) if isinstance(old, str | Path) else old
    wished = policy or POLICY_OF[goal or "energy"]
    terms = Terms(core_price_w=core_price_w, quantile=quantile)
    wishes = Wishes(wished, terms, split, seconds, gap, before, move_price_w)
    return make_plan(asked.demand, asked.servers, known, wishes, time.monotonic)


def _machines_here() -> "dict[str, MachineProfile]":
    """Machines that a file can name: the catalogue's, and this one."""
    from wattloom.machines.catalogue import machines as catalogue
    from wattloom.machines.this_machine import this_machine

    here = this_machine()
    return {here.name: here, **catalogue()}


def _function_profiles(given: "str | Path | FunctionProfiles | None") -> "tuple[FunctionProfiles, str]":
    """Profiles of functions, and where they come from, in words."""
    from wattloom.affinity.online import known_profiles
    from wattloom.affinity.taking import own_path
    from wattloom.workload.function_profile import FunctionProfiles, read_function_profiles

    if isinstance(given, FunctionProfiles):
        return given, "the profiles given"
    if given is not None:
        return read_function_profiles(Path(given)), str(given)
    known = known_profiles(own_path())
    if not known.rows:
        raise InputError(
            "profiles",
            "there are none: name a file (--profiles, or `profiles` in RATES), or take them here (`wattloom profile "
            f"functions`); they go to {own_path()}",
        )
    return known, f"{own_path()} and your journals"


# -- what was given ----------------------------------------------------------------------------------------------------


def _scenario(given: str | Path | Scenario) -> tuple[Scenario, Path]:
    return (given, Path()) if isinstance(given, Scenario) else load_scenario(str(given))


def _trial(given: str | Path | Scenario, loaded: Scenario, seed: int, folder: Path) -> Trial:
    """A file's errors begin with its name."""
    try:
        return trial_of(loaded, seed, folder)
    except ScenarioError as problem:
        if isinstance(given, Scenario):
            raise
        raise ScenarioError(f"{given}: {problem.field}", problem.problem) from problem


def _wanted(given: str | Sequence[str | Policy] | None) -> Sequence[str | Policy]:
    if given is None:
        return compared_policies()
    return separate(given) if isinstance(given, str) else given


def _policy(given: str | Policy, sleep: bool | None = None) -> tuple[str, Policy]:
    """How it is written, and the policy; with sleep or without, if that was said and is not written."""
    if isinstance(given, str):
        spec = as_recorded(with_sleep(given, sleep))
        return spec, load_policy(spec)
    return with_sleep(given.name, sleep), given if sleep is None else sleeping(given, sleep)


def _log_with(task: str, log: str | Path | None) -> Path:
    """A log as it was given; of a journal, the run that has the task."""
    if log is None:
        return holding(task).log
    path = _log_named(log)
    file, run = split_run(path)
    return holding(task, file).log if run is None and is_journal(file) else path


def _log_named(log: str | Path) -> Path:
    """A file, or the name of a journal in the state folder; what is neither is said to be no file."""
    try:
        return wanted(log)[0]
    except LogError:
        return Path(log)


def _predictor(given: str | Predictor) -> tuple[str, Predictor]:
    """The same of a predictor."""
    if not isinstance(given, str):
        return given.name, given
    spec = predictor_with_settings(given)
    return spec, load_predictor(spec)


def _recorded_policy(path: Path, trusted: bool) -> Policy:
    return load_recorded(Log(path).header.policy, str(path), trusted=trusted)


def _is_foreign(path: Path, trusted: bool) -> bool:
    """Whether the log was decided by a file that is not to be run."""
    return not trusted and is_file(Log(path).header.policy)


def _check_comparison(specs: list[str], seeds: int, reference: str | None) -> None:
    if not specs:
        raise InputError("policies", "name at least one")
    twice = sorted({spec for spec in specs if specs.count(spec) > 1})
    if twice:
        raise InputError("policies", f"{', '.join(twice)} is given twice")
    if seeds < 1:
        raise InputError("seeds", f"must be at least 1, not {seeds}")
    if reference is not None and reference not in specs:
        raise InputError("reference", f"{reference} is not among the policies ({', '.join(specs)})")


# -- what comes back ---------------------------------------------------------------------------------------------------


def _machines_of(trial: Trial) -> list[MachineUse]:
    return [MachineUse(p, sum(node.machine == p.name for node in trial.nodes)) for p in trial.machines]
