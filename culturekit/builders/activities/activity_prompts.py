"""Prompts that ask for the activities of countries, one each."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.builders.activities.categories import spelled_out
from culturekit.kg.countries import country
from culturekit.records.schemas import ACTIVITIES, PROMPTS
from culturekit.records.work import Outcome, Work
from culturekit.storage.tables import read_table, write_table

__all__ = ["activity_prompt", "prompt_activities"]

TEMPLATE = "A photorealistic photo of {activity} in {country}."
ACTIVITY = {"activity": pl.String()}


def activity_prompt(prompt_id: str, iso: str, category: str, activity: str) -> dict[str, Any]:
    """Write the prompt of an activity."""
    place, said = country(iso), spelled_out(activity)
    return {
        "prompt_id": prompt_id,
        "text": TEMPLATE.format(activity=said, country=place.in_a_sentence),
        "negative_text": None,
        "benchmark": "cultivate",
        "kind": "activity",
        "concept": category,
        "country": iso,
        "group": place.groups.get("cultivate"),
        "artifact_id": None,
        "language": "en",
        "template_id": "cultivate-photo",
        "activity": said,
    }


def prompt_activities(work: Work, activities: Path) -> Outcome:
    """Write the prompts of all activities."""

    def prompts() -> Iterator[dict[str, Any]]:
        for row in read_table(activities, ACTIVITIES).iter_rows(named=True):
            yield activity_prompt(row["activity_id"], row["country"], row["category"], row["activity"])

    table = pl.DataFrame(list(prompts()), schema={**PROMPTS.schema, **ACTIVITY})
    write_table(work.out, PROMPTS, table)
    return Outcome({"prompts": table.height, "countries": table["country"].n_unique()})
