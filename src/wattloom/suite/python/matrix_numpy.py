"""matrix-numpy-python: the product of two matrices with NumPy."""

from typing import Any

import numpy as np


def handler(event: dict[str, Any]) -> dict[str, Any]:
    return {"product": np.dot(np.array(event["a"]), np.array(event["b"])).tolist()}
