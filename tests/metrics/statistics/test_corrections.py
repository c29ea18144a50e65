"""Corrections of p values, against statsmodels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats import multitest

from culturekit.core.errors import UsageError
from culturekit.metrics import benjamini_hochberg, holm
from culturekit.metrics.statistics.comparisons import corrected

P = st.lists(st.floats(0, 1), min_size=1, max_size=20)


@given(P)
@settings(max_examples=15, deadline=None)
def test_agree_with_statsmodels(p: list[float]) -> None:
    for ours, method in ((holm, "holm"), (benjamini_hochberg, "fdr_bh")):
        np.testing.assert_allclose(ours(p), multitest.multipletests(p, method=method)[1], atol=1e-12)


@given(P)
def test_identities_and_invariances(p: list[float]) -> None:
    values = np.array(p)
    order = np.random.default_rng(0).permutation(len(p))
    for correct in (holm, benjamini_hochberg):
        answer = correct(p)
        assert (answer >= values - 1e-15).all()
        assert (answer <= 1).all()
        np.testing.assert_allclose(correct(values[order]), answer[order])
    assert (holm(p) >= benjamini_hochberg(p) - 1e-12).all()
    assert holm(p[:1]) == benjamini_hochberg(p[:1]) == pytest.approx(p[:1])


def test_a_comparison_that_could_not_be_made_does_not_count() -> None:
    for correct in (holm, benjamini_hochberg):
        answer = correct([0.01, np.nan, 0.03])
        np.testing.assert_array_equal(answer[[0, 2]], correct([0.01, 0.03]))
        assert np.isnan(answer[1])
        assert np.isnan(correct([np.nan])).all()
        assert correct([]).size == 0


def test_what_breaks_its_rule_is_named() -> None:
    with pytest.raises(UsageError, match=r"p must be a sequence of numbers in \[0, 1\]"):
        holm([0.5, 1.5])
    with pytest.raises(UsageError, match="correction must be 'holm' or 'benjamini-hochberg'; found 'sidak'"):
        corrected([0.5], correction="sidak")
