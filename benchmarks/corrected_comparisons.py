"""Are equal models told apart by corrected diversity, and do ranks hold? In the worlds of `corrected_worlds.py`.

    python benchmarks/corrected_comparisons.py --runs 20
    python benchmarks/corrected_comparisons.py --journal answers.jsonl   # what corrected_worlds.py kept

Where prompts are all alike a model is the same in every run, so that two of its audits are those of two equal models.
In two worlds that are otherwise one the mapping is right in 85 and in 60 of 100 images. Beside corrected comparisons
stand those of the same pairs by mapped diversity, batch by batch.
"""

import argparse
import json
import sys
import zlib
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import polars as pl
from corrected_worlds import Answer, answers_asked_for
from recording import record
from scipy.stats import ttest_ind
from simulated_worlds import WORLDS, draw_images, matches_of, shares_of_models

from culturekit.core.schemas import SCORES
from culturekit.metrics import vendi_batches
from culturekit.metrics.diversity.labels import STANDARD_KERNELS
from culturekit.scores.compare import score_ranks

KERNEL = "country"
CLEAR, UNCLEAR = "1 x 400", "1 x 400, accuracy .6"
"""Worlds with the same models and images, mapped well and badly."""

Found: TypeAlias = Sequence[Answer]


def runs_of(world: str, model: int, answers: Found) -> list[Answer]:
    """Give the answers about one model in one world, in the order of runs."""
    return sorted(
        (one for one in answers if (one.world, one.model) == (world, model)), key=lambda one: (one.seed, one.run)
    )


def equal_models(answers: Found) -> dict[str, list[Found]]:
    """Take answers about equal models together, each answer once: two mapped alike, two and five mapped differently."""
    groups: dict[str, list[Found]] = {"two, mapped alike": [], "two, mapped differently": [], "five, Holm": []}
    for model in range(5):
        clear, unclear = runs_of(CLEAR, model, answers), runs_of(UNCLEAR, model, answers)
        for told in (clear, unclear):
            groups["two, mapped alike"] += zip(told[::2], told[1::2], strict=False)
        groups["two, mapped differently"] += zip(clear, unclear, strict=False)
        threes, twos = zip(*[iter(clear)] * 3, strict=False), zip(*[iter(unclear)] * 2, strict=False)
        groups["five, Holm"] += [(*three, *two) for three, two in zip(threes, twos, strict=False)]
    return groups


def mapped_batches(one: Answer) -> list[float]:
    """Draw the images of an answer again, and give the diversity of batches of what they are mapped to."""
    world = WORLDS[one.world]
    rng = np.random.default_rng([one.seed, one.run, zlib.crc32(one.world.encode()), one.model])
    matches = matches_of(world, draw_images(world, shares_of_models(world)[one.model], rng))
    return [
        value
        for images in matches.head(6_000).partition_by("prompt_id")
        for value in vendi_batches(
            images.select("continent", "country", "artifact"), size=world.size, weights=STANDARD_KERNELS[KERNEL]
        )
    ]


def false_alarms(kind: str, groups: Sequence[Found]) -> list[str]:
    """Write how often equal models are told apart, and how often ranks leave none of them out."""
    told, whole, mapped = [], [], []
    for group in groups:
        differences, ranks = ranked(group)
        told.append(any(json.loads(each)["p_corrected"] <= 0.05 for each in differences["params"]))
        whole.append(bool(((ranks["ci_low"] == 1) & (ranks["ci_high"] == len(group))).all()))
        if len(group) == 2:
            mapped.append(float(ttest_ind(*map(mapped_batches, group), equal_var=False).pvalue) <= 0.05)
    return [kind, f"{len(groups):,}", share(told), share(whole), share(mapped)]


def share(held: Sequence[bool]) -> str:
    """Write a share."""
    return f"{np.mean(held):.1%}" if held else "-"


def ranked(answers: Found) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Compare and rank five answers as those of five models; give the rows of differences and of ranks."""
    params = json.dumps({"labels": "corrected", "kernel": KERNEL, "confidence": 0.95})
    rows = [
        {"metric": "vs", "model": f"m{place}", "benchmark": "worlds", "value": one.value, "ci_low": one.low,
         "ci_high": one.high, "n": 150, "unit": "share", "params": params}
        for place, one in enumerate(answers)
    ]  # fmt: skip
    found = score_ranks(pl.DataFrame(rows, schema=SCORES.schema)).scores
    return found.filter(metric="model_difference"), found.filter(metric="model_rank").sort("model")


def ranks_held(world: str, answers: Found) -> list[str] | None:
    """Write how often the ranks that models may have hold the rank of the truth, in one world."""
    runs: dict[tuple[int, int], list[Answer]] = {}
    for one in answers:
        if one.world == world:
            runs.setdefault((one.seed, one.run), []).append(one)
    each, every, wide = [], [], []
    for five in runs.values():
        five.sort(key=lambda one: one.model)
        if len(five) < 5 or not np.isfinite([one.value for one in five]).all():
            continue
        _, ranks = ranked(five)
        limits = zip(five, ranks["ci_low"], ranks["ci_high"], strict=True)
        held = [holds(low, high, one, five) for one, low, high in limits]
        each += held
        every.append(all(held))
        wide += (ranks["ci_high"] - ranks["ci_low"] + 1).to_list()
    if not every:
        return None
    return [world, str(len(every)), share(each), share(every), f"{np.mean(wide):.2f}"]


def holds(low: float, high: float, one: Answer, five: Found) -> bool:
    """Say whether a model's rank by the truth lies within limits; models with one truth share their ranks."""
    above = sum(other.truth > one.truth + 1e-9 for other in five)
    equal = sum(abs(other.truth - one.truth) <= 1e-9 for other in five)
    return low <= above + equal and above + 1 <= high


def main() -> int:
    """Ask for the answers that are not kept, and write both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    answers, _ = answers_asked_for(parser, KERNEL, WORLDS, runs=2)
    command = " ".join(["python benchmarks/corrected_comparisons.py", *sys.argv[1:]])
    record(
        "corrected_comparisons",
        title="Equal models compared by corrected diversity: how often are they told apart, p at most 0.05?",
        command=command,
        table=[
            ["equal models", "groups", "told apart", "all ranks possible", "told apart by mapped diversity"],
            *(false_alarms(kind, groups) for kind, groups in equal_models(answers).items()),
        ],
    )
    record(
        "corrected_ranks",
        title="Ranks that five models may have by corrected diversity, 95 %, Holm over ten comparisons",
        command=command,
        table=[
            ["world", "runs", "ranks that hold", "runs in which all five do", "ranks a model may have"],
            *(row for name in WORLDS if (row := ranks_held(name, answers))),
        ],
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
