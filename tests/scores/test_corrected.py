"""Scores put right by an audit, what the audit says by itself, and looks at it on the way."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtri
from statsmodels.stats.proportion import proportion_confint

from culturekit.core.errors import NothingScored, UsageError
from culturekit.core.inputs import Files, manifest_of
from culturekit.core.schemas import AUDIT_SAMPLE, AUDITS, MATCHES, QUALITY, SCORES, VALUES
from culturekit.core.tables import write_table
from culturekit.metrics import audit_sample
from culturekit.metrics.corrected import corrected_diversity
from culturekit.metrics.corrected.audit_gates import drawing_of
from culturekit.metrics.corrected.imputed_prompts import ImputedPrompts
from culturekit.metrics.corrected.looks import Goal, look_limits
from culturekit.metrics.corrected.rectified import parted
from culturekit.scores.audited import audited, score_audited
from culturekit.scores.corrected import looked_at, score_corrected
from culturekit.scores.diversity import Correction, QvsOptions
from culturekit.scores.family import Scored
from culturekit.verify.verify_run import verify_run
from tests.command_line import culturekit
from tests.metrics.corrected.audits_by_hand import COUNTRIES, audits_of, mapped_with_error, matches_of, shown_by
from tests.metrics.corrected.audits_by_hand import audited as audited_images
from tests.verify.test_command import made, verdicts

# How near corrected scores come is for the tests of metrics to say
pytestmark = pytest.mark.usefixtures("imputed_in_few_rounds")


def two_concepts(*, seed: int = 1) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, str | None]]:
    """One model on two concepts, 400 images each, with audits of 60 each, and what every image shows."""
    rng = np.random.default_rng(seed)
    parts: list[pl.DataFrame] = []
    found: dict[str, str | None] = {}
    for concept in ("art", "cuisine"):
        truth: list[str | None] = [
            COUNTRIES[label] for label in rng.choice(6, p=[0.5, 0.2, 0.1, 0.1, 0.05, 0.05], size=400)
        ]
        table = matches_of(mapped_with_error(truth, accuracy=0.8, rng=rng))
        table = table.with_columns(
            image_id=pl.lit(f"{concept}-") + pl.col("image_id"), concept=pl.lit(concept), prompt_id=pl.lit(concept)
        )
        parts.append(table)
        found |= shown_by(table, truth)
    matches = pl.concat(parts)
    return matches, audited_images(matches, found, n=60, rng=rng), found


def quality_of(images: list[str]) -> pl.DataFrame:
    values = np.random.default_rng(0).random(len(images))
    return pl.DataFrame({"image_id": images, "scorer": "eye", "value": values}, schema=QUALITY.schema)


def with_params(scores: pl.DataFrame) -> pl.DataFrame:
    kernels = [json.loads(params)["kernel"] for params in scores["params"]]
    return scores.with_columns(kernel=pl.Series(kernels))


@pytest.fixture(scope="module")
def corrected() -> Scored:
    """Scores of all kernels, with quality."""
    matches, audits, _ = two_concepts()
    return score_corrected(matches, audits, quality_of(matches["image_id"].to_list()), options=QvsOptions())


def test_every_kernel_is_corrected_on_each_concept_and_over_all(corrected: Scored) -> None:
    answer = corrected
    assert SCORES.problems(answer.scores) == []
    assert VALUES.problems(answer.values) == []
    assert answer.left_out == {}
    scores = with_params(answer.scores)
    assert scores.group_by("metric", "kernel").len()["len"].to_list() == [3] * 10
    assert set(scores["concept"].to_list()) == {"art", "cuisine", None}
    for params in map(json.loads, scores["params"]):
        assert params["labels"] == "corrected"
        assert params["q"] == (2.0 if params["weights"][2] > 0 else 1.0)
        assert params["audited"] in {60, 120}
    for row in scores.filter(pl.col("metric") == "vs").iter_rows(named=True):
        assert 1 / 8 <= row["ci_low"] <= row["value"] <= row["ci_high"] <= 1
    overall = scores.filter(pl.col("concept").is_null(), metric="vs", kernel="country")
    parts = scores.filter(pl.col("concept").is_not_null(), metric="vs", kernel="country")
    assert overall["value"][0] == pytest.approx(parts["value"].mean())
    widths = (parts["ci_high"] - parts["ci_low"]).to_numpy()
    assert (overall["ci_high"] - overall["ci_low"])[0] < widths.max()


def test_kernels_of_a_level_share_what_is_imputed_and_are_the_same_alone(
    corrected: Scored, monkeypatch: pytest.MonkeyPatch
) -> None:
    matches, audits, _ = two_concepts()
    asked: list[int] = []

    def counted(*args: object, **options: object) -> object:
        asked.append(1)
        return parted(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(corrected_diversity, "parted", counted)
    score_corrected(matches, audits, None, options=QvsOptions())
    assert len(asked) == 4  # countries and continents of two concepts, for five kernels
    alone = with_params(score_corrected(matches, audits, None, options=QvsOptions(kernels=((0.5, 0.5, 0.0),))).scores)
    among = with_params(corrected.scores).filter(metric="vs", kernel=alone["kernel"][0])
    assert alone.select("concept", "value", "ci_low", "ci_high").equals(
        among.select("concept", "value", "ci_low", "ci_high")
    )


def test_qvs_is_the_product_with_the_mean_quality(corrected: Scored) -> None:
    quality = quality_of(two_concepts()[0]["image_id"].to_list())
    scores = with_params(corrected.scores)
    chosen = scores.filter(kernel="country", concept="art")
    vs, qvs = chosen.filter(metric="vs").row(0, named=True), chosen.filter(metric="qvs").row(0, named=True)
    mean = quality.filter(pl.col("image_id").str.starts_with("art"))["value"].mean()
    assert isinstance(mean, float)
    assert qvs["value"] == pytest.approx(mean * vs["value"])
    assert qvs["ci_high"] - qvs["value"] > mean * (vs["ci_high"] - vs["value"])


@pytest.mark.parametrize(
    ("known", "scored", "marked"),
    [(2, False, False), (29, False, False), (30, True, True), (319, True, True), (320, True, False)],
)
def test_qvs_of_images_whose_quality_is_hardly_known_is_left_out_or_marked(
    known: int, scored: bool, marked: bool
) -> None:
    matches, audits, _ = two_concepts()
    matches, audits = (table.filter(pl.col("image_id").str.starts_with("art")) for table in (matches, audits))
    quality = quality_of(matches["image_id"].to_list()[:known])
    answer = score_corrected(matches, audits, quality, options=QvsOptions(kernels=((0.0, 0.0, 1.0),)))
    found = [json.loads(params) for params in answer.scores.filter(metric="qvs")["params"]]
    reason = {"qvs not corrected: the quality of fewer than 30 images is known": 1}
    assert answer.left_out == ({} if scored else reason)
    assert [params["images_left_out"] for params in found] == ([400 - known] if scored else [])
    assert ["quality of a part" in params["marked"] for params in found] == ([marked] if scored else [])
    assert "quality of a part" not in json.loads(answer.scores.filter(metric="vs")["params"][0])["marked"]


@pytest.mark.parametrize("seed", range(5))
def test_a_model_of_one_label_begins_where_diversity_does_over_concepts_too(seed: int) -> None:
    matches, _, _ = two_concepts(seed=seed)
    drawn = audit_sample(matches, n=60, rng=np.random.default_rng(seed))["image_id"].to_list()
    alike = audits_of(dict.fromkeys(drawn))
    options = QvsOptions(kernels=((0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))
    scores = score_corrected(matches, alike, None, options=options).scores
    assert scores.height == 6
    assert scores["ci_low"].to_list() == pytest.approx([1 / 8] * 6, abs=1e-12)


def test_rows_say_that_whole_batches_were_audited_and_at_which_order() -> None:
    matches, _, found = two_concepts()
    sample = audit_sample(matches, n=100, rng=np.random.default_rng(0), drawing="batches")
    audits = audits_of({image: found[image] for image in sample["image_id"]})
    audits = audits.with_columns(artifact_id=pl.col("country"))
    scores = score_corrected(matches, audits, None, options=QvsOptions(), sample=sample).scores
    assert scores.height == 15
    for params in map(json.loads, scores["params"]):
        assert (params["drawing"], params["form"], params["q"]) == ("batches", "mean of batches", 1.0)
        assert params["audited"] in {96, 192}


def test_rows_name_the_second_instrument_and_one_of_other_images_is_none() -> None:
    matches, audits, found = two_concepts()
    rng = np.random.default_rng(5)
    again = matches_of(mapped_with_error([found[image] for image in matches["image_id"]], accuracy=0.8, rng=rng))
    second = again.with_columns(matches["image_id"], matches["concept"], method=pl.lit("tags"))
    ask = partial(score_corrected, matches, audits, None, options=QvsOptions(kernels=((0.0, 1.0, 0.0),)))
    alone, both = ask().scores, ask(second=second).scores
    assert {json.loads(params).get("second") for params in both["params"]} == {"tags"}
    assert not alone["value"].equals(both["value"])
    others = second.with_columns(image_id=pl.lit("x") + pl.col("image_id"))
    assert ask(second=others).scores.equals(alone)
    assert ask(second=matches.with_columns(method=pl.lit("copy"))).scores.equals(alone)


def test_the_same_tables_in_another_order_give_the_same_scores() -> None:
    matches, audits, _ = two_concepts()
    options = QvsOptions(kernels=((0.0, 1.0, 0.0),))
    one = score_corrected(matches, audits, None, options=options).scores
    shuffled = matches.sample(fraction=1, shuffle=True, seed=1)
    assert one.equals(score_corrected(shuffled, audits.reverse(), None, options=options).scores)


def test_a_concept_without_enough_audits_is_counted_and_the_others_stand() -> None:
    matches, audits, _ = two_concepts()
    few = audits.filter(pl.col("image_id").str.starts_with("art"))
    options = QvsOptions(kernels=((0.0, 1.0, 0.0),))
    answer = score_corrected(matches, few, None, options=options)
    reason = (
        "no audited image is among the matches (m, cuisine, kernel country: expected audits of images of this model)"
    )
    assert answer.left_out == {f"kernels not corrected: {reason}": 1}
    assert answer.scores["concept"].to_list() == ["art"]
    with pytest.raises(
        UsageError,
        match=r"no model could be corrected; found too few images were audited \(m, art, kernel country: expected at "
        r"least 30, better 150, found 5\): 1 kernel of models and concepts",
    ):
        score_corrected(matches.filter(concept="art"), few.head(5), None, options=options)
    nothing = score_corrected(
        matches.filter(concept="art"), few.head(5), None, options=options, correction=Correction(required=False)
    )
    assert nothing.scores.is_empty()
    found = "(m, art, kernel country: expected at least 30, better 150, found 5)"
    assert nothing.left_out == {f"kernels not corrected: too few images were audited {found}": 1}


COUNTRY_KERNEL, CONTINENT_KERNEL, THIRDS = (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (1 / 3, 1 / 3, 1 / 3)


def unsure_of(audits: pl.DataFrame, images: list[str]) -> pl.DataFrame:
    """Let people name the continent only of some images."""
    unsure = pl.col("image_id").is_in(images) & ~pl.col("none_of_these")
    nothing = pl.when(unsure).then(pl.lit(None, pl.String))
    return audits.with_columns(nothing.otherwise(name).alias(name) for name in ("artifact_id", "country"))


def test_an_audit_in_which_too_many_know_the_continent_only_cannot_correct_countries() -> None:
    matches, audits, _ = two_concepts()
    art = audits.filter(pl.col("image_id").str.starts_with("art"))["image_id"].to_list()[:20]
    answer = score_corrected(
        matches, unsure_of(audits, art), None, options=QvsOptions(kernels=(COUNTRY_KERNEL, CONTINENT_KERNEL))
    )
    kernels = with_params(answer.scores.filter(concept="art"))["kernel"].to_list()
    assert kernels == ["continent"]
    (reason,) = answer.left_out
    assert reason.startswith(
        "kernels not corrected: an audit says neither a country nor none of these (m, art, kernel "
    )
    assert reason.endswith(
        "20 of 60 audited images: expected a country for all but 10% of them, found wider answers "
        "only, or that nobody can tell)"
    )


def asked_for(tmp_path: Path, audits: pl.DataFrame, matches: pl.DataFrame, *, drawing: str = "") -> list[str]:
    """What is typed to score with an audit, whose answers may name a drawing."""
    matches.write_parquet(tmp_path / "matches.parquet")
    audits.with_columns(pl.lit(drawing).alias("drawing") if drawing else []).write_parquet(tmp_path / "audits.parquet")
    sample = matches.join(audits.select("image_id").unique(), on="image_id", how="semi").with_columns(
        stratum=pl.col("country").fill_null("(none)"), chance=pl.lit(0.15)
    )
    sample.select(list(AUDIT_SAMPLE.schema)).sort("image_id").write_parquet(tmp_path / "sample.parquet")
    files = [word for name in ("matches", "audits") for word in (f"--{name}", str(tmp_path / f"{name}.parquet"))]
    return ["score", "qvs", *files, "--kernel", "country", "--out", str(tmp_path / "out")]


def test_what_was_drawn_is_known_to_the_estimator_and_other_answers_are_refused(tmp_path: Path) -> None:
    matches, audits, _ = two_concepts()
    words = asked_for(tmp_path, audits, matches)
    sample = tmp_path / "sample.parquet"
    done = culturekit(*words, "--sample", sample)
    assert done.returncode == 0, done.stderr
    drawing = drawing_of(pl.read_parquet(sample))
    audits.with_columns(drawing=pl.lit(drawing)).write_parquet(tmp_path / "audits.parquet")
    assert culturekit(*words, "--sample", sample, "--replace").returncode == 0
    audits.with_columns(drawing=pl.lit("another")).write_parquet(tmp_path / "audits.parquet")
    other = culturekit(*words, "--sample", sample, "--replace")
    assert other.returncode == 2
    assert "answers belong to another drawing of images than the sample" in other.stderr
    audits.gather_every(2).write_parquet(tmp_path / "audits.parquet")
    part = culturekit(*words, "--sample", sample, "--replace")
    assert part.returncode == 2
    assert "too few of the drawn images were answered" in part.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (pl.col("country").replace({"IN": "India"}), r"column country has codes for; expected IN, found 'India'"),
        (
            pl.col("artifact_id").replace({"7": "dish of IN"}),
            "artifact_id has codes for; expected 7, found 'dish of IN'",
        ),
    ],
)
def test_places_by_name_where_the_matches_have_codes_are_refused(change: pl.Expr, message: str) -> None:
    matches, audits, _ = two_concepts()
    ids = pl.col("artifact_id").replace({"dish of IN": "7"})
    matches, audits = matches.with_columns(ids), audits.with_columns(ids)
    mixed = pl.concat([audits.head(60), audits.tail(60).with_columns(change)])
    for score in (score_audited, partial(score_corrected, quality=None, options=QvsOptions(kernels=(COUNTRY_KERNEL,)))):
        with pytest.raises(UsageError, match=message):  # an image of India was unlike another: .58, truth .52
            score(matches, mixed)


@pytest.mark.parametrize("words", [("--sample", "matches.parquet"), ("--pool", "people"), ("--design", "unknown")])
def test_what_would_decide_nothing_without_answers_is_refused(words: tuple[str, str], tmp_path: Path) -> None:
    two_concepts()[0].write_parquet(tmp_path / "matches.parquet")
    value = tmp_path / words[1] if words[0] == "--sample" else words[1]
    done = culturekit(
        "score", "qvs", "--matches", tmp_path / "matches.parquet", words[0], value, "--out", tmp_path / "o"
    )
    assert done.returncode == 2
    assert f"found {words[0].removeprefix('--')} without audits" in done.stderr  # it was not looked at


def test_a_pool_that_nobody_is_of_is_named() -> None:
    matches, audits, _ = two_concepts()
    with pytest.raises(UsageError, match=r"no answers are of this pool of people .*expected people, found 'nobody'"):
        score_corrected(matches, audits, None, options=QvsOptions(), correction=Correction(pool="nobody"))


def test_answers_about_other_images_are_counted() -> None:
    matches, audits, _ = two_concepts()
    answer = score_corrected(matches.filter(concept="art"), audits, None, options=QvsOptions(kernels=(COUNTRY_KERNEL,)))
    assert answer.left_out == {"answers about images that are not among the matches": 60}


def test_an_unknown_design_and_single_raters_are_marked_in_every_number_and_said(tmp_path: Path) -> None:
    matches, audits, _ = two_concepts()
    words = asked_for(tmp_path, audits, matches)
    done = culturekit(*words, "--design", "unknown")
    assert done.returncode == 0
    assert "(marked: anchoring not known, one rater, design unknown)" in done.stdout  # it said nothing
    scores = pl.read_parquet(tmp_path / "out/scores.parquet")
    found = [json.loads(params) for params in scores["params"]]
    assert all(
        one["marked"] == ["anchoring not known", "design unknown", "one rater"]
        for one in found
        if one["labels"] == "corrected"
    )
    manifest = manifest_of(tmp_path / "out")
    assert "one rater per image" in manifest.notes["caveat"]
    assert "Here a score rests on 60 to 120 audited images." in manifest.notes["caveat"]
    assert "Nobody knows how the audited images were chosen" in manifest.notes["caveat"]
    assert manifest.options["design"] == "unknown"


def test_several_raters_of_an_even_draw_are_not_marked() -> None:
    matches, audits, _ = two_concepts()
    audits = audits.with_columns(offered_first=pl.lit(value=False), as_mapped=pl.lit(value=False))
    second = audits.with_columns(annotator=pl.lit("second"))
    options = QvsOptions(kernels=(COUNTRY_KERNEL,))
    scores = score_corrected(matches, pl.concat([audits, second]), None, options=options).scores
    assert not any("marked" in json.loads(params) for params in scores["params"])


SHARES = (0.5, 0.2, 0.1, 0.1, 0.06, 0.04)


def world(seed: int, *, nothing: float = 0.2, n: int = 60) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, str | None]]:
    """Two concepts of unequal size, mapped rightly in four of five cases, and an audit of each."""
    rng = np.random.default_rng(seed)
    tables: list[pl.DataFrame] = []
    answers: list[pl.DataFrame] = []
    shown: dict[str, str | None] = {}
    for concept, size in (("art", 240), ("cuisine", 480)):
        empty = rng.random(size) < nothing
        chosen = rng.choice(6, p=SHARES, size=size)
        truth = [None if none else COUNTRIES[place] for none, place in zip(empty, chosen, strict=True)]
        matches = matches_of(mapped_with_error(truth, accuracy=0.8, rng=rng), prompts=3)
        matches = matches.with_columns(pl.lit(concept).alias("concept"), image_id=concept + pl.col("image_id"))
        tables.append(matches)
        shown |= shown_by(matches, truth)
        answers.append(audited_images(matches, shown, n=n, rng=rng))
    return pl.concat(tables), pl.concat(answers), shown


def overall(matches: pl.DataFrame, audits: pl.DataFrame) -> dict[str, dict[str, object]]:
    found = score_audited(matches, audits).scores.filter(pl.col("concept").is_null())
    level = pl.col("params").str.json_path_match("$.level")
    found = found.filter((level == "country") | (pl.col("metric") != "mapping_accuracy"))
    return {row["group"] or row["metric"]: row for row in found.to_dicts()}


@pytest.mark.slow
def test_intervals_hold_the_shares_of_all_images() -> None:
    held: dict[str, list[bool]] = {}
    for seed in range(60):
        matches, audits, shown = world(seed)
        mapped = dict(matches.select("image_id", "country").iter_rows())
        truth = {country: np.mean([one == country for one in shown.values()]) for country in COUNTRIES}
        truth["share_without_culture"] = np.mean([one is None for one in shown.values()])
        truth["mapping_accuracy"] = np.mean([one is not None and mapped[image] == one for image, one in shown.items()])
        found = overall(matches, audits)
        for name, value in truth.items():
            held.setdefault(name, []).append(bool(found[name]["ci_low"] <= value <= found[name]["ci_high"]))  # type: ignore[operator]
    for name, each in held.items():
        assert np.mean(each) >= 0.88, name
    assert np.mean([np.mean(each) for each in held.values()]) >= 0.94


def test_one_concept_has_wilsons_limits_and_an_audit_without_error_is_not_certain() -> None:
    truth: list[str | None] = [*["JP"] * 300, *["IN"] * 100]
    matches = matches_of(truth)
    audits = audited_images(matches, shown_by(matches, truth), n=40, rng=np.random.default_rng(0))
    scores = score_audited(matches, audits).scores
    assert scores["params"].str.contains('"one rater"').all()
    right = scores.filter(pl.col("metric") == "mapping_accuracy", pl.col("params").str.contains('"country"')).to_dicts()
    low, high = proportion_confint(40, 40, method="wilson")
    assert (right[0]["value"], right[0]["ci_low"], right[0]["ci_high"]) == pytest.approx((1.0, low, high))
    share = scores.filter(group="JP").to_dicts()[0]
    assert share["value"] == pytest.approx(0.75)
    assert 0.02 < share["ci_high"] - share["value"] < 0.06


def test_a_picture_that_nobody_can_place_is_not_said_to_show_nothing() -> None:
    matches = matches_of(["JP"] * 100)
    drawn = sorted(audit_sample(matches, n=40, rng=np.random.default_rng(0))["image_id"].to_list())
    said = audits_of({image: None if place < 24 else "JP" for place, image in enumerate(drawn)})
    untold = said.with_columns(none_means=pl.Series(["cannot tell"] * 4 + ["no culture shown"] * 20 + [None] * 16))
    for answers, share in ((said, 24 / 40), (untold, 20 / 36)):
        found = score_audited(matches, answers).scores.filter(metric="share_without_culture")
        assert found["value"].to_list() == pytest.approx([share])


def test_an_audit_that_says_nothing_is_refused_or_counted() -> None:
    matches, audits, _ = world(0)
    few = audits.head(5)
    with pytest.raises(NothingScored, match="no audit says") as refused:
        score_audited(matches, few)
    left_out = refused.value.left_out or {}
    assert sum(left_out.values()) == 6
    assert "too few images were audited" in " ".join(left_out)


def test_shares_made_by_hand_are_made_again_from_their_manifest(tmp_path: Path) -> None:
    matches, audits, _ = world(3)
    again = audits.with_columns(annotator=pl.lit("second")).gather_every(3)
    means = pl.when(pl.col("none_of_these")).then(pl.lit("no culture shown"))
    audits, again = (one.with_columns(none_means=means) for one in (audits, again))
    audits[0, "none_of_these"], audits[0, "none_means"] = True, "cannot tell"
    audits = audits.with_columns(
        pl.when(pl.col("none_of_these")).then(None).otherwise(pl.col(name)).alias(name)
        for name in ("artifact_id", "country", "continent")
    )
    for name, table, schema in (("matches", matches, MATCHES), ("audits", pl.concat([audits, again]), AUDITS)):
        (tmp_path / name).mkdir()
        write_table(tmp_path / name, schema, table)
    given = Files([tmp_path / "matches/matches.parquet"]), Files([tmp_path / "audits/audits.parquet"])
    folder = made(audited.stage(*given), tmp_path / "audited")
    answer = verify_run(folder)
    assert [str(finding) for finding in answer.findings] == []
    assert verdicts(answer) == {"verified"}
    params = [json.loads(text) for text in pl.read_parquet(folder / "scores.parquet")["params"]]
    assert {one["level"] for one in params} == {"continent", "country", "artifact"}
    assert all(one["marked"] for one in params)


LOOKS = (50, 75, 100)
LOOKS_SHARES: dict[str, list[float]] = {
    "narrow": [1, 0, 0, 0, 0, 0],
    "some": [0.6, 0.2, 0.1, 0.1, 0, 0],
    "wide": [1 / 6] * 6,
}
OPTIONS = QvsOptions(kernels=((0.0, 1.0, 0.0), (1.0, 0.0, 0.0)))


def study(goal: Goal = "order") -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Three models far apart: matches, the sample with its looks, and what every image shows."""
    rng = np.random.default_rng(7)
    tables, found = [], dict[str, str | None]()
    for model, shares in LOOKS_SHARES.items():
        truth = [COUNTRIES[label] for label in rng.choice(6, p=shares, size=400)]
        tables.append(matches_of(mapped_with_error(truth, accuracy=0.85, rng=rng), model=model, prompts=4))
        found |= shown_by(tables[-1], truth)
    matches = pl.concat(tables)
    return matches, audit_sample(matches, n=100, rng=rng, per="model", looks=LOOKS, goal=goal), audits_of(found)


def answered(sample: pl.DataFrame, truth: pl.DataFrame, looks: dict[str, int]) -> pl.DataFrame:
    """Give the answers up to a look of each model."""
    said = sample.filter(pl.col("look") <= pl.col("model").replace_strict(looks, return_dtype=pl.Int64))
    return truth.join(said.select("image_id"), on="image_id", how="semi")


def rows(scores: pl.DataFrame, metric: str) -> list[dict[str, Any]]:
    return [{**row, **json.loads(row["params"])} for row in scores.filter(metric=metric).iter_rows(named=True)]


def test_each_model_is_corrected_by_its_whole_looks_with_limits_that_hold_over_all() -> None:
    matches, sample, truth = study()
    audits = answered(sample, truth, {"narrow": 1, "some": 3, "wide": 2})
    scores = score_corrected(matches, audits, None, options=OPTIONS, sample=sample).scores
    reached = {row["model"]: (row["look"], row["audited"]) for row in rows(scores, "vs")}
    assert reached == {"narrow": (1, 50), "some": (3, 100), "wide": (2, 75)}

    seen = sample.filter(pl.col("look") <= 2)
    once = score_corrected(matches, audits, None, options=OPTIONS, sample=seen.drop("look", "goal")).scores
    factor = look_limits([0.5, 0.75, 1.0], alpha=0.05)[1] / ndtri(0.975)
    for kernel in ("country", "continent"):
        one, other = (
            next(row for row in rows(table, "vs") if (row["model"], row["kernel"]) == ("wide", kernel))
            for table in (scores, once)
        )
        assert one["value"] == other["value"]
        assert one["value"] - one["ci_low"] == pytest.approx(factor * (other["value"] - other["ci_low"]))


@pytest.mark.parametrize("goal", ["order", "top"])
def test_pairs_far_apart_are_settled_and_their_models_asked_no_more(goal: Goal) -> None:
    matches, sample, truth = study(goal)
    audits = answered(sample, truth, dict.fromkeys(LOOKS_SHARES, 1))
    scores = score_corrected(matches, audits, None, options=OPTIONS, sample=sample).scores
    found = {(row["model"], row["over"]): row for row in rows(scores, "vs_difference")}
    assert set(found) == {("narrow", "some"), ("narrow", "wide"), ("some", "wide")}
    assert found["narrow", "wide"]["state"] == "settled"
    for row in found.values():
        assert row["look"] == 1
        assert row["ci_low"] <= row["value"] <= row["ci_high"]
        assert (row["state"] in {"settled", "dropped"}) == (row["ci_high"] < 0)
    pairs, left = looked_at(matches, audits, sample, options=OPTIONS, correction=Correction())
    assert [pair.state for pair in pairs] == [row["state"] for row in found.values()]
    assert "wide" not in left
    assert ("narrow" in left) == (found["narrow", "some"]["state"] == "open")


def test_each_look_of_a_model_is_imputed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    imputed, begin = list[int](), ImputedPrompts.__init__

    def counted(*given: Any) -> None:
        imputed.append(1)
        begin(*given)

    monkeypatch.setattr(ImputedPrompts, "__init__", counted)
    matches, sample, truth = study()
    audits = answered(sample, truth, {"narrow": 1, "some": 3, "wide": 2})
    score_corrected(matches, audits, None, options=replace(OPTIONS, kernels=OPTIONS.kernels[:1]), sample=sample)
    assert len(imputed) == 1 + 3 + 2


def test_without_a_whole_look_nothing_is_corrected_and_the_reason_is_said() -> None:
    matches, sample, truth = study()
    few = answered(sample, truth, dict.fromkeys(LOOKS_SHARES, 1)).head(30)
    with pytest.raises(UsageError, match="no look of it is answered yet"):
        score_corrected(matches, few, None, options=OPTIONS, sample=sample)


def test_answers_that_wait_for_their_look_are_counted() -> None:
    matches, sample, truth = study()
    said = answered(sample, truth, dict.fromkeys(LOOKS_SHARES, 1))
    early = truth.join(sample.filter(look=2).head(3).select("image_id"), on="image_id", how="semi")
    found = score_corrected(matches, pl.concat([said, early]), None, options=OPTIONS, sample=sample)
    assert found.left_out["answers of looks that are not whole"] == 3
    assert {row["audited"] for row in rows(found.scores, "vs")} == {50}
    whole = score_corrected(matches, said, None, options=OPTIONS, sample=sample)
    assert whole.scores.equals(found.scores)
    assert "answers of looks that are not whole" not in whole.left_out


def test_a_sample_without_looks_is_scored_as_ever() -> None:
    matches, sample, truth = study()
    audits, plain = answered(sample, truth, dict.fromkeys(LOOKS_SHARES, 3)), sample.drop("look", "goal")
    scores = score_corrected(matches, audits, None, options=OPTIONS, sample=plain).scores
    assert rows(scores, "vs_difference") == []
    assert all("look" not in row for row in rows(scores, "vs"))
