"""What looks at an audit on the way settle, how often falsely, and how many labels they save, in worlds of known truth.

    python benchmarks/audit_looks.py                          # a few studies of each world
    python benchmarks/audit_looks.py --full                   # 300 studies of each
    python benchmarks/audit_looks.py --world "equal, 3 x 400" --goal top --add

A study has five models, or as many as its world says, and looks after 50, 75, 100, 125 and 150 images of each. Models
that are settled, or given up, are asked about no more. `one look` says how often a 95 % interval looked at each time
would settle falsely.
"""

import argparse
import json
import math
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import get_args

import numpy as np
from audit_designs import truth_of
from numpy.typing import NDArray
from recording import RESULTS, record
from simulated_worlds import COUNTRIES, RANK, ROWS, World, audits_of, draw_images, matches_of

from culturekit.core.errors import UsageError
from culturekit.metrics import audit_sample, vendi_corrected
from culturekit.metrics.corrected.looks import Estimate, Goal, open_models, settled_pairs

LOOKS = (50, 75, 100, 125, 150)
EVEN, BY_RANK = np.full(COUNTRIES, 1 / COUNTRIES), RANK / RANK.sum()
USUAL = list(ROWS["usual"].values())

TRIED: dict[str, tuple[World, Sequence[NDArray[np.float64]]]] = {
    "equal, 24 x 40": (World(24, (40, 40)), [BY_RANK] * 5),
    "equal, 3 x 400": (World(3, (400, 400)), [BY_RANK] * 5),
    "two equal, 3 x 400": (World(3, (400, 400)), [EVEN] * 2),
    "ten equal, 3 x 400": (World(3, (400, 400)), [BY_RANK] * 10),
    "three on top, 3 x 400": (World(3, (400, 400)), [EVEN, EVEN, EVEN, BY_RANK, USUAL[3]]),
    "one on top, 3 x 400": (World(3, (400, 400)), [EVEN, BY_RANK, BY_RANK, BY_RANK, BY_RANK]),
    "far apart, 24 x 40": (World(24, (40, 40), 5.0), USUAL),
    "far apart, 3 x 400": (World(3, (400, 400), 20.0), USUAL),
}

HEAD = ("world", "goal", "studies", "falsely", "one look", "settled", "not told apart", "labels", "labels, of 150")


def study(name: str, *, seed: int, number: int) -> tuple[list[float], list[list[Estimate]]]:
    """Draw a study: the truth of each model, and what each look says of it."""
    world, models = TRIED[name]
    truths, said = [], []
    for model, shown in enumerate(models):
        seeds = [seed, number, model, zlib.crc32(name.encode())]
        shares = np.append(shown, round(max(1 - float(shown.sum()), 0.0), 12))
        images = draw_images(world, shares, np.random.default_rng(seeds))
        matches = matches_of(world, images)
        rng = np.random.default_rng([*seeds, 1])
        sample = audit_sample(matches, n=LOOKS[-1], rng=rng, per="model", looks=LOOKS)
        estimates = []
        for look, n in enumerate(LOOKS, start=1):
            seen = sample.filter(sample["look"] <= look)
            audits = audits_of(world, images, seen["image_id"])
            draws = np.random.default_rng([*seeds, 2])
            try:
                one = vendi_corrected(matches, audits, weights="country", size=8, rng=draws, sample=seen)
                estimates.append(Estimate(one.value, (one.high - one.low) / 2 / 1.959964, n))
            except UsageError as error:
                sys.stderr.write(f"refused: {error.problem}\n")
                estimates.append(Estimate(math.nan, math.nan, n))
        truths.append(truth_of(images, "country", 8))
        said.append(estimates)
    return truths, said


def rows(name: str, *, studies: int, seed: int, goals: Sequence[Goal]) -> Iterator[Sequence[str]]:
    """Sum up the studies of one world."""
    counts: dict[Goal, Counter[str]] = {goal: Counter() for goal in goals}
    for number in range(studies):
        truths, said = study(name, seed=seed, number=number)
        names = [f"{model:02d}" for model in range(len(truths))]
        true = dict(zip(names, truths, strict=True))
        naive = any(
            abs(said[a][look].value - said[b][look].value)
            > 1.96 * math.hypot(said[a][look].error, said[b][look].error)
            and (said[a][look].value > said[b][look].value) != (truths[a] > truths[b] + 1e-9)
            for a, b in combinations(range(len(truths)), 2) for look in range(len(LOOKS))
        )  # fmt: skip
        for goal in goals:
            found = counts[goal]
            asked, labels, looks = names, 0, []
            for look, n in enumerate(LOOKS):
                labels += len(asked) * (n - (LOOKS[look - 1] if look else 0))
                looks.append({model: said[int(model)][look] for model in asked if said[int(model)][look].error >= 0})
                pairs = settled_pairs(looks, LOOKS, goal=goal)
                asked = open_models(pairs, names, goal)
                if not asked:
                    break
            settled = [one for one in pairs if one.state == "settled"]
            wrong = [one for one in settled if one.difference * (true[one.first] - true[one.second]) <= 1e-12]
            found["falsely"] += bool(wrong)
            found["settled"] += bool(settled) if goal == "top" else len(settled)
            found["apart"] += sum(one.state == "not told apart" for one in pairs)
            found["naive"] += naive
            found["labels"] += labels
    for goal, found in counts.items():
        models = len(TRIED[name][1])
        each = studies * (1 if goal == "top" else math.comb(models, 2))
        each_has = found["labels"] / studies / models
        yield (
            name, goal, str(studies), f"{found['falsely'] / studies:.3f}", f"{found['naive'] / studies:.2f}",
            f"{found['settled'] / each:.2f}", "" if goal == "top" else f"{found['apart'] / each:.2f}",
            f"{each_has:.0f}", f"{each_has / 150:.2f}",
        )  # fmt: skip


def main() -> int:
    """Run the worlds that are asked for, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true", help="300 studies of each world")
    parser.add_argument("--studies", type=int, help="studies of each world")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--add", action="store_true", help="keep the recorded rows of other worlds")
    parser.add_argument("--goal", action="append", choices=get_args(Goal))
    parser.add_argument("--world", action="append", choices=sorted(TRIED))
    typed = parser.parse_args()
    studies = typed.studies or (300 if typed.full else 3)
    found = []
    for name in typed.world or TRIED:
        for row in rows(name, studies=studies, seed=typed.seed, goals=typed.goal or get_args(Goal)):
            found.append(row)
            sys.stderr.write(" | ".join(row) + "\n")
    kept = RESULTS / "audit_looks.json"
    before = json.loads(kept.read_text(encoding="utf-8"))["table"][1:] if kept.is_file() and typed.add else []
    table = list({tuple(row[:2]): row for row in [*before, *found]}.values())
    record(
        "audit_looks", title="Audits that are looked at on the way: what is settled, how often falsely, labels used",
        command=" ".join(["python benchmarks/audit_looks.py", *sys.argv[1:]]), table=[list(HEAD), *map(list, table)],
    )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
