"""`python -m tests.faults.impatient SECONDS ARGUMENTS...`: the command line with less patience for a server."""

import sys
from dataclasses import fields

from culturekit.cli import main
from culturekit.llm.engine import AskOptions


def be_patient_for(seconds: float) -> None:
    """Change how long a run waits that says nothing of it."""
    AskOptions.__init__.__defaults__ = tuple(
        seconds if field.name == "patience" else field.default for field in fields(AskOptions)
    )


if __name__ == "__main__":
    be_patient_for(float(sys.argv.pop(1)))
    main()
