"""A picture as text in base64, and the same picture small.

Owns the picture. Ways to make a picture smaller differ by language; the mean colour of each part hardly does.
"""

import base64
from typing import Any, Final

from wattloom.suite.families.chance import Chance, expect
from wattloom.suite.families.images import base64_png, part_means, picture, read_png

WIDTH: Final = 640
HEIGHT: Final = 480
SMALL: Final = (160, 120)
CLOSE: Final = 4.0
"""Of 255: how far the mean colour of a part may be off."""


def event(seed: int) -> dict[str, Any]:
    pixels = picture(Chance("thumbnail", seed), WIDTH, HEIGHT)
    return {"image": base64_png(pixels), "width": SMALL[0], "height": SMALL[1]}


def check(given: dict[str, Any], result: Any) -> None:
    """The size, and the mean colour of each part of the picture beside that of the large one."""
    large = read_png(base64.b64decode(given["image"]))
    small = read_png(base64.b64decode(result["image"], validate=True))
    height, width, channels = small.shape
    expect((width, height) == SMALL, f"the picture is {width}x{height}, not {SMALL[0]}x{SMALL[1]}")
    expect(channels in (3, 4), f"the picture has {channels} channels, not 3")
    away = float(abs(part_means(large) - part_means(small[..., :3])).max())
    expect(away <= CLOSE, f"a part of the picture has another colour, {away:.1f} of 255 away")
