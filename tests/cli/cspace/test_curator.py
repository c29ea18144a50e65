"""What a curator met: countries of one's own, nothing left over, days that have not come, languages and codes."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl
import pytest

from culturekit.builders.space.cspace import ReleaseOptions, release_stage
from culturekit.core.schemas import KEPT
from culturekit.core.tables import write_table
from culturekit.core.yaml_source import past_day
from culturekit.kg import countries as known
from culturekit.kg.concepts import Concept, Root
from culturekit.kg.countries import country_files
from culturekit.kg.dump.ingest import IngestOptions
from tests.builders.spaces import rows_of
from tests.command_line import culturekit
from tests.conftest import stage_here

GHANA, BRAZIL = "Q117", "Q155"


@pytest.fixture
def no_own_countries() -> Iterator[None]:
    yield
    known.use_countries(None)
    known.use_countries_beside()


def kept(folder: Path, *rows: Mapping[str, object]) -> Path:
    plain = {"concept": "cuisine", "country_qids": [BRAZIL], "verdict": "keep", "reason": "r", "roots": ["Q1"]}
    return write_table(folder, KEPT, rows_of(KEPT, *({**plain, "label": row["qid"], **row} for row in rows)))


def released(folder: Path, *rows: Mapping[str, object], countries: tuple[str, ...] = ("BR", "GH")) -> Path:
    """Release with Ghana, which is not shipped."""
    folder.mkdir()
    own = folder / "mine.yaml"
    own.write_text(culturekit("roots", "init", "--country", "GH").stdout, encoding="utf-8")
    known.use_countries(own)
    concept = Concept(concept="cuisine", hops=1, roots=(Root(qid="Q1", label="x"),), countries=countries)
    stage_here(release_stage([kept(folder, *rows)], ReleaseOptions((concept,))), folder / "cspace")
    known.use_countries(None)
    return folder / "cspace"


@pytest.mark.usefixtures("no_own_countries")
def test_a_release_carries_its_countries_to_whoever_reads_it(tmp_path: Path) -> None:
    waakye, both = {"qid": "Q2", "country_qids": [GHANA]}, {"qid": "Q3", "country_qids": [GHANA, BRAZIL]}
    a = released(tmp_path / "a", waakye, both)
    b = released(tmp_path / "b", {**waakye, "label": "Waakye"})
    assert sorted(known.read_countries(a / "countries.yaml")) == ["GH"]
    assert "countries.yaml" in (a / "SHA256SUMS").read_text(encoding="utf-8")
    assert "0 added, 2 removed, 1 renamed" in culturekit("cspace", "diff", str(a), str(b), ends=1).stdout
    table = str(a / "cspace.parquet")
    for words in (("within-country",), ("cube", "--per", "1")):
        culturekit("prompts", "build", *words, "--cspace", table, "--out", str(tmp_path / words[0]), ends=0)
    texts = pl.read_parquet(tmp_path / "within-country/prompts.parquet")["text"].to_list()
    assert any("Ghana" in text for text in texts)
    audited = culturekit("audit", table)
    assert "no country that countries.yaml knows" not in audited.stdout
    plain = released(tmp_path / "plain", {"qid": "Q4"}, countries=("BR",))
    assert not (plain / "countries.yaml").exists()


@pytest.mark.usefixtures("no_own_countries")
def test_a_file_that_is_named_counts_before_one_that_is_carried(tmp_path: Path) -> None:
    a = released(tmp_path / "a", {"qid": "Q2", "country_qids": [GHANA]})
    known.use_countries_beside(a / "cspace.parquet")
    assert country_files()["own-countries"] == a / "countries.yaml"
    assert "GH" in known.countries()
    known.use_countries(tmp_path / "a/mine.yaml")
    assert country_files()["own-countries"] == tmp_path / "a/mine.yaml"
    known.use_countries(None)
    known.use_countries_beside(tmp_path / "elsewhere.parquet")
    assert "GH" not in known.countries()


def test_prompts_and_a_release_of_nothing_leave_with_one_and_say_why(tmp_path: Path) -> None:
    listed = tmp_path / "mine.csv"
    listed.write_text("name,concept,country\nFado,music,Portugal\nFrevo,music,Brazil\n", encoding="utf-8")
    assert culturekit("cspace", "import", str(listed), "--out", str(tmp_path / "space")).returncode == 0
    words = ("--cspace", str(tmp_path / "space/cspace.parquet"), "--out", str(tmp_path / "prompts"))
    answer = culturekit("prompts", "build", "cube", *words, ends=1)
    assert "no prompt was built of 2 artifacts in cspace.parquet: 2 " in answer.stderr
    table = kept(tmp_path, {"qid": "Q2", "verdict": "review", "reason": "judge x: refused"})
    answer = culturekit(
        "cspace", "release", "--kept", str(table), "--roots", "cuisine", "--out", str(tmp_path / "release"), ends=1
    )
    assert "1 artifact waits for a person" in answer.stderr


def test_pt_br_is_a_language() -> None:
    assert IngestOptions(("en", "pt-BR", "zh_Hant", "EN")).languages == ("en", "pt-br", "zh-hant")


@pytest.mark.parametrize("day", ["2999-01-01", "2026-13-01", "1.2.2026", ""])
def test_a_day_that_has_not_come_is_none(tmp_path: Path, day: str) -> None:
    with pytest.raises(ValueError, match=r"is in the future|is no day"):
        past_day(day)
    sheet = tmp_path / "review.csv"
    sheet.write_text(f"qid,concept,decision,reviewer,decided_on\nQ2,cuisine,accept,Ada,{day}\n", encoding="utf-8")
    words = ("--kept", str(kept(tmp_path, {"qid": "Q2", "verdict": "review"})), "--out", str(tmp_path / "out"))
    done = culturekit("cspace", "review", "import", str(sheet), *words, ends=2)
    assert "row 2" in done.stderr or "review.csv" in done.stderr
    assert past_day("2024-02-29") == "2024-02-29"


def test_several_countries_are_drafted_into_one_file(tmp_path: Path) -> None:
    done = culturekit("roots", "init", "--country", "GH", "--country", "Belgium", "--country", "GH", ends=0)
    (tmp_path / "own.yaml").write_text(done.stdout, encoding="utf-8")
    assert sorted(known.read_countries(tmp_path / "own.yaml")) == ["BE", "GH"]
    assert culturekit("roots", "init", "--country", "GH", "--country", "BE", "--name", "x").returncode == 2
    taken = culturekit("roots", "init", "--country", "GH", "--country", "FR")
    assert (taken.returncode, "FR is there already" in taken.stderr) == (2, True)


def test_a_code_of_the_world_is_told_from_a_wrong_one(tmp_path: Path) -> None:
    roots = tmp_path / "mine.yaml"
    for code, says in (
        ("GH", "GH is Ghana: draft its entry with `culturekit roots init --country GH"),
        ("XQ", "unknown country 'XQ'"),
    ):
        text = f"concept: x\nhops: 1\nroots: [{{qid: Q1, label: x}}]\ncountries: [{code}]\n"
        roots.write_text(text, encoding="utf-8")
        done = culturekit("roots", "validate", str(roots))
        assert says in done.stdout
        assert "did you mean 'TH'" not in done.stdout
