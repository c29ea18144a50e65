"""What real models gave in whole runs: the figures that `make real` leaves in `.real/figures`, taken into the records.

How good such small models are is not what is measured: it is that every way from prompt to report holds with models
that nobody wrote for it, and what the methods make of them. SmolLM2 has 135 million parameters and copies what it is
shown; MobileNetV2 has learnt photographs, and sees drawings.
"""

import json
import sys
from pathlib import Path

from recording import record

__all__ = ["main"]

FIGURES = Path(__file__).parents[1] / ".real/figures"


def main() -> int:
    """Record every table that is there."""
    found = sorted(FIGURES.glob("*.json"))
    if not found:
        sys.stderr.write(f"{FIGURES} has no figures; make real leaves them\n")
        return 1
    for path in found:
        kept = json.loads(path.read_text(encoding="utf-8"))
        record(f"real_{path.stem}", title=f"Real models: {kept['title']}", command="make real", table=kept["table"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
