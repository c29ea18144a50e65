"""Answers to the scheme audit as rows of the table `audits`: artifact, country or continent, or what none means."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import polars as pl

from culturekit.annotate.answer_rows import meanings_of
from culturekit.annotate.exported_answers import KeyRow
from culturekit.annotate.exported_json import Answered
from culturekit.annotate.offered_answers import FIRST
from culturekit.annotate.scheme import Scheme
from culturekit.builders.country_names import country_code
from culturekit.builders.folded_names import folded
from culturekit.kg.countries import countries
from culturekit.records.none_of_these import CANNOT_TELL, NO_CULTURE, NOT_IN_LIST
from culturekit.records.schemas import AUDITS

__all__ = ["AUDIT", "audit_row", "audits_of"]

AUDIT = "audit"
"""The scheme whose answers become audits."""

GOLD = ("gold", "known_artifact_id", "known_country", "known_continent")
"""The columns of audits that had gold items."""

MAPPED = ("offered_first", "as_mapped")
"""The columns of audits whose form knew what images were mapped to."""

MEANS = {"none": NO_CULTURE, "cannot_tell": CANNOT_TELL, "not_in_list": NOT_IN_LIST}
"""What options of the first question mean where no place is named; a form that has only `none` tells nothing apart."""


def audits_of(taken: Sequence[tuple[Answered, KeyRow]], scheme: Scheme, pool: str | None) -> pl.DataFrame:
    """Write annotations as AUDITS. A country outside the space lies where most answers put it, so that labels nest."""
    rows = [audit_row(answered, row, scheme, pool) for answered, row in taken]
    if any(row["offered_first"] is not None for row in rows):  # the form knew what images were mapped to
        unlisted = [row for row in rows if row["offered_first"] is None and not row["gold"]]
        for row in unlisted:
            row["offered_first"] = False
    votes: dict[str, Counter[str]] = {}
    for row in rows:
        if row["country"] is not None and row["continent"] is not None:
            votes.setdefault(row["country"], Counter())[row["continent"]] += 1
    lies_in = {country: min(each, key=lambda name: (-each[name], name)) for country, each in votes.items()}
    settled = [{**row, "continent": lies_in.get(row["country"], row["continent"])} for row in rows]
    optional = ["none_means", *(GOLD if any(row["gold"] for row in rows) else ())]
    optional += MAPPED if any(row["offered_first"] is not None for row in rows) else ()
    schema = AUDITS.schema | {name: AUDITS.optional[name].dtype for name in optional}
    return pl.DataFrame(settled, schema=schema).unique(AUDITS.key, keep="first", maintain_order=True)


def audit_row(answered: Answered, row: KeyRow, scheme: Scheme, pool: str | None) -> dict[str, Any]:
    """Write one annotation as a row: the artifact, country or continent chosen or typed, or none."""
    said: dict[str, str] = {}
    for known in meanings_of(answered, row, scheme).values():
        said |= known
    shows = answered.answers.get("shows", ("",))[0]
    if shows == "not_in_list":
        said |= typed_place(answered.answers.get("place", ("",))[0], row)
    nowhere = not said or (shows == "not_in_list" and "country" not in said)
    gold = row["kind"] == "gold"
    known = orjson.loads(row["expected"]) if gold else {}
    apart = "cannot_tell" in scheme.criterion("shows").fixed_values
    return {
        "image_id": row["item_id"],
        "pool": pool or row["annotator_region"],
        "annotator": answered.annotator,
        "artifact_id": said.get("artifact_id"),
        "country": said.get("country"),
        "continent": said.get("continent"),
        "none_of_these": nowhere,
        "none_means": MEANS.get(shows) if nowhere and apart else None,
        "gold": gold,
        **offered_mapped(row, said),
        **{f"known_{name}": known.get(name) for name in ("artifact_id", "country", "continent")},
    }


def offered_mapped(row: KeyRow, said: Mapping[str, str]) -> dict[str, bool | None]:
    """Tell whether what an image was mapped to was listed first, and whether it was chosen; None if not known."""
    listed = orjson.loads(row["options"]).get("artifacts", {}).values()
    places = {offer["mapped"] for offer in listed if "mapped" in offer}
    return {
        "offered_first": FIRST in places if places else None,
        "as_mapped": "mapped" in said if places else None,
    }


def typed_place(text: str, row: KeyRow) -> Mapping[str, str]:
    """Tell the country that was typed, by its code where it has one, and its continent where that is known."""
    place = country_code(text) or folded(text)
    if not place:
        return {}
    listed = orjson.loads(row["options"]).get("countries", {}).get(place)
    if listed is not None:
        return {"country": place, "continent": str(listed["continent"])}
    known = countries().get(place)
    return {"country": place} if known is None else {"country": place, "continent": known.continent}
