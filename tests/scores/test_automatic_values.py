"""What tables say of single images, as values: looked up, and worked out by hand."""

import json
from typing import Any

import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.core.schemas import ANNOTATIONS, MATCHES, PROMPTS, QUALITY, VALUES
from culturekit.scores.answers import automatic_values
from culturekit.scores.meta import MetaOptions, score_meta


def match(
    image: str, country: str | None, *, prompt: str = "p", abstained: bool = False, rank: int = 1
) -> dict[str, Any]:
    return {
        "image_id": image, "model": "m", "prompt_id": prompt, "concept": "art", "repeat": 0, "slot": 0, "rank": rank,
        "artifact_id": "Q1", "artifact": "a", "country": country, "countries": ["IN", "PK"] if country == "PK" else [],
        "continent": "Asia", "score": 0.5, "margin": 0.25, "country_margin": 0.125, "abstained": abstained,
        "method": "nearest",
    }  # fmt: skip


def prompt(prompt_id: str, country: str | None) -> dict[str, Any]:
    return {
        "prompt_id": prompt_id, "text": "t", "benchmark": "cube", "kind": "cube", "concept": "art", "country": country,
        "language": "en", "template_id": "t",
    }  # fmt: skip


ROWS = [
    match("home", "IN"), match("home", "JP", rank=2), match("away", "JP"), match("both", "PK"),
    match("unsure", "IN", abstained=True), match("open", "IN", prompt="q"), match("unrated", "IN"),
]  # fmt: skip


def values(**more: Any) -> pl.DataFrame:
    prompts = pl.DataFrame([prompt("p", "IN"), prompt("q", None)], schema=PROMPTS.schema)
    quality = pl.DataFrame({"image_id": ["home", "away"], "scorer": ["s", "s"], "value": [0.9, 0.4]})
    return automatic_values(
        [quality.select(list(QUALITY.schema))],
        [pl.DataFrame(ROWS, schema=MATCHES.schema)],
        more.get("prompts", prompts),
        items=["home", "away", "both", "unsure", "open"],
    )


def test_every_value_is_what_the_tables_say() -> None:
    """Two images have a quality; one is mapped elsewhere, one to two countries; one abstained; one has no country."""
    table = values()
    assert VALUES.problems(table) == []
    found = {metric: dict(part.select("item", "value").iter_rows()) for (metric,), part in table.group_by("metric")}
    assert found["quality"] == {"home": 0.9, "away": 0.4}
    assert found["similarity"] == dict.fromkeys(("home", "away", "both", "unsure", "open"), 0.5)
    assert set(found["margin"].values()) == {0.25}
    assert found["mapped_as_asked"] == {"home": 1.0, "away": 0.0, "both": 1.0, "unsure": None}
    assert json.loads(table.filter(metric="quality")["params"][0]) == {"scorer": "s"}


def test_without_prompts_nothing_was_asked_for() -> None:
    assert "mapped_as_asked" not in set(values(prompts=None)["metric"])


def said(item: str, who: str, choice: str, realism: float) -> list[dict[str, Any]]:
    shared = {"item_id": item, "annotator": who, "annotator_region": "IN", "in_region": True, "scheme": "cube",
              "text": None, "seconds": 9.0, "flags": []}  # fmt: skip
    return [
        {**shared, "criterion": "belongs", "value": None, "choice": choice},
        {**shared, "criterion": "realism", "value": realism, "choice": None},
    ]


SAID = (("home", "x", "yes", 5), ("away", "x", "no", 2), ("both", "x", "yes", 3), ("both", "y", "no", 3))
PEOPLE = pl.DataFrame([row for one in SAID for row in said(*one)], schema=ANNOTATIONS.schema)


def correlations(**options: Any) -> dict[tuple[str, ...], tuple[float, int]]:
    answer = score_meta(values(), annotations=PEOPLE, options=MetaOptions(people_only=True, **options))
    found: dict[tuple[str, ...], tuple[float, int]] = {}
    for row in answer.scores.iter_rows(named=True):
        params = json.loads(row["params"])
        person = params["with"]
        found[params["metric"], person["criterion"], person.get("choice", ""), params["method"]] = (
            row["value"],
            row["n"],
        )
    return found


def test_the_share_of_a_choice_is_a_rating_where_it_is_asked_for() -> None:
    """Shares of yes are 1, 0 and a half; mapped as asked 1, 0 and 1: Pearson is 0.866."""
    assert not any(key[1] == "belongs" for key in correlations())
    found = correlations(choices=("yes",))
    value, images = found["mapped_as_asked", "belongs", "yes", "pearson"]
    assert value == pytest.approx(0.75**0.5)
    assert images == 3
    assert found["quality", "realism", "", "spearman"][0] == pytest.approx(1.0)


def test_on_the_level_of_prompts_images_of_a_prompt_are_one() -> None:
    assert correlations(level="prompt")["similarity", "realism", "", "pearson"][1] == 1
    with pytest.raises(UsageError, match="level must be"):
        correlations(level="country")
