"""Files that are audited and mended: made slips, the published release, what a space, a graph or vectors add."""

import csv
import gzip
import json
from collections import Counter
from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.builders.prompting.prompts import PromptOptions, build_prompts
from culturekit.builders.space.public_cube import read_public_cube
from culturekit.core.errors import UsageError
from culturekit.core.schemas import ARTIFACTS, CANDIDATES, CSPACE, PROMPTS
from culturekit.core.stage import Work
from culturekit.core.tables import read_table, write_table
from culturekit.index.embedding.embedding import save_vectors
from culturekit.kg.countries import countries
from culturekit.release import audit_file as token_counts
from culturekit.release.audit_file import (
    CODES,
    Audit,
    audit_file,
    clip_tokens,
    counted,
    estimated_tokens,
    read_ranks,
    vocabulary_file,
)
from culturekit.release.check_places import meanings
from tests.builders.spaces import artifact, cspace
from tests.command_line import culturekit
from tests.release.sheets import CASES, NEEDS_MORE, Case, art, audited, clean_rows, codes, dish, sight, write

IDS = [f"{number}-{case.code}" for number, case in enumerate(CASES)]
NOTES = {code.name for code in CODES if code.severity == "note"}


def test_every_code_has_a_case_and_its_own_name() -> None:
    assert {case.code for case in CASES} | NEEDS_MORE == {code.name for code in CODES}
    assert len({code.name for code in CODES}) == len(CODES)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_slip_is_found_and_its_clean_twin_is_clean(case: Case, tmp_path: Path) -> None:
    audit = audited(tmp_path, [*clean_rows(), *case.rows])
    found = [finding for finding in audit.findings if finding.code == case.code]
    assert found
    assert case.quotes in json.dumps([finding.as_data() for finding in found], ensure_ascii=False)
    assert all(finding.row is None or finding.row >= 4 or case.code == "imbalance" for finding in found)
    assert audit.has_findings == (not codes(audit) <= NOTES)
    twin = audited(tmp_path, [*clean_rows(), *case.twin])
    assert case.code not in codes(twin)
    assert not twin.has_findings


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_mended_file_is_clean_and_stays_as_it_is(case: Case, tmp_path: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    audited(tmp_path, [*clean_rows(), *case.rows], fix=first)
    again = audited(tmp_path, json.loads(first.read_text(encoding="utf-8")), fix=second)
    assert not [finding for finding in again.findings if counted(finding)]
    assert first.read_bytes() == second.read_bytes()
    assert (tmp_path / "second.json.changes.csv").read_text(encoding="utf-8").count("\n") == 1


def space_of(folder: Path, *rows: dict[str, object]) -> Path:
    path = folder / "space.parquet"
    cspace(*rows).write_parquet(path)
    return path


def test_a_cultural_space_is_audited_and_mended_as_a_table(tmp_path: Path) -> None:
    rows = [artifact(1), artifact(2, name="pavê "), artifact(3, country="XX"), artifact(4, country_name="Brasil")]
    rows += [artifact(5, qid=None), artifact(1, name="other"), artifact(6, artifact_id="pudim", name="pudim", qid=None)]
    path, out = space_of(tmp_path, *rows), tmp_path / "mended.parquet"
    audit = audit_file(path, fix=out)
    assert audit.layout == "cspace"
    assert codes(audit) >= {"white-space", "country-unknown", "country-spelling", "id-unknown", "duplicate-artifact"}
    assert not audit_file(out).has_findings
    mended = read_table(out, CSPACE)
    assert mended["artifact_id"].to_list() == ["LLM:pudim", "Q1", "Q2", "Q4", "Q5"]
    assert mended.filter(pl.col("artifact_id") == "Q5")["qid"].to_list() == ["Q5"]


def test_prompts_are_audited_without_and_with_their_space(tmp_path: Path, work: Work) -> None:
    space = space_of(
        tmp_path, *[artifact(number, name=name) for number, name in enumerate(["pavê", "bobó", "acarajé"], 1)]
    )
    build_prompts(work, space, PromptOptions(kinds=("cube", "underspecified", "within-country")), seed=0)
    built = read_table(work.out / "prompts.parquet", PROMPTS)
    assert audit_file(work.out / "prompts.parquet", cspace=space).findings == ()
    slips = built.with_columns(
        text=pl.when(pl.col("artifact_id") == "Q1")
        .then(pl.lit("A high resolution image of pavêfrom Brazilian cuisine, realistic"))
        .when(pl.col("artifact_id") == "Q2")
        .then(pl.lit("A high resolution image of moqueca from Brazilian cuisine, realistic"))
        .when(pl.col("artifact_id") == "Q3")
        .then(pl.lit("A panoramic view of acarajé in Brazil, realistic"))
        .otherwise("text")
    )
    path, out = write_table(tmp_path, PROMPTS, slips), tmp_path / "mended.parquet"
    assert codes(audit_file(path)) == {"space-missing", "template-concept"}
    audit = audit_file(path, cspace=space, fix=out)
    assert codes(audit) == {"space-missing", "prompt-name", "template-concept"}
    assert read_table(out, PROMPTS)["text"].to_list() == built["text"].to_list()


def test_a_negative_prompt_that_keeps_out_what_is_asked_for_is_noted(tmp_path: Path, work: Work) -> None:
    space = space_of(tmp_path, artifact(1, name="kalamkari", concept="art", subconcept="painting"))
    build_prompts(work, space, PromptOptions(templates="paper"), seed=0)
    audit = audit_file(work.out / "prompts.parquet")
    assert codes(audit) == {"negative-contradicts"}
    assert not audit.has_findings
    build_prompts(work, space, PromptOptions(templates="released"), seed=0)
    assert audit_file(work.out / "prompts.parquet").findings == ()


def test_csv_keeps_its_columns_and_guards_formulas(tmp_path: Path) -> None:
    path, out = tmp_path / "cube.csv", tmp_path / "mended.csv"
    rows = [*clean_rows(), dish("'=HYPERLINK(1) pavê ", qid="Q9", prompt="")]
    pl.DataFrame(rows).write_csv(path)
    audit = audit_file(path, fix=out)
    assert codes(audit) == {"white-space", "prompt-missing"}
    with out.open(encoding="utf-8", newline="") as file:
        mended = list(csv.DictReader(file))
    assert list(mended[0]) == list(rows[0])
    assert mended[4]["name"] == "'=HYPERLINK(1) pavê"
    assert "of =HYPERLINK(1) pavê from" in mended[4]["prompt"]
    assert not audit_file(out).has_findings


def test_the_change_log_is_safe_for_spreadsheets(tmp_path: Path) -> None:
    out = tmp_path / "mended.json"
    audited(tmp_path, [*clean_rows(), dish("=cmd|' /C calc'!A1 ", qid="Q9")], fix=out)
    with (tmp_path / "mended.json.changes.csv").open(encoding="utf-8", newline="") as file:
        log = list(csv.DictReader(file))
    assert [line["after"] for line in log if line["field"] == "name"] == ["'=cmd|' /C calc'!A1"]
    assert all(not cell.startswith(("=", "+", "-", "@")) for line in log for cell in line.values())


@pytest.mark.parametrize(("content", "problem"), [
    (b"[{", "not in the public CUBE layout"), (b'{"name": "x"}', "not in the public CUBE layout"),
    (b"[1, 2]", "not in the public CUBE layout"), (b'[{"name": 3}]', "not in the public CUBE layout"),
    (b'[{"name": "\xff"}]', "not in the public CUBE layout"), (b"[" * 100_000, "not in the public CUBE layout"),
    (b'[{"name": "x"}]', "the columns are those of no layout"),
])  # fmt: skip
def test_what_is_no_file_of_a_layout_is_said(content: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "cube.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=problem):
        audit_file(path)


def test_other_files_are_refused_with_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        audit_file(tmp_path / "none.json")
    with pytest.raises(UsageError, match="which layout"):
        audit_file(tmp_path / "cube.txt")
    (tmp_path / "cube.parquet").write_bytes(b"PAR1")
    with pytest.raises(UsageError, match="not a readable Parquet file"):
        audit_file(tmp_path / "cube.parquet")
    path = write(tmp_path, clean_rows())
    with pytest.raises(UsageError, match="keeps its layout"):
        audit_file(path, fix=tmp_path / "out.csv")
    with pytest.raises(UsageError, match="is another file"):
        audit_file(path, fix=path)
    other = tmp_path / "prompts.json"
    other.write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match=r"prompts.json: a mended copy replaces an earlier one only"):
        audit_file(path, fix=other)
    assert other.read_text(encoding="utf-8") == "mine"
    for _ in range(2):  # a copy of its own is made again
        audit_file(path, fix=tmp_path / "mended.json")


def test_an_empty_file_and_a_file_of_lacking_keys_are_audited(tmp_path: Path) -> None:
    assert [audited(tmp_path, rows).findings for rows in ([], clean_rows())] == [(), ()]
    bare = dish("pavê", qid="Q9")
    del bare["prompt"]
    out = tmp_path / "out.json"
    audit = audited(tmp_path, [*clean_rows(), bare, {"id": "Q8", "prompt": None}], fix=out)
    assert codes(audit) >= {"prompt-missing", "name-unusable", "country-unknown", "concept-unknown"}
    mended = json.loads(out.read_text(encoding="utf-8"))
    assert [row["prompt"] for row in mended[4:]] == [dish("pavê")["prompt"]]


def test_huge_and_marked_up_texts_are_set_aside_or_cut_in_what_is_told(tmp_path: Path) -> None:
    huge = dish("x" * 1_000_000, qid="Q9")
    audit = audited(
        tmp_path, [*clean_rows(), huge, dish("<script>alert(1)</script>", qid="Q8")], fix=tmp_path / "o.json"
    )
    assert {finding.row for finding in audit.findings if finding.severity != "note"} == {4}
    assert len(json.dumps(audit.as_data())) < 10_000
    assert not audit_file(tmp_path / "o.json").has_findings


@pytest.mark.parametrize(("stated", "meant"), [
    ("Guatemala", ("Guatemala",)), ("Georgia", ("Georgia",)), ("UK", ("GB",)), ("the United States", ("US",)),
    ("Korea", ("Korea, Democratic People's Republic of", "Korea, Republic of")), ("Brazil and Japan", ("BR", "JP")),
    ("Atlantis", ()),
])  # fmt: skip
def test_what_one_country_is_called_means_that_one(stated: str, meant: tuple[str, ...]) -> None:
    assert meanings(stated) == meant


WORDS = [
    "feijoada", "Feijoada ", "pavê", "pave\u0302", "р\u0430vê", "Q5", "", " ", "=1+1", "pa\u200bvê", "painting",
    "会席" * 60,
]  # fmt: skip
COUNTRIES = ["Brazil", "brazil ", "Japan", "Korea", "Atlantis", "", "India/Japan"]
CONCEPTS = ["cuisine", "landscapes", "landmarks", "art", "Art", "music"]
TEMPLATES = [
    "A high resolution image of {name} from Brazilian cuisine, realistic",
    "A high resolution image of {name}from Japanese cuisine, realistic",
    "A panoramic view of {name} in Japan, realistic", "An image of {name} painting from India, realistic",
    "An image of {name} from Brazil clothing, realistic, negative prompt: blurry", "{name}", "",
]  # fmt: skip
STATEMENTS = ["nan", "", " ", "[]", "['Q155']", "['{=#1', 'Q17']", "Q9", "LLM", "[["]
ROWS = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["Q1", "Q2", "LLM", "", " ", "feijoada", "Q0", "x"]),
        "name": st.sampled_from(WORDS) | st.text(max_size=12),
        "country": st.sampled_from(COUNTRIES),
        "domain": st.sampled_from(CONCEPTS),
        "template": st.sampled_from(TEMPLATES) | st.text(max_size=30),
        "P495": st.sampled_from(STATEMENTS),
        "P361": st.sampled_from(STATEMENTS),
    }
)


def filled(row: Mapping[str, str]) -> dict[str, str]:
    prompt = row["template"].replace("{name}", row["name"])
    return {**{key: value for key, value in row.items() if key != "template"}, "prompt": prompt}


@settings(max_examples=60, deadline=None)
@given(st.lists(ROWS, max_size=8))
def test_a_mend_leaves_nothing_to_mend(rows: list[dict[str, str]]) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        path, once, twice = write(folder, [filled(row) for row in rows]), folder / "once.json", folder / "twice.json"
        audit_file(path, fix=once)
        again = audit_file(once, fix=twice)
        assert not [finding for finding in again.findings if counted(finding)]
        assert once.read_bytes() == twice.read_bytes()


def test_all_slips_at_once_are_mended_and_nothing_is_invented(tmp_path: Path) -> None:
    rows = [*clean_rows(), *(row for case in CASES for row in case.rows)]
    audit = audited(tmp_path, rows, fix=tmp_path / "out.json")
    assert not audit_file(tmp_path / "out.json").has_findings
    assert audit.mended is not None
    for row in audit.mended.sheet.rows:
        before = rows[row.number]
        assert row.cells["id"] in {before["id"].strip(), before["P361"].strip(), "LLM"}


def test_the_row_that_stays_is_one_that_can(tmp_path: Path) -> None:
    good = dish("pavê", qid="Q9", P495="['Q155']")
    bad = {**good, "P495": "['Q17']"}
    out = tmp_path / "out.json"
    audit = audited(tmp_path, [bad, good, *clean_rows()], fix=out)
    assert codes(audit) == {"qid-country", "duplicate-prompt"}
    assert json.loads(out.read_text(encoding="utf-8"))[0] == good


def test_the_log_keeps_a_row_that_was_set_aside_whole(tmp_path: Path) -> None:
    bad = dish("fondue", "Atlantis", "Q9")
    audit = audited(tmp_path, [*clean_rows(), bad], fix=tmp_path / "out.json")
    assert audit.mended is not None
    line = next(line for line in audit.mended.log if line.action == "set aside")
    assert (line.row, json.loads(line.before)) == (4, bad)


FOODS = {
    "Chingri fry", "Kulcha", "Enchor chingri", "Chicken 65", "Khakhra", "Gujia", "alu chat", "Katla machh bhaja",
    "Baati",
}  # fmt: skip
CORRECT = 956  # Rows whose prompt is exactly the template filled with the name without white space around it


@pytest.fixture(scope="module")
def released(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Audit:
    return audit_file(shared_data / "cube_1k.json", fix=tmp_path_factory.mktemp("mended") / "mended.json")


def rows_of(audit: Audit, code: str) -> dict[int | None, str]:
    return {finding.row: finding.value for finding in audit.findings if finding.code == code}


def test_the_slips_of_the_release_are_found_and_quoted(released: Audit) -> None:
    foods = rows_of(released, "prompt-name-concept")
    assert set(foods) == set(range(246, 255))
    assert set(foods.values()) == FOODS
    spaces = rows_of(released, "space-missing")
    assert len(spaces) == 25
    assert {"matefrom", "Gardenin", "Caligulain"} <= set(spaces.values())
    assert rows_of(released, "prompt-country") == {461: "Nigeria"}
    assert rows_of(released, "noun-in-name") == {198: "tanjore painting", 201: "mysore painting"}
    names = [each for each in released.findings if (each.code, each.field) == ("white-space", "name")]
    assert len(names) == 11
    assert {"Oscar Niemeyer Museum", "kanzashi"} <= set(rows_of(released, "id-is-name").values())
    broken = rows_of(released, "broken-statement")
    assert any("{=#1" in value for value in broken.values())
    assert rows_of(released, "concept-mixed") == {None: "landmarks, landscapes"}
    assert released.has_findings
    beyond_the_first = Counter(each.value for each in released.findings if each.code == "duplicate-prompt")
    assert sorted(beyond_the_first.values()) == [1, 1, 1, 1, 1, 1, 2]
    assert beyond_the_first["An image of Calça from Brazilian clothing, realistic"] == 2


def test_rows_without_a_slip_are_left_alone(released: Audit, shared_data: Path) -> None:
    about_prompts = {
        finding.row
        for finding in released.findings
        if finding.field in {"prompt", "name"} and counted(finding) and finding.code not in {"duplicate-prompt"}
    }
    assert 1002 - len(about_prompts - {374}) == CORRECT
    before = json.loads((shared_data / "cube_1k.json").read_text(encoding="utf-8"))
    assert released.mended is not None
    after = {row.number: row.cells["prompt"] for row in released.mended.sheet.rows}
    assert {number for number, prompt in after.items() if prompt != before[number]["prompt"]} <= about_prompts
    items = {row.number: row.cells["id"] for row in released.mended.sheet.rows}
    assert (items[965], items[719], items[319]) == ("Q243", "Q10285", "LLM"), "back from another column"


def test_the_mended_release_is_clean_and_read_whole(released: Audit) -> None:
    assert released.fixed is not None
    again = audit_file(released.fixed)
    assert not again.has_findings
    assert again.rows == 994
    public = read_public_cube(released.fixed)
    assert (public.space.height, public.prompts.height, public.drops.height) == (994, 994, 0)
    log = released.fixed.with_name("mended.json.changes.csv").read_text(encoding="utf-8")
    assert log.count("set aside") >= 8


MERGES = ["#version", "c a", "ca t</w>", "s </w>", "d o", "do g</w>"]


@pytest.fixture
def vocabulary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "bpe.txt.gz"
    path.write_bytes(gzip.compress("\n".join(MERGES).encode()))
    monkeypatch.setattr(token_counts, "vocabulary_file", lambda: path)
    return path


def test_words_are_joined_by_the_vocabulary(vocabulary: Path) -> None:
    count, exact = clip_tokens()
    assert exact
    assert count("cat dog") == 2
    assert count("Cat, CATS") == 1 + 1 + 3
    assert count("&amp;") == 1
    assert count("12½") == 4
    assert count("é") == 2
    assert len(read_ranks(vocabulary)) == len(MERGES) - 1


def test_without_a_vocabulary_words_are_estimated() -> None:
    assert estimated_tokens("a panoramic view of Sapporo in Japan, realistic") == 11
    assert estimated_tokens("") == 0
    assert estimated_tokens("会席") == 2


def test_the_count_agrees_with_the_package() -> None:
    path = vocabulary_file()
    if path is None:
        pytest.skip("needs open_clip, whose tokenizer is the reference: pip install 'culturekit[openclip]'")
    pytest.importorskip("torch")
    spec = spec_from_file_location("open_clip_tokenizer", path.with_name("tokenizer.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    tokenizer = module.SimpleTokenizer()
    count, exact = clip_tokens()
    assert exact
    for text in ("A panoramic view of Château de Vaux-le-Vicomte in France, realistic", "naïve 寿司 नमस्ते 🍣 don't 2°"):
        assert count(text) == len(tokenizer.encode(text))


def known_space(folder: Path) -> Path:
    path = folder / "space.parquet"
    cspace(artifact(11, name="pastel"), artifact(12, name="Itá", concept="landmarks")).write_parquet(path)
    return path


def test_a_space_tells_names_and_items_of_another_concept(tmp_path: Path) -> None:
    rows = [
        *clean_rows(), sight("Pastel", "Brazil", "LLM"), sight("tree", "Brazil", "Q11"), sight("Itá", "Brazil", "Q12"),
    ]  # fmt: skip
    path, out = write(tmp_path, rows), tmp_path / "out.json"
    assert "name-concept" not in codes(audit_file(path))
    audit = audit_file(path, cspace=known_space(tmp_path), fix=out)
    found = {finding.row: finding.message for finding in audit.findings if finding.code == "name-concept"}
    assert set(found) == {4, 5}
    assert "knows it as cuisine" in found[4]
    assert not audit_file(out, cspace=known_space(tmp_path)).has_findings


def test_a_space_tells_whose_name_a_prompt_holds_and_items_of_other_countries(tmp_path: Path) -> None:
    row = sight("Itá", "Brazil", "Q12", prompt="A panoramic view of Pastel in Brazil, realistic")
    assert "prompt-name" in codes(audited(tmp_path, [row]))
    assert "prompt-name-concept" in codes(audited(tmp_path, [row], cspace=known_space(tmp_path)))
    rows = [*clean_rows(), dish("pastel", "Japan", "Q11")]
    assert not audited(tmp_path, rows).has_findings
    audit = audited(tmp_path, rows, cspace=known_space(tmp_path))
    assert [finding.row for finding in audit.findings if finding.code == "qid-country"] == [4]


def test_a_graph_tells_concepts_and_countries(small_run: Path, tmp_path: Path) -> None:
    found = read_table(small_run / "candidates/candidates.parquet", CANDIDATES)
    india = countries()["IN"]
    row = found.filter(pl.col("country_qids") == [india.qids[0]]).row(0, named=True)
    name, qid, graph = row["label"], row["qid"], small_run / "graph"

    def findings(sheet_row: dict[str, str]) -> set[str]:
        return codes(audited(tmp_path, [sheet_row], graph=graph))

    right = art(name, "India", qid, f"An image of {name} performance from India, realistic")
    assert findings(right) == set()
    assert "qid-country" in findings(art(name, "Japan", qid, f"An image of {name} performance from Japan, realistic"))
    assert "name-concept" in findings(sight(name, "India", qid))
    assert "name-concept" in findings(sight(name, "India", "LLM"))
    other = sight("Ponte", "India", "LLM", prompt=f"A panoramic view of {name} in India, realistic")
    assert "prompt-name-concept" in findings(other)


def test_a_graph_tells_a_concept_of_ones_own_by_its_root_config(small_run: Path, tmp_path: Path) -> None:
    root = "Q107357104"
    found = read_table(small_run / "candidates/candidates.parquet", CANDIDATES)
    dance = found.filter(pl.col("roots").list.contains(root)).row(0, named=True)
    config = tmp_path / "dances.yaml"
    config.write_text(f"{{concept: dances, hops: 4, roots: [{{qid: {root}, label: type of dance}}]}}")
    iso = next(iso for iso, each in countries().items() if each.qids[0] == dance["country_qids"][0])
    where = {"country": iso, "country_name": countries()[iso].name, "continent": countries()[iso].continent}
    number, path = int(dance["qid"][1:]), tmp_path / "space.parquet"
    cspace(artifact(number, name=dance["label"], concept="dances", **where)).write_parquet(path)
    graph = small_run / "graph"
    assert "name-concept" in codes(audit_file(path, graph=graph))
    assert not audit_file(path, graph=graph, roots=[str(config)]).has_findings
    answer = culturekit("audit", path, "--graph", graph, "--roots", config)
    assert answer.returncode == 0, answer.stdout


def test_vectors_tell_artifacts_that_look_alike(tmp_path: Path) -> None:
    artifacts = [
        {"artifact_id": f"Q{n}", "artifact": "x", "concepts": ["cuisine"], "countries": ["BR"], "continents": ["Asia"]}
        for n in (1, 2, 9)
    ]
    write_table(tmp_path, ARTIFACTS, pl.DataFrame(artifacts, schema=ARTIFACTS.schema))
    vectors = np.array([[1, 0], [0, 1], [1, 0.01], [1, -0.01]], np.float32)
    save_vectors(tmp_path, vectors, ["Q1", "Q2", "Q9", "Q9"])
    audit = audited(tmp_path, [*clean_rows(), dish("pavê", qid="Q9")], index=tmp_path)
    near = [finding for finding in audit.findings if finding.code == "near-vectors"]
    assert [finding.row for finding in near] == [4]
    assert "looks like “feijoada” of row 0" in near[0].message
    assert not audit.has_findings
