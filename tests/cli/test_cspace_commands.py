"""What a curator meets: countries of one's own, days that have not come, and two spaces compared."""

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from culturekit.builders.space.cspace import ReleaseOptions, release_stage
from culturekit.core.schemas import DIFF, KEPT
from culturekit.core.tables import read_table, write_table
from culturekit.core.yaml_source import past_day
from culturekit.kg import countries as known
from culturekit.kg.concepts import Concept, Root
from culturekit.kg.countries import country_files
from culturekit.kg.dump.ingest import IngestOptions
from tests.builders.spaces import rows_of
from tests.command_line import culturekit
from tests.conftest import stage_here
from tests.release.sheets import clean_rows, write
from tests.trail.space_world import BRAZIL, DISH, DRINK, World, document, make_run, statements

GHANA = "Q117"


@pytest.fixture
def no_own_countries() -> Iterator[None]:
    yield
    known.use_countries(None)
    known.use_countries_beside()


def kept_rows(folder: Path, *rows: Mapping[str, object]) -> Path:
    plain = {"concept": "cuisine", "country_qids": [BRAZIL], "verdict": "keep", "reason": "r", "roots": ["Q1"]}
    return write_table(folder, KEPT, rows_of(KEPT, *({**plain, "label": row["qid"], **row} for row in rows)))


def released(folder: Path, *rows: Mapping[str, object], countries: tuple[str, ...] = ("BR", "GH")) -> Path:
    """Release with Ghana, which is not shipped."""
    folder.mkdir()
    mine = folder / "mine.yaml"
    mine.write_text(culturekit("roots", "init", "--country", "GH").stdout, encoding="utf-8")
    known.use_countries(mine)
    concept = Concept(concept="cuisine", hops=1, roots=(Root(qid="Q1", label="x"),), countries=countries)
    stage_here(release_stage([kept_rows(folder, *rows)], ReleaseOptions((concept,))), folder / "cspace")
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
    table = kept_rows(tmp_path, {"qid": "Q2", "verdict": "review", "reason": "judge x: refused"})
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
    words = ("--kept", str(kept_rows(tmp_path, {"qid": "Q2", "verdict": "review"})), "--out", str(tmp_path / "out"))
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


FIRST = World(verdicts={"Q7": "remove"})
SECOND = replace(
    FIRST.with_item("Q3", "Sushi", statements(DISH, BRAZIL)), roots=((DISH, None), (DRINK, None)), verdicts={}
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        make_run(folder / "a", FIRST, patch)
        make_run(folder / "b", SECOND, patch)
    return folder


def run(*words: object) -> tuple[int, str, str]:
    answer = culturekit("cspace", "diff", *map(str, words))
    return answer.returncode, answer.stdout, answer.stderr


def test_differences_leave_with_one_and_their_causes_are_told(runs: Path, tmp_path: Path) -> None:
    code, answer, _ = run(runs / "a", runs / "b", "--out", tmp_path / "changes", "--also", "csv")
    assert code == 1
    assert "what differs: dump, config (cuisine.roots), model" in answer
    assert "2 added, 0 removed, 0 renamed, 2 reclassified" in answer
    assert "added cuisine BR Q5 Caipirinha: config (extract)\n    config: cuisine.roots: + Q2000 (drink)" in answer
    assert "added cuisine IT Q7 Polenta: model (filter)" in answer
    assert "reclassified cuisine JP Q3 country JP -> BR: dump (ingest)" in answer
    table = read_table(tmp_path / "changes/diff.parquet", DIFF)
    assert table["causes"].to_list() == [["config"], ["model"], ["dump"], ["dump"]]
    assert (tmp_path / "changes/diff.csv").is_file()
    manifest = json.loads((tmp_path / "changes/manifest.json").read_text(encoding="utf-8"))
    assert manifest["notes"]["causes"] == {"dump": {"reclassified": 2}, "config": {"added": 1}, "model": {"added": 1}}
    code, answer, _ = run(runs / "a", runs / "b", "--show", "1")
    assert code == 1
    assert "... and 3 more; --out writes all of them" in answer


def test_the_same_bytes_again(runs: Path, tmp_path: Path) -> None:
    for name in ("x", "y"):
        run(runs / "a", runs / "b", "--out", tmp_path / name)
    assert (tmp_path / "x/diff.parquet").read_bytes() == (tmp_path / "y/diff.parquet").read_bytes()
    assert (tmp_path / "x/manifest.json").read_bytes() == (tmp_path / "y/manifest.json").read_bytes()


def test_machines_get_every_change_and_equal_spaces_leave_with_none(runs: Path) -> None:
    code, answer, _ = run(runs / "b", runs / "a", "--json")
    data = json.loads(answer)
    assert code == 1
    assert {(row["change"], row["qid"], *row["causes"]) for row in data["rows"]} == {
        ("removed", "Q5", "config"), ("removed", "Q7", "model"), ("reclassified", "Q3", "dump"),
    }  # fmt: skip
    assert data["factors"] == ["dump", "config (cuisine.roots)", "model"]
    code, answer, _ = run(runs / "a/cspace", runs / "a/cspace/cspace.parquet", "--json")
    assert (code, json.loads(answer)["rows"], json.loads(answer)["counts"]) == (0, [], {"diff": 0})


def test_a_release_alone_is_compared_and_its_causes_are_left_open(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "a/cspace", tmp_path / "elsewhere/cspace")
    shutil.copy(runs / "a/cspace/cspace.parquet", tmp_path / "alone.parquet")
    for before, why in (
        (tmp_path / "elsewhere", "release: the kept of this stage is no longer where its run found it"),
        (tmp_path / "alone.parquet", "no manifest tells what alone.parquet was made from"),
    ):
        code, answer, _ = run(before, runs / "b")
        assert code == 1
        assert f"not to be walked back: first: {why}" in answer
        assert "undecided: dump or config or wording or model or code" in answer


def test_a_public_file_is_compared_too(tmp_path: Path, runs: Path) -> None:
    path = write(tmp_path, [*clean_rows()])
    assert run(path, path)[0] == 0
    code, answer, _ = run(path, runs / "a", "--json")
    data = json.loads(answer)
    assert code == 1
    assert {row["change"] for row in data["rows"]} >= {"added", "renamed"}
    assert {tuple(row["undecided"]) for row in data["rows"]} == {("dump", "config", "wording", "model", "code")}


def test_what_is_no_space_or_was_changed_by_hand_is_refused(tmp_path: Path, runs: Path) -> None:
    code, _, error = run(tmp_path, runs / "b")
    assert code == 2
    assert "there is no cultural space here" in error
    code, _, error = run(runs / "a", runs / "b", "--wait")
    assert code == 2
    assert "--out as well" in error
    copy = Path(shutil.copytree(runs / "a/cspace", tmp_path / "cspace"))
    pl.read_parquet(copy / "cspace.parquet").head(2).write_parquet(copy / "cspace.parquet")
    code, _, error = run(copy, runs / "b")
    assert code == 4
    assert "not the cultural space that its stage wrote" in error


def test_releases_with_countries_of_their_own_are_compared_as_a_user_types_it(tmp_path: Path) -> None:
    mine = tmp_path / "own.yaml"
    mine.write_text(culturekit("roots", "init", "--country", "GH", "--country", "BE").stdout, encoding="utf-8")
    root, ghana, belgium = "Q746549", "Q117", "Q31"
    for name, of in (("spring", ghana), ("autumn", belgium)):
        items = {root: ("dish", {}), "Q1": ("Waakye", statements(root, ghana)), "Q2": ("Frites", statements(root, of))}
        lines = [document(qid, *each) for qid, each in items.items()]
        (tmp_path / f"{name}.json").write_text("\n".join(lines), encoding="utf-8")
        words = [f"dump=[{tmp_path / name}.json]", "concepts=[cuisine]", "countries=[GH,BE]"]
        culturekit(
            "--countries-file", mine, "run", "cube-release", "--until", "cspace", "--workdir", tmp_path / name,
            *(word for setting in words for word in ("--set", setting)), ends=0,
        )  # fmt: skip
        shutil.copytree(tmp_path / name / "cspace", tmp_path / f"{name}-released")
    code, answer, _ = run(tmp_path / "spring", tmp_path / "autumn")
    assert (code, "reclassified cuisine GH Q2 country GH -> BE: dump (ingest)" in answer) == (1, True)
    code, answer, _ = run(tmp_path / "spring-released", tmp_path / "autumn-released")
    assert (code, "reclassified cuisine GH Q2 country GH -> BE" in answer) == (1, True), "what others were given"
