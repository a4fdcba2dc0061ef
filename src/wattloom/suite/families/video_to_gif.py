"""A short film and the moving GIF that is made of it.

Owns the film: drawn here by seed, and packed as MPEG-4 by ffmpeg, without which the function cannot run either.
"""

import base64
import struct
import subprocess
from typing import Any, Final

import numpy as np

from wattloom.suite.families.chance import Chance, expect
from wattloom.suite.families.images import part_means, picture
from wattloom.suite.ffmpeg import found_ffmpeg

WIDTH: Final = 320
HEIGHT: Final = 240
FRAMES: Final = 30
RATE: Final = 10
SMALL: Final = (160, 120)
CLOSE: Final = 4.0
"""Of 255: 256 colours and a film that was packed with loss are not exact."""
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
        "seed": seed,
    }


def _frames(seed: int) -> Any:
    """A picture that moves to the left and comes in again on the right."""
    still = picture(Chance("video-to-gif", seed), WIDTH, HEIGHT)
    return [np.roll(still, -at * WIDTH // FRAMES, axis=1) for at in range(FRAMES)]


def check(given: dict[str, Any], result: Any) -> None:
    """Read by hand: the size, the number of pictures and how long each is shown; and the first one's colours."""
    content = base64.b64decode(result["gif"], validate=True)
    expect(content[:6] == b"GIF89a", f"it begins with {content[:6]!r}, not as a GIF")
    width, height, flags = struct.unpack_from("<HHB", content, 6)
    expect((width, height) == SMALL, f"the GIF is {width}x{height}, not {SMALL[0]}x{SMALL[1]}")
    behind = 13 + _palette(flags)
    shown, first = _shown(content, behind)
    expect(len(shown) == FRAMES, f"the GIF has {len(shown)} pictures, not {FRAMES}")
    length = sum(shown) / 100
    expect(abs(length - FRAMES / RATE) < 0.2, f"the GIF lasts {length} s, not {FRAMES / RATE} s")
    drawn = picture(Chance("video-to-gif", given["seed"]), WIDTH, HEIGHT)
    away = float(np.abs(part_means(_picture(content, first, content[13:behind])) - part_means(drawn)).mean())
    expect(away < CLOSE, f"the first picture has other colours, {away:.1f} of 255 away")


def _palette(flags: int) -> int:
    """Bytes of the colours that follow, if some do."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _shown(content: bytes, at: int) -> tuple[list[int], int]:
    """How long each picture is shown, in hundredths of a second, and where the first one begins."""
    shown: list[int] = []
    delay = first = 0
    while content[at] != 0x3B:
        if content[at] == 0x21:
            if content[at + 1] == 0xF9:
                (delay,) = struct.unpack_from("<H", content, at + 4)
            at = _behind_blocks(content, at + 2)
        else:
            expect(content[at] == 0x2C, f"the GIF has a part of kind {content[at]:#x}")
            first = first or at
            shown.append(delay)
            at = _behind_blocks(content, at + 11 + _palette(content[at + 9]))
    return shown, first


def _behind_blocks(content: bytes, at: int) -> int:
    while content[at]:
        at += content[at] + 1
    return at + 1


def _picture(content: bytes, at: int, colours: bytes) -> Any:
    """The pixels of one that covers everything, in its own colours or the GIF's."""
    left, top, width, height, flags = struct.unpack_from("<HHHHB", content, at + 1)
    expect((left, top, width, height) == (0, 0, *SMALL), "the first picture does not cover the GIF")
    own = _palette(flags)
    colours = content[at + 10 : at + 10 + own] or colours
    at += 10 + own
    blocks, size, at = b"", content[at], at + 1
    while content[at]:
        blocks += content[at + 1 : at + 1 + content[at]]
        at += content[at] + 1
    numbers = np.frombuffer(_unpacked(blocks, size), np.uint8)
    expect(numbers.size == width * height, f"the first picture has {numbers.size} pixels")
    return np.frombuffer(colours, np.uint8).reshape(-1, 3)[numbers].reshape(height, width, 3)


def _unpacked(blocks: bytes, size: int) -> bytes:
    """What was packed with Lempel, Ziv and Welch's codes, which grow as their table does."""
    clear, found = 1 << size, bytearray()
    table: list[bytes] = []
    before = b""
    bits, have, wide = 0, 0, size + 1
    for byte in blocks:
        bits, have = bits | byte << have, have + 8
        while have >= wide:
            code, bits, have = bits & ((1 << wide) - 1), bits >> wide, have - wide
            if code == clear:
                table = [bytes((each,)) for each in range(clear)] + [b"", b""]
                before, wide = b"", size + 1
                continue
            if code == clear + 1:
                return bytes(found)
            entry = table[code] if code < len(table) else before + before[:1]
            found += entry
            if before and len(table) < 4096:
                table.append(before + entry[:1])
            before = entry
            if len(table) == 1 << wide and wide < 12:
                wide += 1
    return bytes(found)
