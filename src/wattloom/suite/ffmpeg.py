"""Where ffmpeg is: the distribution's, or the one that the package imageio-ffmpeg brings.

Owns the search, and nothing else.
"""

import shutil
from importlib.util import find_spec


def found_ffmpeg() -> str:
    """Its path; empty: there is none."""
    found = shutil.which("ffmpeg")
    if found is not None or find_spec("imageio_ffmpeg") is None:
        return found or ""
    from imageio_ffmpeg import get_ffmpeg_exe

    try:
        path: str = get_ffmpeg_exe()
    except RuntimeError:  # the package is there without its program
        return ""
    return path
