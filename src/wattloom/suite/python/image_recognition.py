"""image-recognition-python: what is in a picture, by AlexNet in onnxruntime, on one thread.

The network's file is made at `wattloom workload install` (`suite.networks`).
"""

import base64
import io
from functools import cache
from typing import Any

import numpy as np
import onnxruntime
from PIL import Image

from wattloom.suite.families.image_recognition import seen
from wattloom.suite.places import installed


@cache
def _network() -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    path = str(installed("image-recognition-python") / "alexnet.onnx")
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def handler(event: dict[str, Any]) -> dict[str, Any]:
    with Image.open(io.BytesIO(base64.b64decode(event["image"]))) as image:
        pixels = np.asarray(image.convert("RGB"))
    (shares,) = _network().run(None, {"image": seen(pixels)[None]})[0]
    top = np.argsort(-shares, kind="stable")[:5]
    return {"label": int(top[0]), "top": [[int(each), float(shares[each])] for each in top]}
