"""Colours of the report, for light and for dark paper.

Owns the choice. Hues are those of Okabe and Ito and of Paul Tol, which people with colour-blindness can tell apart;
no meaning is carried by colour alone.
"""

from typing import Any, Final

import msgspec


class Colour(msgspec.Struct, frozen=True):
    """One hue, as it is legible on either paper."""

    light: str
    dark: str


BEST: Final = Colour("#0072B2", "#56B4E9")
REFERENCE: Final = Colour("#D55E00", "#FF9A4D")
OTHERS: Final = (
    Colour("#117733", "#5BB98C"),
    Colour("#882255", "#D98CB3"),
    Colour("#8A7A1F", "#DDCC77"),
    Colour("#332288", "#A99BE8"),
    Colour("#44AA99", "#7FD6C8"),
    Colour("#777777", "#AAAAAA"),
    Colour("#AA4499", "#DE8FD2"),
    Colour("#661100", "#C98F7A"),
)
PARTS: Final = {
    "active": Colour("#0072B2", "#3D9BD6"),
    "idle": Colour("#A9B8C6", "#66788A"),
    "sleep": Colour("#44AA99", "#44AA99"),
    "wake": Colour("#E69F00", "#E69F00"),
    "scheduler": Colour("#882255", "#D98CB3"),
}
"""What energy is spent on."""


class Theme(msgspec.Struct, frozen=True):
    """Paper and ink."""

    dark: bool
    paper: str
    ink: str
    quiet: str
    grid: str
    bar: str

    def pick(self, colour: Colour) -> str:
        return colour.dark if self.dark else colour.light

    @property
    def settings(self) -> Any:
        """As matplotlib calls them."""
        return {
            "figure.facecolor": self.paper,
            "axes.facecolor": self.paper,
            "savefig.facecolor": self.paper,
            "text.color": self.ink,
            "axes.labelcolor": self.ink,
            "axes.edgecolor": self.quiet,
            "xtick.color": self.quiet,
            "ytick.color": self.quiet,
            "xtick.labelcolor": self.ink,
            "ytick.labelcolor": self.ink,
            "axes.grid": True,
            "grid.color": self.grid,
            "grid.linewidth": 0.8,
            "axes.axisbelow": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "font.size": 10.0,
            "legend.fontsize": 9.0,
        }


THEMES: Final = (
    Theme(dark=False, paper="#FFFFFF", ink="#1B2530", quiet="#7A8794", grid="#E6EBF0", bar="#7D8FA1"),
    Theme(dark=True, paper="#18212B", ink="#E5EBF1", quiet="#8493A2", grid="#2A3744", bar="#7D8FA1"),
)
