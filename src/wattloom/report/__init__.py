"""The report: one HTML page that can be sent alone, and its pictures beside it.

Owns what is written to disk. Everything in it comes from a comparison; matplotlib is loaded only to draw.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from wattloom.errors import InputError, MissingExtra

if TYPE_CHECKING:
    from wattloom.simulation.comparison import Comparison

__all__ = ["ready", "write"]


def ready(folder: Path) -> None:
    """Raise now what would otherwise go wrong after a long run."""
    if find_spec("matplotlib") is None:
        raise MissingExtra("the report", "report")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "index.html").open("ab").close()
    except OSError as problem:
        raise InputError(
            f"report {folder}", f"cannot be written: {problem.strerror or problem}; name another folder"
        ) from problem


def write(comparison: "Comparison", folder: str | Path, command: str = "") -> Path:
    """Write `index.html` and the pictures into the folder. `command` is what made it, printed on the page."""
    folder = Path(folder)
    ready(folder)
    from wattloom.report.page import page
    from wattloom.report.pictures import draw

    pictures = draw(comparison)
    for picture in pictures:
        (folder / f"{picture.name}.png").write_bytes(picture.light)
    path = folder / "index.html"
    path.write_text(page(comparison, pictures, command), encoding="utf-8")
    return path
