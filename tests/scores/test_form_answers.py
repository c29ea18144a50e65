"""Ratings are held against the scale of their form, or the one that is stated."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.core.schemas import ANNOTATIONS, VALUES
from culturekit.core.tables import write_table
from culturekit.scores.answers import NO_ENDS, Ends, read_answers
from culturekit.scores.judged import JudgedOptions, score_judged
from culturekit.scores.ratings import RatingOptions, score_ratings


def rated(*values: float, scheme: str = "cube", criterion: str = "realism") -> pl.DataFrame:
    rows: list[dict[str, Any]] = [
        {"item_id": f"i{n}", "annotator": "a", "annotator_region": "IN", "in_region": True, "scheme": scheme,
         "criterion": criterion, "value": value, "choice": None, "text": None, "seconds": 9.0, "flags": []}
        for n, value in enumerate(values)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=ANNOTATIONS.schema)


def test_ratings_off_the_scale_of_a_form_of_ours_are_refused(tmp_path: Path) -> None:
    path = write_table(tmp_path, ANNOTATIONS, rated(1, 5, 50))
    with pytest.raises(UsageError, match=r"1 ratings lie off their scale.*from 1 to 5.*50 for realism, by 'a' of 'i2'"):
        read_answers(path)


@pytest.mark.parametrize("people", [rated(1, 5, float("nan")), rated(50, scheme="own"), rated(50, criterion="own")])
def test_ratings_of_a_scale_that_is_not_known_are_taken(tmp_path: Path, people: pl.DataFrame) -> None:
    assert read_answers(write_table(tmp_path, ANNOTATIONS, people)).height == people.height


@pytest.mark.parametrize(
    ("people", "stated", "said"),
    [
        (rated(1, 50, scheme="own"), NO_ENDS, "realism of own: no form tells the scale; ratings from 1 to 50 count as"),
        (rated(1, 50, scheme="own"), (1, 50), ""),
        (rated(1, 0, scheme="own"), NO_ENDS, ""),
        (rated(1, 5), NO_ENDS, ""),
        (rated(1, 10, scheme="linguistic_dialect", criterion="monk_tone"), NO_ENDS, ""),
    ],
)
def test_ratings_whose_scale_nobody_states_are_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, people: pl.DataFrame, stated: Ends, said: str
) -> None:
    path = write_table(tmp_path, ANNOTATIONS, people)
    for _ in range(2):
        read_answers(path, stated=stated)
    assert said in caplog.text
    assert caplog.text.count("no form tells") == bool(said)


def test_ratings_off_a_stated_scale_are_refused() -> None:
    people = rated(1, 5, 0, scheme="own")
    with pytest.raises(UsageError, match=r"off their scale.*from 1 to 5.*found 0"):
        score_ratings(people, options=RatingOptions(lowest=1, highest=5))
    judged = pl.DataFrame(schema=VALUES.schema)
    with pytest.raises(UsageError, match=r"off their scale.*from 1 to 5.*found 0"):
        score_judged(judged, people, options=JudgedOptions(criterion="realism", lowest=1, highest=5))
    quality = pl.DataFrame(
        [{"metric": "quality", "model": "m", "benchmark": "b", "params": "{}", "item": "i0", "value": 21.0}]
    )
    quality = quality.with_columns(pl.lit(None).alias(name) for name in VALUES.schema if name not in quality.columns)
    with pytest.raises(UsageError, match="on the scale of its scorer has none in common with people"):
        score_judged(quality.select(list(VALUES.schema)).cast(VALUES.schema), rated(1, scheme="own"),  # type: ignore[arg-type]
                     options=JudgedOptions(criterion="realism"))  # fmt: skip
    with pytest.raises(UsageError, match="both, or none"):
        RatingOptions(lowest=1)
