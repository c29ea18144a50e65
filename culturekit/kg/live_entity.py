"""Look up one item as Wikidata has it now, asked for politely and read by qwikidata."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from qwikidata.entity import WikidataItem

from culturekit.core.errors import UpstreamUnavailable, UsageError
from culturekit.kg.concepts import ENTITY_STATEMENTS
from culturekit.kg.countries import number_of_item
from culturekit.kg.polite_source import WIKIMEDIA_A_MINUTE, KeptAnswers, Pace, PoliteSource, check_contact

WIKIDATA = "https://www.wikidata.org/wiki/Special:EntityData"
_MOST_BYTES = 50_000_000  # the largest items of Wikidata have a few million


class _EntityReply(msgspec.Struct, frozen=True):
    """A reply of the linked data interface: entities by their identifiers."""

    entities: dict[str, dict[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class LiveStatement:
    """A statement; `value` is None for somevalue, novalue and what is no item, such as an `entity-schema`."""

    property: str
    value: str | None
    snak: str
    rank: str
    qualified: bool
    ended: bool


@dataclass(frozen=True, slots=True)
class LiveEntity:
    """An item: another than the one asked for where that was merged into it."""

    asked: str
    qid: str
    label: str | None
    description: str | None
    title: str | None
    revision: int | None
    modified: str | None
    statements: tuple[LiveStatement, ...]


def live_entity(
    qid: str, contact: str, *, url: str = WIKIDATA, cache: Path | None = None, pace: Pace | None = None
) -> LiveEntity:
    """Ask for one item; with `cache`, a folder, a reply is kept and the item is not asked for again."""
    number_of_item(qid)
    check_contact(contact)
    kept = None if cache is None else KeptAnswers(cache, _EntityReply)
    reply = None if kept is None else kept.find([url, qid])
    if reply is None:
        source = PoliteSource(
            url, contact, pace or Pace(WIKIMEDIA_A_MINUTE / 60), hint="Run the same command again later.",
            largest=_MOST_BYTES,
        )  # fmt: skip
        reply = source.ask(f"{qid}.json", _EntityReply, missing=_EntityReply())
        if kept is not None and reply.entities:
            kept.keep([url, qid], reply)
    if not reply.entities:
        raise UsageError("Wikidata has no such item", where=url, found=qid)
    document = reply.entities.get(qid) or next(iter(reply.entities.values()))
    try:
        return read_entity(qid, document)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UpstreamUnavailable(
            "the reply is not an item as Wikidata documents it", where=url, found=f"{type(error).__name__} {error}"
        ) from error


def read_entity(asked: str, document: dict[str, Any]) -> LiveEntity:
    """Read an item with qwikidata, which gives up on kinds of values it does not know: it sees only what we keep."""
    claims = document.get("claims") or {}
    if not isinstance(claims, dict):
        raise TypeError(f"claims is a {type(claims).__name__}")
    shown = {
        name: [{**claim, "references": []} for claim in claims[name]] for name in ENTITY_STATEMENTS if name in claims
    }
    item = WikidataItem({**document, "claims": shown})
    number_of_item(item.entity_id)
    return LiveEntity(
        asked, item.entity_id, item.get_label() or None, item.get_description() or None,
        item.get_enwiki_title() or None, document.get("lastrevid"), document.get("modified"),
        tuple(_statements_of(item)),
    )  # fmt: skip


def _statements_of(item: WikidataItem) -> Iterator[LiveStatement]:
    """Yield the statements that culturekit keeps of an item, of every rank."""
    for name, group in item.get_claim_groups().items():
        for claim in group:
            snak = claim.mainsnak
            value = snak.datavalue.value if snak.snaktype == "value" else {"entity-type": ""}
            target = f"Q{int(value['numeric-id'])}" if value["entity-type"] == "item" else None
            ended = "P582" in claim.qualifiers
            yield LiveStatement(name, target, snak.snaktype, claim.rank, bool(claim.qualifiers), ended)
