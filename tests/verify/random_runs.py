"""Untouched runs of recipes of every kind, drawn at random: each is verified, and what is found is printed.

    nice python -m tests.verify.random_runs --runs 50 --first 1000

A recipe that is refused makes way for the next; one that ends with another error, or whose run is not
verified, makes the script leave with 1. `--kinds` names kinds, `cube-more` cube with people.
"""

import argparse
import sys
import tempfile
import time
import traceback
from pathlib import Path

import typer
import yaml

from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.core.engines import LocalEngine
from culturekit.core.errors import ConfigError, CultureKitError, UsageError
from culturekit.recipes.run_recipe import run_recipe
from culturekit.verify.verify_run import verify_run
from tests.conftest import HeardProgress
from tests.verify.random_recipes import SEVERAL, more_of_cube, random_recipe, random_settings

KINDS = ("cube", "cube-more", *SEVERAL)


def tried(kind: str, seed: int, folder: Path) -> tuple[bool | None, list[str]]:
    """Run and verify one recipe; say whether it holds, None where it is refused, and what is to be told."""
    if kind in SEVERAL:
        settings = random_settings(kind, seed, folder)
        file = find_recipe(kind)
    else:
        settings, file = [], folder / "recipe.yaml"
        drawn = random_recipe(seed) if kind == "cube" else more_of_cube(seed)
        file.write_text(yaml.safe_dump(drawn), encoding="utf-8")
    try:
        recipe = load_any_recipe(file, settings)
    except ConfigError as error:
        return None, [str(error)]
    with LocalEngine(1) as engine:
        try:
            run_recipe(recipe, folder / "run", engine=engine, progress=HeardProgress())
        except CultureKitError as error:
            refused = isinstance(error, UsageError)
            return None if refused else False, [f"run: {error}", *settings]
    answer = verify_run(folder / "run")
    wrong = [str(finding) for finding in answer.findings if finding.severity != "note"]
    wrong += [f"{one.folder} {one.metric} {one.params}: {one.how}" for one in answer.verdicts if one.verdict == "wrong"]
    return not wrong and answer.exit_code == 0, [*wrong[:20], *(settings if wrong else ())]


def main() -> None:
    """Try so many seeds of every kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    asked = parser.parse_args()
    held, done, seed = 0, 0, asked.first
    while done < asked.runs:
        kind = asked.kinds[seed % len(asked.kinds)]
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="random-run-") as folder:
            try:
                good, told = tried(kind, seed, Path(folder))
            except Exception:
                good, told = False, [traceback.format_exc()]
        verdict = "refused" if good is None else "holds" if good else "WRONG"
        typer.echo("\n  ".join([f"{kind} {seed}: {verdict} ({time.monotonic() - begun:.0f} s)", *told]))
        held, done, seed = held + bool(good), done + (good is not None), seed + 1
    typer.echo(f"{held} of {asked.runs} untouched runs verified")
    sys.exit(held < asked.runs)


if __name__ == "__main__":
    main()
