"""What the library logs, as a command shows it: plain lines on stderr, or JSON lines beside `--json`."""

import json
import logging
import sys

__all__ = ["StderrLines"]


class StderrLines(logging.Handler):
    """Writes to stderr as it is at the time, so that lines come out above a bar."""

    def __init__(self, *, as_json: bool) -> None:
        """Choose the kind of lines."""
        super().__init__()
        self.setFormatter(logging.Formatter("%(message)s"))
        self.as_json = as_json

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        level, text = record.levelname, self.format(record)
        line = json.dumps({"level": level.lower(), "said": text}) if self.as_json else f"{level}: {text}"
        print(line, file=sys.stderr, flush=True)
