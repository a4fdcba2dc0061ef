"""From what a user writes, or a log's header names, to a predictor.

Owns the way in: entry points of the group `wattloom.predictors`, and single files, as policies have it.
"""

from typing import Final

from wattloom.errors import PredictorError
from wattloom.plug_ins import PlugIns, is_file
from wattloom.prediction.protocol import Predictor
from wattloom.prediction.table import Table

GROUP: Final = "wattloom.predictors"
PREDICTORS: Final = PlugIns(GROUP, "predictor", "predictors", Predictor, PredictorError)  # type: ignore[type-abstract]
USUAL: Final = "table"


def load_predictor(spec: str) -> Predictor:
    """The predictor that was written, made with its options. Raises PredictorError."""
    return Table() if spec == USUAL else PREDICTORS.load(spec)  # nearly every log names it: no entry points are read


def predictor_with_settings(spec: str) -> str:
    """The same with what the settings say of it, for the header of a log: a replay has no other. Raises PredictorError,
    and SettingsError if there is something wrong in the settings."""
    return spec if spec == USUAL else PREDICTORS.with_settings(spec)


def load_recorded_predictor(spec: str, source: str, *, trusted: bool) -> Predictor:
    """The predictor that `source`, a log, says it was decided with; a file is run only if the log is trusted."""
    if is_file(spec) and not trusted:
        raise PredictorError(
            "predictor",
            f"{source} was decided with {spec}, a file of Python here, and reading a log runs no code by itself: look "
            "at the file, then say --trust-policy",
        )
    return load_predictor(spec)


def available_predictors() -> dict[str, type[Predictor]]:
    """Every installed predictor that can be loaded, by name."""
    return PREDICTORS.available()
