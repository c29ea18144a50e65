"""Simulated people: what they answer follows from what is shown, and from nothing else."""

from collections import Counter

import numpy as np
import polars as pl
import pytest

from culturekit.builders.judging.simulated_people import AskedFor, Shown, SimulatedPeople, answers_of
from culturekit.core.errors import UsageError
from culturekit.core.schemas import AUDIT_SAMPLE, IMAGES, PROMPTS
from culturekit.people.rated_sample import rated_sample
from tests.people.projects import image_row, prompt_row

DISH, OTHER = Shown("Q1", "IN", "Asia"), Shown("Q2", "JP", "Asia")
NOTHING = Shown(None, None, None)
ASKED = AskedFor("Q1", "IN", "Asia")
SURE = SimulatedPeople(accuracy=1, scatter=0, careless=0)


def test_people_who_never_err_say_what_is_shown() -> None:
    for shown, belongs in ((DISH, "yes"), (OTHER, "no"), (NOTHING, "no")):
        said = [answers_of(f"p{n}", "IN", f"i{n}", shown, ASKED, SURE, seed=1) for n in range(40)]
        assert {one["belongs"] for one in said} == {belongs}
        assert all(("faithfulness" in one) == (belongs == "yes") for one in said)
        realism = np.mean([int(one["realism"]) for one in said])
        assert realism == pytest.approx(1.8 if shown is NOTHING else 3.9, abs=0.4)


def test_an_answer_depends_on_the_person_the_item_and_the_seed() -> None:
    how = SimulatedPeople()
    said = answers_of("p", "IN", "i", DISH, ASKED, how, seed=1)
    assert said == answers_of("p", "IN", "i", DISH, ASKED, how, seed=1)
    others = [answers_of("p", "IN", f"i{n}", DISH, ASKED, how, seed=1) for n in range(30)]
    assert len({tuple(one.items()) for one in others}) > 2
    again = [answers_of("p", "IN", f"i{n}", DISH, ASKED, how, seed=1, again=True) for n in range(30)]
    assert [one["belongs"] for one in again] == [one["belongs"] for one in others]


def test_doubt_and_carelessness_come_as_often_as_they_are_told_to() -> None:
    how = SimulatedPeople(accuracy=0.7, doubt=1, careless=0)
    said = Counter(answers_of(f"p{n}", "IN", "i", DISH, ASKED, how, seed=1)["belongs"] for n in range(400))
    assert said["maybe"] == pytest.approx(120, abs=35)
    assert said["no"] == 0
    careless = SimulatedPeople(accuracy=1, careless=1)
    anything = Counter(answers_of(f"p{n}", "IN", "i", DISH, ASKED, careless, seed=1)["belongs"] for n in range(300))
    assert set(anything) == {"yes", "no", "maybe"}


def tables(countries: list[str | None]) -> tuple[pl.DataFrame, pl.DataFrame]:
    prompts = [prompt_row(f"p{n}", "t", "art", country) for n, country in enumerate(countries)]
    images = [
        image_row(f"{model}-{row['prompt_id']}-{slot}", model, row["prompt_id"]) | {"slot": slot,
            "path": "x"} for model in "ab" for row in prompts for slot in range(2)
    ]  # fmt: skip
    return pl.DataFrame(images, schema=IMAGES.schema), pl.DataFrame(prompts, schema=PROMPTS.schema)


def test_prompts_are_spread_over_countries_and_every_model_has_its_first_image() -> None:
    images, prompts = tables(["IN"] * 8 + ["JP"] * 2 + [None] * 4)
    sample = rated_sample(images, prompts, count=4, rng=np.random.default_rng(0))
    assert AUDIT_SAMPLE.problems(sample) == []
    assert Counter(sample["stratum"]) == {"IN art": 4, "JP art": 4}
    assert all(image.endswith("-0") for image in sample["image_id"])
    assert dict(sample.select("stratum", "chance").unique().iter_rows()) == {"IN art": 0.25, "JP art": 1.0}
    assert rated_sample(images, prompts, count=99, rng=np.random.default_rng(0))["prompt_id"].n_unique() == 10


def test_images_of_no_country_cannot_be_rated() -> None:
    with pytest.raises(UsageError, match="nobody can say whether these images show their country"):
        rated_sample(*tables([None]), count=4, rng=np.random.default_rng(0))
