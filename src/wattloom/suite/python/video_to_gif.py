"""video-to-gif-python: a film as a moving GIF, by ffmpeg with one thread."""

import base64
import subprocess
from typing import Any


def handler(event: dict[str, Any]) -> dict[str, Any]:
    filters = (
        f"fps={event['rate']},scale={event['width']}:{event['height']}:flags=bicubic,"
        "split[a][b];[a]palettegen[p];[b][p]paletteuse"
    )
    command = (event["ffmpeg"], "-v", "error", "-threads", "1", "-filter_threads", "1", "-i", "pipe:0")
    made = subprocess.run(
        (*command, "-filter_complex", filters, "-filter_complex_threads", "1", "-threads", "1", "-f", "gif", "pipe:1"),
        input=base64.b64decode(event["video"]),
        capture_output=True,
    )
    if made.returncode:
        raise RuntimeError(f"ffmpeg ended with {made.returncode}: {made.stderr.decode(errors='replace')[-500:]}")
    return {"gif": base64.b64encode(made.stdout).decode()}
