"""The suite: 22 functions in five runtimes, as the ISA study has them; inputs by seed, results that are checked.

Owns the public names: which functions there are, what each needs, and the function with its inputs and its check. How
they are installed and run is `installing`'s and `running`'s; workers that import a function of it import little.
"""

from wattloom.suite.catalogue import CATEGORIES, NAMES, SuiteFunction, chosen, described
from wattloom.suite.needs import Need, missing, ready
from wattloom.suite.work import Work, function

__all__ = [
    "CATEGORIES",
    "NAMES",
    "Need",
    "SuiteFunction",
    "Work",
    "chosen",
    "described",
    "function",
    "missing",
    "ready",
]
