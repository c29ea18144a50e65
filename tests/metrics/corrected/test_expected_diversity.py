import itertools
import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from culturekit.metrics import vendi
from culturekit.metrics.corrected.expected_diversity import expected_diversity, over_prompts

PARENTS = [0, 0, 1, 1, 2]


def by_every_batch(shares: np.ndarray, *, size: int, weights: tuple[float, float], q: float) -> float:
    """The mean over all batches, one by one, each scored by `vendi`."""
    total = 0.0
    for batch in itertools.product(range(len(shares)), repeat=size):
        chance = math.prod(shares[label] for label in batch)
        if chance > 0:
            labels = [(PARENTS[label], label, label) for label in batch]
            total += chance * vendi(labels, weights=(*weights, 0.0), q=q) / size
    return total


@pytest.mark.parametrize("weights", [(0.0, 1.0), (0.5, 0.5), (0.2, 0.8)])
@pytest.mark.parametrize("q", [0.5, 1.0, 2.0, math.inf])
def test_it_is_the_mean_over_every_batch_there_is(weights: tuple[float, float], q: float) -> None:
    shares = np.array([0.4, 0.1, 0.25, 0.05, 0.2])
    diversity = expected_diversity(size=4, continent=weights[0], country=weights[1], q=q, parents=PARENTS)
    assert diversity(shares)[0] == pytest.approx(by_every_batch(shares, size=4, weights=weights, q=q), abs=1e-12)


@pytest.mark.parametrize("weights", [(0.0, 1.0), (0.5, 0.5)])
def test_one_label_gives_one_over_size_and_order_of_labels_does_not_matter(weights: tuple[float, float]) -> None:
    diversity = expected_diversity(size=8, continent=weights[0], country=weights[1], q=1.0, parents=PARENTS)
    assert diversity(np.eye(5)) == pytest.approx(np.full(5, 1 / 8))
    shares = np.array([0.4, 0.1, 0.25, 0.05, 0.2])
    swapped = shares[[1, 0, 3, 2, 4]]
    assert diversity(swapped) == pytest.approx(diversity(shares), abs=1e-13)


PRESENT_OR_NOT = st.one_of(st.just(0.0), st.floats(0.05, 1.0))
"""A label too rare for 1,600 draws would leave the draws without the scatter that the bound is made of."""


@given(arrays(float, 5, elements=PRESENT_OR_NOT).filter(lambda values: values.sum() > 0))
@settings(max_examples=15, deadline=None)
def test_it_agrees_with_drawn_batches(values: np.ndarray) -> None:
    shares = values / values.sum()
    diversity = expected_diversity(size=8, continent=0.5, country=0.5, q=1.0, parents=PARENTS)
    rng = np.random.default_rng(1)
    drawn = [
        vendi([(PARENTS[label], int(label), 0) for label in batch], weights=(0.5, 0.5, 0.0)) / 8
        for batch in rng.choice(5, p=shares, size=(200, 8))
    ]
    assert abs(diversity(shares)[0] - np.mean(drawn)) <= 5 * np.std(drawn) / math.sqrt(200) + 1e-9


@pytest.mark.parametrize(("continent", "q"), [(0.0, 2.0), (0.5, 2.0)])
def test_the_chances_of_all_kinds_of_batches_sum_to_1(continent: float, q: float) -> None:
    diversity = expected_diversity(size=8, continent=continent, country=1 - continent, q=q, parents=PARENTS)
    alike = replace(diversity, scores=np.where(diversity.scores > 0, math.factorial(8), 0.0))
    assert alike(np.random.default_rng(0).dirichlet(np.ones(5), size=3)) == pytest.approx(np.ones(3))
    assert len(diversity.continent.states) == 1 + 1 + 2 + 3 + 5 + 7 + 11 + 15 + 22


@pytest.mark.parametrize("continent", [0.0, 0.5])
def test_the_first_order_is_the_limit_of_others(continent: float) -> None:
    shares = np.random.default_rng(0).dirichlet(np.ones(5), size=3)
    first, near = (
        expected_diversity(size=8, continent=continent, country=1 - continent, q=q, parents=PARENTS)(shares)
        for q in (1.0, 1 + 1e-7)
    )
    assert first == pytest.approx(near, abs=1e-6)


def test_prompts_count_alike() -> None:
    diversity = expected_diversity(size=8, continent=0.0, country=1.0, q=1.0, parents=PARENTS)
    shares = np.stack([np.eye(5)[0], np.full(5, 0.2)])
    assert over_prompts(diversity, shares[None])[0] == pytest.approx(diversity(shares).mean())


@pytest.mark.parametrize(("continent", "country"), [(0.0, 1.0), (0.5, 0.5)])
def test_of_images_it_is_the_mean_over_all_batches_that_they_make(continent: float, country: float) -> None:
    parents = [0, 0, 1, 1, 2]
    diversity = expected_diversity(size=3, continent=continent, country=country, q=1.0, parents=parents)
    counts = np.array([[3, 1, 2, 0, 2], [0, 0, 3, 0, 0], [1, 1, 1, 1, 1]])
    every = [
        np.mean(
            [
                vendi([(str(parents[i]), str(i), "") for i in batch], weights=(continent, country, 0.0)) / 3
                for batch in combinations(np.repeat(np.arange(5), row).tolist(), 3)
            ]
        )
        for row in counts
    ]
    assert diversity.of_images(counts) == pytest.approx(every)


def test_of_very_many_images_it_is_that_of_their_shares() -> None:
    diversity = expected_diversity(size=8, continent=0.5, country=0.5, q=1.0, parents=[0, 0, 1, 1])
    counts = np.array([[600_000, 300_000, 90_000, 10_000]])
    assert diversity.of_images(counts) == pytest.approx(diversity(counts / 1e6), abs=1e-5)
