"""From the cultural space to prompts: one per artifact, or such that leave the artifact open."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.builders.prompt_rows import (
    BENCHMARK,
    Wording,
    artifact_prompt,
    underspecified_prompts,
    within_country_prompts,
)
from culturekit.builders.prompt_templates import (
    NOTHING_ADDED,
    AddedTemplates,
    added_templates,
    open_templates,
)
from culturekit.builders.prompting.prompt_options import PromptOptions
from culturekit.builders.prompting.quotas import Group, Quotas, read_quotas
from culturekit.builders.prompting.review_sheet import Decisions, read_decisions, review_sheet
from culturekit.builders.prompting.selection import Selection, drop_of, fresh_quotas, select, unmet, without_public
from culturekit.builders.space.public_cube import (
    Key,
    Row,
    is_public_cube,
    key_of,
    keyed_rows,
    read_public_cube,
    read_rows,
)
from culturekit.builders.space.public_layout import public_rows, statements_of_file, write_public
from culturekit.builders.space.release_files import PUBLIC
from culturekit.builders.space.space_files import read_space
from culturekit.builders.translations import load_translations
from culturekit.counting import counted
from culturekit.errors import UsageError
from culturekit.kg.concept_words import ENGLISH
from culturekit.kg.concepts import Concept
from culturekit.records.choices import PromptKind
from culturekit.records.schemas import DIFFERENCES, PROMPTS, QUOTAS
from culturekit.records.work import Outcome, Work
from culturekit.storage.atomic import write_atomically
from culturekit.storage.tables import write_drops, write_table

__all__ = ["BENCHMARK", "REVIEW", "PromptOptions", "build_prompts", "check_words", "wordings_of"]

REVIEW = "review.csv"
"""The sheet of a draw, in the stage's folder."""

Rows = list[Mapping[str, Any]]

IN_NAME = "white space around the name"
"""The released text is the rebuilt one but for white space that stands around the name in it."""


def build_prompts(
    work: Work,
    cspace_path: Path,
    options: PromptOptions,
    *,
    seed: int,
    groups: Collection[Group] = (),
    concepts: Sequence[Concept] = (),
) -> Outcome:
    """Write the prompts of the wanted kinds, and the artifacts that no template fits.

    `groups` are the countries of the concepts' root configs: a quota is for each, also where the space has nothing.
    `concepts` are root configs, which may bring the words of their prompts.
    """
    options.check()
    space, unread = read_space(cspace_path)
    wordings = wordings_of(options, concepts)
    quotas = quotas_of(options)
    rows: Rows = []
    drops: Rows = list(unread.iter_rows(named=True))
    counts: dict[str, int] = {}
    notes: dict[str, object] = {}
    work.progress.begin(len(options.kinds), "kinds of prompt")
    for kind in options.kinds:
        if kind == "cube":
            selection, decisions = selected(space, quotas, options, wordings[0], seed=seed, groups=groups)
            made = [artifact_prompt(row, w) for w in wordings for row in selection.taken.iter_rows(named=True)]
            drops += selection.drops
            counts |= write_selection(work, selection, decisions, options, wordings[0])
            notes |= notes_of(quotas, selection, options)
            if options.public_layout:
                counts |= write_layout(work, cspace_path, selection, options, made)
            if is_public_cube(cspace_path) and is_whole(options):
                counts |= write_differences(work, cspace_path, made)
        else:
            write = underspecified_prompts if kind == "underspecified" else within_country_prompts
            made = [row for w in wordings for row in write(space, w)]
        rows += [row for row in made if "prompt_id" in row]
        drops += [row for row in made if "prompt_id" not in row]
        work.progress.advance(1)
    reasons = dict(Counter(drop["reason"] for drop in drops))
    if not rows:
        found = notes.get("findings", [])
        notes["findings"] = [nothing_made(cspace_path, space, reasons), *(found if isinstance(found, list) else [])]
    return Outcome({**write_prompts(work, rows, drops, options), **counts}, reasons, notes)


def nothing_made(path: Path, space: pl.DataFrame, reasons: Mapping[str, int]) -> str:
    """Say why no prompt was built."""
    if space.is_empty():
        return f"no prompt was built: {path.name} has no artifact"
    why = ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items()))
    return f"no prompt was built of {counted(space.height, 'artifacts')} in {path.name}: {why or 'none was drawn'}"


def write_prompts(work: Work, rows: Rows, drops: Rows, options: PromptOptions) -> dict[str, int]:
    """Write prompts and drops; a single language needs no pairs."""
    paired = options.languages != (ENGLISH,)
    schema = {**PROMPTS.schema, **({"pair_id": pl.String()} if paired else {})}
    prompts = pl.DataFrame([{name: row[name] for name in schema} for row in rows], schema=schema)
    write_table(work.out, PROMPTS, prompts)
    write_drops(work.out, drops, once=True)
    return {"prompts": prompts.height, "drops": len(drops)}


def wordings_of(options: PromptOptions, concepts: Iterable[Concept] = ()) -> list[Wording]:
    """Give the words of each wanted language: those shipped or translated, and over them those of root configs."""
    paths = [Path(path) for path in options.translations]
    found = dict(load_translations(paths, options.languages, options.templates))
    english = found.pop(ENGLISH, None)
    added = dict.fromkeys(options.languages, NOTHING_ADDED)
    if english is not None:
        added[ENGLISH] = AddedTemplates(english.artifact, english.underspecified, english.within_country)
    for concept in concepts:
        for language in set(concept.prompts) & set(added):
            added[language] = added_templates(concept.concept, concept.prompts[language]).over(added[language])
    return [Wording(options.templates, found.get(language), added[language]) for language in options.languages]


def check_words(concepts: Iterable[str], kinds: Sequence[PromptKind], wordings: Iterable[Wording]) -> None:
    """Refuse a concept that prompts of a wanted kind have no words for: it would be scored by those of others."""
    concepts = list(concepts)
    for wording in wordings:
        by_kind: Mapping[PromptKind, Collection[str]] = {
            "cube": {key.partition("/")[0] for key in wording.artifact.templates},
            "underspecified": {each for each in concepts if wording.leaving_open(each)},
            "within-country": {each for each in concepts if open_templates(wording.within_country, each)},
        }
        for kind in kinds:
            missing = [concept for concept in concepts if concept not in by_kind[kind]]
            if missing:
                part = {"cube": "artifact", "within-country": "within_country"}.get(kind, kind)
                raise UsageError(
                    f"no {wording.language} template for prompts of the kind {kind} about {', '.join(missing)}",
                    expected=f"`prompts: {{{wording.language}: {{{part}: ...}}}}` in the root config of the concept",
                    hint="Give that config in `concepts` or with --roots, or templates with --translations or in "
                    "`prompts: {translations: ...}`.",
                )


def quotas_of(options: PromptOptions) -> Quotas | None:
    """Find out how many artifacts each group gives; None where all are taken."""
    if options.per is not None:
        return Quotas({(None, None): options.per})
    if options.quota is not None:
        return read_quotas(options.quota)
    return None if options.public is None else fresh_quotas(read_public_cube(Path(options.public)).space)


def selected(
    space: pl.DataFrame,
    quotas: Quotas | None,
    options: PromptOptions,
    wording: Wording,
    *,
    seed: int,
    groups: Collection[Group],
) -> tuple[Selection, Decisions]:
    """Take what quotas, the draw, people's decisions and an earlier draw leave.

    What no template fits takes no place in a draw.
    """
    decisions = read_decisions([Path(path) for path in options.decisions], space)
    there = set(space.select("concept", "country").iter_rows())
    asked = there | {group for group in groups if quotas is not None and quotas.quota_of(group)}
    drops: Rows = []
    if options.draws:
        space, drops = with_template(space, wording)
    if options.public is not None:
        space, known = without_public(space, read_public_cube(Path(options.public)).space)
        drops += known
    draw = "" if options.draw == "seeded" else options.draw
    selection = select(space, quotas, decisions, seed=seed, draw=draw, groups=asked)
    return Selection(selection.taken, selection.seen, selection.quotas, (*drops, *selection.drops)), decisions


def with_template(space: pl.DataFrame, wording: Wording) -> tuple[pl.DataFrame, Rows]:
    """Leave out what would get no prompt, and of artifacts with the same prompt all but the best known."""
    made = [artifact_prompt(row, wording) for row in space.iter_rows(named=True)]
    texts = space.with_columns(text=pl.Series([row.get("text") for row in made], dtype=pl.String))
    ordered = texts.sort(pl.col("popularity").fill_null(-1.0), "artifact_id", descending=[True, False])
    first = ordered.drop_nulls("text").unique(["concept", "country", "text"], keep="first", maintain_order=True)
    doubles = ordered.drop_nulls("text").join(
        first.select("concept", "country", "text", chosen="artifact_id"), on=["concept", "country", "text"]
    )
    drops: Rows = [row for row in made if "prompt_id" not in row]
    drops += [
        drop_of(row, "same prompt as a better known artifact", row["chosen"])
        for row in doubles.iter_rows(named=True)
        if row["artifact_id"] != row["chosen"]
    ]
    return first.select(space.columns), drops


def write_selection(
    work: Work, selection: Selection, decisions: Decisions, options: PromptOptions, wording: Wording
) -> dict[str, int]:
    """Write the quotas beside what they got, and the sheet for the next review."""
    counts: dict[str, int] = {}
    if options.draws:
        write_table(work.out, QUOTAS, selection.quotas)
    seen = list(selection.seen.iter_rows(named=True))
    if options.review:
        texts = [artifact_prompt(row, wording).get("text") for row in seen]
        write_atomically(work.out / REVIEW, review_sheet(seen, texts, decisions))
    if options.review or options.decisions:
        verdicts = Counter(found.verdict if (found := decisions.decision_about(row)) else "undecided" for row in seen)
        words = {"accept": "accepted", "edit": "renamed", "reject": "rejected", "undecided": "undecided"}
        counts |= {words[verdict]: count for verdict, count in verdicts.items()}
    return counts


def notes_of(quotas: Quotas | None, selection: Selection, options: PromptOptions) -> dict[str, object]:
    """Say which quotas could not be met; a limit, which `per` is, may well not be reached."""
    if quotas is None:
        return {}
    short = unmet(quotas, selection.quotas)
    shown = [f"quota not met: {said}" for said in short[:20]]
    if len(short) > len(shown):
        shown.append(f"and {len(short) - len(shown)} more quotas not met: quotas.parquet has them all")
    return {"below_limit" if options.per is not None else "findings": shown} if shown else {}


def is_whole(options: PromptOptions) -> bool:
    """Tell whether a public file is rebuilt as it was released."""
    plain = options.templates == "released" and ENGLISH in options.languages
    return plain and not (options.draws or options.decisions)


def write_differences(work: Work, path: Path, made: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Hold the released text of a public file against what was built from its names."""
    differences, rebuilt = compare_texts(read_rows(path), english_texts(made))
    write_table(work.out, DIFFERENCES, differences)
    return {"rebuilt": rebuilt, "differences": differences.height}


def write_layout(
    work: Work, path: Path, selection: Selection, options: PromptOptions, made: Iterable[Mapping[str, Any]]
) -> dict[str, int]:
    """Write the artifacts and their English prompts as CUBE-1K was released."""
    source = path if options.statements is None else Path(options.statements)
    known = statements_of_file(source) if options.statements or is_public_cube(path) else {}
    texts = english_texts(made)
    taken = (row for row in selection.taken.iter_rows(named=True) if key_of(row) in texts)
    return {"public_rows": write_public(work.out / PUBLIC, public_rows(taken, texts, known))}


def english_texts(made: Iterable[Mapping[str, Any]]) -> dict[Key, str]:
    """Give the text of each English prompt by what it is about."""
    return {key_of(row): row["text"] for row in made if row.get("language") == ENGLISH}


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
