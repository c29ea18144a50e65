"""C³ from folders of vectors: items linked by their ids, terms that are missing, what is kept."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from culturekit.core.errors import UsageError
from culturekit.core.run import run_stage
from culturekit.core.schemas import SCORES, SELECTION, VALUES
from culturekit.core.tables import read_table
from culturekit.index.embedding.embed_table import EmbedSource, embed_stage
from culturekit.index.models.letters_encoder import LettersEncoder
from culturekit.metrics import CATALOG, alignment_c3, interval
from culturekit.recipes.c3.alignment import ROLES
from culturekit.recipes.c3.scores import C3Options, C3Scores, c3, score_c3
from culturekit.scores.inputs import LabelledVectors, VectorFolder
from tests.conftest import HereEngine

WIDTHS = {"source": 6, "target": 6, "objects": 6, "image": 4, "image_target": 4}


def drawn(*, items: int = 25, seed: int = 0) -> dict[str, LabelledVectors]:
    """Draw sentence vectors and images of items, and up to three objects of each."""
    rng = np.random.default_rng(seed)
    ids = [f"caption {number:02}" for number in range(items)]
    every = dict.fromkeys(ROLES, ids)
    every["objects"] = [f"{name}#{k}" for name in ids for k in range(int(rng.integers(0, 4)))]
    return {
        role: LabelledVectors(rng.normal(size=(len(names), WIDTHS[role])).astype(np.float32), names)
        for role, names in every.items()
    }


def of_item(vectors: Mapping[str, LabelledVectors], item: str) -> dict[str, Any]:
    own: dict[str, Any] = dict.fromkeys(ROLES)
    for role, labelled in vectors.items():
        own[role] = [
            vector for vector, name in zip(labelled.vectors, labelled.ids, strict=True) if name.split("#")[0] == item
        ]
    return own


def scored(vectors: Mapping[str, LabelledVectors], **options: Any) -> C3Scores:
    """Score, and hold the answer against the declarations of the tables."""
    answer = score_c3(vectors, options=C3Options(**options))
    for table, frame in (
        (SCORES, answer.scored.scores),
        (VALUES, answer.scored.values),
        (SELECTION, answer.selection),
    ):
        assert table.problems(frame) == []
    return answer


def test_each_item_has_the_terms_of_its_own_vectors() -> None:
    vectors = drawn()
    answer = scored(vectors)
    terms = {"c3": "total", "c3_text": "text", "c3_image": "image", "c3_object": "object"}
    for row in answer.scored.values.rows(named=True):
        expected = getattr(alignment_c3(**of_item(vectors, row["item"])), terms[row["metric"]])
        assert row["value"] == (None if math.isnan(expected) else pytest.approx(expected, abs=1e-12))
    assert answer.scored.values.height == 4 * 25


def test_a_score_is_the_mean_over_items_with_an_interval_over_them() -> None:
    answer = scored(drawn(), model="nllb")
    assert answer.scored.scores.height
    for row in answer.scored.scores.rows(named=True):
        values = answer.scored.values.filter(metric=row["metric"])["value"].drop_nulls().to_list()
        expected = interval(values, prompts=list(range(len(values))), repeats=[0] * len(values))
        assert (row["value"], row["n"], row["model"]) == (pytest.approx(expected.value), len(values), "nllb")
        assert CATALOG[row["metric"]].unit == row["unit"]
        assert json.loads(row["params"]) == {"target": "population"}
        if len(values) >= 20:
            half = 2.064 * np.std(values, ddof=1) / math.sqrt(len(values))
            if len(values) == 25:
                assert row["ci_high"] - row["value"] == pytest.approx(half, rel=1e-3)


def test_a_few_items_have_no_interval() -> None:
    answer = scored(drawn(items=3))
    assert set(answer.scored.scores["ci_low"]) == {None}
    assert {json.loads(params)["target"] for params in answer.scored.scores["params"]} == {"population"}


def test_missing_terms_are_counted() -> None:
    vectors = drawn()
    without = 25 - len({name.split("#")[0] for name in vectors["objects"].ids})
    assert without > 0
    assert scored(vectors).scored.left_out == {"items without the term object": without}
    del vectors["image"]
    answer = scored(vectors)
    assert answer.scored.left_out["items without the term image"] == 25
    row = answer.scored.scores.filter(metric="c3_image").row(0, named=True)
    assert (row["n"], math.isnan(row["value"]), row["ci_low"]) == (0, True, None)
    assert json.loads(row["params"])["no_value"] == "vectors of one side of the term are not given"


def test_what_has_no_caption_is_left_out() -> None:
    vectors = drawn()
    more = LabelledVectors(np.ones((1, 4), np.float32), ["nobody's image"])
    vectors["image"] = LabelledVectors(
        np.concatenate([vectors["image"].vectors, more.vectors]), [*vectors["image"].ids, *more.ids]
    )
    answer = scored(vectors)
    assert answer.scored.left_out["items without a caption"] == 1
    assert "nobody's image" not in answer.scored.values["item"]


def test_a_number_sign_within_an_id_is_part_of_it() -> None:
    ids = ["see #1 here", "item#12", "item#3", "#5"]
    vectors = LabelledVectors(np.eye(4, dtype=np.float32), ids)
    answer = scored({"source": vectors, "target": vectors})
    assert sorted(answer.scored.values.filter(metric="c3_text")["item"]) == ["#5", "item", "see #1 here"]


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_vectors_changes_nothing(seed: int) -> None:
    vectors, rng = drawn(), np.random.default_rng(seed)
    mixed = {}
    for role, labelled in vectors.items():
        order = rng.permutation(len(labelled.ids))
        mixed[role] = replace(labelled, vectors=labelled.vectors[order], ids=[labelled.ids[i] for i in order])
    first, second = scored(vectors, keep=5), scored(mixed, keep=5)
    assert first.scored.values.equals(second.scored.values)
    assert first.scored.scores.equals(second.scored.scores)
    assert first.selection.equals(second.selection)


def test_nothing_is_kept_unless_asked_for() -> None:
    assert scored(drawn()).selection.height == 0


def test_what_cannot_be_scored_is_explained() -> None:
    vectors = drawn(items=3)
    narrow = LabelledVectors(np.ones((3, 5), np.float32), vectors["source"].ids)
    twice = LabelledVectors(np.ones((2, 6), np.float32), ["a", "a"])
    with pytest.raises(UsageError, match="target and objects must share one space"):
        scored({**vectors, "source": narrow})
    with pytest.raises(UsageError, match="an id stands twice among the vectors of target; found 'a'"):
        scored({**vectors, "target": twice})
    with pytest.raises(UsageError, match="there is no caption to score"):
        scored({"source": vectors["source"], "image": vectors["image"]})
    with pytest.raises(UsageError, match="strategy must be 'c3' or"):
        scored(vectors, strategy="best")
    with pytest.raises(UsageError, match="vectors must be of the roles"):
        scored({**vectors, "caption": vectors["target"]})


def test_vectors_of_which_nothing_can_be_compared_are_refused() -> None:
    vectors = drawn(items=3)
    with pytest.raises(UsageError, match=r"nothing says how well the captions fit.*found vectors of target"):
        scored({"target": vectors["target"]})
    strange = LabelledVectors(vectors["image"].vectors, ["x", "y", "z"])
    with pytest.raises(UsageError, match=r"no item has vectors of both image and image_target.*'x' and 'caption 00'"):
        scored({**vectors, "image": strange})
    with pytest.raises(UsageError, match="no item has what the strategy 'objects' ranks by"):
        scored({role: vectors[role] for role in ("source", "target")}, keep=2, strategy="objects")


def test_pictures_without_any_object_leave_the_other_terms() -> None:
    vectors = drawn(items=3)
    bare = {**vectors, "objects": LabelledVectors(np.empty((0, 6), np.float32), [])}
    answer = scored(bare).scored
    without = scored({role: own for role, own in vectors.items() if role != "objects"}).scored
    assert answer.values.equals(without.values)
    assert answer.left_out["items without the term object"] == 3


def test_single_tokens_give_the_maxima_of_the_equations(tmp_path: Path) -> None:
    """Words of the letters' encoder, embedded by the stage, against a walk over all pairs of words."""
    texts = {
        "source": {"a": "red lanterns", "b": "a tea ceremony"},
        "target": {"a": "lanterns of red silk", "b": "tea"},
    }
    folders: dict[str, Any] = {}
    for role, own in texts.items():
        path = tmp_path / f"{role}.jsonl"
        path.write_text("".join(json.dumps({"id": key, "text": text}) + "\n" for key, text in own.items()))
        stage = embed_stage(EmbedSource(texts=(path,)), encoder="letters", give="tokens")
        folders[role] = VectorFolder(run_stage(stage, tmp_path / role, engine=HereEngine()).folder)
    run_stage(c3.stage(**folders), tmp_path / "scores", engine=HereEngine())
    values = read_table(tmp_path / "scores/values.parquet", VALUES).filter(metric="c3_text")
    made = LettersEncoder()
    for item, value in values.select("item", "value").iter_rows():
        one, other = (made.encode_texts(own[item].split()).astype(float) for own in texts.values())
        assert value == pytest.approx(np.mean([max(float(s @ t) for t in other) for s in one]), abs=1e-6)
