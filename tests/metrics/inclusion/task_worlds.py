"""Small files and tables of Task 1 and Task 2, made for tests."""

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from culturekit.core.schemas import SURVEY_CODES, TASK1, TASK2

HEAD = "img_path,object,region,annotator_id,annotator_loc,annotation_result"

LOCATIONS = ("Africa", "Europe", "SouthEastAsia")


def write_csv(path: Path, lines: Iterable[str], *, head: str = HEAD) -> Path:
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    return path


def line(image: str, region: str, annotator: int, place: str, answer: str, *, thing: str = "bag") -> str:
    return f'{image},{thing},{region},{annotator},{place},"{answer}"'


def task2(*rows: tuple[str, str | None, str, str, bool, str, str], source: str = "real") -> pl.DataFrame:
    """Make TASK2 from (image, region, annotator, location, shown, object regions, background regions)."""
    return pl.DataFrame(
        [
            {
                "img_path": image, "object": "bag", "region": region, "annotator_id": annotator,
                "annotator_loc": place, "shown": shown, "object_regions": of_object.split(),
                "background_regions": of_background.split(), "source": source,
            }
            for image, region, annotator, place, shown, of_object, of_background in rows
        ],
        schema=TASK2.schema,
    )  # fmt: skip


def drawn_task2(*, images: int = 60, seed: int = 0, source: str = "real") -> pl.DataFrame:
    """Draw annotations: each image by one annotator of each location; those at home see the region more often."""
    rng = np.random.default_rng(seed)
    codes = dict(zip(LOCATIONS, ("af", "eu", "sea"), strict=True))
    rows = []
    for number in range(images):
        region = LOCATIONS[number % 3]
        for place in LOCATIONS:
            chance = 0.7 if place == region else 0.5
            first, second = (codes[region] if rng.random() < chance else "na" for _ in range(2))
            annotator = f"{codes[place]}{rng.integers(5)}"
            rows.append(
                (f"{source}-{number:03}.jpg", region, annotator, place, bool(rng.random() < 0.95), first, second)
            )
    return task2(*rows, source=source)


def judgement(triplet: str, annotator: str, place: str, similar: str | None, appealing: str | None) -> dict[str, Any]:
    """Make a row of TASK1; images are named after the triplet: t-ref, t-1, t-2."""

    def of(choice: str | None) -> str | None:
        return None if choice is None else f"{triplet}-{choice}"

    return {
        "triplet_id": triplet, "combo": "A", "object": "bag", "region": "Africa", "reference_source": "real",
        "source": "ldm", "reference_id": f"{triplet}-ref", "first_id": f"{triplet}-1", "second_id": f"{triplet}-2",
        "annotator_id": annotator, "annotator_loc": place, "similar_id": of(similar), "appealing_id": of(appealing),
        "confidence": "high", "shown": [f"{triplet}-ref", f"{triplet}-1"],
    }  # fmt: skip


def task1(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=TASK1.schema)


def drawn_task1(*, triplets: int = 30, seed: int = 0) -> pl.DataFrame:
    """Draw annotations of triplets by one annotator of each location."""
    rng = np.random.default_rng(seed)
    return task1(
        *(
            judgement(f"t{number:02}", f"{place[:2]}{rng.integers(3)}", place, *rng.choice(["1", "2"], 2).tolist())
            | {"region": LOCATIONS[number % 3], "source": ("ldm", "dm")[number % 2]}
            for number in range(triplets)
            for place in LOCATIONS
        )
    )


PLACES = ("Africa", "Europe", "Africa", "SouthEastAsia", "Europe", "Africa")


def codes(votes: dict[str, list[int]]) -> pl.DataFrame:
    """Make codes from the number of coders, of three, who see a code in each response."""
    rows = [
        {"response_id": f"r{number}", "location": PLACES[number], "topic": "object", "coder": f"c{coder}",
         "code": code, "present": coder < yes}
        for code, counts in votes.items() for (number, yes), coder in itertools.product(enumerate(counts), range(3))
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=SURVEY_CODES.schema)


VOTES = {"people": [3, 3, 0, 0, 3, 0], "nature": [2, 3, 0, 0, 3, 1], "tools": [2, 1, 2, 1, 1, 2], "brand": [0] * 6}
