import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.builders.prompt_templates import Wording, artifact_words
from culturekit.builders.prompting.prompts import PromptOptions, build_prompts
from culturekit.builders.space.public_cube import (
    NO_STATEMENTS,
    STATEMENTS,
    public_rows,
    read_public_cube,
    slug,
    statements_of,
    write_public,
)
from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.schemas import CSPACE, DIFFERENCES, DROPS, KEPT, PROMPTS
from culturekit.core.stage import Work
from culturekit.core.tables import read_table, write_table
from tests.builders.spaces import artifact, cspace, rows_of


def row(**changes: str) -> dict[str, str]:
    plain = {
        "P31": "nan", "P279": "['Q746549']", "P495": "nan", "P17": "nan", "P2012": "nan", "P361": "nan",
        "id": "Q1397036",
        "name": "farofa", "country": "Brazil", "domain": "cuisine",
        "prompt": "A high resolution image of farofa from Brazilian cuisine, realistic",
    }  # fmt: skip
    return {**plain, **changes}


def write(tmp_path: Path, *rows: object) -> Path:
    path = tmp_path / "cube.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def test_a_row_becomes_an_artifact_and_a_prompt(tmp_path: Path) -> None:
    rows = (row(), row(id="LLM", name=" pão  de queijo "), row(id="Q2", domain="landscapes"))
    public = read_public_cube(write(tmp_path, *rows))
    assert CSPACE.problems(public.space) == []
    assert PROMPTS.problems(public.prompts) == []
    columns = ("artifact_id", "qid", "name", "source", "continent", "concept")
    assert public.space.select(columns).rows() == [
        ("Q1397036", "Q1397036", "farofa", "wikidata", "South America", "cuisine"),
        ("LLM:pão-de-queijo", None, "pão  de queijo", "llm", "South America", "cuisine"),
        ("Q2", "Q2", "farofa", "wikidata", "South America", "landmarks"),
    ]
    assert public.prompts["text"][0] == row()["prompt"]


@pytest.mark.parametrize(
    ("prompt", "subconcept"),
    [
        ("An image of frevo performance from Brazil, realistic", "performance"),
        ("An image of frevo  performance from Brazil, realistic", "performance"),
        ("An image of frevo painting from Brazil, realistic", "painting"),
        ("An image of frevo from Brazilian clothing, realistic", "clothing"),
        ("Image of frevo art from Brazil, realistic", "folk art"),
        ("An image of frevo from Brazil, realistic", None),
    ],
)
def test_the_subconcept_of_an_art_row_is_that_of_the_template_it_fits(
    tmp_path: Path, prompt: str, subconcept: str | None
) -> None:
    public = read_public_cube(write(tmp_path, row(name="frevo", domain="art", prompt=prompt)))
    assert public.space["subconcept"].to_list() == [subconcept]


def test_what_is_no_artifact_is_left_out_with_its_row_and_reason(tmp_path: Path) -> None:
    rows = [row(), row(), row(country="Atlantis"), row(domain="music"), row(name=" ")]
    public = read_public_cube(write(tmp_path, *rows))
    assert public.space.height == 1
    assert public.drops.select("key", "reason").rows() == [
        ("row 1", "artifact given twice"),
        ("row 2", "unknown country"),
        ("row 3", "unknown domain"),
        ("row 4", "no name"),
    ]


def test_a_file_of_another_layout_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not in the public CUBE layout"):
        read_public_cube(write(tmp_path, ["x"]))
    with pytest.raises(UsageError, match="no such file"):
        read_public_cube(tmp_path / "none.json")
    with pytest.raises(ConfigError, match="row 1 lacks id, prompt"):
        read_public_cube(write(tmp_path, row(), {"name": "x", "country": "Brazil", "domain": "art"}))


def test_accents_tell_names_apart() -> None:
    assert slug("Pâté") != slug("Pate")
    assert slug("  Kue: Lapis (legit) ") == "kue-lapis-legit"


def test_the_released_benchmark_is_rebuilt_from_its_names(shared_data: Path, work: Work) -> None:
    path = shared_data / "cube_1k.json"
    outcome = build_prompts(work, path, PromptOptions(), seed=0)
    built = set(read_table(work.out / "prompts.parquet", PROMPTS)["text"])
    rows = json.loads(path.read_text(encoding="utf-8"))
    assert len(rows) == 1002
    assert sum(row["prompt"] in built for row in rows) == 956
    stripped = [{row["prompt"], row["prompt"].replace(row["name"], row["name"].strip())} for row in rows]
    assert sum(bool(texts & built) for texts in stripped) == 966
    assert outcome.counts["rebuilt"] == 966
    differences = read_table(work.out / "differences.parquet", DIFFERENCES)
    assert Counter(differences["difference"]) == {
        "white space": 24, "white space around the name": 10, "words": 9, "no template": 3,
    }  # fmt: skip
    drops = read_table(work.out / "drops.parquet", DROPS)
    assert drops.filter(pl.col("reason") == "no released template")["concept"].unique().to_list() == ["art"]
    public = read_public_cube(path)
    assert public.prompts.height + public.drops.height >= 1000


def test_the_released_benchmark_is_written_again_row_by_row(shared_data: Path, work: Work) -> None:
    path = shared_data / "cube_1k.json"
    build_prompts(work, path, PromptOptions(public_layout=True), seed=0)
    ours = json.loads((work.out / "cube.json").read_text(encoding="utf-8"))
    theirs = json.loads(path.read_text(encoding="utf-8"))
    assert all(list(row) == list(theirs[0]) for row in ours)
    texts = {row["prompt"] for row in ours}
    plain = {
        tuple(row.values())
        for row in theirs
        if all(row[name] == row[name].strip() != "" for name in row)
        and row["domain"] != "landscapes"
        and row["prompt"] in texts
    }
    assert len(plain) > 500
    assert len(plain - {tuple(row.values()) for row in ours}) <= 5, "five artifacts are there twice, under two items"


def test_a_text_that_is_not_rebuilt_is_reported_with_both(tmp_path: Path, work: Work) -> None:
    rows = [
        row(),
        row(id="Q2", name="mate", prompt="A high resolution image of matefrom Brazilian cuisine, realistic"),
        row(id="Q3", name="mate ", prompt="A high resolution image of mate  from Brazilian cuisine, realistic"),
        row(id="Q4", name="bolo", prompt="A high resolution image of pudim from Brazilian cuisine, realistic"),
        row(id="Q5", name="bolo", domain="art", prompt="An image of bolo"),
        row(id="Q6", country="Atlantis"),
    ]
    outcome = build_prompts(work, write(tmp_path, *rows), PromptOptions(), seed=0)
    assert outcome.counts["rebuilt"] == 2
    differences = read_table(work.out / "differences.parquet", DIFFERENCES)
    assert differences.select("row", "artifact_id", "difference").rows() == [
        (1, "Q2", "white space"),
        (2, "Q3", "white space around the name"),
        (3, "Q4", "words"),
        (4, "Q5", "no template"),
        (5, None, "no template"),
    ]
    assert differences["rebuilt"][2] == "A high resolution image of bolo from Brazilian cuisine, realistic"


COLUMNS = ["P31", "P279", "P495", "P17", "P2012", "P361", "id", "name", "country", "domain", "prompt"]


def kept(qid: str, **cells: object) -> dict[str, object]:
    return {"qid": qid, "concept": "cuisine", "verdict": "keep", "reason": "r", **cells}


def test_rows_are_texts_lists_as_python_writes_them_and_nan_where_nothing_is_known() -> None:
    table = rows_of(KEPT, kept("Q1", p31=["Q5", "Q6"], p17=["Q155"]), kept("LLM:bolo", concept="cuisine"))
    space = cspace(artifact(1), artifact(2, artifact_id="LLM:bolo", qid=None, name="bolo", source="llm"))
    written = public_rows(space, pl.Series(["text", None]), statements_of(table)).to_dicts()
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
    texts = artifact_words(space, Wording("released"))["text"]
    write_public(folder / "cube.json", [public_rows(space, texts, NO_STATEMENTS)])
    back = read_public_cube(folder / "cube.json")
    assert back.drops.is_empty()
    assert back.space.sort(CSPACE.key).equals(space.with_columns(popularity=None).cast(CSPACE.schema).sort(CSPACE.key))  # type: ignore[arg-type]


def test_odd_names_and_ids_are_written_as_pythons_json_writes_them_and_read(tmp_path: Path) -> None:
    llm = {"artifact_id": "LLM:bolo-2", "qid": None, "name": "Bolo"}
    names = ["nan", 'a "quoted" \\ name', "tab\tand\x1b", "ação\u2028\U0001f600"]
    space = cspace(artifact(1, **llm), *(artifact(number, name=name) for number, name in enumerate(names, 2)))
    rows = public_rows(space, pl.Series([None] * 5, dtype=pl.String), NO_STATEMENTS)
    assert write_public(tmp_path / "p.json", (rows[:2], rows[2:])) == 5
    assert (tmp_path / "p.json").read_text() == json.dumps(rows.to_dicts(), ensure_ascii=False, indent=1) + "\n"
    back = read_public_cube(tmp_path / "p.json")
    assert back.space["artifact_id"].to_list() == ["LLM:bolo-2", "Q2", "Q3", "Q4", "Q5"]
    assert back.space["name"].to_list() == ["Bolo", *names]
    assert back.prompts.is_empty()
    assert write_public(tmp_path / "none.json", ()) == 0
    assert json.loads((tmp_path / "none.json").read_text()) == []


def test_statements_come_from_the_kept_table_that_is_named(work: Work, tmp_path: Path) -> None:
    table = write_table(tmp_path, KEPT, rows_of(KEPT, kept("Q1", p495=["Q155"])))
    rows = [artifact(1), artifact(2, concept="sweets"), artifact(3, concept="art")]
    space = write_table(tmp_path, CSPACE, cspace(*rows))
    build_prompts(work, space, PromptOptions(public_layout=True, statements=str(table)), seed=0)
    rows = json.loads((work.out / "cube.json").read_text(encoding="utf-8"))
    assert [(row["id"], row["P495"], row["P31"]) for row in rows] == [("Q1", "['Q155']", "[]")]
    assert pl.read_parquet(work.out / "prompts.parquet").height == 1
