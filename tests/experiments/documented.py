"""The table of an experiment as its page has it."""

from pathlib import Path

from wattloom.experiments.outcome import Outcome

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "experiments.md"


def lines(outcome: Outcome) -> list[str]:
    """One line for each published figure or fact."""
    return [f"| {each.what} | {each.told} | {each.told_ours} | {each.off} | {each.verdict} |" for each in outcome.held]
