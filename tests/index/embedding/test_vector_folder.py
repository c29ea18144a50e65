"""Vectors that point nowhere are refused wherever a folder of them is opened."""

from pathlib import Path

import numpy as np
import pytest

from culturekit.core.errors import IntegrityError
from culturekit.index.embedding.embedding_encoders import load_vectors, save_vectors


@pytest.mark.parametrize("wrong", [0.0, float("nan"), float("inf")])
def test_a_vector_without_a_direction_is_refused(tmp_path: Path, wrong: float) -> None:
    vectors = np.ones((4, 3), np.float32)
    vectors[2] = wrong
    save_vectors(tmp_path, vectors, ["a", "b", "c", "d"])
    with pytest.raises(IntegrityError, match=r"vectors\.npy, row 2: 1 of 4 vectors have no direction.* of 'c'"):
        load_vectors(tmp_path)


def test_zeros_among_numbers_and_no_vectors_at_all_are_taken(tmp_path: Path) -> None:
    save_vectors(tmp_path, np.eye(3, dtype=np.float32), ["a", "b", "c"])
    assert load_vectors(tmp_path)[1] == ["a", "b", "c"]
    save_vectors(tmp_path, np.empty((0, 3), np.float32), [])
    assert load_vectors(tmp_path)[1] == []
