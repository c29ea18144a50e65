"""Hold this checkout against another revision: `python -m tests.two_revisions REV`.

The public surface (commands, their options and help, tables, columns, metrics, exit codes) is listed by each, and a
recipe is run by each; what only one has, and every file whose bytes differ, is printed. Exit 1 when something was lost
or differs. Recipes are those of `--recipe`, the small one of the tests without it.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SMALL = ROOT / "tests/fixtures/small.yaml"
VARIES = {"run.json"}  # What may differ between two runs of the same bytes

SURFACE = """
import json, typer.main
try:
    from culturekit.core import errors
    from culturekit.core.schemas import TABLES
except ImportError:  # before these stood in core
    from culturekit import errors
    from culturekit.records.schemas import TABLES
from culturekit.cli.app import app
from culturekit.metrics import CATALOG

def walk(command, path):
    if hasattr(command, "commands"):
        for name, below in command.commands.items():
            yield from walk(below, (*path, name))
    else:
        yield " ".join(path), command

found = {}
for name, command in walk(typer.main.get_command(app), ()):
    found[f"command {name}"] = command.help
    for each in command.params:
        found[f"option {name} {'/'.join(each.opts)}"] = getattr(each, "help", None)
for name, table in TABLES.items():
    for column, kind in {**table.columns, **table.optional}.items():
        found[f"column {name}.{column}"] = f"{kind.dtype} {kind.nullable}"
for name, metric in CATALOG.items():
    found[f"metric {name}"] = f"{metric.low} {metric.high} {metric.direction} {metric.unit}"
for name, error in vars(errors).items():
    if hasattr(error, "exit_code"):
        found[f"error {name}"] = error.exit_code
print(json.dumps(found))
"""


def main() -> int:
    """Compare, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", help="what to compare with, such as main or HEAD~3")
    parser.add_argument("--recipe", type=Path, action="append", help="run it by both; repeatable")
    parser.add_argument("--surface-only", action="store_true", help="run nothing")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        before = Path(scratch, "before")
        git("worktree", "add", "--detach", str(before), given.revision)
        try:
            lines = list(changes(surface(before), surface(ROOT)))
            for recipe in [] if given.surface_only else given.recipe or [SMALL]:
                runs = [ran(checkout, recipe, Path(scratch, name)) for checkout, name in ((before, "a"), (ROOT, "b"))]
                lines += [f"{recipe.name}: {line}" for line in changes(*runs)]
        finally:
            git("worktree", "remove", "--force", str(before))
    sys.stdout.write("".join(f"{line}\n" for line in lines) or "nothing was lost, nothing differs\n")
    return 1 if any(not line.startswith("new: ") for line in lines) else 0


def git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True)


def of_checkout(checkout: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    done = subprocess.run(
        [sys.executable, *command], cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(command)[:200]} in {checkout}: exit {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def surface(checkout: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(of_checkout(checkout, "-c", SURFACE))
    return found


def ran(checkout: Path, recipe: Path, workdir: Path) -> dict[str, object]:
    """Run a recipe, and give the hash of each file of the run."""
    of_checkout(checkout, "-m", "culturekit", "run", str(recipe.resolve()), "--workdir", str(workdir))
    files = (path for path in sorted(workdir.rglob("*")) if path.is_file() and path.name not in VARIES)
    return {
        path.relative_to(workdir).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if not any(part.startswith(".") for part in path.relative_to(workdir).parts)
    }


def changes(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[str]:
    """Say what is lost, new or different."""
    yield from (f"lost: {name}" for name in before if name not in after)
    yield from (f"new: {name}" for name in after if name not in before)
    yield from (f"differs: {name}" for name in before if name in after and before[name] != after[name])


if __name__ == "__main__":
    sys.exit(main())
