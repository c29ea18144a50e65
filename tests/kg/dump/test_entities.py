import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qwikidata.entity import WikidataItem

from culturekit.kg.concepts import ENTITY_STATEMENTS
from culturekit.kg.dump.entities import Item, Malformed, decode, lists_of


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


def test_empty_maps_are_written_as_empty_lists() -> None:
    assert item() == item(labels={}, claims={}, aliases={}, sitelinks={}, descriptions={})


def test_a_value_may_carry_its_number_only() -> None:
    old = claim("P31", {"entity-type": "item", "numeric-id": 5})
    assert [s.value for s in item(claims={"P31": [old]}).statements] == [5]


@pytest.mark.parametrize("kind", ["somevalue", "novalue"])
def test_somevalue_and_novalue_point_to_nothing_and_are_kept(kind: str) -> None:
    bare = {"mainsnak": {"snaktype": kind, "property": "P17"}, "rank": "normal"}
    (statement,) = item(claims={"P17": [bare]}).statements
    assert (statement.value, statement.snak) == (0, kind)


def test_a_property_as_a_value_is_no_item() -> None:
    value = {"entity-type": "property", "numeric-id": 5, "id": "P5"}
    assert item(claims={"P361": [claim("P361", value)]}).statements[0].value == 0


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
