"""zip-python: three files as one zip archive."""

import base64
import io
import zipfile
from typing import Any


def handler(event: dict[str, Any]) -> dict[str, Any]:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for file in event["files"]:
            archive.writestr(file["name"], file["text"])
    return {"archive": base64.b64encode(packed.getvalue()).decode()}
