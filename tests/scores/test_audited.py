"""What an audit says by itself: shares of all images, held against what the images show."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from statsmodels.stats.proportion import proportion_confint

from culturekit.core.errors import NothingScored
from culturekit.core.inputs import Files
from culturekit.core.schemas import AUDITS, MATCHES
from culturekit.core.tables import write_table
from culturekit.metrics import audit_sample
from culturekit.scores.audited import audited, score_audited
from culturekit.verify.verify_run import verify_run
from tests.metrics.corrected.audits_by_hand import COUNTRIES, audits_of, mapped_with_error, matches_of
from tests.verify.test_command import made, verdicts

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
        own = dict(zip(matches["image_id"].to_list(), truth, strict=True))
        drawn = audit_sample(matches, n=n, rng=rng)["image_id"].to_list()
        tables.append(matches)
        answers.append(audits_of({image: own[image] for image in drawn}))
        shown |= own
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
    drawn = audit_sample(matches, n=40, rng=np.random.default_rng(0))["image_id"].to_list()
    shown = dict(zip(matches["image_id"].to_list(), truth, strict=True))
    scores = score_audited(matches, audits_of({image: shown[image] for image in drawn})).scores
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
