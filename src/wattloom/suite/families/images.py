"""Pictures by seed, and PNG files written and read by hand.

Owns both, so that what the functions do with pictures is checked without the libraries they use.
"""

import base64
import struct
import zlib
from typing import Any, Final

import numpy as np

from wattloom.suite.families.chance import Chance, expect

SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
CHANNELS: Final = {0: 1, 2: 3, 4: 2, 6: 4}
"""By PNG's colour type; those with a palette are not read."""
PATCHES: Final = 12
NOISE: Final = 6
PARTS: Final = 4
"""Pictures are compared in so many parts each way."""


def picture(chance: Chance, width: int, height: int) -> Any:
    """Colours that run into each other, patches of one colour, and a little noise, as rows of pixels of RGB bytes."""
    across, down = np.meshgrid(np.linspace(0, 1, width), np.linspace(0, 1, height))
    corners = np.frombuffer(chance.bytes(12), np.uint8).reshape(4, 3).astype(float)
    weights = ((1 - across) * (1 - down), across * (1 - down), (1 - across) * down, across * down)
    found = sum(weight[..., None] * corner for weight, corner in zip(weights, corners, strict=True))
    for left, top, wide, high, *colour in np.frombuffer(chance.bytes(7 * PATCHES), np.uint8).reshape(-1, 7):
        x, y = int(left) * width // 256, int(top) * height // 256
        found[y : y + int(high) * height // 512, x : x + int(wide) * width // 512] = colour
    noise = np.frombuffer(chance.bytes(width * height), np.uint8).reshape(height, width, 1) % NOISE
    return np.clip(found + noise, 0, 255).astype(np.uint8)


def png(pixels: Any) -> bytes:
    """A PNG file of RGB pixels, its rows as they are."""
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b""))
    return SIGNATURE + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


def base64_png(pixels: Any) -> str:
    return base64.b64encode(png(pixels)).decode()


def part_means(pixels: Any) -> Any:
    """The mean colour of each part of a picture."""
    height, width, _ = pixels.shape
    return pixels.reshape(PARTS, height // PARTS, PARTS, width // PARTS, 3).mean(axis=(1, 3))


def read_png(content: bytes) -> Any:
    """The pixels of a PNG file of 8 bits a channel, as rows of pixels of numbers."""
    expect(content.startswith(SIGNATURE), "it is no PNG file")
    width = height = colour = 0
    packed = b""
    for kind, body in _chunks(content):
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            expect(depth == 8 and colour in CHANNELS and not interlaced, "it is no plain PNG file of 8 bits")
        elif kind == b"IDAT":
            packed += body
    channels = CHANNELS[colour]
    return _unfiltered(zlib.decompress(packed), width * channels, height, channels).reshape(height, width, channels)


def _chunks(content: bytes) -> Any:
    at = len(SIGNATURE)
    while at + 12 <= len(content):
        (size,) = struct.unpack_from(">I", content, at)
        body = content[at + 8 : at + 8 + size]
        right = struct.unpack_from(">I", content, at + 8 + size)[0] == zlib.crc32(content[at + 4 : at + 8] + body)
        expect(right, "a part of the PNG file is damaged")
        yield content[at + 4 : at + 8], body
        at += 12 + size


def _unfiltered(rows: bytes, width: int, height: int, step: int) -> Any:
    """PNG writes each row as its difference from what is left of it, above it, or both."""
    found = np.zeros((height, width), np.uint8)
    above = bytearray(width)
    for y in range(height):
        kind, row = rows[y * (width + 1)], bytearray(rows[y * (width + 1) + 1 : (y + 1) * (width + 1)])
        if kind:
            _add(kind, row, above, step)
        found[y] = np.frombuffer(row, np.uint8)
        above = row
    return found


def _add(kind: int, row: bytearray, above: bytearray, step: int) -> None:
    for at in range(len(row)):
        left, corner = (row[at - step], above[at - step]) if at >= step else (0, 0)
        guess = (0, left, above[at], (left + above[at]) // 2, 0)[kind] if kind < 4 else _paeth(left, above[at], corner)
        row[at] = (row[at] + guess) & 255


def _paeth(left: int, above: int, corner: int) -> int:
    near = left + above - corner
    return min((left, above, corner), key=lambda each: abs(near - each))
