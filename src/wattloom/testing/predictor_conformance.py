"""What every predictor must do, ours and anybody else's: `check_predictor(MyPredictor)` in a test is enough.

Owns the checks. They tell predictors made-up histories and raise AssertionError with the history's seed when one breaks
a rule. To see each rule as a test of its own:

    @pytest.mark.parametrize("check", CHECKS, ids=check_name)
    def test_my_predictor(check: Check) -> None:
        check(MyPredictor)
"""

from collections.abc import Callable
from math import isfinite
from random import Random
from typing import Final

from wattloom.energy.forecast import RunTime, Unknown
from wattloom.energy.used import Used
from wattloom.machines.machine import Machine
from wattloom.prediction.protocol import Predictor
from wattloom.prediction.readings import Readings
from wattloom.setting_groups import keys_with, settings_type
from wattloom.testing.policy_clusters import MANY_CORES, THREADS, UNMEASURED
from wattloom.testing.settings_conformance import check_settings
from wattloom.units import Seconds
from wattloom.workload.function import Function, Variant
from wattloom.workload.requirements import Requirements

Make = Callable[..., Predictor]
Check = Callable[[Make], None]
Said = dict[tuple[str, str, str], object]

SEEDS: Final = range(8)
STEPS: Final = 120
MACHINES: Final = tuple(Machine(profile) for profile in (THREADS, MANY_CORES, UNMEASURED))
DECLARED: Final = Function("declared", Requirements(), (Variant(seconds={THREADS.name: 10.0}), Variant("other")))
STRANGE: Final = Function("strange", Requirements(), (Variant(),))
NEVER_RUN: Final = Function("never-run", Requirements(), (Variant(),))
FUNCTIONS: Final = (DECLARED, STRANGE)


def check_predictor(make: Make) -> None:
    """All checks, one after the other. `make` is the class, or anything that makes a fresh one."""
    for check in CHECKS:
        check(make)


def check_name(check: Check) -> str:
    """The rule as a sentence."""
    return check.__name__.replace("_", " ")


def it_describes_itself(make: Make) -> None:
    predictor = _fresh(make)
    for field in ("name", "summary"):
        _require(bool(getattr(predictor, field, "")), f"it has no {field}")
    _require(isinstance(predictor.readings(), Readings), "what it keeps readings in is no Readings")


def it_can_be_set(make: Make) -> None:
    """The settings it brings, if it does, are sound, and no secrets: a log names them."""
    check_settings(make)
    kind = settings_type(make)
    secret = sorted(keys_with("credential", kind)) if kind is not None else []
    _require(not secret, f"{', '.join(secret)}: a predictor has no credentials, since logs name its settings")


def it_guesses_nothing(make: Make) -> None:
    """Of a function that never ran and for which nobody declared anything there is no figure."""
    for predictor in (_knowing(_fresh(make)), _told(_fresh(make), 0)):
        for machine in MACHINES:
            said = predictor.expect(NEVER_RUN, NEVER_RUN.variants[0], machine)
            _require(isinstance(said, Unknown), f"{NEVER_RUN.name} is said to take {said} on {machine.name}")


def it_gives_numbers_or_says_that_it_does_not_know(make: Make) -> None:
    for seed in SEEDS:
        predictor = _told(_fresh(make), seed)
        for key, said in _everything(predictor).items():
            good = isinstance(said, Unknown) or (isinstance(said, float) and said > 0.0 and isfinite(said))
            _require(good, f"seed {seed}: {key} is expected to take {said}")
        for function in FUNCTIONS:
            for machine in MACHINES:
                factor = predictor.intensity(function.name, machine.name)
                _require(factor >= 0.0 and isfinite(factor), f"seed {seed}: an intensity of {factor}")


def it_is_changed_by_no_question(make: Make) -> None:
    for seed in SEEDS:
        predictor = _told(_fresh(make), seed)
        first = _everything(predictor)
        predictor.measured()
        _require(_everything(predictor) == first, f"seed {seed}: asked twice, it says something else")


def it_comes_to_the_same_by_the_same_history(make: Make) -> None:
    for seed in SEEDS:
        one, other = _told(_fresh(make), seed), _told(_fresh(make), seed)
        _require(_everything(one) == _everything(other), f"seed {seed}: the same history, other forecasts")
        _require(one.measured() == other.measured(), f"seed {seed}: the same history, other figures to recall")


def it_says_when_forecasts_change(make: Make) -> None:
    """What was ranked by a forecast is kept until then."""
    for seed in SEEDS:
        predictor = _knowing(_fresh(make))
        before = _everything(predictor)
        for step, tell in enumerate(_history(seed)):
            changed = tell(predictor)
            after = _everything(predictor)
            _require(changed or after == before, f"seed {seed}, step {step}: forecasts changed, and it did not say so")
            before = after


def it_forgets_what_it_is_told_to_forget(make: Make) -> None:
    for seed in SEEDS:
        predictor = _told(_fresh(make), seed)
        for function in FUNCTIONS:
            predictor.forget(function.name)
        left = [key for key in predictor.measured() if key[0] in {function.name for function in FUNCTIONS}]
        _require(not left, f"seed {seed}: {left} were to be forgotten")
        said = predictor.expect(STRANGE, STRANGE.variants[0], MACHINES[0])
        _require(isinstance(said, Unknown), f"seed {seed}: {STRANGE.name} is forgotten, and said to take {said}")


def it_can_be_told_by_another_what_was_measured(make: Make) -> None:
    """A restart: what one has measured another recalls, and knows no less."""
    machines = {machine.name: machine for machine in MACHINES}
    functions = {function.name: function for function in FUNCTIONS}
    for seed in SEEDS:
        one, other = _told(_fresh(make), seed), _knowing(_fresh(make))
        for (function, variant, machine), used in one.measured().items():
            other.recall(functions[function], variant, machines[machine], used)
        missing = one.measured().keys() - other.measured().keys()
        _require(not missing, f"seed {seed}: {sorted(missing)} got lost")


CHECKS: Final[tuple[Check, ...]] = (
    it_describes_itself,
    it_guesses_nothing,
    it_gives_numbers_or_says_that_it_does_not_know,
    it_is_changed_by_no_question,
    it_comes_to_the_same_by_the_same_history,
    it_says_when_forecasts_change,
    it_forgets_what_it_is_told_to_forget,
    it_can_be_told_by_another_what_was_measured,
    it_can_be_set,
)


# -- the ways and means ----------------------------------------------------------------------------------------------


def _fresh(make: Make) -> Predictor:
    """One with nothing set."""
    kind = settings_type(make)
    return make() if kind is None else make(settings=kind())


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)


def _knowing(predictor: Predictor) -> Predictor:
    for machine in MACHINES:
        predictor.know_machine(machine)
    return predictor


def _told(predictor: Predictor, seed: int) -> Predictor:
    _knowing(predictor)
    for tell in _history(seed):
        tell(predictor)
    return predictor


def _history(seed: int) -> list[Callable[[Predictor], bool]]:
    """Runs, metered calls and, now and then, earlier runs' figures."""
    random = Random(seed)
    return [_step(random) for _ in range(STEPS)]


def _step(random: Random) -> Callable[[Predictor], bool]:
    function, machine = random.choice(FUNCTIONS), random.choice(MACHINES)
    variant, seconds = random.choice(function.variants), random.lognormvariate(2.0, 1.0)
    kind = random.random()
    if kind < 0.8:
        return lambda predictor: predictor.learn(function, variant, machine, Seconds(seconds), 0)
    used = Used(3, 3 * seconds, 3 * seconds**2, core_s=3 * seconds, joules=30.0 * seconds, metered=3)
    if kind < 0.95:
        return lambda predictor: predictor.learn_joules(function, machine, used)
    return lambda predictor: predictor.recall(function, variant.name, machine, used)


def _everything(predictor: Predictor) -> Said:
    """All that it says of sizes unknown: seconds, not their spread, which moves with every run; and intensities."""
    said: Said = {}
    for function in FUNCTIONS:
        for machine in MACHINES:
            said[function.name, "", machine.name] = predictor.intensity(function.name, machine.name)
            for variant in function.variants:
                run = predictor.expect(function, variant, machine)
                said[function.name, variant.name, machine.name] = run.seconds if isinstance(run, RunTime) else run
    return said
