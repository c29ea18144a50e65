"""By how much steps along the slope of diversity go too far."""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from culturekit.metrics import audit_sample, vendi_corrected
from culturekit.metrics.corrected.expected_diversity import ExpectedDiversity, expected_diversity
from culturekit.metrics.corrected.imputed_prompts import Findings, Imputed
from culturekit.metrics.corrected.rectified import PAIRS, bends
from tests.metrics.corrected.audits_by_hand import audits_of, matches_of

LABELS, IMAGES, HELD, CHAINS = 4, 400, 20, 3
KERNEL = np.array([[1.0, 0.5, 0.0, 0.0], [0.5, 1.0, 0.0, 0.2], [0.0, 0.0, 1.0, 0.0], [0.0, 0.2, 0.0, 1.0]])


@dataclass
class Unlike:
    """How unlike two images are: it bends alike everywhere, so that all of it is known."""

    size: int = 2

    def __call__(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(1 - ((shares @ KERNEL) * shares).sum(axis=1))

    def of_images(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        images = counts.sum(axis=1)
        return np.asarray(1 - (((counts @ KERNEL) * counts).sum(axis=1) - images) / (images * (images - 1)))


def told(truth: NDArray[np.float64], imputed: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Ask how far an imputation goes too far: all images are mapped alike; each part is left out once."""
    audited = CHAINS * HELD
    shown = np.eye(LABELS)[rng.choice(LABELS, p=truth, size=audited)]
    part = np.arange(audited) % CHAINS
    mapped = np.array([[IMAGES, 0, 0, 0]])
    hidden = IMAGES - audited + HELD
    known = np.array([shown[part != chain].sum(axis=0) for chain in range(CHAINS)])
    counts = rng.multinomial(hidden, imputed, size=(CHAINS, 50, 1)) + known[:, None, None].astype(np.int64)
    chances = np.tile(imputed, (CHAINS, 1, 1))
    everything = Imputed(counts, chances, chances[:, None], np.zeros(1, np.int64), np.zeros(1, np.int64), chances)
    nowhere = np.zeros(audited, np.int64)
    diversity = cast(ExpectedDiversity, Unlike())
    told, trust = bends(mapped, Findings(nowhere, nowhere, shown), everything, part, diversity, rng=rng)
    assert trust == pytest.approx(HELD * (HELD - 1) / (HELD * (HELD - 1) + PAIRS))
    return told


@pytest.mark.parametrize("truth", [[0.4, 0.3, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25], [0.7, 0.1, 0.1, 0.1]])
def test_pairs_of_images_tell_how_far_the_step_goes_too_far(truth: list[float]) -> None:
    rng, imputed = np.random.default_rng(1), np.array([0.4, 0.3, 0.2, 0.1])
    error = np.array(truth) - imputed
    found = np.array([told(np.array(truth), imputed, rng) for _ in range(600)])
    pairs, hidden = HELD * (HELD - 1), (IMAGES - CHAINS * HELD + HELD) / IMAGES
    wanted = -pairs / (pairs + PAIRS) * hidden**2 * error @ KERNEL @ error
    assert abs(found.mean() - wanted) < 4 * found.std() / found.size**0.5
    assert found.std() / found.size**0.5 < 1e-3


def test_one_image_of_a_prompt_tells_nothing() -> None:
    mapped, nowhere = np.array([[4, 0, 0, 0]] * 3), np.arange(3)
    chances = np.full((CHAINS, 3, LABELS), 0.25)
    counts = np.full((CHAINS, 2, 3, LABELS), 1)
    everything = Imputed(counts, chances, chances[:, None], np.arange(3), np.zeros(3, np.int64), chances)
    found = Findings(nowhere, np.zeros(3, np.int64), np.eye(LABELS)[:3])
    unlike: Any = Unlike()
    told, trust = bends(mapped, found, everything, np.arange(3), unlike, rng=np.random.default_rng(0))
    assert (told.tolist(), trust) == ([0, 0, 0], 0.0)


def test_where_the_mapping_is_mostly_wrong_the_value_is_hardly_too_high() -> None:
    countries, errors = [f"c{number:02}" for number in range(20)], []
    diversity = expected_diversity(size=8, continent=0.0, country=1.0, q=1.0, parents=[0] * 20)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        shares = rng.dirichlet(np.full(20, 1.0), size=3)
        shown = np.array([rng.choice(20, p=shares[number % 3]) for number in range(1200)])
        mapped = np.where(rng.random(1200) < 0.25, shown, rng.integers(20, size=1200))
        everywhere = pl.lit("everywhere").alias("continent")
        matches = matches_of([countries[label] for label in mapped], prompts=3).with_columns(everywhere)
        drawn = audit_sample(matches, n=150, rng=rng)["image_id"].to_list()
        names = dict(zip(matches["image_id"].to_list(), (countries[label] for label in shown), strict=True))
        audits = audits_of({image: names[image] for image in drawn}).with_columns(everywhere)
        answer = vendi_corrected(matches, audits, weights=(0.0, 1.0, 0.0), rng=rng)
        errors.append(answer.value - float(diversity(shares).mean()))
    assert abs(np.mean(errors)) < 0.018  # it was .025
