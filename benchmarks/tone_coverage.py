"""How often corrected shares of skin tones hold the true ones, with 150 pictures that people looked at.

The pictures are those of the simulated models of `recipes/linguistic.yaml`, drawn by their backends and seen by either
rule; each run draws as many of them as the recipe has of persons, and 150 of these for people. Beside the corrected
shares stands the rule alone. People who miss a tone take the next one. One person a picture is taken to miss one in
twenty, and that is said beside the number: where one misses twice as often, the limits do not reach far enough.
"""

from collections.abc import Iterator
from functools import cache

import msgspec
import numpy as np
import yaml
from numpy.typing import NDArray
from recording import record

from culturekit.core.package_data import shipped
from culturekit.generation.backend import BACKENDS, ImageRequest, Picture
from culturekit.metrics import corrected_tones, skin_tone, tone_spread
from culturekit.metrics.linguistic.picture_tones import DETECTORS, Detector
from culturekit.metrics.statistics.intervals import clustered_share
from culturekit.recipes.linguistic.prompts import shipped_lists

RUNS, DRAWN, IMAGES, SEEN = 250, 1296, 432, 150
"""Runs, pictures that are drawn of each model once, those of a run, and those that people look at."""

SEED, TONES = 20261124, 10

PEOPLE = ((1, 0.0), (1, 0.03), (1, 0.05), (1, 0.1), (3, 0.03), (3, 0.1))
"""How many people look at a picture, and how often each takes the next tone."""

Values = NDArray[np.float64]


@cache
def bank(backend: str) -> tuple[Values, dict[Detector, Values]]:
    """Draw pictures of persons; give their true tones, and those that each rule finds, as rows of ten."""
    made = BACKENDS.make(backend)
    pairs = [(pair, frame) for pair in shipped_lists().pairs_of("AAE") for frame in pair.frames]
    texts = [frame.format(word) for pair, frame in pairs for word in (pair.standard, pair.other)]
    requests = [
        ImageRequest("p", texts[number % len(texts)], None, SEED + number, 0, 0, None, None, None)
        for number in range(DRAWN)
    ]
    pictures = [one for one in made.generate(requests) if isinstance(one, Picture)]
    rows = np.vstack([np.zeros(TONES), np.eye(TONES)])
    true = [msgspec.json.decode(one.truth_scene or "")["tone"] or 0 for one in pictures]
    found = {
        rule: rows[[0 if (seen := skin_tone(one.pixels, detector=rule)) is None else seen.index for one in pictures]]
        for rule in DETECTORS
    }
    return rows[true], found


def runs(backend: str, rule: Detector, raters: int, missed: float) -> Iterator[tuple[Values, Values, Values, Values]]:
    """Give which tones each run holds, by the correction and by the rule alone, its errors, the spreads it holds."""
    true, found = bank(backend)
    rng = np.random.default_rng([SEED, len(rule), raters, int(100 * missed)])
    for _ in range(RUNS):
        drawn = rng.permutation(DRAWN)[:IMAGES]
        people = np.full((IMAGES, TONES), np.nan)
        people[:SEEN] = np.mean([mistaken(true[drawn[:SEEN]], missed, rng) for _ in range(raters)], axis=0)
        judged, shown = found[rule][drawn], true[drawn]
        answer = corrected_tones(judged, people, answers=np.full(IMAGES, raters))
        truth = shown.sum(axis=0) / shown.sum()
        limits = np.array([(share.low, share.high, share.value) for share in answer.shares])
        bare = judged[judged.sum(axis=1) > 0]
        alone = [clustered_share(bare[:, tone], {"picture": range(len(bare))}) for tone in range(TONES)]
        spread = tone_spread(truth)
        yield (
            (limits[:, 0] - 1e-9 <= truth) & (truth <= limits[:, 1] + 1e-9),
            np.array([share.low <= share_true <= share.high for share, share_true in zip(alone, truth, strict=True)]),
            limits[:, 2] - truth,
            np.array(
                [answer.std.low <= spread.std <= answer.std.high, answer.mad.low <= spread.mad <= answer.mad.high]
            ),
        )


def mistaken(true: Values, missed: float, rng: np.random.Generator) -> Values:
    """Let people take the next tone now and then."""
    said = true.copy()
    for place in np.flatnonzero((rng.random(len(true)) < missed) & (true.sum(axis=1) > 0)):
        tone = int(np.clip(true[place].argmax() + rng.choice([-1, 1]), 0, TONES - 1))
        said[place] = np.eye(TONES)[tone]
    return said


def main() -> None:
    """Measure, and keep the table."""
    head = ["model", "rule", "people", "miss", "rule alone", "corrected", "worst tone", "tones not there", "STD", "MAD"]
    record(
        "tone_coverage",
        title=f"Shares of skin tones of {IMAGES} pictures, 95 % intervals, {SEEN} seen by people, {RUNS} runs a row",
        command="python benchmarks/tone_coverage.py",
        table=[[*head, "worst bias"], *table()],
    )


def table() -> Iterator[list[str]]:
    """Run each model and rule, with people who are right and with people who miss some."""
    recipe = yaml.safe_load(shipped("recipe_files/linguistic.yaml").read_text(encoding="utf-8"))
    for model in recipe["models"]:
        there = bank(model["backend"])[0].sum(axis=0) > 0
        for rule in DETECTORS:
            for raters, missed in PEOPLE:
                each = list(runs(model["backend"], rule, raters, missed))
                held, alone, errors, spreads = (np.array(part) for part in zip(*each, strict=True))
                absent = f"{held[:, ~there].mean():.1%}" if (~there).any() else "-"
                std, mad = spreads.mean(axis=0)
                yield [
                    model["name"], rule, str(raters), f"{missed:.0%}", f"{alone[:, there].mean():.1%}",
                    f"{held[:, there].mean():.1%}", f"{held[:, there].mean(axis=0).min():.1%}", absent,
                    f"{std:.1%}", f"{mad:.1%}", f"{np.abs(errors.mean(axis=0)).max():.3f}",
                ]  # fmt: skip


if __name__ == "__main__":
    main()
