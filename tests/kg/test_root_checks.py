"""Root configs held against themselves, a redirect map and a graph; which statements count."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from culturekit.builders.country_names import named_country
from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.schemas import STATEMENTS
from culturekit.core.stage import Work
from culturekit.kg.concepts import (
    COUNTRY_PROPERTIES,
    EDGE_PROPERTIES,
    final_target,
    flags_of,
    load_concept,
    mask_of,
    read_redirects,
    shipped_concepts,
)
from culturekit.kg.countries import whole_world
from culturekit.kg.dump.ingest import IngestOptions, ingest
from culturekit.kg.root_checks import Finding, draft_concept, draft_country, name_in_graph, validate_roots
from tests.command_line import culturekit

BROKEN = """\
concept: things
hops: 3
roots:
  - {qid: Q10, label: thing}
  - {qid: Q11, label: dish}
  - {qid: Q842858, label: national museum}
  - {qid: Q77, label: nowhere}
  - {qid: Q12, label: gone}
  - {qid: Q10, label: thing}
  - {qid: Q13, label: ring}
  - {qid: Q14, label: round}
  - {qid: Q15, label: just mentioned}
countries: [BR, UK]
exclude: {classes: [Q842858, Q78, Q10], items: [Q79, Q11]}
follow: [P31, P276]
"""


def claim(qid: str, rank: str = "normal") -> dict[str, Any]:
    return {"mainsnak": {"snaktype": "value", "datavalue": {"value": {"id": qid}}}, "rank": rank}


def item(qid: str, label: str | None, **claims: Sequence[str]) -> dict[str, Any]:
    labels = {"en": {"language": "en", "value": label}} if label else {}
    stated = {name: [claim(value) for value in values] for name, values in claims.items()}
    return {"id": qid, "type": "item", "labels": labels, "claims": stated}


@pytest.fixture
def graph(work: Work, tmp_path: Path) -> Path:
    dump = tmp_path / "dump.json"
    world = [
        item("Q10", "Thing", P279=["Q15"]), item("Q11", "food dish", P279=["Q10"], P31=["Q20"]),
        item("Q842858", "Nationalmuseum", P31=["Q20"]), item("Q13", "ring", P279=["Q14"]),
        item("Q14", "round", P279=["Q16"]), item("Q16", None, P279=["Q13"]), item("Q20", "museum", P31=["Q11"]),
        item("Q21", "of Nationalmuseum", P361=["Q842858"]),
    ]  # fmt: skip
    world[0]["claims"]["P279"].append(claim("Q13", "deprecated"))
    dump.write_text("\n".join(json.dumps(document) for document in world), encoding="utf-8")
    ingest(work, [dump], IngestOptions())
    return work.out


def told(findings: Sequence[Finding]) -> list[tuple[int, str, str, str]]:
    return [(each.problem.line, each.severity, each.kind, each.qid) for each in findings]


def test_everything_is_said_at_once_with_its_line(graph: Path, tmp_path: Path) -> None:
    path = tmp_path / "things.yaml"
    path.write_text(BROKEN)
    findings = validate_roots([str(path)], graph=graph, redirects={"Q12": "Q11"})
    assert told(findings) == [
        (5, "warning", "label", "Q11"), (5, "warning", "overlap", "Q11"), (6, "error", "instance", "Q842858"),
        (6, "warning", "label", "Q842858"), (7, "error", "unknown", "Q77"), (8, "error", "redirected", "Q12"),
        (9, "warning", "duplicate", "Q10"), (11, "warning", "cycle", "Q14"), (12, "warning", "undescribed", "Q15"),
        (13, "error", "form", ""), (14, "warning", "excluded-root", "Q842858"), (14, "error", "instance", "Q842858"),
        (14, "error", "unknown", "Q78"), (14, "warning", "excluded-root", "Q10"), (14, "warning", "unknown", "Q79"),
        (14, "warning", "excluded-root", "Q11"), (15, "error", "form", ""),
    ]  # fmt: skip
    text = "\n".join(map(str, findings))
    for words in (
        "things.yaml:5: roots[1].qid: warning: Q11 is called 'food dish', not 'dish'",
        "Q11 is below other roots already: Q10 (line 4, hop 1); Q13 is below other roots already: Q14 (line 11, hop 1)",
        "Q842858 (Nationalmuseum) is an instance, no class, and has no subclasses and no instances",
        "things.yaml:8: roots[4].qid: error: Q12 was merged into Q11: write Q11",
        "Q14 is below and above these roots: Q13 (line 10)",
        "countries[1]: error: unknown country 'UK'; did you mean",
        "exclude.classes[1]: error: the graph never mentions Q78: it cuts nothing",
    ):
        assert words in text


def test_without_a_graph_the_form_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "things.yaml"
    path.write_text(BROKEN)
    kinds = {each.kind for each in validate_roots([str(path)])}
    assert kinds == {"form", "duplicate", "excluded-root"}
    assert validate_roots(shipped_concepts()) == []


def test_a_file_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("roots: [")
    (tmp_path / "b.yaml").write_text("roots: {qid: Q1}\nexclude: [Q1]\nhops: many\nconcept: X")
    (tmp_path / "d.yaml").write_text("- 1")
    findings = validate_roots([str(tmp_path / name) for name in ("a.yaml", "b.yaml", "c.yaml", "d.yaml")])
    assert [(each.kind, Path(each.problem.where).name) for each in findings if each.kind != "form"] == [
        ("file", "c.yaml")
    ]
    assert {Path(each.problem.where).name for each in findings} == {"a.yaml", "b.yaml", "c.yaml", "d.yaml"}


def test_redirects_are_read_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "moved.csv"
    path.write_text("qid,target\nQ1,Q2\nQ2\tQ3\n\nQ4,Q5\nQ5,Q4\n")
    redirects = read_redirects(path)
    assert redirects == {"Q1": "Q2", "Q2": "Q3", "Q4": "Q5", "Q5": "Q4"}
    assert [final_target(qid, redirects) for qid in ("Q1", "Q3", "Q4")] == ["Q3", "Q3", "Q5"]
    path.write_text("Q1,Q2,Q3\nQ1;Q2\nQ6,Q7\nQ6,Q8\n")
    with pytest.raises(ConfigError) as caught:
        read_redirects(path)
    assert [problem.line for problem in caught.value.problems] == [1, 2, 4]
    with pytest.raises(UsageError, match="no such file"):
        read_redirects(tmp_path / "none.csv")


def test_the_command_says_it_in_its_exit_code(graph: Path, tmp_path: Path) -> None:
    path = tmp_path / "things.yaml"
    path.write_text(BROKEN)
    done = culturekit("roots", "validate", path, "--graph", graph, "--json", ends=2)
    rows = json.loads(done.stdout)
    assert rows[-1]["file"] == str(path)
    assert {"line", "key", "message", "severity", "kind", "qid"} <= set(rows[0])
    path.write_text("{concept: x, hops: 1, roots: [{qid: Q11, label: other}]}")
    done = culturekit("roots", "validate", path, "--graph", graph)
    assert (done.returncode, done.stderr) == (0, "1 checked: 0 errors, 2 warnings\n")
    assert "description: warning: a judge is told no more than the concept's name" in done.stdout
    path.write_text("{concept: x, description: Round things., hops: 1, roots: [{qid: Q11, label: food dish}]}")
    done = culturekit("roots", "validate", path, "--graph", graph)
    assert (done.returncode, done.stderr) == (0, "1 checked: 0 errors, 0 warnings\n")


def test_a_concept_is_drafted_with_the_labels_of_the_graph(graph: Path, tmp_path: Path) -> None:
    text = draft_concept("round-things", ["Q14", "Q16", "Q14"], graph)
    path = tmp_path / "round.yaml"
    path.write_text(text)
    concept = load_concept(str(path))
    assert (concept.concept, concept.hops, concept.countries) == ("round-things", 3, "all")
    assert [(root.qid, root.label) for root in concept.roots] == [("Q14", "round"), ("Q16", "Q16")]
    assert "the graph has no label" in text
    with pytest.raises(UsageError, match="never mentions Q99"):
        draft_concept("x", ["Q10", "Q99"], graph)


def test_a_concept_that_cannot_be_is_refused(graph: Path) -> None:
    assert "concept" in culturekit("roots", "init", "Bad Name", "--root", "Q10", "--graph", graph, ends=2).stderr


def test_a_drafted_country_loads_as_it_stands(tmp_path: Path) -> None:
    done = culturekit("roots", "init", "--country", "Q31", ends=0)
    path = tmp_path / "own.yaml"
    path.write_text(done.stdout)
    concept = tmp_path / "belgian.yaml"
    concept.write_text("{concept: belgian, hops: 2, roots: [{qid: Q746549, label: dish}], countries: [BE]}")
    assert culturekit("--countries-file", path, "roots", "validate", concept).returncode == 0
    assert culturekit("roots", "validate", concept).returncode == 2
    path.write_text(done.stdout.replace("[Q31]", "[]"))
    refused = culturekit("--countries-file", path, "roots", "validate", concept)
    assert "no item is known of BE: give qids to its entry in the file of countries" in refused.stdout + refused.stderr


@pytest.mark.parametrize("said", ["Q31", "BE", "belgium", "wd:Q31"])
def test_a_country_is_drafted_by_whatever_it_is_called(said: str) -> None:
    (entry,) = yaml.safe_load(draft_country(named_country(said)))["countries"]
    assert (entry["iso"], entry["name"], entry["qids"]) == ("BE", "Belgium", ["Q31"])


@pytest.mark.parametrize("name", ["AQ", "Côte d'Ivoire", "NLD", "Bolivia", "Kosovo", "Korea, South", "Burma"])
def test_another_item_of_a_country_is_said(name: str) -> None:
    known = whole_world()[named_country(name)].qids
    text = draft_country(named_country(name), "Q4000000000")
    assert yaml.safe_load(text)["countries"][0]["qids"] == [*known, "Q4000000000"]
    assert text.startswith(f"# The table has {known[0]}; Q4000000000 belongs here where it is one more")


def test_what_cannot_be_drafted_is_said(graph: Path) -> None:
    with pytest.raises(UsageError, match="Q142 is there already, as France"):
        draft_country("FR", "Q142")
    with pytest.raises(UsageError, match="TR is there already, as Turkey with Q43"):
        draft_country(named_country("Türkiye"))
    with pytest.raises(UsageError, match=r"unknown country; expected such as .*Belgium.*, found 'Belgim'"):
        named_country("Belgim")
    with pytest.raises(UsageError, match=r"country in doubt; .*found 'Serbia and Montenegro'"):
        named_country("Serbia and Montenegro")
    assert name_in_graph("Q10", graph) == "Thing"
    with pytest.raises(UsageError, match="no label for Q16"):
        name_in_graph("Q16", graph)
    for words in (
        ["--country", "Q4000000000"],
        ["--country", "Belgium", "--name", "Belgium"],
        ["--country", "Belgium", "--graph", "nowhere"],
        ["sweets", "--country", "Q31"],
        ["sweets", "--root", "Q10"],
        ["--country", "41", "--name", "Belgium"],
        [],
    ):
        assert culturekit("roots", "init", *words).returncode == 2


statements = st.lists(
    st.fixed_dictionaries(
        {
            "number": st.integers(1, 3), "property": st.sampled_from(["P31", "P279", "P17"]),
            "value": st.one_of(st.none(), st.integers(1, 3)),
            "rank": st.sampled_from(["preferred", "normal", "deprecated"]), "ended": st.booleans(),
        }
    ),
    max_size=12,
)  # fmt: skip


@given(
    rows=statements, ranks=st.sampled_from(["truthy", "not-deprecated", "all"]), ended=st.sampled_from(["keep", "drop"])
)
def test_a_mask_chooses_what_its_words_say(rows: list[dict[str, object]], ranks: str, ended: str) -> None:
    full = [{**row, "position": n, "snak": "value", "qualified": row["ended"]} for n, row in enumerate(rows)]
    found = flags_of(pl.DataFrame(full, schema=STATEMENTS.schema), EDGE_PROPERTIES)
    mask = mask_of(["P31", "P279"], EDGE_PROPERTIES, ranks=ranks, ended=ended)  # type: ignore[arg-type]
    chosen = sorted((row[0], row[1]) for row in found.iter_rows() if row[2] & mask)
    expected = []
    for row in rows:
        alike = [
            other["rank"] for other in rows if (other["number"], other["property"]) == (row["number"], row["property"])
        ]
        best = "preferred" if "preferred" in alike else "normal"
        good = {"truthy": row["rank"] == best, "not-deprecated": row["rank"] != "deprecated", "all": True}[ranks]
        if row["property"] != "P17" and row["value"] is not None and good and not (row["ended"] and ended == "drop"):
            expected.append((row["number"], row["value"]))
    assert chosen == sorted(expected)


@pytest.mark.parametrize("family", [EDGE_PROPERTIES, COUNTRY_PROPERTIES])
def test_properties_do_not_share_bits(family: tuple[str, ...]) -> None:
    first, second = (mask_of([name], family, ranks="all") for name in family)
    assert first & second == 0
    assert (first | second) < 2**16
