"""The layouts that can be audited, and which column plays which part in each."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["LAYOUTS", "Layout", "Part", "layout_of"]

Part: TypeAlias = Literal["id", "name", "country", "concept", "prompt", "negative", "subconcept"]


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout: its columns by the part they play, those that hold statements, and how it writes countries.

    `key` is how rows are told apart and ordered in our tables; with `fixed_concepts` only CUBE's may stand.
    """

    name: Literal["public", "cspace", "prompts"]
    parts: Mapping[Part, str]
    needs: tuple[str, ...]
    countries: Literal["name", "iso"]
    statements: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    fixed_concepts: bool = False


PUBLIC = Layout(
    "public",
    {"id": "id", "name": "name", "country": "country", "concept": "domain", "prompt": "prompt"},
    ("id", "name", "country", "domain", "prompt"),
    "name",
    statements=("P31", "P279", "P495", "P17", "P2012", "P361"),
    fixed_concepts=True,
)
CSPACE = Layout(
    "cspace",
    {"id": "artifact_id", "name": "name", "country": "country", "concept": "concept", "subconcept": "subconcept"},
    ("artifact_id", "qid", "name", "concept", "country", "country_name", "source"),
    "iso",
    key=("concept", "country", "artifact_id"),
)
PROMPTS = Layout(
    "prompts",
    {
        "id": "artifact_id",
        "country": "country",
        "concept": "concept",
        "prompt": "text",
        "negative": "negative_text",
    },
    ("prompt_id", "text", "kind", "concept", "country", "artifact_id", "template_id"),
    "iso",
    key=("prompt_id",),
)
LAYOUTS = (PUBLIC, CSPACE, PROMPTS)


def layout_of(columns: Collection[str]) -> Layout | None:
    """Find the layout that columns belong to."""
    return next((layout for layout in LAYOUTS if set(layout.needs) <= set(columns)), None)
