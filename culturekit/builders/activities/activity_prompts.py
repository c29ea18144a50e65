"""The categories of activities, and prompts that ask for the activities of countries, one each."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.kg.countries import country
from culturekit.records.schemas import ACTIVITIES, PROMPTS
from culturekit.records.work import Outcome, Work
from culturekit.storage.tables import read_table, write_table

__all__ = [
    "FIXED",
    "LOOKED_FOR",
    "PER_CATEGORY",
    "activity_prompt",
    "form_of",
    "prompt_activities",
    "spelled_out",
]

LOOKED_FOR = ("dances", "games", "religious", "greetings", "celebrations")
"""The categories whose activities differ from country to country: pages are read for them."""

PER_CATEGORY = 6

FIXED: Mapping[str, tuple[str, ...]] = {
    "eating": ("eating at home", "eating at a restaurant"),
    "concerts": ("an indoor concert", "an outdoor concert"),
    "wedding": ("a wedding",),
    "funeral": ("a funeral",),
}
"""The categories whose activities are the same everywhere, and are shown in two settings, or in one way."""

SHORT = {"home": "eating at home", "restaurant": "eating at a restaurant"}
SHORT |= {"indoor": "an indoor concert", "outdoor": "an outdoor concert"}


def form_of(category: str) -> str:
    """Say how the activities of a category come about."""
    if category in LOOKED_FOR:
        return "multi-variant"
    return "setting" if len(FIXED[category]) > 1 else "single"


def spelled_out(activity: str) -> str:
    """Say an activity as a prompt does, where published files only name its setting."""
    plain = activity.replace("_", " ").strip()
    return SHORT.get(plain.casefold(), plain)


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
