"""What the columns of a release mean, in one line each."""

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["meaning_of"]

MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "artifact_id": "the Wikidata item, or LLM: and a slug of the name where none is known",
        "qid": "the Wikidata item",
        "name": "what the artifact is called",
        "concept": "cuisine, landmarks, art, or another concept of the release",
        "subconcept": "a finer kind within the concept",
        "country": "ISO 3166-1 alpha-2 code of the country",
        "country_name": "English name of the country",
        "continent": "continent of the country",
        "source": "wikidata where a walk found it, llm where a model proposed it, list where a person's file names it",
        "popularity": "rank within country and concept, 1 for the best known",
        "popularity_source": "what the rank was made of",
        "path": "items from the root class to the artifact, as a walk found them",
        "country_order": "0 for the country that the item states first",
        "aliases": "other names",
        "verdict": "keep, or review where nobody kept it and it waits for a person to look at",
        "prompt_id": "stable id of the prompt",
        "text": "what a model is asked for",
        "negative_text": "what a model is asked to leave out",
        "benchmark": "the benchmark that the prompt belongs to",
        "kind": "whether the prompt names an artifact, a country, or neither",
        "group": "the group of people or places that the prompt is about",
        "language": "language of the text",
        "template_id": "the template that the prompt was made with",
        "key": "what was left out",
        "stage": "the stage that left it out",
        "reason": "why",
        "detail": "what the reason is about",
    }
)


def meaning_of(column: str) -> str:
    """Say what a column means; nothing where it is not one of ours."""
    return MEANINGS.get(column, "")
