"""The JSON Schema of a recipe, draft 7, which is what YAML editors read."""

from typing import Any

from culturekit.config.recipe import Recipe

__all__ = ["recipe_schema"]

DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def recipe_schema() -> dict[str, Any]:
    """Describe a recipe for editors."""
    schema = as_draft_7(Recipe.model_json_schema())
    return {"$schema": DRAFT_7, "title": "culturekit recipe", **{k: v for k, v in schema.items() if k != "title"}}


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
