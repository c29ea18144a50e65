"""Each slot of a repeat holds one image; what is put together from two generations is not scored as one."""

import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.core.table import check_slots
from culturekit.index.raters.picture_spread import repeat_batches
from culturekit.scores.diversity import QvsOptions
from culturekit.scores.qvs import score_qvs
from tests.metrics.corrected.audits_by_hand import matches_of

ONE = matches_of(["FR", "JP"] * 8)
OTHER = ONE.with_columns(pl.col("image_id") + "-again")


def test_two_images_in_a_slot_are_not_scored() -> None:
    check_slots(ONE)
    twice = "32 images, such as 'm-000000' and 'm-000000-again': two images are in one slot of a repeat"
    with pytest.raises(UsageError, match=twice):
        score_qvs(pl.concat([ONE, OTHER]), None, options=QvsOptions())
    pictures = pl.concat([ONE, OTHER]).with_columns(status=pl.lit("ok"), path=pl.lit("x.png"), sha256=pl.lit("0"))
    with pytest.raises(UsageError, match=twice):
        repeat_batches(pictures, 8)


@pytest.mark.parametrize("unknown", ["slot", "repeat", "prompt_id"])
def test_where_no_slot_is_known_nothing_is_said_of_it(unknown: str) -> None:
    check_slots(pl.concat([ONE, OTHER]).with_columns(pl.lit(None, ONE.schema[unknown]).alias(unknown)))


@pytest.mark.parametrize("other", [{"model": "n"}, {"concept": "art"}, {"prompt_id": "q"}, {"repeat": 9}, {"slot": 9}])
def test_other_models_concepts_prompts_and_repeats_have_slots_of_their_own(other: dict[str, object]) -> None:
    there = {name: pl.lit(value, ONE.schema[name]) for name, value in other.items()}
    one = ONE.filter(repeat=0, slot=0)
    check_slots(pl.concat([one, one.with_columns(pl.col("image_id") + "-again", **there)]))
