"""Gold items: pictures of which it is known what they show, put among the others so that raters can be held to them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from culturekit.annotate.items import Item
from culturekit.annotate.scheme import Scheme
from culturekit.errors import UsageError
from culturekit.kg.countries import countries
from culturekit.metrics.scoring.value_sets import own_generator

__all__ = ["gold_items", "lookalikes"]

SEVERAL = "known picture of an artifact of several countries, or of none in the space"
LABELS = ("artifact_id", "country", "continent")


def gold_items(pictures: pl.DataFrame, space: pl.DataFrame, scheme: Scheme, left_out: Counter[str]) -> list[Item]:
    """Make an item of every known picture, in the order of the ids.

    Args:
        pictures: IMAGES with `truth_artifact_id` and `truth_country`: the first is null where only the country is
            known, both where a picture shows no culture; an artifact of several countries needs both.
        space: conforms to CSPACE.
        scheme: shows one picture and no fields.
        left_out: counts to add to.
    """
    if "truth_artifact_id" not in pictures.columns:
        raise UsageError(
            "nobody knows what these pictures show",
            expected="gold pictures with a column truth_artifact_id, or a list with image, artifact, country",
            found=", ".join(pictures.columns),
        )
    if len(scheme.pictures) != 1 or scheme.fields:
        raise UsageError(
            f"the scheme {scheme.name} shows more than one picture", expected="a scheme without fields for gold items"
        )
    places = space.select("artifact_id", "concept", "country", "continent").unique().sort(pl.all()).to_dicts()
    concepts = sorted({place["concept"] for place in places})
    found = []
    for row in pictures.filter(status="ok").sort("image_id").iter_rows(named=True):
        place = place_of(row, places)
        if place is None:
            left_out[SEVERAL] += 1
            continue
        drawn = concepts[int(own_generator(0, "concept", row["image_id"]).integers(len(concepts)))]
        about = {"model": row["model"], "concept": place.get("concept") or row.get("concept") or drawn}
        known = {name: str(place[name]) for name in LABELS if name in place}
        found.append(Item(row["image_id"], {scheme.pictures[0]: row["image_id"]}, {}, None, about, known))
    return found


def place_of(row: Mapping[str, Any], places: Sequence[Mapping[str, str]]) -> Mapping[str, str] | None:
    """Find where what a picture shows belongs in the space: nowhere if it shows no culture, None if not clear."""
    country = row.get("truth_country")
    if row["truth_artifact_id"] is None:
        return {} if country is None else of_country(country, places)
    found = [
        place
        for place in places
        if place["artifact_id"] == row["truth_artifact_id"] and (country is None or place["country"] == country)
    ]
    return found[0] if len({(place["country"], place["continent"]) for place in found}) == 1 else None


def of_country(country: str, places: Sequence[Mapping[str, str]]) -> Mapping[str, str]:
    """Give a country, in the space or not, and where it lies."""
    found = {place["continent"] for place in places if place["country"] == country}
    lies_in = min(found, default=None) or (countries()[country].continent if country in countries() else None)
    return {"country": country} | ({} if lies_in is None else {"continent": lies_in})


def lookalikes(item: Item, items: Sequence[Item], near: Mapping[str, Sequence[str]], seed: int) -> list[str]:
    """Let a gold item that was not mapped be mapped as another picture is, what it shows among that."""
    own = [item.known["artifact_id"]] if item.known and "artifact_id" in item.known else []
    others = [one.item_id for one in items if one.about["concept"] == item.about["concept"]]
    lists = [near[one] for one in others if one in near]
    alike = [one for one in lists if set(own) <= set(one)] or lists
    if not alike:
        return own
    chosen = alike[int(own_generator(seed, "lookalikes", item.item_id).integers(len(alike)))]
    return list(dict.fromkeys([*own, *chosen]))
