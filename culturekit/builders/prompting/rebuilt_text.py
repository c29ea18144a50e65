"""Which prompts of a public file its names and our templates give again, and in what the others differ."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from culturekit.builders.space.public_cube import Key, Row, keyed_rows
from culturekit.records.schemas import DIFFERENCES

__all__ = ["IN_NAME", "compare_texts"]

IN_NAME = "white space around the name"
"""The released text is the rebuilt one but for white space that stands around the name in it."""


def compare_texts(rows: Sequence[Row], built: Mapping[Key, str]) -> tuple[pl.DataFrame, int]:
    """List the rows whose released text is not the rebuilt one, and count those that are rebuilt, names stripped."""
    differences: list[dict[str, Any]] = []
    for number, (key, row) in enumerate(keyed_rows(rows)):
        text, released = None if key is None else built.get(key), row["prompt"] or ""
        if text == released:
            continue
        concept, country, artifact_id = key or (row["domain"], None, None)
        differences.append(
            {
                "row": number,
                "artifact_id": artifact_id,
                "concept": concept,
                "country": country,
                "name": row["name"],
                "released": released,
                "rebuilt": text,
                "difference": difference(released, text, row["name"] or ""),
            }
        )
    missed = sum(found["difference"] != IN_NAME for found in differences)
    return pl.DataFrame(differences, schema=DIFFERENCES.schema), len(rows) - missed


def difference(released: str, rebuilt: str | None, name: str) -> str:
    """Say in a few words how a released text departs from the rebuilt one."""
    if rebuilt is None:
        return "no template"
    if name and released.replace(name, name.strip()) == rebuilt:
        return IN_NAME
    return "white space" if "".join(released.split()) == "".join(rebuilt.split()) else "words"
