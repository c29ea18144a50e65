"""Objects in regions: an untouched run is verified, and whatever is changed in it is found."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from culturekit.verify.verify_run import verify_run
from tests.pipeline.inclusion.small_world import small_run
from tests.verify.tampering import Change, broken, check_found, first, without_first

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_run(tmp_path_factory.mktemp("inclusion"))


def test_what_was_not_touched_is_verified(finished: Path) -> None:
    answer = verify_run(finished)
    assert broken(answer) == []
    assert answer.exit_code == 0
    assert answer.checked["triplets measured again"] == 2 * 5 * 4 * 2
    assert answer.checked["answers of Task 1 put together again"] > 0
    assert answer.checked["angles of images and texts measured again"] > 0
    assert {verdict.verdict for verdict in answer.verdicts} == {"verified", "consistent"}, "nothing is out of reach"


OTHER, MANY, MEAN = "is something else", "too many or too few", "not the mean"
NOT_GIVEN = "is not what the tables give"


def other_image(table: pl.DataFrame) -> pl.DataFrame:
    """Let the second image of a triplet be its first."""
    rows = table.to_dicts()
    rows[0]["second_id"], rows[0]["second_distance"] = rows[0]["first_id"], rows[0]["first_distance"]
    return pl.DataFrame(rows, schema=table.schema)


def flipped(column: str) -> Change:
    return lambda table: table.with_columns(
        pl.when(pl.int_range(pl.len()) == 0).then(~pl.col(column)).otherwise(column).alias(column)
    )


def nothing_named(column: str) -> Change:
    return lambda table: table.with_columns(pl.lit(["sea"], pl.List(pl.String)).alias(column))


def turned(table: pl.DataFrame, metric: str) -> pl.DataFrame:
    """Turn the first value of a metric from 0 to 1, or from 1 to 0."""
    row = int(np.argmax((table["metric"] == metric).to_numpy()))
    value = table["value"].to_list()
    value[row] = 1.0 - value[row]
    return table.with_columns(value=pl.Series(value))


TAMPERED: dict[str, tuple[str, Change, str]] = {
    "the text of a prompt": ("prompts/prompts", first("text", "cat in Africa"), OTHER),
    "the region of a prompt": ("prompts/prompts", first("group", "Europe"), MANY),
    "a prompt left out": ("plain-prompts/prompts", without_first, MANY),
    "a distance of a triplet": ("triplets/triplets", first("first_distance", 0.5), "is not so far away"),
    "an image of a triplet": ("triplets/triplets", first("second_id", "nobody"), "is not so far away"),
    "a nearer image": ("triplets/triplets", other_image, "stands elsewhere in the order"),
    "the reference of a triplet": ("triplets/triplets", first("reference_id", "nobody"), "of another cell"),
    "whether a reference is near or far": ("triplets/triplets", lambda t: t.with_columns(
        pick=pl.when(pl.col("pick") == "far").then(pl.lit("near")).otherwise(pl.lit("far"))), "is none of those"),
    "the region of a triplet": ("triplets/triplets", first("region", "Europe"), "of another cell"),
    "a triplet left out": ("triplets/triplets", without_first, "another number of triplets"),
    "the region of an image to look at": ("to-look-at/object_items", first("region", "Asia"), OTHER),
    "the maker of an image to look at": ("to-look-at/object_items", first("source", "real"), OTHER),
    "an image to look at that is left out": ("to-look-at/object_items", without_first, MANY),
    "the chance of an image": ("to-look-at/audit_sample", first("chance", 0.3), OTHER),
    "who saw the object": ("tables-task2/task2", flipped("shown"), OTHER),
    "what somebody named": ("tables-task2/task2", nothing_named("background_regions"), OTHER),
    "where somebody lives": ("tables-task2/task2", first("annotator_loc", "Southeast Asia"), OTHER),
    "an answer left out": ("tables-task2/task2", without_first, MANY),
    "which image is more alike": ("tables-task1/task1", first("similar_id", "nobody"), OTHER),
    "which is more appealing": ("tables-task1/task1", first("appealing_id", "nobody"), OTHER),
    "how sure somebody is": ("tables-task1/task1", first("confidence", "certain"), OTHER),
    "a comparison left out": ("tables-task1/task1", without_first, MANY),
    "what people say of an image": ("marks/annotations", first("value", 0.5), OTHER),
    "whether somebody is at home": ("marks/annotations", flipped("in_region"), OTHER),
    "a mark left out": ("marks/annotations", without_first, MANY),
    "what people truly see": ("truth/values", first("value", 0.123), OTHER),
    "the mean of what they see": ("truth/scores", first("value", 0.123), MEAN),
    "an angle": ("regions-showy/values", first("value", 0.987), OTHER),
    "whether a region is recognised": ("regions-showy/values", lambda t: turned(t, "region_recognised"), OTHER),
    "whether an object is shown": ("objects-local/values", lambda t: turned(t, "object_presence"), "is not"),
    "a rate": ("scores-task2/scores", lambda t: t.with_columns(
        value=pl.when(pl.col("metric") == "in_region_rate").then(0.77).otherwise("value")), NOT_GIVEN),
    "an agreement": ("scores-task1/scores", lambda t: t.with_columns(
        value=pl.when(pl.col("metric") == "location_agreement").then(0.77).otherwise("value")), NOT_GIVEN),
    "the limits of a rate": ("scores-task2/scores", first("ci_high", 0.9999), NOT_GIVEN),
    "a consistency of objects": ("objects-local/scores", lambda t: t.with_columns(
        value=pl.when(pl.col("metric") == "object_consistency").then("ci_low").otherwise("value")), "its values give"),
    "a kappa": ("scores-task2/scores", lambda t: t.with_columns(
        value=pl.when(pl.col("metric") == "location_kappa").then(0.77).otherwise("value")), NOT_GIVEN),
    "a share of closer choices": ("scores-task1/scores", lambda t: t.with_columns(
        value=pl.when(pl.col("metric") == "closer_choice_rate").then(0.77).otherwise("value")), NOT_GIVEN),
    "a coverage": ("realism-by-content/scores", lambda t: t.with_columns(
        value=pl.when(pl.col("metric") == "prdc_coverage").then(0.77).otherwise("value")), "is not what"),
    "what people put right": ("judged-regions/scores", lambda t: t.with_columns(value=pl.lit(0.5)), "is not what"),
}  # fmt: skip


@pytest.mark.parametrize("what", list(TAMPERED))
def test_what_was_changed_is_found(finished: Path, what: str) -> None:
    """Also by somebody who makes the hashes fit again."""
    check_found(finished, *TAMPERED[what])
