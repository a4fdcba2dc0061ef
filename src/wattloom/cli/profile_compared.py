"""How two profiles look side by side in a terminal, and what can be concluded from them.

Owns the words and what the two are called. The figures come from `profiling.comparing`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from wattloom.cli.printing import console, fits, fullest, literal, table
from wattloom.cli.profile_shown import AGAIN, OF, figure_or_nothing, in_unit, joules_unit
from wattloom.errors import InputError
from wattloom.profiling.comparing import Conversion
from wattloom.report.figures import figure

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from wattloom.profiling.comparing import Compared, Comparison, Point

MARK: Final = "*"


def conversion(text: str | None) -> Conversion | None:
    """From `SLOPE,WATTS`. InputError if it is something else."""
    if text is None:
        return None
    slope, _, offset = text.partition(",")
    try:
        return Conversion(float(slope), float(offset))
    except ValueError:
        raise InputError("package-to-wall", f"{text!r} must be two numbers, as 1.1,35") from None


def names(machines: tuple[str, str], files: tuple[Path, Path]) -> tuple[str, str]:
    """What the two are called: as their machines; where these have one name, with their files."""
    if machines[0] != machines[1]:
        return machines
    shown = [str(file) if files[0].name == files[1].name else file.name for file in files]
    return f"{machines[0]} ({shown[0]})", f"{machines[1]} ({shown[1]})"


def print_comparison(found: "Comparison") -> None:
    """One table for each stressor, then who is cheaper."""
    out = console()
    for each in found.stressors:
        _print_side_by_side(found, each, out)
        for line in (*_marks(each), *_cheaper(found, each)):
            out.print(literal(line))
    converted = f"; converted: {found.converted}" if found.converted else ""
    out.print(literal(f"\nWatts are of {OF[found.quantity]}{converted}. Idle: {', '.join(_idles(found))}."))
    for line in _provenance(found):
        out.print(literal(line))


def _idles(found: "Comparison") -> list[str]:
    firsts = (found.stressors[0].a[0], found.stressors[0].b[0])
    return [
        f"{name} {'unknown' if idle.watts is None else figure(idle.watts) + ' W'}"
        + (" (disturbed)" if idle.disturbed else "")
        for name, idle in zip((found.a, found.b), firsts, strict=True)
    ]


def _provenance(found: "Comparison") -> list[str]:
    """What was not measured is said to be so."""
    of_a, of_b = found.provenance
    if of_a == of_b == "measured":
        return []
    both = f"{found.a} and {found.b} are {of_a}" if of_a == of_b else f"{found.a} are {of_a}, of {found.b} {of_b}"
    return [f"The watts of {both}: who draws less is what the estimate believes. Work was counted for real."]


def _print_side_by_side(found: "Comparison", each: "Compared", out: "Console") -> None:
    """In one table; where the terminal is too narrow for it, in one for each figure or two."""
    title = literal(f"{each.stressor}: A is {found.a}, B is {found.b}")
    for together in (4, 2, 1):
        parts = [tuple(range(first, first + together)) for first in range(0, 4, together)]
        made = [_side_by_side(each, title if part[0] == 0 else "", part) for part in parts]
        if all(fits(one, out) for one in made) or together == 1:
            break
    for one in made:
        fullest([one], out)
        out.print(one)


def _side_by_side(each: "Compared", title: str, part: tuple[int, ...]) -> "Table":
    """`part`: which of the four figures."""
    unit, size = joules_unit((*each.a, *each.b))
    figures = ("watts", "W per core added", "work/s", f"{unit} per work")
    columns = [f"{figures[at]} {letter}" for at in part for letter in "AB"]
    made = table("CPUs", *columns, title=title, numbers=("CPUs", *columns))
    of_a, of_b = ({point.level: point for point in side} for side in (each.a, each.b))
    for level in sorted(of_a.keys() | of_b.keys()):
        a, b = _four(of_a.get(level), size), _four(of_b.get(level), size)
        made.add_row(str(level), *(cell for at in part for cell in (a[at], b[at])))
    return made


def _four(point: "Point | None", size: float) -> list[str]:
    """Figures of a disturbed level are marked; others have a space there, so that digits stand below digits."""
    if point is None:
        return [""] * 4
    values = (point.watts, point.watts_added, point.ops_per_s, in_unit(point.joules_per_op, size))
    cells = [figure_or_nothing(value) for value in values]
    return [cell and cell + (MARK if point.disturbed else " ") for cell in cells]


def _marks(each: "Compared") -> list[str]:
    if not any(point.disturbed for point in (*each.a, *each.b)):
        return []
    return [f"{MARK} disturbed by other work: shown, and not used for what follows."]


def _cheaper(found: "Comparison", each: "Compared") -> list[str]:
    if not each.same_work:
        return ["Work was counted by different tools or versions: it cannot be compared, watts can."]
    who = {"a": found.a, "b": found.b, "equal": "neither"}
    sure = "" if found.provenance == ("measured", "measured") else " (not measured)"
    if found.provenance[0] == found.provenance[1] != "measured":
        sure = f" ({found.provenance[0]})"
    lines = [
        f"From {figure(part.from_ops)} to {figure(part.to_ops)} work/s: {who[part.cheaper]} draws less{sure}."
        for part in each.ranges
    ]
    return [*(lines if each.enough else [_too_few(each)]), _speed(each)]


def _too_few(each: "Compared") -> str:
    counts = []
    for letter, side in (("A", each.a), ("B", each.b)):
        good = sum(1 for point in side if point.watts is not None and not point.disturbed)
        counts.append(f"{letter} has {good} of {len(side)}")
    return (
        f"Too few undisturbed readings to say who draws less: {', '.join(counts)}, idle included; idle, half of the "
        f"levels and at least two of them are needed. {AGAIN.capitalize()} measures the others again."
    )


def _speed(each: "Compared") -> str:
    if each.speed is not None:
        return f"One core of B does {each.speed:.2f} times the work of one of A."
    return "How fast one core is cannot be compared: level 1 was disturbed or is not known."
