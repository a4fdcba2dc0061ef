"""Every error Wattloom raises on purpose.

WattloomError
├── InputError            what the caller gave is wrong: names the field; exit code 2
│   ├── ScenarioError     a scenario file
│   ├── PolicyError       a policy's name, file or option
│   ├── PredictorError    the same of a predictor
│   ├── LogError          a log that cannot be read or replayed
│   └── SettingsError     a setting (wattloom.settings)
├── JournalError          a journal that is busy, full, read-only, damaged, too new (wattloom.journal.errors)
├── TaskError             a call that did not come back: OutcomeUnknown, WorkerLost, TaskTimeout, TaskRejected,
│                         CannotSend (wattloom.local.errors)
├── ExecutorLost          an executor that cannot go on; InitializerFailed (wattloom.local.errors)
├── ApiError              a Kubernetes API server did not give what was asked for (wattloom.kubernetes.client.errors)
├── EventRefused          the engine was told something impossible; nothing changed
├── MissingExtra          an optional dependency is not installed; says what to install
└── InvariantBroken       a defect of ours: the engine's state contradicts itself
"""


class WattloomError(Exception):
    """Root of all errors raised on purpose."""


class InputError(WattloomError):
    """Something the caller gave is wrong. `field` names it."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}" if field else problem)
        self.field = field
        self.problem = problem

    def __reduce__(self) -> tuple[type["InputError"], tuple[str, str]]:
        """So that a worker process can hand it to its parent."""
        return type(self), (self.field, self.problem)


class ScenarioError(InputError):
    """A scenario file is wrong."""


class PolicyError(InputError):
    """A policy's name, file or option is wrong."""


class PredictorError(InputError):
    """A predictor's name, file or option is wrong."""


class LogError(InputError):
    """A log cannot be read or replayed."""


class EventRefused(WattloomError):
    """The engine refused an event: `field` says which part is wrong. Nothing changed."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class MissingExtra(WattloomError):
    """An optional dependency is missing."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional part: pip install 'wattloom[{extra}]'")
        self.extra = extra


class InvariantBroken(WattloomError):
    """The engine's state contradicts itself: a defect, never the caller's fault."""


def clean(text: str) -> str:
    """Text that can be written: what is no character (of a file's name, say) becomes a question mark."""
    return text.encode("utf-8", "replace").decode()
