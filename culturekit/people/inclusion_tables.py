"""Answers about geographic inclusion as the tables of Task 1 and Task 2, which `score task1` and `score task2` read."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from culturekit.core.errors import UsageError
from culturekit.core.schemas import TASK1, TASK2
from culturekit.core.spreadsheet_cells import csv_text
from culturekit.metrics.inclusion.region_rates import NO_REGION, region_code

TASK1_SCHEME, TASK2_SCHEME = "inclusion_task1", "inclusion_task2"

UNKNOWN_ITEM = "answers about items that the table of items does not have"
ELSEWHERE = "annotators of no region of the study"
INCOMPLETE = "answers without the first question"

PICTURES = ("reference", "first", "second")
CODES = ("af", "eu", "sea", "na")
PUBLIC_COLUMNS = ("img_path", "object", "region", "annotator_id", "annotator_loc", "annotation_result", "source")

Answers = Mapping[str, Mapping[str, Any]]
"""The rows of one person about one item, by criterion."""


def task2_table(answers: pl.DataFrame, rated: pl.DataFrame, rows: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, int]]:
    """Make the table of Task 2.

    Args:
        answers: conforms to ANNOTATIONS, of the scheme inclusion_task2.
        rated: conforms to RATED_ITEMS: who made an image, where the rows do not say.
        rows: what the tasks were made of: `item_id` (or `image_id`), `object`, `region`; where they have them also
            `img_path`, else the id stands for it, and `source`, else the model, or `real`.

    Returns:
        Conforms to TASK2; and what was left out, counted.
    """
    about = by_id(rows, ("item_id", "image_id"), ("object", "region"))
    models = dict(rated.select("item_id", "model").iter_rows())
    left_out = dict.fromkeys((UNKNOWN_ITEM, ELSEWHERE, INCOMPLETE), 0)
    found = []
    for (item, person, place), said in people(answers):
        row = about.get(item)
        if row is None or region_code(place) is None or "obj" not in said:
            left_out[UNKNOWN_ITEM if row is None else ELSEWHERE if region_code(place) is None else INCOMPLETE] += 1
            continue
        region = str(row["region"] or "")
        found.append(
            {
                "img_path": row.get("img_path") or item,
                "object": row["object"],
                "region": None if region.casefold() in NO_REGION else region,
                "annotator_id": person,
                "annotator_loc": place,
                "shown": said["obj"]["choice"] == "ym",
                "object_regions": ticked(said, "object_regions"),
                "background_regions": ticked(said, "background_regions"),
                "source": row.get("source") or models.get(item) or "real",
            }
        )
    return pl.DataFrame(found, schema=TASK2.schema).sort(TASK2.key), left_out


def ticked(said: Answers, criterion: str) -> list[str]:
    """List the regions that were ticked."""
    return [code for code in CODES if said.get(f"{criterion}/{code}", {}).get("value") == 1]


def task1_table(answers: pl.DataFrame, triplets: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, int]]:
    """Make the table of Task 1.

    Args:
        answers: conforms to ANNOTATIONS, of the scheme inclusion_task1.
        triplets: what the tasks were made of, such as TRIPLETS: the id, combo, object, region, both sources, and the
            three images.

    Returns:
        Conforms to TASK1; and what was left out, counted.
    """
    needed = ("combo", "object", "region", "reference_source", "source", *(f"{name}_id" for name in PICTURES))
    about = by_id(triplets, ("triplet_id", "item_id"), needed)
    left_out = dict.fromkeys((UNKNOWN_ITEM, ELSEWHERE), 0)
    found = []
    for (item, person, place), said in people(answers):
        row = about.get(item)
        if row is None or region_code(place) is None:
            left_out[UNKNOWN_ITEM if row is None else ELSEWHERE] += 1
            continue
        asked = any(f"shown/{name}" in said for name in PICTURES)
        shown = [row[f"{name}_id"] for name in PICTURES if said.get(f"shown/{name}", {}).get("value") == 1]
        found.append(
            {
                "triplet_id": item,
                **{name: row[name] for name in needed},
                "annotator_id": person,
                "annotator_loc": place,
                "similar_id": said.get("similar", {}).get("choice"),
                "appealing_id": said.get("appealing", {}).get("choice"),
                "confidence": said.get("confidence", {}).get("choice"),
                "shown": shown if asked else None,
            }
        )
    return pl.DataFrame(found, schema=TASK1.schema).sort(TASK1.key), left_out


def people(answers: pl.DataFrame) -> Iterator[tuple[tuple[str, str, str], Answers]]:
    """Give what each person said of each item, with where the person is."""
    ordered = answers.sort("item_id", "annotator", "criterion")
    for part in ordered.partition_by("item_id", "annotator", maintain_order=True):
        rows = part.to_dicts()
        key = (rows[0]["item_id"], rows[0]["annotator"], rows[0]["annotator_region"])
        yield key, {row["criterion"]: row for row in rows}


def by_id(rows: pl.DataFrame, ids: tuple[str, ...], needed: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Read a table of items by the first id that it has."""
    key = next((name for name in ids if name in rows.columns), None)
    missing = [name for name in needed if name not in rows.columns]
    if key is None or missing:
        raise UsageError(
            "the table of items does not say what was judged",
            expected=", ".join([ids[0], *needed]),
            found=", ".join(rows.columns),
            hint="Give the table that `annotate export --items` was given.",
        )
    return {str(row[key]): row for row in rows.iter_rows(named=True)}


def public_task2(table: pl.DataFrame) -> bytes:
    """Write a table of Task 2 in the layout of the public file, with a column that says who made an image."""
    return csv_text(PUBLIC_COLUMNS, (public_row(row) for row in table.iter_rows(named=True))).encode()


def public_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Write what a person saw as the public file has it."""
    result = {"match": "ym" if row["shown"] else "nm"}
    if row["shown"]:
        result |= {"obj": row["object_regions"], "geo": row["background_regions"]}
    return {**row, "region": row["region"] or "", "annotation_result": repr(result)}
