from pathlib import Path

import numpy as np
import polars as pl

from culturekit.core.schemas import ARTIFACTS, CANDIDATES
from culturekit.core.tables import read_table, write_table
from culturekit.index.embedding.embedding import save_vectors
from culturekit.kg.countries import countries
from culturekit.release.audit_file import audit_file
from tests.builders.spaces import artifact, cspace
from tests.command_line import culturekit
from tests.release.sheets import art, audited, clean_rows, codes, dish, sight, write


def space_of(folder: Path) -> Path:
    path = folder / "space.parquet"
    cspace(artifact(11, name="pastel"), artifact(12, name="Itá", concept="landmarks")).write_parquet(path)
    return path


def test_a_space_tells_names_and_items_of_another_concept(tmp_path: Path) -> None:
    rows = [
        *clean_rows(), sight("Pastel", "Brazil", "LLM"), sight("tree", "Brazil", "Q11"), sight("Itá", "Brazil", "Q12"),
    ]  # fmt: skip
    path, out = write(tmp_path, rows), tmp_path / "out.json"
    assert "name-concept" not in codes(audit_file(path))
    audit = audit_file(path, cspace=space_of(tmp_path), fix=out)
    found = {finding.row: finding.message for finding in audit.findings if finding.code == "name-concept"}
    assert set(found) == {4, 5}
    assert "knows it as cuisine" in found[4]
    assert not audit_file(out, cspace=space_of(tmp_path)).has_findings


def test_a_space_tells_whose_name_a_prompt_holds(tmp_path: Path) -> None:
    row = sight("Itá", "Brazil", "Q12", prompt="A panoramic view of Pastel in Brazil, realistic")
    assert "prompt-name" in codes(audited(tmp_path, [row]))
    assert "prompt-name-concept" in codes(audited(tmp_path, [row], cspace=space_of(tmp_path)))


def test_a_space_tells_items_of_other_countries(tmp_path: Path) -> None:
    rows = [*clean_rows(), dish("pastel", "Japan", "Q11")]
    assert not audited(tmp_path, rows).has_findings
    audit = audited(tmp_path, rows, cspace=space_of(tmp_path))
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
