"""Prompts of the recipe `linguistic`: two dialects of one sentence, nouns of no group and of each, places of groups."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from culturekit.generation.linguistic_lists import DialectPair, Group, SpecificGroup, neutral_texts
from culturekit.records.schemas import PROMPTS

__all__ = ["PRINTED", "dialect_prompts", "neutral_prompts", "prompt_table", "specific_prompts"]

BENCHMARK = "linguistic"
PRINTED, WRITTEN = "printed in the paper", "not printed"
"""Where a prompt about a group is from: its template."""


def slug(text: str) -> str:
    """Write a text as a part of an id."""
    return re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-") or "x"


def prompt(prompt_id: str, text: str, kind: str, group: str | None, thing: str | None, template: str) -> dict[str, Any]:
    """Write one prompt."""
    return {
        "prompt_id": prompt_id, "text": text, "benchmark": BENCHMARK, "kind": kind, "group": group,
        "artifact_id": thing, "language": "en", "template_id": template,
    }  # fmt: skip


def dialect_prompts(pairs: Sequence[DialectPair], *, standard: str, other: str) -> list[dict[str, Any]]:
    """Write each sentence of each pair in both dialects; a sentence and its counterpart share thing and template."""
    found = []
    for number, pair in enumerate(pairs, start=1):
        thing = f"{pair.other} ({pair.standard})"
        for place, frame in enumerate(pair.frames, start=1):
            for dialect, word in ((standard, pair.standard), (other, pair.other)):
                key = f"dialect-{number:03}-{slug(pair.other)}-{place}-{slug(dialect)}"
                found.append(prompt(key, frame.format(word), "dialect", dialect, thing, f"frame-{place}"))
    return found


def neutral_prompts(nouns: Sequence[str], groups: Sequence[Group] = ()) -> list[dict[str, Any]]:
    """Write each noun with `typical`, and with the adjective of each group."""
    found = []
    for each in neutral_texts(nouns, groups):
        code, name, template = ("typical", None, "typical")
        if each.group is not None:
            code, name, template = each.group.code.lower(), each.group.name, "specified"
        found.append(prompt(f"neutral-{slug(each.noun)}-{code}", each.text, "neutral", name, each.noun, template))
    return found


def specific_prompts(groups: Iterable[SpecificGroup]) -> list[dict[str, Any]]:
    """Write the prompts about groups; their template says whether the paper prints them."""
    return [
        prompt(
            f"specific-{slug(each.group)}-{place:02}",
            text,
            "specific",
            each.group,
            None,
            PRINTED if text in each.printed else WRITTEN,
        )
        for each in groups
        for place, text in enumerate(each.prompts, start=1)
    ]


def prompt_table(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Put prompts together, in the order of their ids."""
    return pl.DataFrame(rows, schema=PROMPTS.schema).sort(PROMPTS.key)
