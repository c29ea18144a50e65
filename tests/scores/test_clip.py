"""Objects that images show, by thresholds of models."""

import numpy as np
import pytest

from culturekit.core.errors import UsageError
from culturekit.scores.clip import ClipOptions, score_clip, thresholds_of
from culturekit.scores.inputs import LabelledVectors
from tests.scores.picture_tables import pictured


def test_a_threshold_of_a_model_that_is_not_scored_is_refused() -> None:
    images, vectors = pictured({"open": {"p": 4}}, concept="drum")
    texts = LabelledVectors(np.ones((1, 6), np.float32), ["drum"])
    scored = score_clip(vectors, texts, images, options=ClipOptions("object", {"": 0.2, "open": 0.9})).scored
    assert '"threshold":0.9' in scored.scores.filter(metric="object_presence")["params"][0].replace(" ", "")
    with pytest.raises(UsageError, match="models that are scored, such as 'open'; found 'opem'"):
        score_clip(vectors, texts, images, options=ClipOptions("object", {"": 0.2, "opem": 0.9}))


@pytest.mark.parametrize(
    ("texts", "rule"),
    [
        (["a=.2", "a=.3"], "given once for a model"),
        ([".2", ".3"], "given once for a model"),
        *[([text], "a cosine") for text in ("21", "open=-1.5", "nan")],  # no image would show its object, or all
    ],
)
def test_a_model_has_one_threshold_which_is_a_cosine(texts: list[str], rule: str) -> None:
    with pytest.raises(UsageError, match=f"threshold must be {rule}"):
        thresholds_of(texts)
    assert thresholds_of([".2", "a=.3", "b=-.1"]) == {"": 0.2, "a": 0.3, "b": -0.1}
