"""Agreement of two labellings: against statsmodels, by hand, and by leaving batches out one at a time."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats import inter_rater

from culturekit.core.errors import UsageError
from culturekit.metrics import cohen_kappa
from culturekit.metrics.statistics.chance_corrected import equal_share, kappa_interval

LABELS = st.sampled_from(["BR", "IN", "JP", "TR"])
ROWS = st.lists(st.tuples(LABELS, LABELS, st.integers(0, 4)), min_size=2, max_size=40)


@given(ROWS)
def test_kappa_is_cohens_and_its_interval_the_jackknife_written_down(rows: list[tuple[str, str, int]]) -> None:
    a, b, batch = (np.array(column) for column in zip(*rows, strict=True))
    found = kappa_interval(a, b, batches=batch)
    expected = cohen_kappa(a.tolist(), b.tolist())
    assert found.value == pytest.approx(expected, nan_ok=True)
    batches = sorted(set(batch.tolist()))
    if len(batches) < 2 or math.isnan(expected):
        assert math.isnan(found.low)
        return
    without = np.array([cohen_kappa(a[batch != one].tolist(), b[batch != one].tolist()) for one in batches])
    spread = (len(batches) - 1) / len(batches) * float(((without - without.mean()) ** 2).sum())
    if not spread > 1e-20:
        return
    margin = stats.t.ppf(0.975, len(batches) - 1) * math.sqrt(spread)
    assert found.low == pytest.approx(max(-1.0, expected - margin))
    assert found.high == pytest.approx(min(1.0, expected + margin))


def test_kappa_is_that_of_statsmodels() -> None:
    rng = np.random.default_rng(3)
    a = rng.integers(0, 4, 200)
    b = np.where(rng.random(200) < 0.7, a, rng.integers(0, 4, 200))
    table = np.zeros((4, 4))
    np.add.at(table, (a, b), 1)
    expected = float(inter_rater.cohens_kappa(table, return_results=False))
    assert kappa_interval(a, b, batches=np.arange(200)).value == pytest.approx(expected)


def test_the_share_of_equal_labels_and_its_limits_widen_where_batches_go_together() -> None:
    a = np.array(["x"] * 80)
    alone = np.where(np.random.default_rng(0).permutation(80) < 60, "x", "y")
    batched = np.array(["x"] * 8 * 7 + ["y"] * 8 * 2 + ["x"] * 4 + ["y"] * 4)
    batch = np.repeat(np.arange(10), 8)
    even, uneven = equal_share(a, alone, batches=batch), equal_share(a, batched, batches=batch)
    assert (even.value, uneven.value, even.n) == (0.75, 0.75, 80)
    assert even.high - even.low < uneven.high - uneven.low


@pytest.mark.parametrize("labels", [["x", "x", "x"], ["x"]])
def test_one_label_has_no_kappa_beyond_chance(labels: list[str]) -> None:
    found = kappa_interval(labels, labels, batches=list(range(len(labels))))
    assert math.isnan(found.value)


def test_full_agreement_has_no_limits_since_nothing_scatters() -> None:
    found = kappa_interval(["x", "y", "x", "y"], ["x", "y", "x", "y"], batches=[0, 0, 1, 1])
    assert found.value == 1.0
    assert math.isnan(found.low)


def test_the_order_of_images_changes_nothing() -> None:
    rng = np.random.default_rng(8)
    a, b, batch = rng.integers(0, 3, 60), rng.integers(0, 3, 60), rng.integers(0, 9, 60)
    order = rng.permutation(60)
    one, other = kappa_interval(a, b, batches=batch), kappa_interval(a[order], b[order], batches=batch[order])
    assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high))


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Batches that differ in how well the routes agree: 400 worlds of 30 batches of 8."""
    rng = np.random.default_rng(11)
    held = np.zeros(2)
    truth_share, truth_kappa = 0.6 + 0.4 / 5, 0.6
    for _ in range(400):
        a = rng.integers(0, 5, 240)
        copied = rng.random(240) < np.repeat(rng.beta(6, 4, 30), 8)
        b = np.where(copied, a, rng.integers(0, 5, 240))
        batch = np.repeat(np.arange(30), 8)
        share, kappa = equal_share(a, b, batches=batch), kappa_interval(a, b, batches=batch)
        held += [share.low <= truth_share <= share.high, kappa.low <= truth_kappa <= kappa.high]
    assert (held / 400 > 0.92).all()
    assert (held / 400 < 0.985).all()


def test_labels_of_other_length_are_refused() -> None:
    with pytest.raises(UsageError, match="as long as a"):
        equal_share(["x"], ["x", "y"], batches=[0])
