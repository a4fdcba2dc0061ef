"""The report: one HTML page that can be sent alone, and its pictures beside it.

Owns what is written to disk. Everything in it comes from a comparison; matplotlib is loaded only to draw.
"""

from errno import EISDIR
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from wattloom.errors import InputError, MissingExtra

if TYPE_CHECKING:
    from wattloom.report.here import Here
    from wattloom.report.pictures import Picture
    from wattloom.simulation.comparison import Comparison

__all__ = ["ready", "write", "write_files"]


def ready(folder: Path) -> None:
    """Raise now what would otherwise go wrong after a long run."""
    if find_spec("matplotlib") is None:
        raise MissingExtra("the report", "report")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=folder):
            pass
        if (folder / "index.html").is_dir():
            raise IsADirectoryError(EISDIR, "index.html is a directory")
    except OSError as problem:
        raise _not_written(folder, problem) from problem


def write(comparison: "Comparison", folder: str | Path, command: str = "", here: "Here | None" = None) -> Path:
    """Write `index.html` and the pictures into the folder. `command` is what made it, printed on the page. `here`: real
    calls on this machine, shown before the comparison."""
    folder = Path(folder)
    ready(folder)
    from wattloom.report.page import page
    from wattloom.report.pictures import draw

    first: list[Picture] = []
    if here is not None:
        from wattloom.report.here import picture as picture_of

        first = [picture_of(here)]
    pictures = [*first, *draw(comparison)]
    return write_files(folder, page(comparison, pictures, command, here), pictures)


def write_files(folder: Path, text: str, pictures: "list[Picture]") -> Path:
    """A page and its pictures, into a folder that is ready for them."""
    try:
        for picture in pictures:
            _put(folder / f"{picture.name}.png", picture.light)
        _put(folder / "index.html", text.encode())
    except OSError as problem:
        raise _not_written(folder, problem) from problem
    return folder / "index.html"


def _put(path: Path, content: bytes) -> None:
    """The whole file or none of it, whenever we are stopped."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _not_written(folder: Path, problem: OSError) -> InputError:
    return InputError(f"report {folder}", f"cannot be written: {problem.strerror or problem}; name another folder")
