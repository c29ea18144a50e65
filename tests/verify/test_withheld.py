"""Which corrected scores there must be, by rules of verify's own: none may vanish, and none stand that was refused."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from culturekit.verify.verify_run import verify_run
from tests.command_line import culturekit
from tests.metrics.corrected.test_audit_gates import Audited, listless, with_gold
from tests.verify.forging import change_table, read_json, renew_inputs, reseal, write_json

pytestmark = pytest.mark.usefixtures("imputed_in_few_rounds")
"""Which scores there are does not depend on how near the numbers come."""


def scored(folder: Path, audit: pl.DataFrame, *words: str | Path) -> int:
    """Score a model of three prompts with an audit; give how many kernels were corrected, of two."""
    Audited().matches.write_parquet(folder / "matches.parquet")
    audit.write_parquet(folder / "audits.parquet")
    Audited().sample.write_parquet(folder / "audit_sample.parquet")
    files: list[str | Path] = [
        "--matches",
        folder / "matches.parquet",
        "--audits",
        folder / "audits.parquet",
        "--out",
        folder / "scores",
    ]
    done = culturekit("score", "qvs", *files, "--kernel", "country", "--kernel", "artifact", *words)
    if done.returncode:
        assert "no model could be corrected" in done.stderr, done.stderr
        return 0
    rows = pl.read_parquet(folder / "scores/scores.parquet")["params"].str.json_path_match("$.labels")
    return int((rows == "corrected").sum())


def about_corrected(folder: Path) -> list[str]:
    """What is found of corrected scores that are missing, or should be."""
    return [str(one) for one in verify_run(folder / "scores").findings if "corrected score" in one.problem]


EVEN = Audited()
ALL, COUNTRY = EVEN.audit, pl.col("country")
PROMPTS = dict(EVEN.matches.select("image_id", "prompt_id").iter_rows())
OF_ONE = pl.col("image_id").replace_strict(PROMPTS) == "p0"
SECOND = ALL.with_columns(annotator=pl.lit("second"))
NO_ARTIFACT = pl.when(pl.int_range(pl.len()) % 5 > 0).then("artifact_id").alias("artifact_id")

AUDITS: dict[str, tuple[Callable[[], pl.DataFrame], int]] = {
    "the one that was drawn": (lambda: ALL, 2),
    "artifacts that nobody named": (lambda: ALL.with_columns(NO_ARTIFACT), 1),
    "two who agree": (lambda: pl.concat([ALL, SECOND]), 2),
    "a second who names one artifact of each": (
        lambda: pl.concat([ALL, SECOND.with_columns(artifact_id=pl.lit("another"))]), 1,
    ),
    "gold items that are right": (lambda: with_gold(ALL, asked=10, right=9), 2),
    "few images of a prompt": (lambda: Audited(n=50).audit, 1),
    "half of the lists with what is mapped first": (lambda: listless(ALL).with_columns(
        offered_first=pl.int_range(pl.len()) % 2 == 0, as_mapped=pl.int_range(pl.len()) % 2 == 0), 2),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", AUDITS)
def test_what_an_audit_carries_is_there_and_nothing_else(name: str, tmp_path: Path) -> None:
    make, corrected = AUDITS[name]
    assert scored(tmp_path, make()) == corrected
    assert about_corrected(tmp_path) == []


def test_where_the_sample_is_known_its_answers_are_those_that_count(tmp_path: Path) -> None:
    assert scored(tmp_path, ALL, "--sample", tmp_path / "audit_sample.parquet") == 2
    assert about_corrected(tmp_path) == []


def test_a_score_that_was_taken_out_and_called_withheld_is_missed(tmp_path: Path) -> None:
    assert scored(tmp_path, ALL) == 2
    label, kernel = (pl.col("params").str.json_path_match(f"$.{name}") for name in ("labels", "kernel"))
    mine = (label == "corrected") & (kernel == "country")
    change_table(tmp_path / "scores/scores.parquet", lambda rows: rows.filter(~mine))
    reseal(tmp_path / "scores")
    manifest = read_json(tmp_path / "scores/manifest.json")
    manifest.setdefault("drops", {})["kernels not corrected: too few images were audited"] = 1
    write_json(tmp_path / "scores/manifest.json", manifest)
    (line,) = about_corrected(tmp_path)  # the reason in the manifest was enough
    assert "(m, cuisine, country): a corrected score is missing, though its audit carries it" in line


REFUSED: dict[str, Callable[[], pl.DataFrame]] = {
    "few images": lambda: ALL.head(25),
    "images of one prompt": lambda: ALL.filter(OF_ONE),
    "images of some mapped labels": lambda: ALL.join(
        EVEN.matches.filter(COUNTRY != "IN").select("image_id"), on="image_id", how="semi"
    ),
    "clear images": lambda: EVEN.answers(EVEN.matches.sort("score", "image_id").tail(150)["image_id"].to_list()),
    "raters who disagree": lambda: pl.concat([ALL, SECOND.with_columns(
        pl.lit(f"other {name}").alias(name) for name in ("artifact_id", "country", "continent"))]),
    "raters who are wrong of what is known": lambda: with_gold(ALL, asked=20, right=10),
    "a place and none": lambda: ALL.with_columns(none_of_these=pl.int_range(pl.len()) == 3),
    "a country on two continents": lambda: ALL.with_columns(continent=pl.col("continent").replace({"Asia": "Europe"})),
    "meanings that nobody knows": lambda: ALL.with_columns(none_means=pl.lit("nothing")),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_a_corrected_score_whose_audit_carries_nothing_is_found(name: str, tmp_path: Path) -> None:
    assert scored(tmp_path, ALL) == 2
    audit = REFUSED[name]()
    (tmp_path / "refused").mkdir()
    assert scored(tmp_path / "refused", audit) == 0
    audit.write_parquet(tmp_path / "audits.parquet")
    renew_inputs(tmp_path / "scores")
    lines = about_corrected(tmp_path)
    assert len([line for line in lines if "stands here that its audit does not carry" in line]) == 2
