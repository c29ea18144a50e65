import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.metrics.diversity.label_diversity import share_limits
from culturekit.metrics.realism.manifolds import share_interval

IMAGES = st.lists(st.tuples(st.integers(0, 24), st.sampled_from(["BR", "IN", "JP", None])), min_size=1, max_size=120)


@settings(deadline=None)
@given(IMAGES)
def test_each_label_has_the_limits_of_a_share_of_images_in_clusters(drawn: list[tuple[int, str | None]]) -> None:
    drawn = [*((batch, "IN") for batch in range(20)), *drawn]
    batches, labels = zip(*drawn, strict=True)
    found = share_limits(pl.DataFrame({"batch": batches, "label": labels}))
    assert set(found["label"]) == set(labels)
    for label, low, high in found.iter_rows():
        expected = share_interval([float(one == label) for one in labels], clusters=list(batches))
        assert low == pytest.approx(expected.low, abs=1e-9)
        assert high == pytest.approx(expected.high, abs=1e-9)


def test_with_few_batches_there_are_no_limits() -> None:
    table = pl.DataFrame({"batch": [number % 19 for number in range(100)], "label": ["BR"] * 100})
    assert share_limits(table).row(0) == ("BR", None, None)


def test_limits_hold_the_share_where_batches_agree_with_themselves() -> None:
    generator = np.random.default_rng(7)
    held = 0
    for _ in range(150):
        of_batch = generator.random(60) < 0.3
        shown = np.where(generator.random((60, 8)) < 0.7, of_batch[:, None], generator.random((60, 8)) < 0.3)
        table = pl.DataFrame({"batch": np.repeat(np.arange(60), 8), "label": shown.ravel().astype(str)})
        low, high = share_limits(table).filter(label="True").select("low", "high").row(0)
        held += low <= 0.3 <= high
    assert 137 <= held <= 149
