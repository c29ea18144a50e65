"""Ten wrong calls of the library's front door: each is refused as a ValueError, in words that say what was expected."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import culturekit as ck

FLAT, POINTS = np.zeros((1, 2)), np.zeros((3, 2))

WRONG: dict[str, Callable[[], Any]] = {
    "labels must be at least one (continent, country, artifact); found []": lambda: ck.vendi([]),
    "weights must be three numbers of at least 0 that sum to 1, for (continent, country, artifact); found (1, 1)":
        lambda: ck.vendi(["a", "b"], weights=(1, 1)),
    "q must be a number above 0, or infinity; found -1": lambda: ck.vendi(["a", "b"], q=-1),
    "quality must be of length 2, like what it belongs to; found 'length 1'":
        lambda: ck.qvs([("Europe", "FR", "a"), ("Europe", "FR", "b")], [0.5], weights=(0, 0, 1)),
    "real and fake must come from one extractor; expected vectors of 2 numbers, like real, found 3 in fake":
        lambda: ck.prdc(POINTS, np.zeros((3, 3)), k=2),
    "a must be at least 2 rows; found '1'": lambda: ck.frechet_distance(FLAT, POINTS),
    "prompts must be one per value, of length 2; found 'shape (1,)'":
        lambda: ck.interval([1.0, 2.0], prompts=["a"], repeats=[0, 1]),
    "there is no search 'fais'; expected auto or faiss or faiss-gpu or numpy or torch. Did you mean 'faiss'?":
        lambda: ck.searcher(np.eye(3, dtype=np.float32), engine="fais"),
    "nowhere.parquet: there is no matches table; expected the table matches. Run the stage that writes it first.":
        lambda: ck.read_table(Path("nowhere.parquet"), ck.TABLES["matches"]),
    "nowhere.yaml: there is no such YAML file": lambda: ck.load_recipe(Path("nowhere.yaml")),
}  # fmt: skip
"""What is said, and the call."""


@pytest.mark.parametrize("said", WRONG)
def test_a_wrong_call_says_what_was_expected(said: str) -> None:
    with pytest.raises(ValueError) as caught:
        WRONG[said]()
    assert str(caught.value) == said
    assert isinstance(caught.value, ck.CultureKitError)
