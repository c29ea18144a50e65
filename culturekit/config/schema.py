"""JSON Schemas of the YAML files people write, draft 7, which is what YAML editors read."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from culturekit.builders.captions.cultures import CaptionCulture
from culturekit.builders.prompt_templates import TemplateFile
from culturekit.config.recipe import Recipe
from culturekit.generation.linguistic_lists import Lists
from culturekit.generation.place_lists import PlaceList
from culturekit.generation.simulated.scenes.vocabulary import Vocabulary
from culturekit.index.folder.text_templates import TextTemplates
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import CountryFile
from culturekit.llm.models import Models
from culturekit.llm.prices import PriceList
from culturekit.records.choices import SchemaKind

__all__ = ["SHIPPED", "described", "schema_of"]

DRAFT_7 = "http://json-schema.org/draft-07/schema#"


SHIPPED: Mapping[SchemaKind, tuple[type[BaseModel], str]] = {
    "recipe": (Recipe, "recipes/recipe.schema.json"),
    "concept": (Concept, "kg/concepts/concept.schema.json"),
    "countries": (CountryFile, "kg/countries.schema.json"),
    "templates": (TemplateFile, "builders/wording/templates.schema.json"),
    "texts": (TextTemplates, "index/folder/texts.schema.json"),
    "prices": (PriceList, "llm/prices.schema.json"),
    "models": (Models, "llm/models.schema.json"),
    "scenes": (Vocabulary, "generation/simulated/scenes/vocabulary.schema.json"),
    "captions": (CaptionCulture, "builders/captions/cultures/culture.schema.json"),
    "linguistic": (Lists, "generation/linguistic_lists.schema.json"),
    "places": (PlaceList, "generation/places/places.schema.json"),
}
"""What a kind of file may say, and where in the package its schema lies, beside the files whose first line names it."""


def schema_of(kind: SchemaKind) -> dict[str, Any]:
    """Describe a kind of file for editors."""
    return described(kind, SHIPPED[kind][0])


def described(kind: SchemaKind, model: type[BaseModel]) -> dict[str, Any]:
    """Describe a kind of file whose model is not known here."""
    schema = as_draft_7(model.model_json_schema())
    return {"$schema": DRAFT_7, "title": f"culturekit {kind}", **{k: v for k, v in schema.items() if k != "title"}}


def as_draft_7(node: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Rewrite the words of later drafts: `$defs`, `prefixItems`, and keys beside a `$ref`."""
    if isinstance(node, list):
        return [as_draft_7(item) for item in node]
    if isinstance(node, str) and node.startswith("#/$defs/"):
        return node.replace("#/$defs/", "#/definitions/", 1)
    if not isinstance(node, dict):
        return node
    renamed = {"definitions" if key == "$defs" else key: as_draft_7(value) for key, value in node.items()}
    if "prefixItems" in renamed:
        renamed["items"] = renamed.pop("prefixItems")
        renamed["additionalItems"] = False
    if "$ref" in renamed and len(renamed) > 1:
        return {"allOf": [{"$ref": renamed.pop("$ref")}], **renamed}
    return renamed
