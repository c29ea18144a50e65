import json
from pathlib import Path
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.builders.prompt_templates import Wording, artifact_prompt
from culturekit.builders.prompting.prompts import PromptOptions, build_prompts
from culturekit.builders.space.public_cube import (
    STATEMENTS,
    public_rows,
    read_public_cube,
    slug,
    statements_of,
    write_public,
)
from culturekit.core.schemas import CSPACE, KEPT
from culturekit.core.tables import write_table
from culturekit.core.work import Work
from tests.builders.spaces import artifact, cspace, rows_of

COLUMNS = ["P31", "P279", "P495", "P17", "P2012", "P361", "id", "name", "country", "domain", "prompt"]


def kept(qid: str, **cells: object) -> dict[str, object]:
    return {"qid": qid, "concept": "cuisine", "verdict": "keep", "reason": "r", **cells}


def test_rows_are_texts_lists_as_python_writes_them_and_nan_where_nothing_is_known() -> None:
    table = rows_of(KEPT, kept("Q1", p31=["Q5", "Q6"], p17=["Q155"]), kept("LLM:bolo", concept="cuisine"))
    rows = [artifact(1), artifact(2, artifact_id="LLM:bolo", qid=None, name="bolo", source="llm")]
    written = public_rows(rows, {("cuisine", "BR", "Q1"): "text"}, statements_of(table))
    assert [list(row) for row in written] == [COLUMNS, COLUMNS]
    assert written[0] == {
        "P31": "['Q5', 'Q6']", "P279": "[]", "P495": "[]", "P17": "['Q155']", "P2012": "[]", "P361": "[]",
        "id": "Q1", "name": "thing 1", "country": "Brazil", "domain": "cuisine", "prompt": "text",
    }  # fmt: skip
    assert {written[1][name] for name in (*STATEMENTS, "prompt")} == {"nan"}
    assert written[1]["id"] == "LLM"


names = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=1, max_size=12).filter(
    lambda name: name == name.strip() and slug(name) != ""
)
made = st.lists(
    st.tuples(
        st.integers(1, 10**6), names, st.booleans(), st.sampled_from([("BR", "Brazil"), ("US", "United States")]),
        st.sampled_from(
            [("cuisine", None), ("landmarks", None), ("art", "clothing"), ("art", "performance"), ("art", None)]
        ),
    ),
    min_size=1, max_size=8, unique_by=(lambda row: row[0], lambda row: slug(row[1])),
)  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(made)
def test_a_space_comes_back_from_the_public_layout(tmp_path_factory: Any, made: list[Any]) -> None:
    folder = tmp_path_factory.mktemp("public")
    rows = [
        artifact(
            number, name=name, concept=concept, subconcept=subconcept, country=iso, country_name=country,
            artifact_id=f"LLM:{slug(name)}" if of_llm else f"Q{number}", qid=None if of_llm else f"Q{number}",
            source="llm" if of_llm else "wikidata", popularity=None, popularity_source=None, path=[],
            continent="South America" if iso == "BR" else "North America",
        )
        for number, name, of_llm, (iso, country), (concept, subconcept) in made
    ]  # fmt: skip
    space = cspace(*rows)
    prompts = [artifact_prompt(row, Wording("released")) for row in space.iter_rows(named=True)]
    texts = {(p["concept"], p["country"], p["artifact_id"]): p["text"] for p in prompts if "text" in p}
    write_public(folder / "cube.json", public_rows(space.iter_rows(named=True), texts, {}))
    back = read_public_cube(folder / "cube.json")
    assert back.drops.is_empty()
    assert back.space.sort(CSPACE.key).equals(space.with_columns(popularity=None).cast(CSPACE.schema).sort(CSPACE.key))  # type: ignore[arg-type]


def test_an_id_that_the_name_does_not_give_is_written_out_and_read(tmp_path: Path) -> None:
    rows = public_rows([artifact(1, artifact_id="LLM:bolo-2", qid=None, name="Bolo")], {}, {})
    write_public(tmp_path / "p.json", rows)
    back = read_public_cube(tmp_path / "p.json")
    assert back.space["artifact_id"].to_list() == ["LLM:bolo-2"]
    assert back.prompts.is_empty()


def test_a_dish_called_nan_keeps_its_name(tmp_path: Path) -> None:
    write_public(tmp_path / "p.json", public_rows([artifact(1, name="nan")], {}, {}))
    assert read_public_cube(tmp_path / "p.json").space["name"].to_list() == ["nan"]


def test_statements_come_from_the_kept_table_that_is_named(work: Work, tmp_path: Path) -> None:
    table = write_table(tmp_path, KEPT, rows_of(KEPT, kept("Q1", p495=["Q155"])))
    rows = [artifact(1), artifact(2, concept="sweets"), artifact(3, concept="art")]
    space = write_table(tmp_path, CSPACE, cspace(*rows))
    build_prompts(work, space, PromptOptions(public_layout=True, statements=str(table)), seed=0)
    rows = json.loads((work.out / "cube.json").read_text(encoding="utf-8"))
    assert [(row["id"], row["P495"], row["P31"]) for row in rows] == [("Q1", "['Q155']", "[]")]
    assert pl.read_parquet(work.out / "prompts.parquet").height == 1
