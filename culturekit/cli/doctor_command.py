"""`culturekit doctor`: what this machine has, and what to do about what it has not."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import AsJson

__all__ = ["doctor"]

MARKS = {"ok": "ok", "absent": "-", "broken": "BROKEN"}


def doctor(
    workdir: Annotated[Path, typer.Option(help="Where runs would lie, whose disk is looked at.")] = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Say what is installed, which keys are set, which devices and how much room there are; ends with 1 if broken."""
    from culturekit.cli.doctor_checks import all_checks

    checks = list(all_checks(workdir))
    broken = [check for check in checks if check.level == "broken"]
    if as_json:
        print(json.dumps({"ok": not broken, "checks": [asdict(check) for check in checks]}))
    else:
        for check in checks:
            hint = f"\n{'':<18}{check.hint}" if check.hint else ""
            print(f"{MARKS[check.level]:<8}{check.group:<10}{check.name}: {check.found}{hint}")
        print(f"{len(broken)} broken" if broken else "nothing is broken")
    if broken:
        raise typer.Exit(1)
