"""Mean cosine and mean LPIPS of batches, held against loops."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from culturekit.core.engines import LocalEngine
from culturekit.core.errors import UsageError
from culturekit.core.run import run_stage
from culturekit.core.schemas import IMAGES, PAIR_DISTANCES, SCORES, VALUES
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import write_table
from culturekit.scores.inputs import ImageTables, PairFolders
from culturekit.scores.spread import SpreadOptions, score_spread
from tests.scores.picture_tables import pictured

OPTIONS = SpreadOptions(size=4)
COUNTS = {"a": {"p": 12, "q": 8}, "b": {"p": 10, "q": 8}}


def pair_table(rows: list[tuple[str, str, int, int, int, float]]) -> pl.DataFrame:
    full = [("lpips-alex", model, "art", *rest) for model, *rest in rows]
    frame = pl.DataFrame(full, PAIR_DISTANCES.schema, orient="row")
    assert PAIR_DISTANCES.problems(frame) == []
    return frame


def test_cosines_of_all_pairs_the_diagonal_included() -> None:
    images, vectors = pictured(COUNTS)
    found = score_spread(images, vectors, options=OPTIONS)
    assert SCORES.problems(found.scores) == []
    assert VALUES.problems(found.values) == []
    place = {name: row for row, name in enumerate(vectors.ids)}
    for model in "ab":
        prompts = []
        for prompt in "pq":
            own = images.filter(model=model, prompt_id=prompt).sort("repeat", "slot")["image_id"].to_list()
            repeats = []
            for start in range(0, len(own) // 4 * 4, 4):
                batch = [vectors.vectors[place[name]].astype(float) for name in own[start : start + 4]]
                cosines = [x @ y / np.sqrt((x @ x) * (y @ y)) for x in batch for y in batch]
                repeats.append(sum(cosines) / 16)
            prompts.append(np.mean(repeats))
        assert found.scores.filter(model=model)["value"].item() == pytest.approx(np.mean(prompts), rel=1e-6)
    assert found.scores["n"].to_list() == [20, 16]
    assert found.left_out == {"images of an incomplete batch": 2}


def test_distances_are_averaged_over_repeats_then_prompts_with_a_t_interval() -> None:
    images, _ = pictured({"a": {"p": 20}}, slots=8)
    rows = [("a", "p", 0, 0, 4, 0.1), ("a", "p", 0, 1, 4, 0.3), ("a", "p", 1, 0, 4, 0.4), ("a", "p", 2, 0, 3, 9.0)]
    found = score_spread(images, distances=pair_table(rows), options=OPTIONS)
    score = found.scores.row(0, named=True)
    assert score["value"] == pytest.approx(0.3)
    assert (score["n"], score["unit"]) == (12, "distance")
    low, high = stats.t.interval(0.95, 1, loc=0.3, scale=stats.sem([0.2, 0.4]))
    assert (score["ci_low"], score["ci_high"]) == (pytest.approx(low), pytest.approx(high))
    unlike = {"images of batches of another size than 4": 3, "images without a distance by lpips-alex": 8}
    assert found.left_out == unlike


def test_distances_between_other_images_are_counted_or_refused() -> None:
    images, _ = pictured({"a": {"p": 8}})
    own, other = ("a", "p", 1, 0, 4, 0.4), ("other", "p", 0, 0, 4, 0.1)
    found = score_spread(images, distances=pair_table([own, other, ("a", "p", 1, 1, 4, 0.1)]), options=OPTIONS)
    assert found.scores["value"].to_list() == pytest.approx([0.4])
    assert found.left_out["images of distances that are in no table of images"] == 8
    assert score_spread(images, distances=pair_table([other]), options=OPTIONS).scores.is_empty()


def test_distances_between_pictures_of_another_table_are_refused(tmp_path: Path) -> None:
    images, distances = pictured({"a": {"p": 4}})[0], pair_table([("a", "p", 0, 0, 4, 0.4)])
    own, other = (write_table(folder(tmp_path / name), IMAGES, images.with_columns(seed=pl.lit(name == "own").cast(
        pl.Int64))) for name in ("own", "other"))  # fmt: skip

    def measured(work: Work) -> Outcome:
        write_table(work.out, PAIR_DISTANCES, distances)
        return Outcome({})

    run_stage(Stage("pairs", "pair-distances", 1, measured, {"images": own}), tmp_path / "pairs", engine=LocalEngine(1))
    given = PairFolders([tmp_path / "pairs"])
    given.check_images(ImageTables([own]))
    with pytest.raises(UsageError, match="the distances are between other images"):
        given.check_images(ImageTables([other]))


def folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_one_repeat_says_why_there_is_no_interval() -> None:
    images, vectors = pictured({"a": {"p": 4}})
    row = score_spread(images, vectors, options=OPTIONS).scores.row(0, named=True)
    assert row["ci_low"] is None
    assert "one repeat" in json.loads(row["params"])["no_interval"]


def test_several_concepts_have_a_score_over_all() -> None:
    images, vectors = pictured(COUNTS)
    concept = pl.when(pl.col("prompt_id") == "p").then(pl.lit("art")).otherwise(pl.lit("food"))
    found = score_spread(images.with_columns(concept=concept), vectors, options=OPTIONS).scores
    assert found.filter(model="a")["concept"].to_list() == [None, "art", "food"]
    whole, art, food = found.filter(model="a")["value"]
    assert whole == pytest.approx((art + food) / 2)
