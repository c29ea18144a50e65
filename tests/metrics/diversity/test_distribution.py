"""The shares of labels, and the mean cosine of images: against direct counts and all pairs."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from sklearn.metrics.pairwise import cosine_similarity

from culturekit.core.errors import UsageError
from culturekit.metrics import distribution, mean_cosine, vendi

LABELS = [("Asia", "JP", "Sushi"), ("Asia", "JP", "sushi "), ("Asia", "IN", "dosa"), (None, None, None)]


def test_shares_are_counts_over_all_items() -> None:
    table = distribution(LABELS, level="artifact")
    assert table.rows() == [("Sushi", 2, 0.5), ("dosa", 1, 0.25), (None, 1, 0.25)]
    assert table.columns == ["label", "n", "p"]
    assert distribution(LABELS, level="continent").rows() == [("Asia", 3, 0.75), (None, 1, 0.25)]
    apart = distribution(LABELS, level="artifact", normalize_labels=False)
    assert apart.rows() == [("Sushi", 1, 0.25), ("dosa", 1, 0.25), ("sushi ", 1, 0.25), (None, 1, 0.25)]


@pytest.mark.parametrize("level", ["continent", "country", "artifact"])
def test_any_kind_of_labels_gives_the_same(level: str) -> None:
    codes = np.random.default_rng(0).integers(0, 9, (200, 3))
    place = ["continent", "country", "artifact"].index(level)
    counts = Counter(codes[:, place].tolist())
    expected = sorted(((label, n, n / 200) for label, n in counts.items()), key=lambda row: (-row[1], row[0]))
    assert distribution(codes, level=level).rows() == expected
    assert distribution(codes.tolist(), level=level).rows() == expected
    frame = pl.DataFrame(codes, schema=["continent", "country", "artifact"])
    assert distribution(frame, level=level).rows() == expected
    texts = [(str(label), n, p) for label, n, p in expected]
    assert distribution(frame.cast(pl.String), level=level).rows() == texts
    assert distribution(frame.cast(pl.String).cast(pl.Categorical), level=level).rows() == texts


def test_the_score_of_one_level_is_a_function_of_the_shares() -> None:
    codes = np.random.default_rng(1).zipf(1.5, (300, 3)) % 20
    shares = distribution(codes, level="country")["p"].to_numpy()
    assert vendi(codes, weights=(0, 1, 0)) == pytest.approx(np.exp(-np.sum(shares * np.log(shares))))
    assert vendi(codes, weights=(0, 1, 0), q=2) == pytest.approx(1 / np.sum(shares**2))


def test_mean_cosine_is_the_mean_over_all_pairs() -> None:
    rng = np.random.default_rng(2)
    for vectors in (rng.normal(size=(40, 7)), rng.normal(1, 0.1, (9, 300)).astype(np.float32), rng.normal(size=(1, 3))):
        assert mean_cosine(vectors) == pytest.approx(cosine_similarity(vectors.astype(float)).mean(), rel=1e-10)


def test_mean_cosine_at_its_ends_and_whatever_the_lengths() -> None:
    assert mean_cosine(np.ones((5, 3)) * 1e-200) == pytest.approx(1)
    assert mean_cosine([[1, 0], [-2, 0]]) == pytest.approx(0, abs=1e-15)
    assert mean_cosine(np.eye(8)) == pytest.approx(1 / 8)
    vectors = np.random.default_rng(3).normal(size=(70_000, 4))
    scaled = vectors * np.random.default_rng(4).uniform(0.1, 9, (70_000, 1))
    assert mean_cosine(scaled[::-1]) == pytest.approx(mean_cosine(vectors), rel=1e-9)
    assert mean_cosine(np.concatenate([vectors, vectors])) == pytest.approx(mean_cosine(vectors), rel=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: distribution(LABELS, level="city"), "level must be 'continent' or 'country' or 'artifact'"),
        (lambda: distribution([], level="country"), "labels must be at least one"),
        (lambda: distribution([("a", "b", 0.5)], level="artifact"), "each artifact label must be a text"),  # type: ignore[arg-type]
        (lambda: mean_cosine(np.ones(3)), "vectors must be a matrix with at least one cell; found 'shape (3,)'"),
        (lambda: mean_cosine(np.ones((0, 3))), "vectors must be a matrix with at least one cell"),
        (lambda: mean_cosine([[1, 0], [0, 0]]), "vectors[1] must be finite, and a vector other than zero"),
        (lambda: mean_cosine([[1, np.nan]]), "vectors[0] must be finite"),
        (lambda: mean_cosine([["a", "b"]]), "vectors must be a matrix of numbers"),
        (lambda: mean_cosine([[1, 2], [3]]), "vectors must be a matrix of numbers"),
    ],
)
def test_an_argument_that_breaks_its_rule_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        call()
    assert message in str(caught.value)
