"""Which places the answers to an audit name, and what they say otherwise."""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import polars as pl
import pycountry

from culturekit.records.none_of_these import CANNOT_TELL, NO_CULTURE, NOT_IN_LIST
from culturekit.storage.package_data import shipped
from culturekit.verify.tables.export_answers import Given

__all__ = ["PLACE", "as_given", "audit_rows"]

MEANS = {"none": NO_CULTURE, "cannot_tell": CANNOT_TELL, "not_in_list": NOT_IN_LIST}
SOME_CODE = "??"
"""The country of a text that is no English name of one: any code, or the text itself."""

PLACE = ("artifact_id", "country", "continent")


def audit_rows(
    table: pl.DataFrame, answers: Sequence[Given], questions: Mapping[str, Mapping[str, Any]], drawing: str | None
) -> dict[tuple[str, ...], dict[str, Any]]:
    """Say what each answer says of an image: place, what none means, and what was offered.

    A country that was typed and that the lists lack lies on one continent, whichever the table says first.
    """
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for one in answers:
        found.setdefault((one.about["item_id"], one.person), {**audited(one, questions), "drawing": drawing})
    if any(given["offered_first"] is not None for given in found.values()):  # where it is not listed, it is not first
        for given in found.values():
            given["offered_first"] = bool(given["offered_first"]) if not given["gold"] else None
    lies_in: dict[str | None, str | None] = {}
    for row in table.iter_rows(named=True):
        given = found.get((row["image_id"], row["annotator"]), {"continent": None})
        if "continent" not in given:
            given["continent"] = lies_in.setdefault(row["country"], row["continent"])
    return found


def as_given(stated: object, given: object) -> bool:
    """Tell whether a cell is what was answered."""
    if isinstance(given, str) and given.startswith(SOME_CODE):
        return stated == given[len(SOME_CODE) :] or bool(re.fullmatch("[A-Z]{2}", str(stated)))
    return bool(stated == given)


def audited(one: Given, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Say what an answer says of an image; without its continent where a country was typed that the lists lack."""
    offers = json.loads(one.about["options"])
    said: dict[str, Any] = {}
    for name, codes in one.chosen.items():
        listed = questions.get(name, {}).get("options_from")
        if listed is not None:
            said |= offers.get(listed, {}).get(codes[0], {})
    shows = one.chosen.get("shows", [""])[0]
    typed = typed_country(one.chosen.get("place", [""])[0]) if shows == "not_in_list" else None
    known = offers.get("countries", {}).get(typed)
    said |= {"country": typed, **({} if known is None else {"continent": known["continent"]})} if typed else {}
    nowhere = not said or (shows == "not_in_list" and "country" not in said)
    apart = any(option["value"] == "cannot_tell" for option in questions["shows"].get("options") or ())
    listed = {offer["mapped"] for offer in offers.get("artifacts", {}).values() if "mapped" in offer}
    gold = one.about["kind"] == "gold"
    shown = json.loads(one.about["expected"]) if gold else {}
    return {
        **{name: said.get(name) for name in PLACE if name != "continent" or known is not None or not typed},
        "none_of_these": nowhere,
        "none_means": MEANS.get(shows) if nowhere and apart else None,
        "gold": gold,
        **{f"known_{name}": shown.get(name) for name in PLACE},
        "offered_first": "first" in listed if listed else None,
        "as_mapped": "mapped" in said if listed else None,
    }


def typed_country(text: str) -> str | None:
    """Give the code of a typed country, or what may stand for a text that names none in English."""
    plain = plainly(text)
    return country_names().get(plain) or country_names().get(bare(plain)) or (SOME_CODE + plain if plain else None)


def plainly(text: str) -> str:
    """Write a name in small letters, with one space between words."""
    kept = (c if unicodedata.category(c)[0] in "LNM" else " " for c in unicodedata.normalize("NFKC", text).casefold())
    return " ".join(unicodedata.normalize("NFC", "".join(kept)).split())


def bare(text: str) -> str:
    """Leave accents out."""
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


@cache
def country_names() -> Mapping[str, str]:
    """List the names that countries go by in English, and their codes."""
    kinds = ("alpha_2", "alpha_3", "name", "common_name", "official_name")
    named = [(getattr(each, kind, ""), each.alpha_2) for each in pycountry.countries for kind in kinds]
    for line in shipped("builders/country_names.tsv").read_text(encoding="utf-8").splitlines():
        code, usual = line.split("\t")
        named += [(name, code) for name in usual.split("; ")]
    plain = {plainly(name): code for name, code in named if name}
    return {bare(name): code for name, code in plain.items()} | plain
