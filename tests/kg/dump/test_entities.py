"""Entities in JSON, and the graph that the same entities give as a truthy dump of triples."""

import contextlib
import gzip
import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from qwikidata.entity import WikidataItem
from rdflib import RDFS, SKOS, BNode, Graph, Literal, URIRef

from culturekit.core.errors import IntegrityError
from culturekit.core.schemas import STARTS, STATEMENTS
from culturekit.core.tables import read_table
from culturekit.kg.concepts import ENTITY_STATEMENTS
from culturekit.kg.dump.entities import Item, Malformed, decode, lists_of
from culturekit.kg.dump.read_dump import read_line
from culturekit.kg.dump.triples import triples_decoder
from tests.kg.dump.dumps import cut, cut_small, ingested, packed, truthy_documents, truthy_lines


def encoded(**changes: object) -> bytes:
    document = {
        "id": "Q7", "type": "item", "labels": [], "descriptions": [], "aliases": [], "claims": [], "sitelinks": [],
    }  # fmt: skip
    return json.dumps({**document, **changes}).encode()


def item(**changes: object) -> Item:
    decoded = decode(encoded(**changes), languages=("pt", "fr"))
    assert isinstance(decoded, Item)
    return decoded


def term(language: str, value: str) -> dict[str, str]:
    return {"language": language, "value": value}


def claim(name: str, value: object, **changes: object) -> dict[str, object]:
    snak = {"snaktype": "value", "property": name, "datavalue": {"value": value, "type": "wikibase-entityid"}}
    return {"mainsnak": snak, "type": "statement", "rank": "normal", **changes}


def test_labels_fall_back_from_english_to_mul_to_the_list_to_none() -> None:
    labels = {code: term(code, code.upper()) for code in ("fr", "pt", "mul", "en")}
    for expected in ("en", "mul", "pt", "fr"):
        assert item(labels=labels).label_language == expected
        del labels[expected]
    assert item(labels={"de": term("de", "x")}).label is None
    assert item(labels={"en": term("en", "  "), "mul": term("mul", "m")}).label == "m"


@pytest.mark.parametrize(
    ("snak", "value"),
    [
        (claim("P31", {"entity-type": "item", "numeric-id": 5})["mainsnak"], (5, "value")),
        (claim("P31", {"entity-type": "property", "numeric-id": 5, "id": "P5"})["mainsnak"], (0, "value")),
        ({"snaktype": "somevalue", "property": "P31"}, (0, "somevalue")),
        ({"snaktype": "novalue", "property": "P31"}, (0, "novalue")),
    ],
)
def test_a_value_may_carry_its_number_only_and_what_is_no_item_points_to_nothing(
    snak: object, value: tuple[int, str]
) -> None:
    (statement,) = item(claims={"P31": [{"mainsnak": snak, "rank": "normal"}]}).statements
    assert (statement.value, statement.snak) == value
    assert item() == item(labels={}, claims={}, aliases={}, sitelinks={}, descriptions={}), "empty maps are lists"


def test_qualifiers_mark_a_statement_and_do_not_leak() -> None:
    end = {"P582": [{"snaktype": "somevalue", "property": "P582"}], "P17": [claim("P17", {"id": "Q9"})["mainsnak"]]}
    value = {"entity-type": "item", "numeric-id": 5, "id": "Q5"}
    statements = item(
        claims={"P17": [claim("P17", value, qualifiers=end), claim("P17", value, qualifiers=[])]}
    ).statements
    assert [(s.value, s.qualified, s.ended) for s in statements] == [(5, True, True), (5, False, False)]


def test_a_preferred_picture_wins_and_a_deprecated_one_never() -> None:
    def picture(name: str, rank: str) -> dict[str, Any]:
        return {"mainsnak": {"snaktype": "value", "datavalue": {"value": name, "type": "string"}}, "rank": rank}

    pictures = [picture("old", "deprecated"), picture("plain", "normal"), picture("best", "preferred")]
    assert item(claims={"P18": pictures}).image == "best"
    assert item(claims={"P18": pictures[:2]}).image == "plain"
    assert item(claims={"P18": pictures[:1]}).image is None


def test_anything_but_an_item_says_what_it_is() -> None:
    assert decode(encoded(id="P31", type="property"), languages=("en",)) == "property"
    assert decode(b'{"type":"lexeme","id":"L1","lemmas":{}}', languages=("en",)) == "lexeme"


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b'{"id":"Q1"}', b'{"id":"X1","type":"item"}', b"\xff", b"null"])
def test_what_is_no_entity_is_malformed(line: bytes) -> None:
    with pytest.raises(Malformed):
        decode(line, languages=("en",))


@given(st.binary(max_size=80) | st.from_regex(rb'\{"id":"Q[0-9]{1,12}","type":"item".{0,40}', fullmatch=True))
def test_any_line_gives_an_item_a_kind_or_malformed(line: bytes) -> None:
    try:
        assert isinstance(decode(line, languages=("en",)), Item | str)
    except Malformed as error:
        assert error.reason in {"not-an-entity", "not-a-qid"}


def test_decoded_values_equal_those_of_qwikidata_on_real_entities(shared_data: Path) -> None:
    compared, unreadable = 0, 0
    with gzip.open(shared_data / "wikidata/real_entities.jsonl.gz") as lines:
        for line in lines:
            decoded = decode(line, languages=("en",))
            if not isinstance(decoded, Item):
                continue
            theirs = qwikidata_values(json.loads(line))
            if theirs is None:
                unreadable += 1
                continue
            ours = [(s.property, s.value, s.rank, s.snak) for s in decoded.statements if s.value]
            assert sorted(ours) == sorted(theirs), decoded.number
            compared += len(ours)
    assert compared > 1000
    assert unreadable < 400


def qwikidata_values(document: dict[str, Any]) -> list[tuple[str, int, str, str]] | None:
    """Read the same statements with qwikidata; None where it cannot read the entity."""
    try:
        groups = WikidataItem(document).get_claim_groups()
        values = []
        for name in ENTITY_STATEMENTS:
            for claim in groups.get(name, ()):
                snak = claim.mainsnak
                if snak.snaktype == "value" and snak.datavalue.value["entity-type"] == "item":
                    values.append((name, int(snak.datavalue.value["numeric-id"]), claim.rank, snak.snaktype))
    except (KeyError, TypeError, AttributeError, ValueError):
        return None
    return values


@pytest.mark.parametrize(
    "texts",
    [[[], ["a"], ["b", "c"]], [[], []], [[""], ["", ""], []], [["a\x1fb"], [], ["c", "d\x1f"]], [["\x1f"], ["e"]]],
)
def test_lists_come_back_as_they_were_whatever_is_in_them(texts: list[list[str]]) -> None:
    assert lists_of(texts).to_list() == texts


FORMS = (".nt", ".nt.gz", ".nt.bz2", ".nt.zst")
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
ITEM = f"<http://www.wikidata.org/entity/Q{{0}}> <{TYPE}> <http://wikiba.se/ontology#Item> ."
VALUE = "<http://www.wikidata.org/entity/Q{0}> <http://www.wikidata.org/prop/direct/P31> {1} ."
PLACES = ["file", "member", "line", "offset"]


@pytest.fixture
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_small(monkeypatch)


@pytest.fixture(scope="module")
def documents(shared_data: Path) -> list[dict[str, Any]]:
    with gzip.open(shared_data / "wikidata/real_entities.jsonl.gz") as lines:
        every = [json.loads(line) for line in lines]
    return [one for one in {one["id"]: one for one in every}.values() if one["type"] in {"item", "property"}]


def statements_in(folder: Path) -> pl.DataFrame:
    return read_table(folder / "out/statements.parquet", STATEMENTS)


def graphs(tmp_path: Path, documents: list[dict[str, Any]], *, suffix: str) -> Iterator[tuple[Path, pl.DataFrame]]:
    """Ingest documents as JSON and as triples."""
    plain = "\n".join(json.dumps(document) for document in truthy_documents(documents)).encode()
    triples = "".join(f"{line}\n" for line in truthy_lines(documents)).encode()
    for name, content in (("dump.json", plain), (f"dump{suffix}", packed(suffix, [triples]))):
        folder = tmp_path / name.partition(".")[2]
        folder.mkdir()
        (folder / name).write_bytes(content)
        items, outcome = ingested(folder, folder / name)
        assert outcome.notes.get("lacks") == (
            None if name.endswith("json") else ["ranks", "qualifiers", "sitelinks", "titles"]
        )
        yield folder, items


def test_real_entities_give_the_same_graph_as_in_json(tmp_path: Path, documents: list[dict[str, Any]]) -> None:
    (plain, wanted), (triples, found) = graphs(tmp_path, documents, suffix=".nt.gz")
    assert_frame_equal(found.drop(PLACES), wanted.drop(PLACES))
    assert_frame_equal(statements_in(triples), statements_in(plain))
    assert found["lat"].is_not_null().sum() > 20
    assert found["image"].is_not_null().sum() > 20
    for name in ("nodes", "children", "edge_flags", "country_flags"):
        assert (triples / f"out/{name}.npy").read_bytes() == (plain / f"out/{name}.npy").read_bytes()


def test_what_rdflib_reads_is_what_the_graph_says(tmp_path: Path, documents: list[dict[str, Any]]) -> None:
    some = documents[::30]
    text = "".join(f"{line}\n" for line in truthy_lines(some))
    (tmp_path / "dump.nt").write_text(text, encoding="utf-8")
    items, _ = ingested(tmp_path, tmp_path / "dump.nt")
    graph = Graph().parse(data=text, format="nt")
    stated = statements_in(tmp_path)
    for row in items.iter_rows(named=True):
        about = URIRef(f"http://www.wikidata.org/entity/{row['qid']}")
        labels = {
            label.language: str(label) for label in graph.objects(about, RDFS.label) if isinstance(label, Literal)
        }
        assert row["label"] == next((labels[code] for code in ("en", "mul") if code in labels), None)
        aliases = {
            str(alias)
            for alias in graph.objects(about, SKOS.altLabel)
            if isinstance(alias, Literal) and alias.language in {"en", "mul"}
        }
        assert set(row["aliases"]) == aliases
        for name in ENTITY_STATEMENTS:
            own = stated.filter(pl.col("number") == row["number"], pl.col("property") == name)
            objects = set(graph.objects(about, URIRef(f"http://www.wikidata.org/prop/direct/{name}")))
            named = {str(value).rpartition("/Q")[2] for value in objects if not isinstance(value, BNode)}
            assert {str(value) for value in own["value"].drop_nulls()} == named
            assert (own["snak"] == "somevalue").sum() == sum(isinstance(value, BNode) for value in objects)


def test_every_item_is_found_where_its_row_says_and_means_the_same(
    tmp_path: Path, documents: list[dict[str, Any]]
) -> None:
    triples = "".join(f"{line}\n" for line in truthy_lines(documents[::30])).encode()
    path = tmp_path / "dump.nt.gz"
    path.write_bytes(packed(".gz", cut(triples, [5_000, 70_000, 200_001])))
    items, _ = ingested(tmp_path, path)
    starts = read_table(tmp_path / "out/starts.parquet", STARTS)
    for row in items.iter_rows(named=True):
        text = read_line(path, member=row["member"], offset=row["offset"], starts=starts)
        item = triples_decoder(("en",))(text.encode())
        assert isinstance(item, Item)
        assert (item.number, item.label, item.image) == (row["number"], row["label"], row["image"])
        stated = statements_in(tmp_path).filter(pl.col("number") == row["number"])
        assert (
            sorted((s.property, s.position, s.value or None) for s in item.statements)
            == stated.select("property", "position", "value").rows()
        )


def small_world(seed: int) -> tuple[str, dict[int, int]]:
    """Items with labels in several languages and lines of other subjects between; how many values each has."""
    rng, lines, values = random.Random(seed), list[str](), dict[int, int]()
    for number in range(1, 30):
        entity = f"<http://www.wikidata.org/entity/Q{number}>"
        if rng.random() < 0.5:
            lines.append(
                f"<https://www.wikidata.org/wiki/Special:EntityData/Q{number}> <http://schema.org/about> {entity} ."
            )
        lines.append(f"{entity} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://wikiba.se/ontology#Item> .")
        for code in rng.sample(["en", "fr", "de", "ja"], rng.randrange(5)):
            lines.append(f'{entity} <http://www.w3.org/2000/01/rdf-schema#label> "n \\u00E9 {number}"@{code} .')
        values[number] = rng.randrange(4)
        lines += [
            VALUE.format(number, f"<http://www.wikidata.org/entity/Q{rng.randrange(1, 99)}>")
            for _ in range(values[number])
        ]
        lines += rng.choices(["", "# a comment"], k=rng.randrange(2))
    return "".join(f"{line}\n" for line in lines), values


@pytest.mark.usefixtures("small_ranges")
@settings(max_examples=12, deadline=None)
@given(suffix=st.sampled_from(FORMS), places=st.lists(st.integers(0, 10**6), max_size=9), seed=st.integers(0, 99))
def test_members_may_be_cut_anywhere_and_every_entity_knows_its_place(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, places: list[int], seed: int
) -> None:
    folder, (text, values) = tmp_path_factory.mktemp("cut"), small_world(seed)
    pieces = cut(text.encode(), places)
    path = folder / f"dump{suffix}"
    path.write_bytes(packed(suffix, pieces))
    items, outcome = ingested(folder, path)
    assert items["number"].to_list() == list(values)
    assert outcome.counts["lines"] == len(values)
    assert outcome.drops == {}
    stated = statements_in(folder)["number"].to_list()
    assert [stated.count(number) for number in values] == list(values.values())
    lines = text.split("\n")
    members = [text.encode()] if suffix == ".nt" else pieces
    for row in items.iter_rows(named=True):
        assert lines[row["line"] - 1].startswith(f"<http://www.wikidata.org/entity/{row['qid']}>")
        assert (
            members[row["member"]][row["offset"] :] + b"".join(members[row["member"] + 1 :])
            == "\n".join(lines[row["line"] - 1 :]).encode()
        )


def triples(folder: Path, *lines: str) -> tuple[list[int], Mapping[str, int]]:
    (folder / "dump.nt").write_text("".join(f"{line}\n" for line in lines))
    items, outcome = ingested(folder, folder / "dump.nt")
    return items["number"].to_list(), outcome.drops


def test_what_is_no_triple_or_no_item_is_counted_wherever_it_stands(tmp_path: Path) -> None:
    no_triples = ("what is this", ITEM.format(2), VALUE.format(2, '"a text"'), ITEM.format(3), "<a> <b> <c>")
    assert triples(tmp_path, ITEM.format(1), *no_triples) == ([1, 3], {"malformed: not-a-triple": 3})
    entity = "http://www.wikidata.org/entity/Q"
    same = f"<{entity}7> <http://www.w3.org/2002/07/owl#sameAs> <{entity}1> ."
    others = (same, ITEM.format(1).replace("/Q1>", "/P9>"), "<http://a.test/x> <http://a.test/y> _:b .")
    drops = {"not an item: property": 1, "not an item: redirect": 1}
    assert triples(tmp_path, ITEM.format(1), *others, ITEM.format(8)) == ([1, 8], drops)
    with pytest.raises(IntegrityError, match="do not stand together"):
        triples(tmp_path, ITEM.format(1), ITEM.format(2), VALUE.format(1, f"<{entity}2>"))


@pytest.mark.parametrize(
    "line",
    [
        VALUE.format(1, '"x"'),
        VALUE.format(1, "<http://www.wikidata.org/entity/Q99999999999>"),
        VALUE.format(1, '"Point(1)"').replace("P31", "P625"),
        VALUE.format(1, '"Point(a b)"^^<http://a.test/wkt>').replace("P31", "P625"),
        VALUE.format(1, "<http://a.test/picture.jpg>").replace("P31", "P18"),
        VALUE.format(1, r'"\x"').replace("P31", "P297"),
        VALUE.format(1, r'"\uD83D\uDE00"').replace("P31", "P297"),
        VALUE.format(1, r'"\UFFFFFFFF"').replace("P31", "P297"),
        VALUE.format(1, '"a" "b"').replace("P31", "P297"),
    ],
)
def test_a_value_that_its_property_cannot_have_is_malformed(line: str) -> None:
    with pytest.raises(Malformed, match=r"not-a-triple|not-a-qid"):
        triples_decoder(("en",))(f"{ITEM.format(1)}\n{line}".encode())


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_give_an_item_a_kind_or_malformed(tail: bytes) -> None:
    with contextlib.suppress(Malformed):
        assert isinstance(triples_decoder(("en",))(ITEM.format(1).encode() + b"\n" + tail), Item | str)
