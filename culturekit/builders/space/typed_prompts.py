"""Prompts that a person typed: a CSV file of sentences and what each is about, or the names of their pictures."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from culturekit.builders.country_names import countries_in
from culturekit.builders.prompt_templates import templates
from culturekit.builders.space.public_cube import CONCEPTS
from culturekit.builders.space.spreadsheet_rows import SheetRow, read_sheet_rows, sheet_bytes
from culturekit.errors import ConfigError, Problem
from culturekit.records.schemas import DROPS, PROMPTS
from culturekit.storage.digests import digest

BENCHMARK = "prompts"
NEEDED = ("prompt", "concept")
OPTIONAL = ("id", "country", "language")
COUNTED = re.compile(r"(?:[\s_.-]+|(?<=\D))\(?\d+(?:[-_.]\d+)*\)?$")
"""The number that tells the pictures of a prompt apart, at the end of a name."""


SHORTEST = 4
"""Letters of a word that tells a concept: `a` and `of` tell none."""


def is_typed(path: Path) -> bool:
    """Tell by its suffix whether a file of prompts was typed by hand."""
    return path.suffix.lower() == ".csv"


def read_typed_prompts(path: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read sentences, each with its concept, and what is left out: repetitions, and columns that mean nothing.

    Raises:
        ConfigError: all problems, each with its line.
    """
    rows = read_sheet_rows(path, NEEDED)
    columns = sorted({name for row in rows for name in row.cells} - {*NEEDED, *OPTIONAL, ""})
    drops = [dropped(name, None, "column not read", None) for name in columns]
    found: dict[str, dict[str, Any]] = {}
    problems: list[Problem] = []
    for row in rows:
        read = prompt_of(row)
        if isinstance(read, str):
            problems.append(Problem(read, str(path), row.line))
        elif read["prompt_id"] not in found:
            found[read["prompt_id"]] = read
        elif found[read["prompt_id"]] == read:
            drops.append(dropped(f"line {row.line}", read["concept"], "duplicate", read["text"]))
        else:
            problems.append(
                Problem(f"the id {read['prompt_id']!r} stands for another prompt above", str(path), row.line)
            )
    if not rows:
        problems.append(Problem("there is no prompt: expected a row for each, under prompt,concept", str(path), 1))
    if problems:
        raise ConfigError(problems)
    return pl.DataFrame(list(found.values()), schema=PROMPTS.schema), pl.DataFrame(drops, schema=DROPS.schema)


def prompt_of(row: SheetRow) -> dict[str, Any] | str:
    """Make a row of the table of prompts, or say what is wrong with it."""
    text, concept = row.cells["prompt"], row.cells["concept"].casefold()
    if not text or not concept:
        return f"there is no {'concept' if text else 'prompt'}"
    stated = row.cells.get("country", "")
    places = countries_in(stated) if stated else []
    if len(places) > 1 or any(place.problem for place in places):
        problem = places[0].problem if len(places) == 1 else "several countries"
        return f"{problem} {stated!r}: expected the name, code or item of one"
    concept, country = CONCEPTS.get(concept, concept), places[0].iso if places else None
    language = row.cells.get("language") or "en"
    return {
        "prompt_id": row.cells.get("id") or f"{concept}-{digest([text, concept, country, language])[:10]}",
        "text": text,
        "negative_text": None,
        "benchmark": BENCHMARK,
        "kind": "within-country" if country else "underspecified",
        "concept": concept,
        "country": country,
        "group": None,
        "artifact_id": None,
        "language": language,
        "template_id": "typed",
    }


def dropped(key: str, concept: str | None, reason: str, detail: str | None) -> dict[str, Any]:
    """Make a row of what is left out."""
    return {"key": key, "concept": concept, "stage": "read", "reason": reason, "detail": detail}


def sentences_in(names: Iterable[str]) -> list[str]:
    """Read the prompts off the names of their pictures: `Image of a bowl of soup__3.jpg`, or a folder for each."""
    found = set()
    for name in names:
        path = PurePosixPath(name)
        text = words_of(COUNTED.sub("", path.stem))
        found.add(text if any(map(str.isalpha, text)) else words_of(path.parent.name))
    return sorted(text for text in found if " " in text)


def words_of(name: str) -> str:
    """Write a part of a name as words."""
    return " ".join(re.sub(r"[_\s]+", " ", name).split())


def concept_of(text: str, concepts: Collection[str]) -> str | None:
    """Tell which concept of a space a sentence is about, by its words; None where none or several may be meant."""
    if len(concepts) == 1:
        return next(iter(concepts))
    said = text.casefold()
    whole = [one for one in concepts if any(said == known.casefold() for known in spoken_of(one))]
    named = whole or [one for one in concepts if re.search(rf"\b{re.escape(one)}\b", said)]
    named = named or [one for one in concepts if any(word in said for word in words_about(one))]
    return named[0] if len(named) == 1 else None


def spoken_of(concept: str) -> Sequence[str]:
    """Give the shipped prompts that leave a concept's artifact open."""
    return templates().underspecified.get(concept, ())


def words_about(concept: str) -> Sequence[str]:
    """Give the word of a concept's shipped prompts that no other concept's have, such as `food`."""
    everywhere: Mapping[str, set[str]] = {
        name: {word for text in texts for word in text.casefold().split() if len(word) >= SHORTEST}
        for name, texts in templates().underspecified.items()
    }
    others = set().union(*(words for name, words in everywhere.items() if name != concept))
    return sorted(everywhere.get(concept, set()) - others)


def typed_bytes(rows: Sequence[tuple[str, str]]) -> bytes:
    """Write sentences and their concepts as a CSV file for a person to read and change."""
    return sheet_bytes(NEEDED, [dict(zip(NEEDED, row, strict=True)) for row in rows])
