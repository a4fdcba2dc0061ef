"""thumbnail-python: a picture made small, by Pillow."""

import base64
import io
from typing import Any

from PIL import Image


def handler(event: dict[str, Any]) -> dict[str, Any]:
    with Image.open(io.BytesIO(base64.b64decode(event["image"]))) as image:
        small = image.resize((event["width"], event["height"]), Image.Resampling.BICUBIC)
    packed = io.BytesIO()
    small.save(packed, "PNG")
    return {"image": base64.b64encode(packed.getvalue()).decode(), "width": small.width, "height": small.height}
