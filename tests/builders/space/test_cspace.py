"""Releases of a space, and their changes held against comparing dictionaries in plain Python."""

import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.builders.country_names import folded
from culturekit.builders.popularity import Sitelinks
from culturekit.builders.space.cspace import ReleaseOptions, read_formats, release, release_stage
from culturekit.builders.space.public_cube import read_public_cube
from culturekit.builders.space.space_triples import COLUMN, ROW
from culturekit.core.errors import IntegrityError, MissingDependency, UsageError
from culturekit.core.run import run_stage
from culturekit.core.schemas import CSPACE, DROPS, KEPT
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import read_table, write_table
from culturekit.kg.concepts import Concept, Root
from culturekit.kg.exchange.graph_files import read_triples
from culturekit.trail.space_causes import space_changes, untold_changes
from tests.builders.spaces import artifact, cspace, rows_of
from tests.conftest import HeardProgress, HereEngine, stage_here

ART = Concept(
    concept="art",
    hops=3,
    roots=(
        Root(qid="Q11460", label="clothing", subconcept="clothing"),
        Root(qid="Q2", label="dance", subconcept="dance"),
    ),
    countries=("BR", "FR", "JP"),
)


def kept(qid: str, *countries: str, **changes: object) -> dict[str, object]:
    row: dict[str, object] = {
        "qid": qid, "label": f"name of {qid}", "concept": "art", "country_qids": list(countries), "roots": ["Q11460"],
        "path": ["Q11460", qid], "verdict": "keep", "reason": "r",
    }  # fmt: skip
    return {**row, **changes}


def kept_table(folder: Path, *rows: dict[str, object], **columns: pl.Series | pl.Expr) -> Path:
    folder.mkdir(exist_ok=True)
    return write_table(folder, KEPT, rows_of(KEPT, *rows).with_columns(**columns))


def released(
    work: Work, table: Path | list[Path], *concepts: Concept, formats: str = "", include: Any = ()
) -> tuple[Outcome, pl.DataFrame]:
    tables = table if isinstance(table, list) else [table]
    outcome = release(
        work, tables, concepts or [ART], Sitelinks(), read_formats(formats) if formats else (), include=include
    )
    return outcome, read_table(work.out / "cspace.parquet", CSPACE)


def dropped(work: Work, *columns: str) -> list[tuple[Any, ...]]:
    return read_table(work.out / "drops.parquet", DROPS).select(columns).rows()


def test_an_artifact_has_a_row_for_each_country_in_scope_and_the_subconcept_of_the_first_root(
    work: Work, tmp_path: Path
) -> None:
    rows = [kept("Q5", "Q142", "Q29", "Q155", roots=["Q2", "Q11460"]), kept("Q6", "Q155", roots=["Q2"])]
    _, space = released(work, kept_table(tmp_path, *rows))
    assert space.select("artifact_id", "country", "continent", "country_order", "subconcept").rows() == [
        ("Q5", "BR", "South America", 1, "clothing"), ("Q6", "BR", "South America", 0, "dance"),
        ("Q5", "FR", "Europe", 0, "clothing"),
    ]  # fmt: skip


def test_popularity_is_a_rank_within_country_and_concept(work: Work, tmp_path: Path) -> None:
    rows = [kept(f"Q{n}", "Q155", sitelinks=s) for n, s in ((1, 0), (2, 50), (3, 7), (4, 7))]
    rows += [kept("Q9", "Q17", sitelinks=1), kept("Q5", "Q142", sitelinks=4)]
    completed = kept("LLM:saia-rodada", "Q142", label="saia rodada", path=[])
    source = pl.Series(["wikidata"] * 6 + ["llm"])
    _, space = released(work, kept_table(tmp_path, *rows, completed, source=source))
    assert dict(space.select("artifact_id", "popularity").iter_rows()) == {
        "Q1": 0.25, "Q2": 1.0, "Q3": 0.625, "Q4": 0.625, "Q9": 1.0, "Q5": 1.0, "LLM:saia-rodada": None,
    }  # fmt: skip
    assert space.filter(country="FR").select("artifact_id", "qid", "name", "source").rows() == [
        ("LLM:saia-rodada", None, "saia rodada", "llm"), ("Q5", "Q5", "name of Q5", "wikidata"),
    ]  # fmt: skip
    with pytest.raises(IntegrityError, match="hearsay"):
        released(work, kept_table(tmp_path / "odd", *rows, source=pl.lit("hearsay")))


def test_what_has_no_known_country_is_dropped_by_name_and_an_empty_space_is_refused(work: Work, tmp_path: Path) -> None:
    everywhere = ART.model_copy(update={"countries": "all"})
    _, space = released(work, kept_table(tmp_path, kept("Q5", "Q999999"), kept("Q6", "Q155")), everywhere)
    assert (space["artifact_id"].to_list(), dropped(work, "detail")) == (["Q6"], [("Q999999",)])
    with pytest.raises(UsageError, match=r"space would be empty; expected a kept artifact of art .*found 0 kept"):
        released(work, kept_table(tmp_path))


def test_only_what_was_kept_is_released_and_the_rest_is_counted_by_reason(work: Work, tmp_path: Path) -> None:
    silent, unsure = "judge m: unavailable", "judge m"
    others = {"Q6": ("review", silent), "Q7": ("review", silent), "Q8": ("review", unsure), "Q9": ("remove", "my look")}
    rows = [kept(qid, "Q155", verdict=verdict, reason=reason) for qid, (verdict, reason) in others.items()]
    table = kept_table(tmp_path, kept("Q5", "Q155"), *rows)
    outcome, space = released(work, table)
    assert space.select("artifact_id", "verdict").rows() == [("Q5", "keep")]
    assert outcome.drops == {
        "the verdict is remove, not keep: my look": 1, "waits for review: judge m": 1,
        "waits for review: judge m: unavailable": 2,
    }  # fmt: skip
    assert dropped(work, "key", "detail") == [(f"Q{n}", f"name of Q{n}") for n in (6, 7, 8, 9)]
    found = str(outcome.notes["findings"])
    assert "3 artifacts wait for a person to look at" in found
    assert "1 judge m, 2 judge m: unavailable" in found
    outcome, space = released(work, table, include=["review"])
    assert dict(space.select("artifact_id", "verdict").iter_rows()) == {"Q5": "keep"} | dict.fromkeys(
        ("Q6", "Q7", "Q8"), "review"
    )
    assert "findings" not in outcome.notes
    assert outcome.notes["released_under_review"] == {unsure: 1, silent: 2}
    assert "holds 3 artifacts that nobody kept" in str(outcome.notes["caveat"])


@pytest.mark.parametrize("form", ["parquet", "parquet,jsonl,csv,public"])
def test_rows_that_nobody_judged_make_no_artifact(work: Work, tmp_path: Path, form: str) -> None:
    rows = [kept(f"Q{n}", "Q155", verdict="review", reason="judge m: refused") for n in range(1, 341)]
    outcome, space = released(work, kept_table(tmp_path, *rows), formats=form)
    assert (space.is_empty(), outcome.drops) == (True, {"waits for review: judge m: refused": 340})
    assert outcome.notes["findings"]


def test_an_artifact_that_one_of_several_tables_wants_reviewed_waits_unless_a_person_decided(
    work: Work, tmp_path: Path
) -> None:
    first = kept_table(tmp_path / "first", kept("Q5", "Q155"), kept("Q6", "Q155", verdict="review"))
    second = kept_table(tmp_path / "second", kept("Q5", "Q155", verdict="review"), kept("Q6", "Q155"))
    assert released(work, [first, second])[1].is_empty()
    seen = kept("Q6", "Q155", reason="review: accepted by Ada on 2026-11-22")
    person = kept_table(tmp_path / "person", seen, reviewer=pl.lit("Ada"))
    assert released(work, [first, second, person])[1]["artifact_id"].to_list() == ["Q6"]


def test_several_tables_are_one_and_a_row_of_both_has_the_countries_of_both(work: Work, tmp_path: Path) -> None:
    one = kept_table(tmp_path / "one", kept("Q5", "Q155"), kept("Q7", "Q17"))
    other = kept_table(tmp_path / "other", kept("Q5", "Q155", "Q142"), kept("Q6"))
    outcome, space = released(work, [one, other])
    assert space.select("artifact_id", "country", "country_order").rows() == [
        ("Q5", "BR", 0), ("Q5", "FR", 1), ("Q7", "JP", 0),
    ]  # fmt: skip
    assert (outcome.notes["rows in several tables"], dropped(work, "key")) == (1, [("Q6",)])


def test_a_release_is_written_in_every_form_by_concept_and_with_checksums(work: Work, tmp_path: Path) -> None:
    sweets = ART.model_copy(update={"concept": "sweets"})
    rows = [kept("Q5", "Q155", label="=cmd()", p495=["Q155"]), kept("Q6", "Q17", concept="sweets")]
    released(work, kept_table(tmp_path, *rows), ART, sweets, formats="csv, jsonl,public,parquet")
    names = {path.relative_to(work.out).as_posix() for path in work.out.rglob("*") if path.is_file()}
    forms = ("csv", "jsonl", "parquet")
    assert names == {
        "SHA256SUMS", "cube.json", "drops.parquet", *(f"cspace.{form}" for form in forms),
        *(f"splits/{concept}.{form}" for concept in ("art", "sweets") for form in forms),
    }  # fmt: skip
    whole = pl.read_parquet(work.out / "cspace.parquet")
    assert pl.concat([pl.read_parquet(work.out / f"splits/{name}.parquet") for name in ("art", "sweets")]).equals(whole)
    assert pl.read_ndjson(work.out / "splits/art.jsonl")["name"].to_list() == ["=cmd()"]
    assert "'=cmd()" in (work.out / "splits/art.csv").read_text(encoding="utf-8")
    lines = (work.out / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    listed = {name: sha for sha, _, name in (line.partition("  ") for line in lines)}
    assert set(listed) == names - {"SHA256SUMS"}
    assert all(hashlib.sha256((work.out / name).read_bytes()).hexdigest() == sha for name, sha in listed.items())
    back = read_public_cube(work.out / "cube.json").space
    assert back.select("artifact_id", "name", "subconcept").rows() == [("Q5", "=cmd()", "clothing")]


@pytest.mark.parametrize(("form", "suffix"), [("ntriples", ".nt"), ("turtle", ".ttl"), ("json-ld", ".jsonld")])
def test_a_release_is_read_back_from_triples(work: Work, tmp_path: Path, form: str, suffix: str) -> None:
    rows = [kept("Q5", "Q155", label='=c"m\\d()\r\n', p495=["Q155", "Q17"]), kept("Q6", "Q17", sitelinks=3)]
    _, space = released(work, kept_table(tmp_path, *rows), formats=form)
    graph = read_triples(work.out / f"cspace{suffix}")
    read: dict[str, dict[str, str]] = {}
    for subject, predicate, cell in graph:
        read.setdefault(str(subject), {})[str(predicate).removeprefix(COLUMN)] = str(cell)
    for row in space.iter_rows(named=True):
        cells = read.pop(f"{ROW}{row['concept']}/{row['country']}/{row['artifact_id']}")
        assert cells["item"].endswith(f"/{row['qid']}")
        assert cells["path"] == " ".join(row["path"])
        assert float(cells["popularity"]) == row["popularity"]
        texts = {name: cell for name, cell in row.items() if isinstance(cell, str)}
        assert {name: cells[name] for name in texts} == texts
    assert read == {}
    assert (work.out / f"splits/art{suffix}").read_bytes() == (work.out / f"cspace{suffix}").read_bytes()


def test_a_form_that_is_none_is_refused() -> None:
    assert read_formats("CSV,parquet,csv") == ("parquet", "csv")
    for text in ("xlsx", "", "csv,xml"):
        with pytest.raises(UsageError, match="not a form"):
            read_formats(text)


def test_counts_of_search_results_are_nowhere_in_a_release(work: Work, tmp_path: Path) -> None:
    answers = tmp_path / "answers"
    answers.mkdir()
    for number, (name, total) in enumerate([("name of Q5", "918273645"), ("name of Q6", "564738291")]):
        request = {"searchTerms": name, "gl": "br"}
        reply = {"queries": {"request": [request]}, "searchInformation": {"totalResults": total}}
        (answers / f"{number}.json").write_text(json.dumps(reply), encoding="utf-8")
    table = kept_table(tmp_path, kept("Q5", "Q155"), kept("Q6", "Q155"))
    final = tmp_path / "cspace"
    options = ReleaseOptions((ART,), f"google_cse:{answers}", read_formats("csv,jsonl,parquet,public"))
    run = stage_here(release_stage([table], options), final)
    space = read_table(final / "cspace.parquet", CSPACE)
    assert space["popularity"].to_list() == [1.0, 0.5]
    assert set(space["popularity_source"]) == {"google_cse"}
    content = b"".join(path.read_bytes() for path in final.rglob("*") if path.suffix != ".parquet" and path.is_file())
    assert b"918273645" not in content
    assert b"564738291" not in content
    assert str(answers).encode() not in content
    assert run.manifest.options["popularity"]["source"] == "google_cse"
    (answers / "1.json").unlink()
    again = release_stage([table], options)
    assert run_stage(again, final, engine=HereEngine(), progress=HeardProgress(), replace=True).state == "built"


@pytest.fixture
def without_rdflib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "culturekit.builders.space.space_triples", raising=False)
    monkeypatch.setitem(sys.modules, "rdflib", None)


@pytest.mark.usefixtures("without_rdflib")
def test_a_missing_package_for_triples_is_said_before_anything_is_done(work: Work, tmp_path: Path) -> None:
    with pytest.raises(MissingDependency, match=r"a release in triples needs the package rdflib.*culturekit\[kg\]"):
        release_stage([tmp_path / "absent"], ReleaseOptions((ART,), formats=("csv", "turtle"))).before()
    release_stage([tmp_path / "absent"], ReleaseOptions((ART,), formats=("csv",))).before()
    with pytest.raises(MissingDependency, match="the package rdflib"):
        release(work, [tmp_path / "absent"], [ART], Sitelinks(), ("turtle",))


Row = Mapping[str, object]
Key = tuple[str, str, str]
PARTS = ("name", "artifact_id", "concept", "subconcept", "country", "continent", "source", "path")

row_of = st.builds(
    lambda artifact_id, concept, country, name, subconcept, path: artifact(
        1, artifact_id=artifact_id, qid=None, concept=concept, country=country, name=name, subconcept=subconcept,
        path=path, source="llm" if artifact_id.startswith("LLM") else "wikidata",
    ),
    st.sampled_from(["Q1", "Q2", "LLM:a", "LLM:b"]),
    st.sampled_from(["art", "cuisine"]),
    st.sampled_from(["BR", "JP", "IT"]),
    st.sampled_from(["Feijoada", "feijoada", "Moqueca"]),
    st.sampled_from([None, "stew"]),
    st.sampled_from([["Q5"], ["Q5", "Q1"]]),
)  # fmt: skip
space_of = st.lists(row_of, max_size=9, unique_by=lambda row: (row["concept"], row["country"], row["artifact_id"]))


def naive(before: Sequence[Row], after: Sequence[Row]) -> set[tuple[object, ...]]:
    a, b = ({key(row): row for row in rows} for rows in (before, after))
    pairs = [(a[k], b[k]) for k in a.keys() & b.keys()]
    gone, came = [a[k] for k in a.keys() - b.keys()], [b[k] for k in b.keys() - a.keys()]
    ways: list[Callable[[Row], object]] = [
        lambda row: (row["artifact_id"], row["country"]),
        lambda row: (row["artifact_id"], row["concept"]),
        lambda row: row["artifact_id"],
        lambda row: (row["concept"], row["country"], folded(str(row["name"]))),
    ]
    for number, way in enumerate(ways):
        left, right = grouped(gone, way), grouped(came, way)
        for group in left.keys() & right.keys():
            if len(left[group]) == len(right[group]) == 1:
                x, y = left[group][0], right[group][0]
                if number < 3 or "LLM" in f"{x['artifact_id']}{y['artifact_id']}":
                    pairs.append((x, y))
                    gone.remove(x)
                    came.remove(y)
    found: set[tuple[object, ...]] = {(*key(row), *key(row), "artifact", "removed", row["name"], None) for row in gone}
    found |= {(*key(row), *key(row), "artifact", "added", None, row["name"]) for row in came}
    for x, y in pairs:
        for part in PARTS:
            if x[part] != y[part]:
                change = "renamed" if part == "name" else "reclassified"
                found.add((*key(x), *key(y), part, change, text(x[part]), text(y[part])))
    return found


def key(row: Row) -> Key:
    return str(row["concept"]), str(row["country"]), str(row["artifact_id"])


def grouped(rows: Iterable[Row], way: Callable[[Row], object]) -> dict[object, list[Row]]:
    groups = defaultdict(list)
    for row in rows:
        groups[way(row)].append(row)
    return groups


def text(value: object) -> object:
    return " ".join(value) if isinstance(value, list) else value


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(before=space_of, after=space_of, order=st.randoms())
def test_rows_differ_as_dictionaries_do(before: list[Row], after: list[Row], order: object) -> None:
    found = space_changes(cspace(*before), cspace(*after))
    assert set(found.iter_rows()) == naive(before, after)
    assert found.is_unique().all()
    order.shuffle(before)  # type: ignore[attr-defined]
    order.shuffle(after)  # type: ignore[attr-defined]
    assert space_changes(cspace(*before), cspace(*after)).equals(found)


def test_a_completed_artifact_that_has_an_item_now_is_the_same_artifact() -> None:
    before = cspace(artifact(1, artifact_id="LLM:pao-de-queijo", qid=None, source="llm", name="Pão de queijo"))
    after = cspace(artifact(7, name="pão de  queijo"))
    parts = space_changes(before, after).select("part", "change", "before", "after")
    assert set(parts.iter_rows()) == {
        ("artifact_id", "reclassified", "LLM:pao-de-queijo", "Q7"),
        ("name", "renamed", "Pão de queijo", "pão de  queijo"),
        ("path", "reclassified", "Q2095 Q1", "Q2095 Q7"),
        ("source", "reclassified", "llm", "wikidata"),
    }


def test_popularity_is_counted_and_not_told() -> None:
    before = cspace(artifact(1, popularity=0.5), artifact(2), artifact(3))
    after = cspace(artifact(1, popularity=0.6), artifact(2), artifact(4))
    assert untold_changes(before, after) == {"popularity": 1}
    assert space_changes(before, after)["part"].to_list() == ["artifact", "artifact"]
    with_order = after.with_columns(country_order=pl.lit(0, pl.UInt16))
    assert untold_changes(after, with_order) == {"country_order": 3}
