"""Scores of pictures: realism, spread, objects that they show, and answers to questions about them."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from culturekit.core.engines import LocalEngine
from culturekit.core.errors import UsageError
from culturekit.core.run import run_stage
from culturekit.core.schemas import (
    ANSWER_COUNTS,
    IMAGES,
    JUDGMENTS,
    PAIR_DISTANCES,
    QUESTION_RATES,
    QUESTIONS,
    SCORES,
    VALUES,
)
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import write_table
from culturekit.metrics.questions import dsg_score
from culturekit.metrics.realism.features import called, check_extractor, licence_of
from culturekit.metrics.realism.manifolds import prdc
from culturekit.metrics.realism.set_distances import frechet_distance
from culturekit.scores.clip import ClipOptions, score_clip, thresholds_of
from culturekit.scores.faithfulness import (
    QuestionInput,
    QuestionOptions,
    answer_counts,
    question_rates,
    score_questions,
)
from culturekit.scores.inputs import ImageTables, LabelledVectors, PairFolders
from culturekit.scores.realism import (
    RealismInput,
    RealismMeans,
    RealismOptions,
    balanced_references,
    equal_images,
    score_realism,
)
from culturekit.scores.spread import SpreadOptions, score_spread
from tests.recipes.linguistic.score_world import images, quality
from tests.scores.picture_tables import image_table, pictured

UNEQUAL = {"a": {"p": 12, "q": 12}, "b": {"p": 12, "q": 7}, "c": {"p": 9, "q": 12}}
PORTED = {"name": "inception features", "revision": "TensorFlow 2015-12-05, ported"}


def real(n: int = 40, *, concepts: tuple[str | None, ...] = ("art",)) -> tuple[pl.DataFrame, LabelledVectors]:
    """Draw real images: of the first concept half as many as of the others, of the country FR many."""
    rows = [
        {"image_id": f"real-{number}", "model": "real", "concept": concepts[number % len(concepts)],
         "country": "FR" if number % 5 else "IN"}
        for number in range(n)
    ]  # fmt: skip
    vectors = np.random.default_rng(9).normal(size=(n, 6)).astype(np.float32)
    return image_table(rows), LabelledVectors(vectors, [str(row["image_id"]) for row in rows])


def scores(realism_given: RealismInput, **options: Any) -> pl.DataFrame:
    return score_realism(realism_given, options=replace(RealismOptions(k=3), **options)).scores


def realism_given(counts: dict[str, dict[str, int]]) -> RealismInput:
    images, vectors = pictured(counts)
    references, shown = real()
    return RealismInput(shown, vectors, images, references)


def test_an_image_that_is_real_and_generated_is_refused() -> None:
    one = realism_given(UNEQUAL)
    with pytest.raises(UsageError, match="40 images are both real and generated"):
        score_realism(replace(one, fake=one.real, images=None), options=RealismOptions(k=3))
    named = LabelledVectors(one.real.vectors + 1, one.real.ids)  # numbered alike, and other pictures
    assert score_realism(replace(one, fake=named, images=None), options=RealismOptions(k=3)).scores.height


def test_no_photograph_at_all_is_said_in_words() -> None:
    one = realism_given(UNEQUAL)
    with pytest.raises(UsageError, match="there is no real image to score"):
        score_realism(replace(one, real=LabelledVectors(one.real.vectors[:0], [])), options=RealismOptions(k=3))


def test_every_model_has_the_number_of_the_one_with_fewest() -> None:
    images, _ = pictured(UNEQUAL)
    equal = equal_images(images, seed=4)
    assert dict(Counter(equal.images.select("model", "prompt_id").iter_rows())) == {
        (model, prompt): {"p": 9, "q": 7}[prompt] for model in "abc" for prompt in "pq"
    }
    assert equal.left_out == images.height - 48
    assert equal.images["image_id"].to_list() == [
        one for one in images["image_id"] if one in set(equal.images["image_id"])
    ]
    assert equal.images.equals(equal_images(images.sample(fraction=1.0, shuffle=True, seed=1), seed=4).images.sort(
        pl.col("image_id").replace_strict({one: number for number, one in enumerate(images["image_id"])})
    ))  # fmt: skip
    other = equal_images(images, seed=5).images
    assert other.height == equal.images.height
    assert not other.equals(equal.images)


@pytest.mark.parametrize(("most", "wanted"), [(16, (9, 7)), (15, (8, 7)), (12, (6, 6)), (5, (3, 2)), (2, (1, 1))])
def test_no_more_are_drawn_than_wanted_and_prompts_give_alike(most: int, wanted: tuple[int, int]) -> None:
    images, _ = pictured(UNEQUAL)
    equal = equal_images(images, seed=4, most=most)
    counts = Counter(equal.images.select("model", "prompt_id").iter_rows())
    assert {(counts[model, "p"], counts[model, "q"]) for model in "abc"} == {wanted}
    assert equal.params.get("most") == (None if most == 16 else most)
    alone = equal_images(images.filter(model="a"), seed=4, most=most).images
    assert alone.height == most


def test_models_without_a_common_prompt_have_the_smallest_number() -> None:
    images, _ = pictured({"a": {"p": 9}, "b": {"q": 5}})
    equal = equal_images(images, seed=0)
    assert dict(Counter(equal.images["model"])) == {"a": 5, "b": 5}
    assert equal.params["equal"] == "as many as the model with the fewest has"
    bare = images.with_columns(prompt_id=pl.lit(None, pl.String))
    assert dict(Counter(equal_images(bare, seed=0).images["model"])) == {"a": 5, "b": 5}
    assert equal_images(images.filter(model="a"), seed=0).params == {}


def test_a_distance_of_fewer_images_than_dimensions_says_so(caplog: pytest.LogCaptureFixture) -> None:
    data = realism_given({"a": {"p": 6}, "b": {"p": 6}})
    told = scores(data).filter(metric="frechet_distance")["params"].str.json_path_match("$.few_images")
    assert (told.null_count(), caplog.records) == (2, [])
    wide = replace(data, real=widened(data.real), fake=widened(data.fake))
    told = scores(wide).filter(metric="frechet_distance")["params"].str.json_path_match("$.few_images")
    assert set(told) == {"6 images, fewer than the 7 dimensions: not how a set spreads in all of them"}
    assert [record.getMessage()[:22] for record in caplog.records] == ["2 Fréchet distances of"]


def widened(realism_given: LabelledVectors) -> LabelledVectors:
    return replace(realism_given, vectors=np.hstack([realism_given.vectors, realism_given.vectors[:, :1] ** 2]))


def test_the_distances_are_those_of_the_images_drawn() -> None:
    data = realism_given(UNEQUAL)
    table = scores(data)
    assert table.filter(metric="frechet_distance")["n"].to_list() == [16, 16, 16]
    assert data.images is not None
    drawn = equal_images(data.images, seed=0).images
    place = {name: row for row, name in enumerate(data.fake.ids)}
    for model in "abc":
        rows = sorted(place[name] for name in drawn.filter(model=model)["image_id"])
        wanted = frechet_distance(data.real.vectors, data.fake.vectors[rows])
        found = table.filter(metric="frechet_distance", model=model)
        assert found["value"].item() == pytest.approx(wanted, rel=1e-9)
        told = json.loads(found["params"].item())
        assert (told["n_fake"], told["equal_seed"]) == (16, 0)
        assert told["no_interval"]
        assert found["ci_low"].item() is None
    assert scores(data, equal=False).filter(metric="frechet_distance")["n"].to_list() == [24, 19, 21]


def test_the_shares_are_means_of_the_images_that_they_are_about() -> None:
    data = realism_given({"a": {"p": 12, "q": 12}})
    found = score_realism(data, options=RealismOptions(k=3))
    wanted = prdc(data.real.vectors, data.fake.vectors, k=3)
    about = {"precision": (data.fake, "these"), "density": (data.fake, "these"),
             "recall": (data.real, "references"), "coverage": (data.real, "these")}  # fmt: skip
    for name, (side, target) in about.items():
        row = found.scores.filter(metric=f"prdc_{name}").row(0, named=True)
        values = found.values.filter(metric=f"prdc_{name}")
        assert row["value"] == pytest.approx(getattr(wanted, name))
        assert values["value"].mean() == pytest.approx(row["value"])
        assert sorted(values["item"]) == sorted(side.ids)
        assert json.loads(row["params"])["target"] == target


def test_density_is_never_said_to_be_below_nothing() -> None:
    data = realism_given({"a": {"p": 12, "q": 12}})
    far = replace(data.fake, vectors=data.fake.vectors + np.linspace(0, 9, 24, dtype=np.float32)[:, None])
    (row,) = scores(replace(data, fake=far)).filter(metric="prdc_density").rows(named=True)
    assert 0 < row["value"] < row["ci_high"]
    assert row["ci_low"] == 0.0  # it was below


def test_references_weigh_the_same_by_concept_and_take_turns_by_country() -> None:
    references, _ = real(60, concepts=("art", "food", "food"))
    made, _ = pictured({"a": {"p": 4}}, concept="art")
    two = pl.concat([made, made.with_columns(concept=pl.lit("food"), image_id=pl.lit("x") + pl.col("image_id"))])
    drawn = balanced_references(references, two, seed=3)
    assert dict(Counter(drawn.images["concept"])) == {"art": 20, "food": 20}
    food = Counter(drawn.images.filter(concept="food")["country"])
    assert food["IN"] == min(references.filter(concept="food", country="IN").height, 10)
    assert drawn.params["per_concept"] == 20
    alone = balanced_references(references, made, seed=3)
    assert set(alone.images["concept"]) == {"art"}
    unplaced = references.with_columns(concept=pl.lit(None, pl.String))
    assert balanced_references(unplaced, made, seed=3).images.equals(unplaced)


def test_concepts_with_too_few_images_are_counted() -> None:
    data = realism_given({"a": {"p": 12}, "b": {"p": 12}})
    by = RealismMeans(by=(("concept",),))
    enough = score_realism(data, options=RealismOptions(k=3, balanced=True, fewest=12, means=by))
    assert enough.scores.filter(metric="frechet_distance", concept="art").height == 2
    few = score_realism(data, options=RealismOptions(k=3, balanced=True, fewest=13, means=by))
    assert few.scores.filter(pl.col("concept").is_not_null()).is_empty()
    assert few.left_out["cells with fewer than 13 images, real or generated"] == 2


def test_references_are_balanced_without_levels_too() -> None:
    images, vectors = pictured({"a": {"p": 12}, "b": {"p": 12}})
    references, shown = real(60, concepts=("art", "food", "food"))
    data = RealismInput(shown, vectors, images, references)
    told = [json.loads(text) for text in scores(data, balanced=True).filter(metric="frechet_distance")["params"]]
    assert {(one["n_real"], one["per_concept"]) for one in told} == {(20, 20)}
    told = [json.loads(text) for text in scores(data).filter(metric="frechet_distance")["params"]]
    assert {(one["n_real"], one["references"]) for one in told} == {(60, "all")}


def test_the_concept_with_the_fewest_real_images_is_named_where_it_costs_the_others() -> None:
    images, vectors = pictured({"a": {"p": 12}, "b": {"p": 12}})
    images = images.with_columns(
        concept=pl.when(pl.col("image_id").cum_count() % 2 == 0).then(pl.lit("art")).otherwise(pl.lit("food"))
    )
    references, shown = real(60, concepts=("art", "food", "food"))
    data = RealismInput(shown, vectors, images, references)
    left_out = score_realism(data, options=RealismOptions(k=3, balanced=True)).left_out
    assert left_out["real images, as each concept gives as many as art has: 20"] == 20


def test_real_images_without_a_place_are_scored_over_all() -> None:
    data = realism_given({"a": {"p": 12}, "b": {"p": 12}})
    assert data.references is not None
    bare = replace(data, references=data.references.with_columns(concept=pl.lit(None, pl.String), country=None))
    by = RealismMeans(by=(("concept",),))
    found = score_realism(bare, options=RealismOptions(k=3, balanced=True, means=by))
    assert set(found.scores["concept"]) == {None}
    assert any("levels" in reason for reason in found.left_out)
    with pytest.raises(UsageError, match="no cell has both"):
        score_realism(bare, options=RealismOptions(k=3, means=by))


def test_the_inception_score_is_of_the_images_drawn_or_left_out() -> None:
    data = realism_given(UNEQUAL)
    probabilities = np.random.default_rng(0).dirichlet(np.ones(5), size=len(data.fake.ids)).astype(np.float32)
    with_probs = replace(data, probs=LabelledVectors(probabilities, data.fake.ids))
    told = scores(with_probs, splits=4).filter(metric="inception_score")
    assert told["n"].to_list() == [16, 16, 16]
    assert all("no_interval" in json.loads(text) for text in told["params"])
    others = replace(data, probs=LabelledVectors(probabilities, [f"other-{name}" for name in data.fake.ids]))
    with pytest.raises(UsageError, match=r"no class probabilities are of a known image.*ids such as 'other-"):
        scores(others, splits=4)
    few = score_realism(with_probs, options=RealismOptions(k=3, splits=17))
    assert few.scores.filter(metric="inception_score").is_empty()
    assert few.left_out["models with fewer than 17 images, the splits of the inception score"] == 3


@pytest.mark.parametrize(
    ("encoder", "fid", "kid"),
    [
        (PORTED, "FID", "KID"),
        ({"name": "embedded"}, "Fréchet distance on embedded", "Kernel distance on embedded"),
        ({"name": "inception"}, "Fréchet distance on inception", "Kernel distance on inception"),
        ({}, "Fréchet distance on unknown", "Kernel distance on unknown"),
    ],
)
def test_only_pool3_of_inception_gives_a_fid(encoder: dict[str, str], fid: str, kid: str) -> None:
    assert (called("frechet_distance", encoder), called("kernel_distance", encoder)) == (fid, kid)
    table = scores(realism_given(UNEQUAL), encoder=encoder)
    told = [json.loads(text) for text in table.filter(metric="frechet_distance")["params"]]
    assert {one["called"] for one in told} == {fid}
    assert {one["licence"] for one in told} == {licence_of(encoder)}


def test_torchvisions_weights_are_told_from_the_published_ones() -> None:
    other = called("frechet_distance", {**PORTED, "revision": "torchvision"})
    assert other.startswith("FID with torchvision")
    assert "Apache" in licence_of(PORTED)
    assert "BSD" in licence_of({"name": "inception features", "revision": "torchvision"})
    assert licence_of({"name": "embedded"}) == "no weights"
    assert "say nothing" in licence_of({"name": "transformers"})


@pytest.mark.parametrize("name", ["inception", "inception probabilities"])
def test_unit_vectors_and_probabilities_of_inception_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="give=features") as found:
        check_extractor({"name": name}, where="folder")
    assert "folder" in str(found.value)
    check_extractor(PORTED, where="folder")


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
    images, vectors = pictured({"a": {f"p{number}": 4 for number in range(20)}})
    row = score_spread(images, vectors, options=replace(OPTIONS, target="population")).scores.row(0, named=True)
    assert row["ci_low"] < row["value"] < row["ci_high"]
    assert json.loads(row["params"])["target"] == "population"


def test_several_concepts_have_a_score_over_all() -> None:
    images, vectors = pictured(COUNTS)
    concept = pl.when(pl.col("prompt_id") == "p").then(pl.lit("art")).otherwise(pl.lit("food"))
    found = score_spread(images.with_columns(concept=concept), vectors, options=OPTIONS).scores
    assert found.filter(model="a")["concept"].to_list() == [None, "art", "food"]
    whole, art, food = found.filter(model="a")["value"]
    assert whole == pytest.approx((art + food) / 2)


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


def test_a_model_of_which_nothing_was_said_is_counted() -> None:
    pictures = images([(f"{model}-{n}", model, f"p{n}") for model in ("one", "two") for n in range(4)])
    said = quality({f"one-{n}": 0.5 for n in range(3)})
    answer = score_questions(QuestionInput(pictures, quality=said), options=QuestionOptions())
    assert answer.scores["model"].to_list() == ["one"]
    assert answer.left_out == {"images without quality by clip": 5}


PARENTS = {"q1": list[str](), "q2": ["q1"], "q3": ["q1", "q2"]}
QUESTIONS_OF = pl.DataFrame(
    [("p", name, above, f"{name}?", "entity") for name, above in PARENTS.items()], schema=QUESTIONS.schema, orient="row"
)


def answers_images(count: int) -> pl.DataFrame:
    rows = {"image_id": [f"i{n}" for n in range(count)]}
    return pl.DataFrame(rows).with_columns(
        model=pl.lit("m"), prompt_id=pl.lit("p"), concept=pl.when(pl.int_range(pl.len()) > 0).then(pl.lit("art"))
    )


def judgments(answers: list[list[str | None]], outcome: str = "ok") -> pl.DataFrame:
    rows = [
        (f"i{number}", "p", "j", "dsg", question, None, None, choice, "", outcome if choice else "refused")
        for number, said in enumerate(answers)
        for question, choice in zip(PARENTS, said, strict=True)
    ]
    return pl.DataFrame(rows, schema=JUDGMENTS.schema, orient="row")


def test_how_judgments_ended_is_counted_over_all_and_by_concept() -> None:
    given = judgments([["yes", "no", None], ["yes", "maybe", "yes"]])
    counts = answer_counts(answers_images(2), given)
    assert ANSWER_COUNTS.problems(counts) == []
    over_all = counts.filter(pl.col("concept").is_null()).select("outcome", "judgments", "images")
    assert set(over_all.rows()) == {("ok", 4, 2), ("refused", 1, 1), ("neither yes nor no", 1, 1)}
    assert counts.filter(concept="art")["judgments"].sum() == 3, "the first image has no concept"
    assert answer_counts(answers_images(1), given)["judgments"].sum() == 3, "judgments of unknown images count nowhere"


def test_a_question_fails_where_it_or_a_parent_was_answered_no() -> None:
    given = judgments([["yes", "yes", "yes"], ["no", "yes", "yes"], ["yes", "no", "yes"], ["yes", "yes", None]])
    rates = question_rates(answers_images(4), given, QUESTIONS_OF)
    assert QUESTION_RATES.problems(rates) == []
    columns = ("question_id", "images", "yes", "no", "unanswered", "void", "failed", "rate")
    assert rates.sort("question_id").select(columns).rows() == [
        ("q1", 4, 3, 1, 0, 0, 1, 0.25),
        ("q2", 4, 3, 1, 0, 1, 2, 0.5),
        ("q3", 4, 3, 0, 1, 2, 2, pytest.approx(2 / 3)),
    ]


@settings(deadline=None, max_examples=25)
@given(st.lists(st.lists(st.sampled_from(["yes", "no"]), min_size=3, max_size=3), min_size=1, max_size=8))
def test_where_all_is_answered_rates_and_scores_say_the_same(answers: list[list[str | None]]) -> None:
    rates = question_rates(answers_images(len(answers)), judgments(answers), QUESTIONS_OF)
    scores = dsg_score([[float(one == "yes") for one in said] for said in answers], PARENTS)
    assert 1 - rates["rate"].mean() == pytest.approx(float(scores.value.mean()))  # type: ignore[operator]
