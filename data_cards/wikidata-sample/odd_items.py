"""Invented entities that hold every oddity a real dump has; none can become an artifact of a real country."""

from collections.abc import Iterator
from typing import Any

Entity = dict[str, Any]

DISH, COUNTRY, OTHER_COUNTRY = "Q746549", "Q2000000001", "Q155"
"""A real class to hang the oddities on, an invented country for them, and a real one that must not leak."""


def snak(name: str, qid: str, **changes: object) -> Entity:
    """Write a main snak or a qualifier whose value is an item."""
    value = {"value": {"entity-type": "item", "numeric-id": int(qid[1:]), "id": qid}, "type": "wikibase-entityid"}
    return {"snaktype": "value", "property": name, "datavalue": value, "datatype": "wikibase-item", **changes}


def claim(main: Entity, *, rank: str = "normal", qualifiers: Entity | None = None) -> Entity:
    """Write a statement around a main snak."""
    extra = {"qualifiers": qualifiers, "qualifiers-order": list(qualifiers)} if qualifiers else {}
    return {"mainsnak": main, "type": "statement", "id": f"INVENTED-{main['property']}", "rank": rank, **extra}


def without_value(name: str, kind: str) -> Entity:
    """Write a snak for `somevalue` or `novalue`."""
    return {"snaktype": kind, "property": name, "datatype": "wikibase-item"}


def item(number: int, what: str, claims: dict[str, list[Entity]] | list[object], **changes: object) -> Entity:
    """Write an invented item; its label says that it is invented, and what it is for."""
    return {
        "type": "item",
        "id": f"Q{2_000_000_000 + number}",
        "labels": {"en": {"language": "en", "value": f"invented {what}"}},
        "descriptions": {"en": {"language": "en", "value": "made up for the culturekit sample"}},
        "aliases": [],
        "claims": claims,
        "sitelinks": [],
        **changes,
    }


def dish(number: int, what: str, *countries: Entity, **changes: object) -> Entity:
    """Write an invented dish with the given P17 statements."""
    claims = {"P279": [claim(snak("P279", DISH))]} | ({"P17": list(countries)} if countries else {})
    return item(number, what, claims, **changes)


def invented_entities() -> Iterator[Entity]:
    """Give the oddities, one after the other."""
    here = claim(snak("P17", COUNTRY))
    yield item(1, "country", [])
    yield dish(2, "dish whose country is deprecated", claim(snak("P17", OTHER_COUNTRY), rank="deprecated"))
    yield item(3, "child of it", {"P279": [claim(snak("P279", "Q2000000002"))], "P495": [claim(snak("P495", COUNTRY))]})
    yield dish(4, "dish without a country by novalue", claim(without_value("P17", "novalue")))
    yield dish(5, "dish of an unknown country by somevalue", claim(without_value("P17", "somevalue")))
    yield dish(
        6, "dish with a qualifier", claim(snak("P17", COUNTRY), qualifiers={"P17": [snak("P17", OTHER_COUNTRY)]})
    )
    end = {"snaktype": "somevalue", "property": "P582", "datatype": "time"}
    yield dish(7, "dish of a country of old", claim(snak("P17", COUNTRY), qualifiers={"P582": [end]}))
    yield dish(8, "dish with a preferred country", claim(snak("P17", COUNTRY), rank="preferred"), here)
    yield dish(9, "dish with a label only in mul", here, labels={"mul": {"language": "mul", "value": "invented mul"}})
    yield dish(10, "dish without a label", here, labels=[])
    yield dish(11, "dish with a Turkish label", here, labels={"tr": {"language": "tr", "value": "uydurma"}})
    old = snak("P17", COUNTRY)
    old["datavalue"]["value"] = {"entity-type": "item", "numeric-id": 2_000_000_001}
    yield dish(12, "dish with an old-style value", claim(old))
    bare = snak("P17", COUNTRY)
    del bare["datatype"]
    yield dish(13, "dish without a datatype", claim(bare))
    yield item(14, "class in a cycle", {"P279": [claim(snak("P279", "Q2000000015")), claim(snak("P279", DISH))]})
    yield item(15, "class in the same cycle", {"P279": [claim(snak("P279", "Q2000000014"))]})
    yield item(16, "class below itself", {"P279": [claim(snak("P279", "Q2000000016")), claim(snak("P279", DISH))]})
    yield item(17, "item without statements", [])
    yield dish(18, "dish given twice", here)
    yield dish(18, "dish given twice, second line", here)
    picture = {"snaktype": "value", "property": "P18", "datavalue": {"value": "Invented.jpg", "type": "string"}}
    place = {
        "latitude": 1.5,
        "longitude": -2.25,
        "altitude": None,
        "precision": 0.01,
        "globe": "http://www.wikidata.org/entity/Q2",
    }
    globe = {"snaktype": "value", "property": "P625", "datavalue": {"value": place, "type": "globecoordinate"}}
    yield item(
        19,
        "dish with a picture, a place and a part",
        {
            "P31": [claim(snak("P31", DISH))],
            "P17": [here],
            "P361": [claim(snak("P361", "Q2000000018"))],
            "P2012": [claim(snak("P2012", "Q2000000020"))],
            "P18": [claim(picture)],
            "P625": [claim(globe)],
        },
        aliases={"en": [{"language": "en", "value": "invented alias"}]},
    )
    yield item(20, "cuisine of several countries", {"P495": [claim(snak("P495", COUNTRY)), claim(snak("P495", "Q29"))]})
    yield {
        "type": "property",
        "datatype": "wikibase-item",
        "id": "P31",
        "labels": {"en": {"language": "en", "value": "instance of"}},
        "descriptions": [],
        "aliases": [],
        "claims": [],
    }
    lemma = {"en": {"language": "en", "value": "invented"}}
    yield {"type": "lexeme", "id": "L2000000001", "lemmas": lemma, "lexicalCategory": "Q34698", "language": "Q1860"}
