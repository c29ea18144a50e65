"""What is to be judged: images with the texts of their prompts, or rows that name several images each."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.annotate.scheme import Scheme
from culturekit.errors import UsageError
from culturekit.storage.spreadsheet_cells import read_csv_texts
from culturekit.storage.system_errors import raise_system_error

__all__ = ["Item", "items_of_images", "items_of_rows", "read_rows"]

ABSENT = "image not made or not known"
OF_IMAGE = ("model", "concept", "country", "group", "prompt_id")


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to judge.

    Attributes:
        item_id: under which its ratings stand; of a single image, its id.
        pictures: image ids by the name of the picture in the scheme.
        texts: the fields of the item, by name.
        region: where an annotator is at home in it; None for nowhere.
        about: model, concept, country, group and prompt_id, for the tables.
        known: of a gold item, the labels that are right, none where it shows no culture; None of any other item.
    """

    item_id: str
    pictures: Mapping[str, str]
    texts: Mapping[str, str]
    region: str | None
    about: Mapping[str, str | None]
    known: Mapping[str, str] | None = None


def items_of_images(
    images: pl.DataFrame, prompts: pl.DataFrame | None, scheme: Scheme, left_out: Counter[str]
) -> list[Item]:
    """Make an item of every image that was made, in the order of the ids.

    Args:
        images: conforms to IMAGES; its concept and country, where it has them, stand in for a prompt's.
        prompts: conforms to PROMPTS: texts, concepts and countries; without it an image's own prompt is shown.
        scheme: asks for the fields `prompt`, `concept`, `country` or `group`.
        left_out: counts to add to.
    """
    if len(scheme.pictures) != 1:
        raise UsageError(
            f"the scheme {scheme.name} shows {len(scheme.pictures)} pictures at once",
            expected="a table of items, one column per picture: --items",
        )
    made = images.filter(status="ok").sort("image_id")
    left_out[ABSENT] += images.height - made.height
    known = {} if prompts is None else {row["prompt_id"]: row for row in prompts.iter_rows(named=True)}
    return [item_of_image(row, known.get(row["prompt_id"], {}), scheme) for row in made.iter_rows(named=True)]


def item_of_image(image: Mapping[str, Any], prompt: Mapping[str, Any], scheme: Scheme) -> Item:
    """Make the item of one image."""
    place = {name: prompt.get(name) or image.get(name) for name in ("concept", "country", "group")}
    known = {"prompt": prompt.get("text") or image.get("prompt_sent"), **place}
    about = {**place, "model": image["model"], "prompt_id": image["prompt_id"]}
    return Item(
        image["image_id"],
        {scheme.pictures[0]: image["image_id"]},
        texts_of(known, scheme, image["image_id"]),
        known.get(scheme.region) if scheme.region else None,
        about,
    )


def items_of_rows(rows: pl.DataFrame, images: pl.DataFrame, scheme: Scheme, left_out: Counter[str]) -> list[Item]:
    """Make an item of every row: `item_id` (or `triplet_id`), an image id per picture, and the fields.

    The column of a picture is called as the scheme calls it, or that with `_id` behind. Columns model, concept,
    country, group and prompt_id say what the item is; what is missing comes from its first picture.
    """
    key = next((name for name in ("item_id", "triplet_id", "image_id") if name in rows.columns), None)
    if key is None:
        raise UsageError("the table of items has no ids", expected="a column item_id", found=", ".join(rows.columns))
    columns = {name: column_of(name, rows) for name in scheme.pictures}
    made = {row["image_id"]: row for row in images.filter(status="ok").iter_rows(named=True)}
    items = []
    for row in unique_rows(rows, key):
        pictures = {name: str(row[column]) for name, column in columns.items()}
        if any(image not in made for image in pictures.values()):
            left_out[ABSENT] += 1
            continue
        first = made[next(iter(pictures.values()))] if pictures else {}
        about = {name: text_or_none(row.get(name) or first.get(name)) for name in OF_IMAGE}
        known = {**about, "prompt": first.get("prompt_sent"), **row}
        region = text_or_none(known.get(scheme.region)) if scheme.region else None
        items.append(Item(row[key], pictures, texts_of(known, scheme, row[key]), region, about))
    return items


def unique_rows(rows: pl.DataFrame, key: str) -> Iterator[dict[str, Any]]:
    """Give the rows in the order of their ids, each of which stands once."""
    table = rows.with_columns(pl.col(key).cast(pl.String)).sort(key)
    repeated = table.filter(pl.col(key).is_duplicated() | pl.col(key).is_null())
    if repeated.height:
        raise UsageError("an item has no id of its own", expected="ids that differ", found=repr(repeated[key][0]))
    return table.iter_rows(named=True)


def column_of(picture: str, rows: pl.DataFrame) -> str:
    """Find the column that names a picture."""
    for name in (f"{picture}_id", picture):
        if name in rows.columns:
            return name
    raise UsageError(
        f"the table of items does not say which image is the {picture}",
        expected=f"a column {picture} or {picture}_id",
        found=", ".join(rows.columns),
    )


def texts_of(known: Mapping[str, Any], scheme: Scheme, item_id: str) -> dict[str, str]:
    """Read the fields that a scheme shows."""
    found = {name: text_or_none(known.get(name)) for name in scheme.fields}
    missing = [name for name, text in found.items() if text is None]
    if missing:
        raise UsageError(
            f"the scheme {scheme.name} shows what an item does not have",
            where=f"item {item_id!r}",
            expected=", ".join(missing),
            hint="Give --prompts, or --items with these columns.",
        )
    return {name: text for name, text in found.items() if text is not None}


def text_or_none(value: object) -> str | None:
    """Read a cell as text."""
    if value is None or value == "":
        return None
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def read_rows(path: Path) -> pl.DataFrame:
    """Read a table of items that the user, or a stage, wrote; every cell of a CSV file is text."""
    if not path.is_file():
        raise UsageError("there is no such table of items", where=str(path))
    try:
        if path.suffix == ".parquet":
            return pl.read_parquet(path)
        return read_csv_texts(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise_system_error(error, path)
        raise UsageError("not a readable table of items", where=str(path), found=str(error)) from error
