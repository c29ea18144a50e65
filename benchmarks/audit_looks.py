"""What looks at an audit on the way settle, how often falsely, and how many labels they save, in worlds of known truth.

    python benchmarks/audit_looks.py                              # a few studies of each world
    python benchmarks/audit_looks.py --full --journal looks.jsonl  # 300 studies of each; goes on where it was ended
    python benchmarks/audit_looks.py --runs 0 --journal looks.jsonl --world "equal, 3 x 400" --add

A study has looks after 50, 75, 100, 125 and 150 images of each model. Models that are settled, or given up, are asked
about no more. `one look` says how often a 95 % interval looked at each time would settle falsely. Models are audited
apart, so each is drawn and audited once, and worlds with the same models take it from there: the studies of a world
are independent, worlds are not. `width .1` stops each model where its interval, widened for the looks, is that narrow:
`falsely` is then how often it misses the truth, and `studies` counts models.
"""

import math
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import get_args

import numpy as np
from audit_designs import Ask, Benchmark, Key, asked, truth_of
from numpy.typing import NDArray
from simulated_worlds import RANK, ROWS, World, audits_of, draw_images, matches_of

from culturekit.metrics import audit_sample
from culturekit.metrics.corrected.looks import Estimate, Goal, look_limits, open_models, settled_pairs

WIDTH = 0.1
LOOKS = (50, 75, 100, 125, 150)
Z = 1.959964
MODELS = {**ROWS["usual"], "by rank": RANK / RANK.sum()}

SHAPES = {
    "3 x 400": World(3, (400, 400)),
    "24 x 40": World(24, (40, 40)),
    "3 x 400, prompts differ": World(3, (400, 400), 20.0),
    "24 x 40, prompts differ": World(24, (40, 40), 5.0),
}

STUDIES = {
    "equal": ("by rank",) * 5,
    "two equal": ("by rank",) * 2,
    "three equal": ("by rank",) * 3,
    "ten equal": ("by rank",) * 10,
    "three on top": ("even", "even", "even", "by rank", "four of twenty"),
    "one on top": ("even", "by rank", "by rank", "by rank", "by rank"),
    "two of five equal": ("even", "by rank", "by rank", "half in one", "four of twenty"),
}

TRIED: dict[str, tuple[str, Sequence[str]]] = {
    **{f"{name}, {shape}": (shape, models) for shape in ("3 x 400", "24 x 40") for name, models in STUDIES.items()},
    "far apart, 24 x 40": ("24 x 40, prompts differ", tuple(ROWS["usual"])),
    "far apart, 3 x 400": ("3 x 400, prompts differ", tuple(ROWS["usual"])),
}

HEAD = ("world", "goal", "studies", "falsely", "one look", "settled", "not told apart", "labels", "labels, of 150")


def sequences(name: str, *, run: int, seed: int) -> Iterator[tuple[Key, Ask]]:
    """Draw the models of a study, and say what each look finds."""
    shape, models = TRIED[name]
    world = SHAPES[shape]

    def ask(model: str, number: int) -> Sequence[float]:
        seeds = [seed, number, zlib.crc32(f"{shape} {model}".encode())]
        shares = np.append(MODELS[model], round(max(1 - float(MODELS[model].sum()), 0.0), 12))
        images = draw_images(world, shares, np.random.default_rng(seeds))
        matches, found = matches_of(world, images), [truth_of(images, "country", world.size)]
        rng = np.random.default_rng([*seeds, 1])
        sample = audit_sample(matches, n=LOOKS[-1], rng=rng, per="model", looks=LOOKS)
        for look in range(1, len(LOOKS) + 1):
            seen = sample.filter(sample["look"] <= look)
            draws, audits = np.random.default_rng([*seeds, 2]), audits_of(world, images, seen["image_id"])
            found += asked(matches, audits, weights="country", size=world.size, rng=draws, sample=seen)
        return found

    for model, often in Counter(models).items():
        for number in range(run * often, (run + 1) * often):
            yield (shape, model, seed, number), partial(ask, model, number)


def studies_of(name: str, kept: Mapping[Key, Sequence[float]]) -> Iterator[list[Sequence[float]]]:
    """Put studies together, each of models that no other study of this world has."""
    shape, models = TRIED[name]
    pools = {model: iter([said for key, said in kept.items() if key[:2] == (shape, model)]) for model in models}
    while True:
        try:
            yield [next(pools[model]) for model in models]
        except StopIteration:
            return


def estimates_of(said: Sequence[float]) -> list[Estimate]:
    """Give what each look says."""
    each = np.reshape(said[1:], (-1, 3))
    return [Estimate(value, (high - low) / 2 / Z, n) for n, (value, low, high) in zip(LOOKS, each, strict=True)]


def rows(kept: Mapping[Key, Sequence[float]]) -> Iterator[Sequence[str]]:
    """Sum up the studies of each world."""
    for name in TRIED:
        studies = [
            (np.array([one[0] for one in study]), list(map(estimates_of, study))) for study in studies_of(name, kept)
        ]
        if not studies:
            continue
        yield stopped_by_width(name, studies)
        naive = np.mean([settled_naively(*study) for study in studies])
        for goal in get_args(Goal):
            found: Counter[str] = Counter()
            for study in studies:
                found.update(outcome(*study, goal))
            models = len(TRIED[name][1])
            each = len(studies) * (1 if goal == "top" else math.comb(models, 2))
            labels = found["labels"] / len(studies) / models
            yield (
                name, goal, str(len(studies)), f"{found['falsely'] / len(studies):.3f}", f"{naive:.2f}",
                f"{found['settled'] / each:.2f}", "" if goal == "top" else f"{found['apart'] / each:.2f}",
                f"{labels:.0f}", f"{labels / LOOKS[-1]:.2f}",
            )  # fmt: skip


def stopped_by_width(
    name: str, studies: Sequence[tuple[NDArray[np.float64], Sequence[Sequence[Estimate]]]]
) -> list[str]:
    """Stop each model at the first look where its widened interval is narrow enough, or at the last."""
    limits = look_limits([n / LOOKS[-1] for n in LOOKS], alpha=0.05)
    truths = np.concatenate([truth for truth, _ in studies])
    said = [model for _, models in studies for model in models]
    value, error = (np.array([[getattr(one, part) for one in looks] for looks in said]) for part in ("value", "error"))
    narrow = 2 * limits * error <= WIDTH
    stop = np.where(narrow.any(axis=1), narrow.argmax(axis=1), len(LOOKS) - 1)
    at = np.arange(len(said)), stop
    missed = np.abs(value[at] - truths) > (limits * error)[at]
    labels = float(np.array(LOOKS)[stop].mean())
    figures = [
        f"{missed.mean():.3f}",
        "",
        f"{narrow.any(axis=1).mean():.2f}",
        "",
        f"{labels:.0f}",
        f"{labels / LOOKS[-1]:.2f}",
    ]
    return [name, f"width {WIDTH}", str(len(said)), *figures]


def settled_naively(truths: NDArray[np.float64], said: Sequence[Sequence[Estimate]]) -> bool:
    """Say whether 95 % intervals of the difference, looked at each time, ever settle a pair falsely."""
    return any(
        abs(one.value - other.value) > Z * math.hypot(one.error, other.error)
        and (one.value > other.value) != (truths[a] > truths[b] + 1e-9)
        for a, b in combinations(range(len(truths)), 2)
        for one, other in zip(said[a], said[b], strict=True)
    )


def outcome(truths: NDArray[np.float64], said: Sequence[Sequence[Estimate]], goal: Goal) -> Mapping[str, int]:
    """Follow a study to its end."""
    names = [f"{model:02d}" for model in range(len(truths))]
    asked_about, labels, looks = names, 0, []
    for look, n in enumerate(LOOKS):
        labels += len(asked_about) * (n - (LOOKS[look - 1] if look else 0))
        looks.append({model: said[int(model)][look] for model in asked_about if said[int(model)][look].error >= 0})
        pairs = settled_pairs(looks, LOOKS, goal=goal)
        asked_about = open_models(pairs, names, goal)
        if not asked_about:
            break
    settled = [one for one in pairs if one.state == "settled"]
    wrong = [one for one in settled if one.difference * (truths[int(one.first)] - truths[int(one.second)]) <= 1e-12]
    return {
        "labels": labels,
        "falsely": bool(wrong),
        "settled": bool(settled) if goal == "top" else len(settled),
        "apart": sum(one.state == "not told apart" for one in pairs),
    }


if __name__ == "__main__":
    title = "Audits that are looked at on the way: what is settled, how often falsely, labels used"
    parts = {"looks": (sequences, tuple(TRIED))}
    sys.exit(Benchmark("audit_looks", title, HEAD, parts, rows, (3, 300)).main(__doc__))
