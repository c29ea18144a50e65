import csv
import io
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from culturekit.builders.prompting.prompts import PromptOptions, build_prompts
from culturekit.core.atomic import clear_folder
from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.schemas import CSPACE, DROPS, PROMPTS, QUOTAS
from culturekit.core.tables import read_table, write_table
from culturekit.core.work import Outcome, Work
from tests.builders.spaces import artifact, cspace

COLUMNS = ["artifact_id", "concept", "country", "place", "name", "prompt", "decision", "new_name", "link"]


@pytest.fixture
def space(tmp_path: Path) -> Path:
    rows = [artifact(n, country=iso, popularity=n / 30) for n in range(1, 31) for iso in ("BR", "JP")]
    rows += [artifact(50, country="NG", name="=1+1", popularity=1.0), artifact(60, concept="sweets", popularity=1.0)]
    return write_table(tmp_path, CSPACE, cspace(*rows))


def build(work: Work, space: Path, **options: Any) -> Outcome:
    clear_folder(work.out)
    return build_prompts(work, space, PromptOptions(**options), seed=11)


def ids(work: Work, country: str = "BR") -> set[str]:
    prompts = read_table(work.out / "prompts.parquet", PROMPTS)
    return set(prompts.filter(pl.col("country") == country)["artifact_id"])


def sheet(work: Work) -> list[dict[str, str]]:
    text = (work.out / "review.csv").read_bytes().decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def decided(path: Path, rows: list[dict[str, str]], *, divider: str = ",", mark: str = "\ufeff") -> str:
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, COLUMNS, delimiter=divider)
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(mark + file.getvalue(), encoding="utf-8", newline="")
    return str(path)


def test_quotas_that_cannot_be_met_are_said_and_not_padded(work: Work, space: Path) -> None:
    outcome = build(work, space, quota="4")
    assert outcome.notes["findings"] == ["quota not met: cuisine in NG: 1 of 4", "quota not met: sweets in BR: 0 of 4"]
    table = read_table(work.out / "quotas.parquet", QUOTAS)
    assert table.rows() == [
        ("cuisine", "BR", 4, 30, 4), ("cuisine", "JP", 4, 30, 4), ("cuisine", "NG", 4, 1, 1), ("sweets", "BR", 4, 0, 0),
    ]  # fmt: skip
    assert read_table(work.out / "prompts.parquet", PROMPTS).height == 9


def test_a_limit_that_is_not_reached_is_no_finding(work: Work, space: Path) -> None:
    outcome = build(work, space, per=4)
    assert "findings" not in outcome.notes
    assert ids(work, "NG") == {"Q50"}


def test_a_quota_for_what_is_not_in_the_space_is_said(work: Work, space: Path, tmp_path: Path) -> None:
    table = tmp_path / "q.csv"
    table.write_text("concept,country,quota\ncuisine,BR,2\nart,,3\n,FR,1\nlandmarks,JP,5\n", encoding="utf-8")
    outcome = build(work, space, quota=str(table))
    assert outcome.notes["findings"] == [
        "quota not met: landmarks in JP: 0 of 5",
        "quota not met: art: none in the space, 3 asked for in each country",
        "quota not met: FR: nothing in the space, 1 asked for of each concept",
    ]
    assert read_table(work.out / "prompts.parquet", PROMPTS)["artifact_id"].len() == 2


def test_a_rejected_artifact_gives_way_to_the_next_one_of_the_same_order(
    work: Work, space: Path, tmp_path: Path
) -> None:
    build(work, space, quota="5", review=True)
    before, larger = ids(work), None
    rows = sheet(work)
    assert list(rows[0]) == COLUMNS
    first = next(row for row in rows if (row["country"], row["place"]) == ("BR", "1"))
    first["decision"] = "reject"
    for row in rows:
        if row["country"] == "JP":
            row["decision"] = "Accept"
    one = decided(tmp_path / "one.csv", rows, divider=";")
    outcome = build(work, space, quota="5", review=True, decisions=(one,))
    after = ids(work)
    build(work, space, quota="6")
    larger = ids(work)
    assert after == larger - {first["artifact_id"]}
    assert len(after - before) == 1
    assert outcome.counts["rejected"] == 1
    assert outcome.counts["accepted"] == 5


def test_a_chain_of_sheets_is_reproducible_and_the_last_sheet_holds_all_of_it(
    work: Work, space: Path, tmp_path: Path
) -> None:
    build(work, space, quota="3", review=True)
    chain: list[str] = []
    for number in range(3):
        rows = sheet(work)
        waiting = next(row for row in rows if not row["decision"] and row["country"] == "BR")
        waiting["decision"] = "reject"
        chain.append(decided(tmp_path / f"{number}.csv", rows))
        build(work, space, quota="3", review=True, decisions=tuple(chain))
    files = {path.name: path.read_bytes() for path in work.out.iterdir()}
    build(work, space, quota="3", review=True, decisions=tuple(chain))
    assert {path.name: path.read_bytes() for path in work.out.iterdir()} == files
    build(work, space, quota="3", review=True, decisions=(chain[-1],))
    assert {path.name: path.read_bytes() for path in work.out.iterdir()} == files
    drops = read_table(work.out / "drops.parquet", DROPS)
    assert drops.filter(pl.col("reason") == "rejected in review").height == 3
    assert len(ids(work)) == 3


def test_names_are_edited_and_formulas_defused_both_ways(work: Work, space: Path, tmp_path: Path) -> None:
    build(work, space, quota="1", review=True)
    rows = sheet(work)
    raw = (work.out / "review.csv").read_text(encoding="utf-8-sig")
    assert "'=1+1" in raw
    assert not any(line.startswith(("=", "+", "-", "@")) for line in raw.splitlines())
    for row in rows:
        row |= {"decision": "edit", "new_name": "'=HYPERLINK" if row["country"] == "NG" else "pão, \"o\" 'bom'"}
    build(work, space, quota="1", decisions=(decided(tmp_path / "d.csv", rows, divider="\t", mark=""),))
    texts = read_table(work.out / "prompts.parquet", PROMPTS)["text"].to_list()
    assert "A high resolution image of =HYPERLINK from Nigerian cuisine, realistic" in texts
    assert "A high resolution image of pão, \"o\" 'bom' from Brazilian cuisine, realistic" in texts


def test_every_mistake_of_a_sheet_names_row_and_column(work: Work, space: Path, tmp_path: Path) -> None:
    plain = {**dict.fromkeys(COLUMNS, ""), "concept": "cuisine", "country": "BR"}
    rows = [
        {**plain, "artifact_id": "Q1", "name": "two\nlines"},
        {**plain, "artifact_id": "Q999", "decision": "accept"},
        {**plain, "artifact_id": "Q1", "country": "NG", "decision": "accept"},
        {**plain, "artifact_id": "Q2", "decision": "maybe"},
        {**plain, "artifact_id": "Q3", "decision": "edit"},
        {**plain, "artifact_id": "Q4", "decision": "accept", "new_name": "x"},
        {**plain, "artifact_id": "Q5", "decision": "accept"},
        {**plain, "artifact_id": "Q5", "decision": "reject"},
    ]
    with pytest.raises(ConfigError) as told:
        build(work, space, decisions=(decided(tmp_path / "d.csv", rows),))
    assert [(problem.line, problem.key) for problem in told.value.problems] == [
        (4, "artifact_id"), (5, "country"), (6, "decision"), (7, "new_name"), (8, "new_name"), (10, "decision"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "lacks the column"),
        (b"artifact_id,concept,country\nQ1,cuisine,BR\n", "lacks the column decision"),
        (b"artifact_id,concept,country,decision,decision\n", "has the column decision twice"),
        ("artifact_id,concept,country,decision\nQ1,é,BR,\n".encode("latin-1"), "not in UTF-8"),
        ("artifact_id,concept\n".encode("utf-16"), "not in UTF-8"),
        (b"artifact_id,concept,country,decision\nQ1,cuisine,BR,reject,surplus\n", "5 cells under 4"),
        (b'artifact_id,concept,country,decision\n"Q1,cuisine,BR,reject\n', "not a CSV file"),
    ],
)
def test_a_file_that_is_no_sheet_is_refused(
    work: Work, space: Path, tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "d.csv"
    path.write_bytes(content)
    with pytest.raises(UsageError) as told:
        build(work, space, decisions=(str(path),))
    assert message in str(told.value)
    with pytest.raises(UsageError, match="no such file"):
        build(work, space, decisions=(str(tmp_path / "none.csv"),))


PUBLIC = """[{{"P31": "nan", "P279": "nan", "P495": "nan", "P17": "nan", "P2012": "nan", "P361": "nan", "id": "{id}",
"name": "{name}", "country": "Brazil", "domain": "cuisine", "prompt": "x"}}]"""


def test_a_fresh_draw_has_nothing_of_the_public_one(work: Work, tmp_path: Path) -> None:
    rows = [artifact(n, name=name, popularity=1.0) for n, name in enumerate(["Pão", "pao", "bolo", "angu"], 1)]
    space = write_table(tmp_path, CSPACE, cspace(*rows))
    public = tmp_path / "public.json"
    public.write_text(PUBLIC.format(id="LLM", name=" PÃO "), encoding="utf-8")
    outcome = build(work, space, draw="fresh", public=str(public))
    assert len(ids(work)) == 1
    assert ids(work) <= {"Q3", "Q4"}
    assert outcome.drops == {"in the public draw": 2}
    public.write_text(PUBLIC.format(id="Q3", name="cake"), encoding="utf-8")
    build(work, space, draw="fresh", public=str(public), quota="4")
    assert ids(work) == {"Q1", "Q2", "Q4"}


def test_options_that_contradict_each_other_are_refused(work: Work, space: Path) -> None:
    wrong: list[dict[str, Any]] = [
        {"per": 1, "quota": "1"}, {"public": "x.json"}, {"draw": "fresh"}, {"quota": "0"},
        {"kinds": ("underspecified",), "quota": "1"}, {"draw": "fresh", "public": "x.parquet"},
        {"languages": ("en", "en")}, {"translations": ("x.yaml",)}, {"statements": "x.parquet"},
    ]  # fmt: skip
    for options in wrong:
        with pytest.raises(UsageError):
            build(work, space, **options)


def test_two_artifacts_of_one_name_give_one_prompt_of_a_draw(work: Work, tmp_path: Path) -> None:
    rows = [artifact(n, name="bolo", popularity=p) for n, p in ((1, 0.2), (2, 0.9), (3, None))]
    rows += [artifact(4, name="angu", popularity=0.1), artifact(5, name="bolo", country="NG")]
    space = write_table(tmp_path, CSPACE, cspace(*rows))
    outcome = build(work, space, quota="4")
    assert ids(work) == {"Q2", "Q4"}
    assert ids(work, "NG") == {"Q5"}
    assert outcome.drops == {"same prompt as a better known artifact": 2}
    drops = read_table(work.out / "drops.parquet", DROPS)
    assert drops.select("key", "detail").rows() == [("Q1 BR", "Q2"), ("Q3 BR", "Q2")]
    build(work, space)
    assert ids(work) == {"Q1", "Q2", "Q3", "Q4"}
