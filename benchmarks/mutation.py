"""Do tests notice when the code is wrong? Mutants of what guards money and work, and of what scores are made with.

    python benchmarks/mutation.py --outcomes outcomes.jsonl
    python benchmarks/mutation.py --area money --outcomes outcomes.jsonl   # one area, nothing recorded

Of each area as many mutants are drawn, by the hash of seed and change: code that is added elsewhere leaves a draw as it
is. Each stands alone in a copy of the tree. The fast tests that are nearest to its module run first; what these let
pass, all tests of the area see, slow ones and kills too. A mutant is killed when a test fails or does not end.
`mutants.py` makes them: cosmic-ray and mutmut leave out no statement, which is how money is lost in silence.
`mutation_reasons.json` says why some may live. Tests were written for what survived of seed 1; for a draw that no test
was written for, `--near` runs the nearest tests only: all tests of an area notice as much, or more.
"""

import argparse
import hashlib
import itertools
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import scipy.stats
from mutant_runs import OTHER, SURVIVED, TREE, Copy
from mutants import Mutant, mutants_of
from recording import record

REASONS = Path(__file__).parent / "mutation_reasons.json"


@dataclass(frozen=True, slots=True)
class Area:
    """Modules by prefix, the first that fits counts, each with its nearest tests; and all tests of the area."""

    near: Mapping[str, Sequence[str]]
    tests: Sequence[str]
    apart: str = "-"


JOURNAL = ("tests/llm/test_journal.py",)
MONEY = ("tests/llm/test_money.py", "tests/llm/test_purse.py", "tests/llm/test_cost_plan.py")
BATCHED = ("tests/llm/test_batch_runner.py", "tests/llm/test_batches_on_the_wire.py")
BATCHES = (*BATCHED, "tests/faults/test_kills.py")
ENGINE = ("tests/llm/test_engine.py", "tests/cli/test_providers.py", "tests/faults/test_kills.py")
ARGUMENTS = "tests/metrics/test_wrong_arguments.py"
AREAS = {
    "journal": Area(
        {
            "culturekit/llm/ledger.py": (
                "tests/cli/test_providers.py",
                "tests/trail/test_stage_verdicts.py",
                "tests/llm/test_journal.py",
            ),
            "culturekit/llm/engine.py": (*JOURNAL, "tests/llm/test_engine.py", *BATCHED),
            "culturekit/llm/journal.py": (*JOURNAL, "tests/llm/test_purse.py"),
            "culturekit/llm/batches.py": BATCHES,
        },
        (*JOURNAL, "tests/core/test_run_stage.py", *BATCHED, *ENGINE),
    ),
    "money": Area(
        {
            **{f"culturekit/llm/{name}.py": MONEY for name in ("cost_plan", "prices", "purse", "usage")},
            "culturekit/llm/batch_runner.py": BATCHES,
            "culturekit/generation/services/paid_runner.py": ("tests/generation/services",),
        },
        (*BATCHED, *ENGINE),
    ),
    "metrics": Area(
        {
            **{
                f"culturekit/metrics/{name}": (f"tests/metrics/{name}", ARGUMENTS)
                for name in ("ahead", "captions", "diversity", "inclusion", "linguistic", "questions", "realism")
            },
            "culturekit/scores/catalog.py": ("tests/test_docs.py", "tests/metrics/test_metrics_public.py"),
            "culturekit/metrics/statistics": ("tests/metrics/statistics", ARGUMENTS),
            "culturekit/metrics": ("tests/scores", "tests/metrics/test_metrics_public.py"),
        },
        ("tests/scores", "tests/recipes/c3/test_scores.py", "tests/recipes/cultivate/test_scores.py"),
        apart="culturekit/metrics/corrected",
    ),
    "corrected": Area(
        {"culturekit/metrics/corrected": ("tests/metrics/corrected",)},
        ("tests/metrics/linguistic", "tests/recipes/linguistic/test_scores.py"),
    ),
}


def mutants_in(area: Area) -> list[Mutant]:
    """Give all mutants of an area."""
    found: list[Mutant] = []
    for prefix in area.near:
        whole = TREE / prefix
        for path in [whole] if whole.is_file() else sorted(whole.rglob("*.py")):
            name = path.relative_to(TREE).as_posix()
            if not name.startswith(area.apart) and nearest(area, name) == area.near[prefix]:
                found += mutants_of(name, path.read_bytes())
    return found


def nearest(area: Area, name: str) -> Sequence[str]:
    """Give the tests nearest to a module."""
    return next(tests for prefix, tests in area.near.items() if name.startswith(prefix))


def drawn(mutants: Sequence[Mutant], *, seed: int, count: int) -> list[Mutant]:
    """Draw mutants; those of one file come together."""
    by_hash = sorted(mutants, key=lambda one: hashlib.sha256(f"{seed} {one.key}".encode()).digest())
    return sorted(by_hash[:count], key=lambda one: (one.path, one.line))


def main() -> None:
    """Draw, run, and record where all areas ran."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", action="append", metavar="SEED:COUNT", help="how many mutants of each area")
    parser.add_argument("--area", action="append", choices=AREAS, help="only these, and nothing is recorded")
    parser.add_argument("--near", action="store_true", help="nearest tests only, recorded apart")
    parser.add_argument("--outcomes", type=Path, help="keeps each outcome; what it holds is not run again")
    parser.add_argument("--again", action="store_true", help="runs survivors again all the same")
    options = parser.parse_args()
    draws: list[str] = options.draw or ["2:10" if options.near else "1:40"]
    known: dict[str, str] = {}
    if options.outcomes and options.outcomes.exists():
        known = dict(json.loads(line) for line in options.outcomes.read_text(encoding="utf-8").splitlines())
    reasons: dict[str, str] = json.loads(REASONS.read_text(encoding="utf-8"))
    figures = [["area", "seed", "mutants", "drawn", "killed", "by other tests", "share", "95 %", "survivors"]]
    alive = [["area", "seed", "file", "line", "change", "reason"]]
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder) / "tree")
        for name, draw in itertools.product(options.area or AREAS, draws):
            (seed, count), area, outcomes = map(int, draw.split(":")), AREAS[name], []
            mutants = mutants_in(area)
            for mutant in drawn(mutants, seed=seed, count=count):
                outcome = known.get(mutant.key, "")
                if not outcome or (outcome == SURVIVED and options.again):
                    outcome = copy.outcome(mutant, nearest(area, mutant.path), () if options.near else area.tests)
                    sys.stderr.write(f"{outcome}: {mutant.path}:{mutant.line} {mutant.after}\n")
                    if options.outcomes:
                        with options.outcomes.open("a", encoding="utf-8") as file:
                            file.write(json.dumps([mutant.key, outcome], ensure_ascii=False) + "\n")
                outcomes.append(outcome)
                if outcome == SURVIVED:
                    alive.append([name, str(seed), *told(mutant), reasons.get(mutant.key, "not explained")])
            figures.append([name, str(seed), *summed(len(mutants), outcomes)])
    if options.area:
        sys.stdout.write("\n".join("  ".join(row) for row in [*figures, *alive]) + "\n")
        return
    name, which = ("mutation_fresh", "nearest tests alone notice") if options.near else ("mutation", "tests notice")
    near = " --near" * options.near
    command = f"python benchmarks/mutation.py --draw {' --draw '.join(draws)}{near}"
    record(
        name,
        title=f"Mutants of what guards money and work, and of metrics, that {which}",
        command=command,
        table=figures,
    )
    title = f"Mutants that {'no nearest' if options.near else 'no'} test notices, and why they may live"
    record(f"{name}_survivors", title=title, command=command, table=alive)


def told(mutant: Mutant) -> list[str]:
    """Write a survivor for the table."""
    change = f"`{mutant.before}` becomes `{mutant.after}`".replace("|", "\\|")
    return [mutant.path.removeprefix("culturekit/"), str(mutant.line), change]


def summed(mutants: int, outcomes: Sequence[str]) -> list[str]:
    """Write what came of the mutants drawn among all."""
    left = outcomes.count(SURVIVED)
    killed = len(outcomes) - left
    share = scipy.stats.binomtest(killed, len(outcomes)).proportion_ci(method="wilson")
    counts = [f"{mutants:,}", str(len(outcomes)), str(killed), str(outcomes.count(OTHER))]
    return [*counts, f"{killed / len(outcomes):.1%}", f"{share.low:.0%} to {share.high:.0%}", str(left)]


if __name__ == "__main__":
    main()
