"""Every experiment keeps the rules of the kit; and the kit finds who breaks them."""

from collections.abc import Callable

import msgspec
import pytest

from wattloom.experiments.outcome import HeldFact, HeldFigure, Outcome, Spread
from wattloom.experiments.protocol import Asked, Experiment
from wattloom.experiments.running import EXPERIMENTS
from wattloom.testing.experiment_conformance import CHECKS, Check, check_experiment, check_name

SPECS = (*EXPERIMENTS.available(), "isa:threads=true", "isa:alike=true")
MAKERS = {spec: (lambda spec=spec: EXPERIMENTS.load(spec)) for spec in SPECS}


@pytest.mark.parametrize("check", CHECKS, ids=check_name)
@pytest.mark.parametrize("spec", SPECS)
def test_every_experiment_conforms(spec: str, check: Check) -> None:
    check(MAKERS[spec], None)


def test_every_entry_point_loads() -> None:
    assert EXPERIMENTS.unavailable() == {}


FACT = HeldFact(what="it rains", place="p. 1", held=1, of=1, provenance="measured")
FIGURE = HeldFigure(
    what="rain", place="p. 2", published=3.0, unit="mm", ours=Spread(3.0, 2.0, 4.0), provenance="modelled"
)


class Sound(Experiment):
    """Holds two rows against a source that does not matter."""

    name = "sound"
    title = "Rain"
    summary = "whether it rains"
    cite = ("A. Author: Rain. 2020.",)
    rows: tuple[HeldFact | HeldFigure, ...] = (FACT, FIGURE)

    def run(self, asked: Asked) -> Outcome:
        asked.tell(asked.seeds)
        return Outcome(
            experiment=self.name, title=self.title, seeds=asked.seeds, quick=asked.quick, held=self.rows, cite=self.cite
        )


def test_a_sound_one_conforms() -> None:
    check_experiment(Sound)


class Restless(Sound):
    """Says something else each time."""

    times = 0

    def run(self, asked: Asked) -> Outcome:
        type(self).times += 1
        return msgspec.structs.replace(super().run(asked), title=str(self.times))


class Boastful(HeldFact, frozen=True, kw_only=True):
    """Agrees whatever the numbers are."""

    @property
    def verdict(self) -> str:  # type: ignore[override]
        return "agrees"


def _with(*rows: HeldFact | HeldFigure) -> Callable[[], Experiment]:
    return lambda: type("Broken", (Sound,), {"rows": rows})()


BREAKERS = {
    "run twice, it differs": Restless,
    "has no place in a source": _with(msgspec.structs.replace(FACT, place="")),
    "does not follow from": _with(Boastful(what="sun", place="p. 3", held=0, of=10, provenance="modelled")),
    "neither measured, modelled nor estimated": _with(msgspec.structs.replace(FACT, provenance="guessed")),
    "does not lie between its ends": _with(msgspec.structs.replace(FIGURE, ours=Spread(5.0, 2.0, 4.0))),
    "2 of 1 draws": _with(msgspec.structs.replace(FACT, held=2)),
    "two rows have the same name": _with(FACT, FACT),
    "holds nothing against its source": _with(),
}


@pytest.mark.parametrize("words", BREAKERS)
def test_the_kit_finds_who_breaks_a_rule(words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_experiment(BREAKERS[words])
