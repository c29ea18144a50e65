"""How often the intervals of a judged mean hold what people would say of all items, with a judge biased by group.

Each run draws the images of three groups of countries, what they show, what a judge says of it who finds right what is
wrong in some groups more than in others, and a random sample that people mark. Beside the judge alone and people alone
stands the mean that is put right; the ratio is of descriptors, of which each image has a few.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from recording import record

from culturekit.core.errors import UsageError
from culturekit.metrics.corrected.judged_means import FEWEST_OTHERWISE, JudgedMean, judged_mean

RUNS = 600
SEED = 20261123

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Group:
    """Countries that a judge treats alike: the share of images that show what was asked for, and how it errs.

    `lenient` is the share of wrong images that it finds right, `strict` that of right images that it finds wrong.
    """

    name: str
    share: float
    lenient: float
    strict: float


GROUPS = (
    Group("judged rightly", 0.7, 0.03, 0.03),
    Group("judged leniently", 0.4, 0.4, 0.02),
    Group("judged strictly", 0.6, 0.02, 0.35),
    Group("judged at random", 0.5, 0.5, 0.5),
)


@dataclass(frozen=True)
class World:
    """Images and how many people mark; `draw` gives what the judge says, people say, the truth, and per."""

    name: str
    images: int
    marked: int
    draw: Callable[[Group, int, np.random.Generator], "Drawn"]


@dataclass(frozen=True)
class Drawn:
    """What judge and people would say of each image, the prompt of each, and what a ratio is over."""

    judged: Values
    people: Values
    truth: float
    prompts: NDArray[np.int64] | None = None
    per: Values | None = None


def yes_and_no(group: Group, n: int, rng: np.random.Generator) -> Drawn:
    """Answer yes or no."""
    shown = rng.random(n) < group.share
    return Drawn(as_judged(shown, group, rng), shown.astype(float), group.share)


def of_prompts(group: Group, n: int, rng: np.random.Generator) -> Drawn:
    """Answer yes or no about images of prompts that differ, ten each: what is asked is the mean over prompts."""
    prompts = np.arange(n) // 10
    shares = rng.beta(3 * group.share, 3 * (1 - group.share), n // 10)
    shown = rng.random(n) < shares[prompts]
    return Drawn(as_judged(shown, group, rng), shown.astype(float), group.share, prompts)


def ratings(group: Group, n: int, rng: np.random.Generator) -> Drawn:
    """Rate from 0 to 1 in steps of a quarter; the judge says a number that the group raises or lowers."""
    scores = rng.binomial(4, group.share, n) / 4
    noise = rng.normal(0, 0.1 + group.strict * group.lenient, n)
    return Drawn(np.clip(scores + 0.3 * (group.lenient - group.strict) + noise, 0, 1), scores, group.share)


def descriptors(group: Group, n: int, rng: np.random.Generator) -> Drawn:
    """Count the descriptors of an image, and those that are right: a ratio of sums."""
    per = rng.integers(3, 9, n)
    right = rng.binomial(per, group.share)
    judged = rng.binomial(right, 1 - group.strict) + rng.binomial(per - right, group.lenient)
    return Drawn(judged.astype(float), right.astype(float), group.share, per=per.astype(float))


def as_judged(shown: NDArray[np.bool_], group: Group, rng: np.random.Generator) -> Values:
    """Say what the judge makes of images."""
    wrong = rng.random(len(shown)) < np.where(shown, group.strict, group.lenient)
    return np.asarray(np.where(wrong, ~shown, shown), dtype=np.float64)


WORLDS = (
    World("yes and no", 400, 40, yes_and_no),
    World("yes and no", 1000, 150, yes_and_no),
    World("yes and no", 10_000, 150, yes_and_no),
    World("prompts that differ", 600, 150, of_prompts),
    World("ratings", 400, 40, ratings),
    World("ratings", 1000, 150, ratings),
    World("ratio of descriptors", 400, 40, descriptors),
    World("ratio of descriptors", 1000, 150, descriptors),
)


def main() -> None:
    """Draw every world."""
    head = ["world", "images", "marked", "group", "runs", "judge alone holds", "corrected holds", "bias of the judge"]
    head += ["bias left", "width against people alone", "refused"]
    record(
        "judged_coverage",
        title="Judged means, 95 % intervals, by how the judge treats a group of countries",
        command="python benchmarks/judged_coverage.py",
        table=[head, *(row for number, world in enumerate(WORLDS) for row in rows_of(world, number))],
    )


def rows_of(world: World, number: int) -> Iterator[list[str]]:
    """Run a world, group by group."""
    for place, group in enumerate(GROUPS):
        drawn = partial(one_run, world, group)
        found = [drawn(np.random.default_rng([SEED, number, place, run])) for run in range(RUNS)]
        known = [one for one in found if one is not None]
        corrected, judged, alone = (
            [getattr(one, name) for one, _ in known] for name in ("corrected", "judged", "alone")
        )
        truths = np.array([truth for _, truth in known])
        width = np.mean([one.high - one.low for one in corrected]) / np.mean([one.high - one.low for one in alone])
        held = [
            np.mean([one.low <= truth <= one.high for one, truth in zip(side, truths, strict=True)])
            for side in (judged, corrected)
        ]
        bias = [np.mean([one.value for one in side]) - truths.mean() for side in (judged, corrected)]
        yield [
            world.name, f"{world.images:,}", str(world.marked), group.name, str(RUNS),
            *(f"{one:.1%}" for one in held),
            f"{bias[0]:+.3f}", f"{bias[1]:+.3f}", f"{width:.2f}", str(RUNS - len(known)),
        ]  # fmt: skip


def one_run(world: World, group: Group, rng: np.random.Generator) -> tuple[JudgedMean, float] | None:
    """Draw once and estimate; None where the gates refuse what people say."""
    drawn = world.draw(group, world.images, rng)
    asked = np.zeros(world.images, bool)
    asked[rng.choice(world.images, world.marked, replace=False)] = True
    people = np.where(asked, drawn.people, np.nan)
    _, counts = np.unique(people[asked], return_counts=True)
    if world.marked - counts.max() < FEWEST_OTHERWISE:
        return None
    per = None if drawn.per is None else (drawn.per, np.where(asked, drawn.per, np.nan))
    try:
        return judged_mean(drawn.judged, people, per=per, clusters=drawn.prompts), drawn.truth
    except UsageError:
        return None


if __name__ == "__main__":
    main()
