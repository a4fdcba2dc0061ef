"""What long-running commands say while they run: lines in words, or JSON for machines that gather them."""

import json
import logging
import sys
from datetime import UTC, datetime

from wattloom.cli.printing import cleaned, safe_json


class JsonLines(logging.Formatter):
    """One object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return safe_json(json.dumps(line, ensure_ascii=False))


class Words(logging.Formatter):
    """What others had a hand in, as names and their answers, only shows on a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return cleaned(super().format(record))


def set_up_logging(form: str, *, verbose: bool = False) -> None:
    """On stderr, of this program's own parts."""
    handler = logging.StreamHandler(sys.stderr)
    words = Words("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")
    handler.setFormatter(JsonLines() if form == "json" else words)
    logger = logging.getLogger("wattloom")
    logger.handlers[:] = [handler]
    logger.propagate = False
    logger.setLevel(logging.DEBUG if verbose else logging.INFO)
