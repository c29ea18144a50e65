import numpy as np
import pytest

from culturekit.metrics.corrected.audited_counts import audited_share


def test_a_mapping_that_tells_nothing_apart_among_audited_images_moves_nothing() -> None:
    said, seen = [np.array([1.0, 1.0, 0.0, 0.0, 0.0])], [np.zeros(5)]
    shares = [audited_share(said, seen, [everywhere], [50], confidence=0.95) for everywhere in (0.0, 0.6)]
    assert shares[0] == shares[1]
    assert shares[0].value == pytest.approx(0.4)


def test_a_mapping_that_is_right_throughout_gives_its_share_of_all_images() -> None:
    said = [np.array([1.0, 1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0])]
    share = audited_share(said, said, [0.3, 0.9], [30, 10], confidence=0.95)
    assert share.value == pytest.approx((0.3 * 30 + 0.9 * 10) / 40)
    assert (share.low, share.high) == pytest.approx(
        (share.value - 1.96 * 0.75 / 4, share.value + 1.96 * 0.75 / 4), abs=1e-4
    )
