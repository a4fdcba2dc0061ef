"""Draws the rooms of the package in their layers: `python -m tests.docs.draw_rooms` writes docs/images/rooms.svg.

Owns the look, and a few words on each room. Which rooms there are, and which lies above which, is read from
.importlinter, so that the drawing is the contract. A room without words is drawn without.
"""

from configparser import ConfigParser
from html import escape
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FILE: Final = ROOT / "docs" / "images" / "rooms.svg"
WIDTH, LEFT, ROW, GAP, TOP = 1000, 132, 40, 7, 52
WORDS: Final = {
    "cli": "commands",
    "report": "plots, pages",
    "testing": "kits for those who extend",
    "experiments": "published studies, run again",
    "api": "the same as Python functions",
    "affinity": "functions profiled in bags",
    "local": "this machine: executor, workers",
    "simulation": "virtual time and power",
    "kubernetes": "scheduler, extender",
    "monitoring": "a machine in joules",
    "profiling": "what a machine draws",
    "journal": "calls and logs on disk",
    "driving": "tell, log, carry out, tick",
    "runtimes": "how a call is run",
    "history": "what happened, and why",
    "scheduling": "the engine: queue, ledger",
    "attribution": "whose joules",
    "metering": "one file per meter",
    "policies": "one file per policy",
    "prediction": "seconds, watts",
    "disaggregation": "whose watts, of a sum",
    "planning": "ahead, with a bound",
    "cluster": "nodes, fits, rules",
    "workload": "functions, tasks",
    "machines": "profiles, curves",
    "energy": "joules, unknown",
    "plug_ins": "policies, predictors of others",
    "settings": "where each value comes from",
    "setting_groups": "which there are",
    "serving": "HTTP",
}
BANDS: Final = (
    ("cli", "who asks", "#e3f2fd"),
    ("local", "backends", "#e0f2f1"),
    ("monitoring", "what they use", "#f1f8e9"),
    ("scheduling", "decides, counts", "#fff8e1"),
    ("cluster", "what is known", "#fbe9e7"),
    ("plug_ins", "ground", "#eceff1"),
)
"""From the layer of this room on: what it is called, and its colour."""


def layers() -> list[list[str]]:
    """The rooms, the highest layer first."""
    contracts = ConfigParser()
    contracts.read(ROOT / ".importlinter")
    lines = contracts["importlinter:contract:layers"]["layers"].split("\n")
    return [[room.strip(" ()") for room in line.split("|")] for line in lines if line.strip()]


def drawing() -> str:
    found, parts, colour = layers(), [], BANDS[0][2]
    for number, rooms in enumerate(found):
        y = TOP + number * (ROW + GAP)
        for first, name, shade in BANDS:
            if first in rooms:
                colour = shade
                parts.append(f'<text class="band" x="16" y="{y + 25}">{name}</text>')
        parts += _row(rooms, y, colour)
    height = TOP + len(found) * (ROW + GAP) + 12
    return "\n".join([*_head(height), *parts, "</svg>", ""])


def _head(height: int) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="t">',
        '<title id="t">The rooms of Wattloom in their layers: a room may import from those below it</title>',
        "<style>text{font-family:sans-serif;fill:#222}.room{font-size:15px;font-weight:bold}"
        ".words{font-size:11.5px;fill:#555}.band{font-size:14px;fill:#00695c}.small{font-size:12px}</style>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#fff"/>',
        '<text class="band" x="16" y="34">A room may import from those below it, never from above or beside.</text>',
    ]


def _row(rooms: list[str], y: int, colour: str) -> list[str]:
    wide = (WIDTH - LEFT - 16 - GAP * (len(rooms) - 1)) / len(rooms)
    return [part for at, room in enumerate(rooms) for part in _box(room, LEFT + at * (wide + GAP), y, wide, colour)]


def _box(room: str, x: float, y: float, wide: float, colour: str) -> list[str]:
    words, middle = WORDS.get(room, ""), x + wide / 2
    style, at = "room small" if wide < 110 else "room", y + (18 if words else 25)
    name = f'<text class="{style}" x="{middle:.1f}" y="{at}" text-anchor="middle">'
    below = f'<text class="words" x="{middle:.1f}" y="{y + 33}" text-anchor="middle">{escape(words)}</text>'
    return [
        f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{ROW}" rx="5" fill="{colour}" stroke="#90a4ae"/>',
        f"{name}{escape(room)}</text>",
        *([below] if words else []),
    ]


if __name__ == "__main__":
    FILE.write_text(drawing())
