import json
from pathlib import Path

import polars as pl
import pytest

from culturekit.builders.prompting.prompts import artifact_prompts
from culturekit.builders.space.space_files import import_prompts, import_space
from culturekit.core.errors import UsageError
from culturekit.core.schemas import CSPACE, PROMPTS
from culturekit.core.tables import read_table
from culturekit.core.work import Work

ROWS = [
    {
        "id": "Q13276",
        "name": "Jollof rice",
        "country": "Nigeria",
        "domain": "cuisine",
        "prompt": "A photo of jollof rice",
    },
    {"id": "LLM", "name": "Kente", "country": "Ghana", "domain": "art", "prompt": "nan"},
    {"id": "Q1", "name": "Sari", "country": "India", "domain": "art", "prompt": "A photo of a sari"},
]


@pytest.fixture
def public(tmp_path: Path) -> Path:
    """A file in the public CUBE layout, with a country that is not known."""
    path = tmp_path / "cube.json"
    path.write_text(json.dumps(ROWS), encoding="utf-8")
    return path


def test_a_space_is_taken_and_what_cannot_be_read_is_listed(public: Path, work: Work) -> None:
    outcome = import_space(work, public)
    assert read_table(work.out / "cspace.parquet", CSPACE)["artifact_id"].to_list() == ["Q1", "Q13276"]
    assert outcome.drops == {"unknown country": 1}
    assert "taken from cube.json as it was" in str(outcome.notes["caveat"])


def test_a_space_without_a_single_artifact_is_refused(tmp_path: Path, work: Work) -> None:
    path = tmp_path / "empty.json"
    path.write_text(json.dumps([ROWS[1]]), encoding="utf-8")
    with pytest.raises(UsageError, match="has no artifact"):
        import_space(work, path)


def test_prompts_that_the_space_knows_nothing_of_are_named(public: Path, work: Work) -> None:
    import_space(work, public)
    space = work.out / "cspace.parquet"
    read_table(space, CSPACE).filter(pl.col("artifact_id") == "Q1").write_parquet(space)
    outcome = import_prompts(work, public, space, ["cube"])
    assert read_table(work.out / "prompts.parquet", PROMPTS).height == 2
    assert outcome.notes["findings"] == [
        "1 prompt is about concepts that the cultural space lacks: cuisine",
        "1 prompt is about artifacts that the cultural space lacks: Q13276",
    ]


def test_prompts_of_other_kinds_than_the_images_are_refused(public: Path, work: Work) -> None:
    import_space(work, public)
    with pytest.raises(UsageError, match=r"images\.kinds asks for; expected underspecified, found cube"):
        import_prompts(work, public, work.out / "cspace.parquet", ["underspecified"])


def test_every_artifact_is_named_once_however_many_countries_it_has(public: Path, work: Work) -> None:
    import_space(work, public)
    space = read_table(work.out / "cspace.parquet", CSPACE)
    twice = pl.concat([space, space.with_columns(country=pl.lit("NO"))])
    prompts = artifact_prompts(twice)
    assert prompts["prompt_id"].to_list() == ["Q1", "Q13276"]
    assert PROMPTS.problems(prompts) == []
