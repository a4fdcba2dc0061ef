"""A short film and the moving GIF that is made of it.

Owns the film: drawn here by seed, and packed as MPEG-4 by ffmpeg, without which the function cannot run either.
"""

import base64
import struct
import subprocess
from typing import Any, Final

import numpy as np

from wattloom.suite.families.chance import Chance, expect
from wattloom.suite.families.images import picture
from wattloom.suite.ffmpeg import found_ffmpeg

WIDTH: Final = 320
HEIGHT: Final = 240
FRAMES: Final = 30
RATE: Final = 10
SMALL: Final = (160, 120)
PACKED: Final = ("-c:v", "mpeg4", "-q:v", "4", "-threads", "1", "-bitexact", "-f", "matroska")


def event(seed: int) -> dict[str, Any]:
    drawn = b"".join(frame.tobytes() for frame in _frames(seed))
    raw = ("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{WIDTH}x{HEIGHT}", "-r", str(RATE))
    ffmpeg = found_ffmpeg()
    expect(bool(ffmpeg), "ffmpeg is missing")
    command = (ffmpeg, "-v", "error", *raw, "-i", "pipe:0", *PACKED, "pipe:1")
    film = subprocess.run(command, input=drawn, stdout=subprocess.PIPE, check=True).stdout
    return {
        "video": base64.b64encode(film).decode(),
        "width": SMALL[0],
        "height": SMALL[1],
        "rate": RATE,
        "ffmpeg": ffmpeg,
    }


def _frames(seed: int) -> Any:
    """A picture that moves to the left and comes in again on the right."""
    still = picture(Chance("video-to-gif", seed), WIDTH, HEIGHT)
    return [np.roll(still, -at * WIDTH // FRAMES, axis=1) for at in range(FRAMES)]


def check(given: dict[str, Any], result: Any) -> None:
    """Read by hand: the size, the number of pictures and how long each is shown."""
    content = base64.b64decode(result["gif"], validate=True)
    expect(content[:6] == b"GIF89a", f"it begins with {content[:6]!r}, not as a GIF")
    width, height, flags = struct.unpack_from("<HHB", content, 6)
    expect((width, height) == SMALL, f"the GIF is {width}x{height}, not {SMALL[0]}x{SMALL[1]}")
    shown = _shown(content, 13 + _palette(flags))
    expect(len(shown) == FRAMES, f"the GIF has {len(shown)} pictures, not {FRAMES}")
    length = sum(shown) / 100
    expect(abs(length - FRAMES / RATE) < 0.2, f"the GIF lasts {length} s, not {FRAMES / RATE} s")


def _palette(flags: int) -> int:
    """Bytes of the colours that follow, if some do."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _shown(content: bytes, at: int) -> list[int]:
    """How long each picture is shown, in hundredths of a second."""
    shown: list[int] = []
    delay = 0
    while content[at] != 0x3B:
        if content[at] == 0x21:
            if content[at + 1] == 0xF9:
                (delay,) = struct.unpack_from("<H", content, at + 4)
            at = _behind_blocks(content, at + 2)
        else:
            expect(content[at] == 0x2C, f"the GIF has a part of kind {content[at]:#x}")
            shown.append(delay)
            at = _behind_blocks(content, at + 11 + _palette(content[at + 9]))
    return shown


def _behind_blocks(content: bytes, at: int) -> int:
    while content[at]:
        at += content[at] + 1
    return at + 1
