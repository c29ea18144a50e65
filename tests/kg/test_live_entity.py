"""Single items, served by a loopback server that may lie."""

import json
from pathlib import Path
from typing import Any

import pytest

from culturekit.core.errors import UpstreamUnavailable, UsageError
from culturekit.kg.dump.entities import Item, decode
from culturekit.kg.live_entity import live_entity, read_entity
from tests.builders.answering import Said, answering, slept
from tests.command_line import culturekit

CONTACT = "me@example.org"


def claim(name: str, value: str | None, **changes: object) -> dict[str, object]:
    snak: dict[str, object] = {
        "snaktype": "value" if value else "somevalue",
        "property": name,
        "datatype": "wikibase-item",
    }
    if value:
        entity = {"entity-type": "item", "numeric-id": int(value[1:]), "id": value}
        snak["datavalue"] = {"value": entity, "type": "wikibase-entityid"}
    return {"mainsnak": snak, "type": "statement", "id": "Q1$1", "rank": "normal", **changes}


def document(qid: str = "Q746549", **changes: object) -> dict[str, Any]:
    ended = {"P582": [{"snaktype": "somevalue", "property": "P582", "datatype": "time", "hash": "0"}]}
    claims = {
        "P31": [claim("P31", "Q2095", rank="preferred"), claim("P31", None)],
        "P17": [claim("P17", "Q155", qualifiers=ended, **{"qualifiers-order": ["P582"]})],
        "P9999": [{"mainsnak": {"snaktype": "value", "datatype": "hologram", "datavalue": {"type": "hologram"}}}],
    }
    texts = {"labels": {"en": {"language": "en", "value": "dish"}}, "descriptions": {}, "aliases": {}, "sitelinks": {}}
    return {
        "id": qid, "type": "item", "lastrevid": 7, "modified": "2026-01-01T00:00:00Z", "claims": claims, **texts,
        **changes,
    }  # fmt: skip


def said(**entities: object) -> Said:
    return Said(body=json.dumps({"entities": entities}).encode())


def test_an_item_is_asked_for_once_and_read(tmp_path: Path) -> None:
    with answering(lambda path: said(Q746549=document())) as server:
        for _ in range(2):
            found = live_entity("Q746549", CONTACT, url=server.url, cache=tmp_path / "cache")
            assert (found.qid, found.label, found.description, found.revision) == ("Q746549", "dish", None, 7)
        ((path, headers, *_),) = server.asked
    assert path.endswith("/Q746549.json")
    assert headers["user-agent"].startswith("culturekit/")
    assert f"({CONTACT})" in headers["user-agent"]
    assert [(s.property, s.value, s.snak, s.rank, s.qualified, s.ended) for s in found.statements] == [
        ("P31", "Q2095", "value", "preferred", False, False), ("P31", None, "somevalue", "normal", False, False),
        ("P17", "Q155", "value", "normal", True, True),
    ]  # fmt: skip
    (kept,) = (tmp_path / "cache").rglob("*.json")
    kept.write_bytes(kept.read_bytes()[:-9])
    with answering(lambda path: said(Q746549=document())) as server, pytest.raises(UpstreamUnavailable):
        live_entity("Q746549", CONTACT, url="http://127.0.0.1:9", cache=tmp_path / "cache", pace=slept(1e6, []))


def test_a_merged_item_says_so() -> None:
    with answering(lambda path: said(Q5=document("Q5"))) as server:
        done = culturekit("kg", "entity", "Q4", "--contact", CONTACT, "--url", server.url)
    assert done.stdout.startswith("Q5 (dish)\n  Q4 was merged into it\n")
    assert "P17    Q155 (normal, qualified, ended)" in done.stdout


@pytest.mark.parametrize(
    "answer",
    [
        said(Q1={"id": "Q1"}),
        said(Q1=document("Q1", claims=[1])),
        said(Q1=document("Q1", claims={"P31": [{"rank": "normal"}]})),
        said(Q1=document("L1", type="lexeme")),
        said(Q1=document("Q1", type="property")),
    ],
)
def test_what_is_no_item_is_an_error(answer: Said) -> None:
    with answering(lambda path: answer) as server, pytest.raises(UpstreamUnavailable, match="as Wikidata documents"):
        live_entity("Q1", CONTACT, url=server.url)


def test_a_missing_item_and_a_missing_server_leave_with_their_codes() -> None:
    with answering(lambda path: Said(404)) as server:
        done = culturekit("kg", "entity", "Q1", "--contact", CONTACT, "--url", server.url)
        assert (done.returncode, "no such item" in done.stderr) == (2, True)
        with pytest.raises(UsageError, match="no such item"):
            live_entity("Q1", CONTACT, url=server.url)
    pauses: list[float] = []
    with pytest.raises(UpstreamUnavailable, match="did not answer in 5 tries") as caught:
        live_entity("Q1", CONTACT, url="http://127.0.0.1:9", pace=slept(1e6, pauses))
    assert caught.value.exit_code == 3
    assert [pause for pause in pauses if pause >= 1][:1] == [1.0]
    with pytest.raises(UsageError, match="not on the public internet"):
        live_entity("Q1", CONTACT, url="http://10.0.0.1/")


def test_a_value_of_type_entity_schema_is_a_value_that_is_no_item() -> None:
    """Since 2024 statements and qualifiers can name an EntitySchema, whose id has no number beside it."""
    schema: dict[str, Any] = {
        "snaktype": "value", "property": "P12861", "datatype": "entity-schema", "hash": "0",
        "datavalue": {"value": {"id": "E123", "entity-type": "entity-schema"}, "type": "wikibase-entityid"},
    }  # fmt: skip
    told = claim("P31", "Q2095", qualifiers={"P12861": [schema]}, **{"qualifiers-order": ["P12861"]})
    odd = {**claim("P31", None), "mainsnak": {**schema, "property": "P31"}}
    plain = {**claim("P12861", None), "mainsnak": schema}
    item = document("Q5", claims={"P31": [told, odd], "P12861": [plain]})
    live = [(s.property, s.value, s.snak, s.qualified) for s in read_entity("Q5", item).statements]
    assert live == [("P31", "Q2095", "value", True), ("P31", None, "value", False)]
    read = decode(json.dumps(item).encode(), languages=("en",))
    assert isinstance(read, Item)
    assert [(s.property, s.value, s.snak, s.qualified) for s in read.statements] == [
        ("P31", 2095, "value", True), ("P31", 0, "value", False),
    ]  # fmt: skip
