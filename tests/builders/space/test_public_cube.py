import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from culturekit.builders.prompting.prompts import PromptOptions, build_prompts
from culturekit.builders.space.public_cube import read_public_cube, slug
from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.schemas import CSPACE, DIFFERENCES, DROPS, PROMPTS
from culturekit.core.tables import read_table
from culturekit.core.work import Work


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
    public = read_public_cube(write(tmp_path, row(), row(id="LLM", name=" pão  de queijo ", domain="cuisine")))
    assert CSPACE.problems(public.space) == []
    assert PROMPTS.problems(public.prompts) == []
    first, second = public.space.iter_rows(named=True)
    assert (first["artifact_id"], first["qid"], first["source"], first["continent"]) == (
        "Q1397036", "Q1397036", "wikidata", "South America",
    )  # fmt: skip
    assert (second["artifact_id"], second["qid"], second["name"]) == ("LLM:pão-de-queijo", None, "pão  de queijo")
    assert public.prompts["text"][0] == row()["prompt"]


def test_landscapes_are_landmarks(tmp_path: Path) -> None:
    assert read_public_cube(write(tmp_path, row(domain="landscapes"))).space["concept"].to_list() == ["landmarks"]


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
