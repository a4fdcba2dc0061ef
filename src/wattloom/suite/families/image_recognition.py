"""A picture and what a network of AlexNet's shape takes it for.

Owns the picture, the layers of the network (as torchvision has them) and their weights, which are made by seed: what it
says of a picture means nothing, and takes exactly the work it takes to say something true. The network is worked out
here once more with NumPy, as the check.
"""

import base64
from typing import Any, Final

import msgspec
import numpy as np

from wattloom.suite.families.chance import Chance, expect
from wattloom.suite.families.images import base64_png, picture, read_png

SIDE: Final = 256
SEEN: Final = 224
CLASSES: Final = 1000
MEAN: Final = (0.485, 0.456, 0.406)
DEVIATION: Final = (0.229, 0.224, 0.225)
WEIGHTS_SEED: Final = 2012
CLOSE: Final = 1e-3


class Layer(msgspec.Struct, frozen=True):
    """A convolution, or with `size` 0 a layer in which everything is connected."""

    inputs: int
    outputs: int
    size: int = 0
    stride: int = 1
    padding: int = 0
    pooled: bool = False
    """Whether the largest of each 3x3 is taken behind it, at every second."""

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.outputs, self.inputs, self.size, self.size) if self.size else (self.inputs, self.outputs)


LAYERS: Final = (
    Layer(3, 64, 11, 4, 2, pooled=True),
    Layer(64, 192, 5, 1, 2, pooled=True),
    Layer(192, 384, 3, 1, 1),
    Layer(384, 256, 3, 1, 1),
    Layer(256, 256, 3, 1, 1, pooled=True),
    Layer(256 * 6 * 6, 4096),
    Layer(4096, 4096),
    Layer(4096, CLASSES),
)


def weights(number: int) -> Any:
    """Those of one layer. (He and others: a variance of 2 over the inputs keeps the numbers in range.)"""
    layer = LAYERS[number]
    fan = layer.inputs * max(1, layer.size) ** 2
    drawn = np.random.default_rng((WEIGHTS_SEED, number)).standard_normal(layer.shape, np.float32)
    return drawn * np.float32((2.0 / fan) ** 0.5)


def event(seed: int) -> dict[str, Any]:
    return {"image": base64_png(picture(Chance("image-recognition", seed), SIDE, SIDE))}


def check(given: dict[str, Any], result: Any) -> None:
    """The five likeliest classes and how likely they are, beside the same network in NumPy."""
    top = result["top"]
    expect(len(top) == 5 and result["label"] == top[0][0], "it has no five likeliest classes")
    likely = _recognised(read_png(base64.b64decode(given["image"])))
    for label, share in top:
        expect(abs(share - likely[label]) < CLOSE, f"class {label} has {share:.5f}, in NumPy {likely[label]:.5f}")
    least = min(share for _, share in top)
    better = int((likely > least + CLOSE).sum())
    expect(better < 5, f"{better} classes are likelier than one of the five")


def seen(pixels: Any) -> Any:
    """The middle of a picture as the network takes it."""
    edge = (SIDE - SEEN) // 2
    middle = pixels[edge : edge + SEEN, edge : edge + SEEN].astype(np.float32) / np.float32(255.0)
    return ((middle - np.array(MEAN, np.float32)) / np.array(DEVIATION, np.float32)).transpose(2, 0, 1)


def _recognised(pixels: Any) -> Any:
    found = seen(pixels)
    for number, layer in enumerate(LAYERS):
        found = _convolved(found, number) if layer.size else found.reshape(-1) @ weights(number)
        if number < len(LAYERS) - 1:
            found = np.maximum(found, 0)
        if layer.pooled:
            windows = np.lib.stride_tricks.sliding_window_view(found, (3, 3), axis=(1, 2))
            found = windows[:, ::2, ::2].max(axis=(3, 4))
    shares = np.exp(found.astype(float) - float(found.max()))
    return shares / shares.sum()


def _convolved(found: Any, number: int) -> Any:
    layer = LAYERS[number]
    edge = (layer.padding, layer.padding)
    wide = np.pad(found, ((0, 0), edge, edge))
    windows = np.lib.stride_tricks.sliding_window_view(wide, (layer.size, layer.size), axis=(1, 2))
    windows = windows[:, :: layer.stride, :: layer.stride]
    return np.tensordot(weights(number), windows, axes=((1, 2, 3), (0, 3, 4)))
