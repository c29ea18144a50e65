"""Answers that differ from item to item: artifacts to recognise, countries, continents, or lists of an item's own."""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from culturekit.annotate.gold_items import lookalikes
from culturekit.annotate.items import Item
from culturekit.annotate.scheme import Scheme
from culturekit.annotate.tasks import Offer
from culturekit.errors import UsageError
from culturekit.kg.countries import countries
from culturekit.metrics.scoring.value_sets import own_generator

__all__ = ["FIRST", "OF_SPACE", "own_offers", "space_offers", "wanted_lists"]

FIRST, LATER = "first", "later"
"""Where the list of an item holds what its picture was mapped to."""

OF_SPACE = ("artifacts", "countries", "continents")
"""The lists that come from a cultural space."""

Offers = dict[str, Sequence[Offer]]


def wanted_lists(scheme: Scheme) -> set[str]:
    """Name the lists that a scheme takes from its items."""
    return {criterion.options_from for criterion in scheme.criteria if criterion.options_from is not None}


def space_offers(
    items: Sequence[Item], scheme: Scheme, space: pl.DataFrame, matches: pl.DataFrame | None, *, length: int, seed: int
) -> dict[str, Offers]:
    """Offer each item artifacts of its concept, and all countries and continents.

    The artifacts are those that the picture was mapped to, filled up with others drawn from the concept, in a drawn
    order. By chance the nearest one stands first or later, so that what raters make of the first can be seen.

    Args:
        items: what is judged.
        scheme: asks for some of the lists.
        space: conforms to CSPACE.
        matches: conforms to MATCHES; without it a concept may have no more artifacts than are listed.
        length: how many artifacts are listed.
        seed: of the draws.
    """
    wanted = wanted_lists(scheme)
    places = space.select("country", "country_name", "continent").unique().sort("country_name", "country")
    shared: Offers = {
        "countries": [
            Offer(code, name, {"choice": code, "country": code, "continent": continent})
            for code, name, continent in places.unique("country", keep="first", maintain_order=True).iter_rows()
        ],
        "continents": [
            Offer(f"c{number}", name, {"choice": name, "continent": name})
            for number, name in enumerate(continents(places["continent"].unique()), start=1)
        ],
    }
    shared = {name: offers for name, offers in shared.items() if name in wanted}
    if "artifacts" not in wanted:
        return {item.item_id: shared for item in items}
    known = by_concept(space)
    near = mapped(matches, [item.item_id for item in items])
    strange = {artifact for nearest in near.values() for artifact in nearest} - set(space["artifact_id"])
    if strange:
        raise UsageError(
            "matches name artifacts that the cultural space does not have",
            expected="the cultural space of the index that mapped the images",
            found=f"{len(strange)}, such as {min(strange)!r}",
            hint="People could not choose what the images were mapped to.",
        )
    unmapped = [item for item in items if item.known is not None and item.item_id not in near]
    near |= {item.item_id: lookalikes(item, items, near, seed) for item in unmapped}
    return {
        item.item_id: {**shared, "artifacts": shortlist(item, known, near.get(item.item_id, []), length, seed)}
        for item in items
    }


def continents(of_space: pl.Series) -> list[str]:
    """List those of the space, then the others of the world: what is not in the lists may lie there."""
    return [*of_space.sort(), *sorted({country.continent for country in countries().values()} - set(of_space))]


Artifact = tuple[str, str, str, str, str]
"""Id, name, ISO code, name of the country, continent."""


def by_concept(space: pl.DataFrame) -> dict[str, list[Artifact]]:
    """List the artifacts of each concept, each in every country it belongs to."""
    columns = ("artifact_id", "name", "country", "country_name", "continent")
    parts = space.sort("concept", "artifact_id", "country").partition_by("concept", maintain_order=True)
    return {part["concept"][0]: part.select(columns).unique(maintain_order=True).rows() for part in parts}


def mapped(matches: pl.DataFrame | None, images: Sequence[str]) -> dict[str, list[str]]:
    """List the artifacts that each image was mapped to, nearest first."""
    if matches is None:
        return {}
    near = matches.filter(pl.col("image_id").is_in(list(images)), pl.col("artifact_id").is_not_null())
    rows = near.sort("image_id", "rank").group_by("image_id", maintain_order=True).agg("artifact_id")
    return dict(rows.iter_rows())


def shortlist(
    item: Item, known: Mapping[str, Sequence[Artifact]], near: Sequence[str], length: int, seed: int
) -> list[Offer]:
    """Choose and order the artifacts that one item is offered."""
    concept = item.about.get("concept")
    places = known.get(concept or "", ()) if concept else [place for one in known.values() for place in one]
    if not places:
        raise UsageError(
            "the cultural space has no artifact of an item's concept",
            where=f"item {item.item_id!r}",
            found=concept or "no concept",
            expected=", ".join(sorted(known)),
        )
    ids = list(dict.fromkeys(place[0] for place in places))
    if len(ids) > length and not near:
        raise UsageError(
            f"{len(ids):,} artifacts are too many to list for {concept or 'an image of no concept'}",
            where=f"item {item.item_id!r}",
            expected=f"matches of the image, to list its {length} likeliest: --matches",
        )
    rng = own_generator(seed, "shortlist", item.item_id)
    likely = [artifact for artifact in dict.fromkeys(near) if artifact in set(ids)][: max(length // 2, 1)]
    others = [artifact for artifact in ids if artifact not in set(likely)]
    rng.shuffle(others)
    chosen = set(likely) | set(others[: max(length - len(likely), 0)])
    listed = [place for place in places if place[0] in chosen]
    rng.shuffle(listed)
    nearest = likely[0] if likely and item.known is None and len(chosen) > 1 else None
    first = bool(own_generator(seed, "first", item.item_id).integers(2))
    if nearest is not None and (listed[0][0] == nearest) != first:
        other = next(number for number, place in enumerate(listed) if (place[0] == nearest) == first)
        listed[0], listed[other] = listed[other], listed[0]
    of_nearest = {"mapped": FIRST if first else LATER}
    return [
        Offer(
            f"a{number}",
            f"{name} ({country_name})",
            {"choice": artifact, "artifact_id": artifact, "country": country, "continent": continent}
            | (of_nearest if artifact == nearest else {}),
        )
        for number, (artifact, name, country, country_name, continent) in enumerate(listed, start=1)
    ]


def own_offers(rows: pl.DataFrame, items: Sequence[Item], scheme: Scheme) -> dict[str, Offers]:
    """Offer each item the lists in its own row."""
    key = next(name for name in ("item_id", "triplet_id", "image_id") if name in rows.columns)
    wanted = sorted(wanted_lists(scheme))
    missing = [name for name in wanted if name not in rows.columns]
    if missing:
        raise UsageError(
            f"the scheme {scheme.name} lets people choose from lists that items do not have",
            expected=f"columns {', '.join(missing)}",
            found=", ".join(rows.columns),
        )
    lists = {str(row[key]): row for row in rows.iter_rows(named=True)}
    return {
        item.item_id: {name: list(offers_of(lists[item.item_id][name], name, item.item_id)) for name in wanted}
        for item in items
    }


def offers_of(cell: object, name: str, item_id: str) -> Iterator[Offer]:
    """Read a list of texts; in a CSV file it is one cell, parted by a bar."""
    values = [part.strip() for part in cell.split("|")] if isinstance(cell, str) else cell
    if not isinstance(values, list) or not values or not all(isinstance(text, str) and text for text in values):
        raise UsageError(
            f"{name} is no list of texts",
            where=f"item {item_id!r}",
            expected="texts, parted by | in CSV",
            found=repr(cell),
        )
    for number, text in enumerate(dict.fromkeys(values), start=1):
        yield Offer(f"o{number}", text, {"choice": text})
