import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from culturekit.builders.prompt_templates import templates
from culturekit.builders.prompting.prompts import PLACE, PromptOptions, build_prompts, in_draw_order
from culturekit.core.errors import UsageError
from culturekit.core.schemas import CSPACE, DROPS, PROMPTS
from culturekit.core.tables import read_table, write_table
from culturekit.core.work import Work
from culturekit.kg.countries import countries
from tests.builders.spaces import artifact, cspace


def built(work: Work, tmp_path: Path, options: PromptOptions, *rows: dict[str, object]) -> pl.DataFrame:
    build_prompts(work, write_table(tmp_path, CSPACE, cspace(*rows)), options, seed=5)
    return read_table(work.out / "prompts.parquet", PROMPTS)


def test_the_released_words(work: Work, tmp_path: Path) -> None:
    rows = [
        artifact(1, name="feijoada"),
        artifact(2, name="White House", concept="landmarks", country="US", country_name="United States"),
        artifact(3, name="frevo", concept="art", subconcept="performance"),
        artifact(4, name="agbada", concept="art", subconcept="clothing", country="NG"),
        artifact(5, name="cordel", concept="art", subconcept="folk art"),
        artifact(6, name="Madhubani", concept="art", subconcept="painting", country="IN"),
    ]
    prompts = built(work, tmp_path, PromptOptions(), *rows)
    assert sorted(prompts["text"]) == [
        "A high resolution image of feijoada from Brazilian cuisine, realistic",
        "A panoramic view of White House in United States, realistic",
        "An image of Madhubani painting from India, realistic",
        "An image of agbada from Nigerian clothing, realistic",
        "An image of frevo performance from Brazil, realistic",
        "Image of cordel art from Brazil, realistic",
    ]


def test_the_papers_words_come_with_its_negative_prompt_and_without_folk_art(work: Work, tmp_path: Path) -> None:
    rows = [artifact(1, name="feijoada"), artifact(5, concept="art", subconcept="folk art")]
    prompts = built(work, tmp_path, PromptOptions(templates="paper"), *rows)
    assert prompts["text"].to_list() == ["A high resolution image of feijoada from Brazil cuisine."]
    assert str(prompts["negative_text"][0]).startswith("multiple items, blurry")
    drop = read_table(work.out / "drops.parquet", DROPS).row(0, named=True)
    assert (drop["key"], drop["reason"]) == ("Q5", "no paper template")


def test_underspecified_prompts_name_neither_artifact_nor_country(work: Work, tmp_path: Path) -> None:
    rows = [artifact(1), artifact(2, concept="art", subconcept="clothing", country="NG")]
    prompts = built(work, tmp_path, PromptOptions(("underspecified",)), *rows)
    assert dict(prompts.select("concept", "text").iter_rows()) == {
        "art": "Image of traditional clothing",
        "cuisine": "Image of traditional food",
    }
    assert prompts["country"].null_count() == prompts["artifact_id"].null_count() == 2


def test_within_country_prompts_name_the_country(work: Work, tmp_path: Path) -> None:
    prompts = built(work, tmp_path, PromptOptions(("within-country",)), artifact(1), artifact(2, country="JP"))
    assert sorted(prompts["text"]) == ["Image of traditional food from Brazil", "Image of traditional food from Japan"]


def test_a_country_has_its_article_in_our_sentences_and_none_in_the_released_ones(work: Work, tmp_path: Path) -> None:
    row = artifact(1, name="Yosemite", concept="landmarks", country="US", country_name="United States")
    prompts = built(work, tmp_path, PromptOptions(("cube", "within-country")), row)
    assert sorted(prompts["text"]) == [
        "A panoramic view of Yosemite in United States, realistic",
        "Image of a famous landmark in the United States",
    ]


def test_concepts_without_words_of_their_own_have_open_prompts_too(work: Work, tmp_path: Path) -> None:
    row = artifact(1, concept="board-games", country="NG")
    prompts = built(work, tmp_path, PromptOptions(("cube", "underspecified", "within-country")), row)
    assert sorted(prompts["text"]) == [
        "Image of traditional board games",
        "Image of traditional board games from Nigeria",
    ]
    assert read_table(work.out / "drops.parquet", DROPS)["reason"].to_list() == ["no released template"]


def test_a_country_that_nobody_knows_is_named(work: Work, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown country.*'XX'"):
        built(work, tmp_path, PromptOptions(), artifact(1, country="XX"))


def test_prompt_ids_depend_on_what_a_prompt_is_about_only(work: Work, tmp_path: Path) -> None:
    one = built(work, tmp_path, PromptOptions(), artifact(1), artifact(2))
    two = built(work, tmp_path, PromptOptions(), artifact(3), artifact(2))
    ids = [dict(prompts.select("artifact_id", "prompt_id").iter_rows())["Q2"] for prompts in (one, two)]
    assert ids[0] == ids[1]


def test_a_draw_keeps_quotas_and_depends_on_the_seed_and_not_on_the_order(work: Work, tmp_path: Path) -> None:
    rows = [artifact(n, country=iso) for n in range(1, 30) for iso in ("BR", "JP")] + [artifact(40, country="NG")]
    first = built(work, tmp_path, PromptOptions(per=5), *rows)
    again = built(work, tmp_path, PromptOptions(per=5), *reversed(rows))
    assert first.equals(again)
    assert Counter(first["country"].to_list()) == {"BR": 5, "JP": 5, "NG": 1}


def test_the_better_known_are_drawn_more_often() -> None:
    space = cspace(*(artifact(n, popularity=1.0 if n <= 5 else 0.1) for n in range(1, 51)))
    drawn = Counter(
        q for seed in range(200) for q in in_draw_order(space, seed=seed).filter(pl.col(PLACE) <= 5)["artifact_id"]
    )
    famous = sum(drawn[f"Q{n}"] for n in range(1, 6))
    assert 350 < famous < 600
    assert len(drawn) == 50


def test_released_words_rebuild_most_of_the_released_benchmark(shared_data: Path) -> None:
    """The exact reader is a later issue's; here each row's own words must be among the six templates."""
    rows = json.loads((shared_data / "cube_1k.json").read_text(encoding="utf-8"))
    adjectives = {country.name: country.adjective for country in countries().values()}
    released = templates().artifact["released"].templates.values()
    rebuilt = sum(
        row["prompt"]
        in {
            t.format(name=row["name"].strip(), country=row["country"], adjective=adjectives[row["country"]])
            for t in released
        }
        for row in rows
    )
    assert rebuilt >= 950


@pytest.mark.parametrize("set_name", ["released", "paper"])
def test_templates_name_only_what_can_be_filled_in(set_name: str) -> None:
    for template in templates().artifact[set_name].templates.values():  # type: ignore[index]
        assert "{name}" in template
        template.format(name="n", country="c", adjective="a")
