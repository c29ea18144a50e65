"""How many images are done: counted when the last answer about each is there, not when its question is drawn."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.builders.judging.image_judge import judge_own
from culturekit.builders.shown_images import EVERY_IMAGE, ImageSample, drawn, sample_note
from culturekit.core.errors import UsageError
from culturekit.core.stage import Work
from culturekit.llm.client import Request
from tests.builders.judging.test_image_judge import LIKERT, YES_NO, Scripted, png, right, table
from tests.builders.put import put
from tests.conftest import HeardProgress


def test_an_image_is_done_when_its_last_answer_is_there(work: Work, tmp_path: Path) -> None:
    heard, done = work.progress, []
    assert isinstance(heard, HeardProgress)

    def answers(request: Request) -> Mapping[str, object]:
        done.append(heard.done)
        return right(request)

    images = table(tmp_path / "images", {"a": png(), "b": b"no picture", "c": png()})
    put(judge_own, work, Scripted(answers), images, questions=[YES_NO, LIKERT])
    assert (done, heard.done) == ([0, 0, 2, 2], 3), "b is done when it cannot be read, which is before c is asked about"


# Images drawn by whole repeats.


def images(models: str = "ab", prompts: int = 3, repeats: int = 10, slots: int = 8) -> pl.DataFrame:
    rows = [
        {
            "image_id": f"{model}-{prompt}-{repeat}-{slot}", "model": model, "prompt_id": f"p{prompt}",
            "concept": "art" if prompt % 2 else "cuisine", "repeat": repeat, "slot": slot,
        }
        for model in models for prompt in range(prompts) for repeat in range(repeats) for slot in range(slots)
    ]  # fmt: skip
    return pl.DataFrame(rows).sort("image_id")


def repeats_of(table: pl.DataFrame, model: str) -> set[tuple[str, int]]:
    return set(table.filter(model=model).select("prompt_id", "repeat").unique().rows())


@given(st.integers(1, 300), st.integers(0, 5))
def test_repeats_are_whole_the_same_for_every_model_and_not_too_many(number: int, seed: int) -> None:
    table = images()
    taken = drawn(table, ImageSample(number, seed))
    assert set(taken.group_by("model", "prompt_id", "repeat").len()["len"]) == {8}
    assert repeats_of(taken, "a") == repeats_of(taken, "b")
    sizes = taken.group_by("model", "concept").len()["len"]
    assert sizes.len() == 4
    assert all(8 <= size <= max(8, number) for size in sizes)
    assert taken["image_id"].is_sorted()


@given(st.integers(1, 200), st.integers(0, 200))
def test_a_larger_sample_holds_the_smaller(number: int, more: int) -> None:
    table = images()
    small, large = (drawn(table, ImageSample(size, 7)) for size in (number, number + more))
    assert set(small["image_id"]) <= set(large["image_id"])


def test_prompts_take_turns() -> None:
    taken = drawn(images(), ImageSample(32, 1)).filter(model="a", concept="cuisine")
    assert taken.group_by("prompt_id").len().sort("prompt_id").rows() == [("p0", 16), ("p2", 16)]


def test_a_model_that_misses_images_has_the_same_repeats_drawn() -> None:
    table = images()
    less = table.filter(~((pl.col("model") == "b") & (pl.col("slot") == 3)))
    taken = drawn(less, ImageSample(40, 2))
    assert repeats_of(taken, "a") <= repeats_of(taken, "b")


def test_another_seed_draws_others_and_the_order_of_rows_changes_nothing() -> None:
    table = images()
    one, other = (drawn(table, ImageSample(40, seed))["image_id"].to_list() for seed in (1, 2))
    assert one != other
    shuffled = drawn(table.sample(fraction=1, shuffle=True, seed=3), ImageSample(40, 1))
    assert sorted(shuffled["image_id"].to_list()) == one


def test_images_without_a_prompt_are_drawn_one_by_one() -> None:
    loose = images(models="a", prompts=1).with_columns(prompt_id=pl.lit(None, pl.String))
    assert drawn(loose, ImageSample(11)).height == 11


def test_all_are_taken_without_a_sample_and_the_note_says_how_many_with_one() -> None:
    table = images()
    assert drawn(table, EVERY_IMAGE).equals(table)
    assert sample_note(table, table, EVERY_IMAGE) == {}
    taken = drawn(table, ImageSample(16, 4))
    note = sample_note(table, taken, ImageSample(16, 4))
    assert note == {"sample": {"images": 16, "seed": 4, "drawn": 64, "of": 480}}
    with pytest.raises(UsageError, match="at least one image"):
        ImageSample(0)
