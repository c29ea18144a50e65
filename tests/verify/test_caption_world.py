"""Captions that models draw, pairs that are kept: an untouched run is verified, what is changed in it is found."""

from pathlib import Path

import polars as pl
import pytest

from culturekit.generation.simulated.scenes.captions import all_named, named_in
from culturekit.generation.simulated.scenes.vocabulary import DIMENSIONS, world
from culturekit.verify.tables.check_caption_world import named
from culturekit.verify.verify_run import verify_run
from tests.pipeline.steps.caption_pairs import pair_world
from tests.verify.tampering import Change, broken, check_found, first, without_first

PLACES = ("pair-truth", "truth", "captioned", "pairs-to-rate", "ranked", "worth")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pair_world(tmp_path_factory.mktemp("pairs"))


def test_what_was_not_touched_is_verified(finished: Path) -> None:
    answers = {place: verify_run(finished / place) for place in PLACES}
    assert {place: broken(answer) for place, answer in answers.items()} == {place: [] for place in PLACES}
    assert answers["pair-truth"].checked["values of captions recomputed"] == 36 * 6
    assert answers["truth"].checked["values of captions recomputed"] == 6 * 7
    assert {verdict.verdict for verdict in answers["worth"].verdicts} == {"consistent"}


def test_things_are_found_as_the_world_finds_them() -> None:
    """The checks read texts in another way: word by word."""
    everything = [token for dimension in DIMENSIONS for token in world().tokens(dimension)]
    for text in (*everything, ", ".join(everything), "A photo of touching an elder's feet; rose in hand drums"):
        assert named(text) == all_named(named_in(text))


OTHER, TEXT = "is another value", "has another text"
TAMPERED: dict[str, tuple[str, Change, str]] = {
    "what a picture deserves": ("truth/values", first("value", 4.9), OTHER),
    "a picture's truth left out": ("truth/values", without_first, "too many or too few"),
    "the picture of a truth": ("truth/values", first("item", "nobody"), "too many or too few"),
    "the mean of what is true": ("truth/scores", first("value", 2.2), "not the mean"),
    "what a translation deserves": ("pair-truth/values", first("value", 4.9), OTHER),
    "the criterion of a truth": (
        "pair-truth/values", lambda t: t.with_columns(pl.col("params").str.replace("adequacy", "fluency")),
        "too many or too few",
    ),
    "the mean of translations": ("pair-truth/scores", first("value", 2.2), "not the mean"),
    "the caption of an image": ("captioned/captions", first("text", "a samovar, and more"), TEXT),
    "the image of a caption": ("captioned/captions", first("id", "nobody"), TEXT),
    "a translation that people see": ("pairs-to-rate/pair_items", first("translation", "hand drums"), TEXT),
    "a pair that is none": ("pairs-to-rate/pair_items", first("item_id", "nobody"), TEXT),
    "a pair left out": ("pairs-to-rate/pair_items", without_first, "as many as were to be drawn"),
    "what a pair is ranked by": ("ranked/values", first("value", 0.5), OTHER),
    "a ranked pair left out": ("ranked/values", without_first, "too many or too few"),
    "what people rate": ("worth/values", first("value", 1.01), OTHER),
    "a pair that is not kept": ("worth/values", first("item", "nobody"), "too many or too few"),
    "a strategy": ("worth/values", first("model", "clip"), "too many or too few"),
    "the worth of a strategy": ("worth/scores", first("value", 3.01), "not the mean"),
    "the labels of a worth": (
        "worth/values", lambda t: t.with_columns(pl.col("params").str.replace("people", "truth")),
        "too many or too few",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", list(TAMPERED))
def test_what_was_changed_is_found(finished: Path, what: str) -> None:
    """Also by somebody who makes the hashes fit again."""
    check_found(finished, *TAMPERED[what])
