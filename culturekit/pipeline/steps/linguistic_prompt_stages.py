"""The stages that build prompts of the recipe `linguistic`: dialects, nouns of no group and of each, groups."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import Field

from culturekit.builders.prompting.dialect_corpus import corpus_digest, corpus_files
from culturekit.builders.prompting.dialect_grammar import GRAMMARS
from culturekit.builders.prompting.dialect_pairs import (
    PROPOSE_PAIRS,
    DialectOptions,
    DialectReads,
    build_dialects,
    pair_requests,
)
from culturekit.builders.prompting.linguistic_prompts import PRINTED, neutral_prompts, prompt_table, specific_prompts
from culturekit.builders.prompting.review_sheet import cell_mistakes, decided_rows, decision_of
from culturekit.builders.prompting.wordnet import mend_wordnet, nouns_below, wordnet_folder
from culturekit.builders.space.spreadsheet_rows import sheet_bytes
from culturekit.builders.wordings import wording_digest
from culturekit.errors import UsageError
from culturekit.generation.linguistic_lists import LISTS, load_lists
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.models import quoted
from culturekit.pipeline.steps.asking_stage import AskPlan, asking_stage, plan_to_ask
from culturekit.pipeline.steps.review_stages import named_by_content
from culturekit.records.schemas import NEUTRAL_CANDIDATES, PROMPTS
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.stages.stage_command import AskingCommand, StageCommand, Typed
from culturekit.storage.atomic import write_atomically
from culturekit.storage.manifest import InputRecord
from culturekit.storage.package_data import shipped
from culturekit.storage.tables import read_table, table_outcome, write_table

__all__ = [
    "DIALECTS", "MEND", "NEUTRAL", "SPECIFIC", "NounOptions", "NounReads", "SpecificReads", "dialects_stage",
    "joined_prompts_stage", "neutral_stage", "specific_stage", "wordnet_stage",
]  # fmt: skip

REVIEW = "review.csv"
COLUMNS = ("synset", "noun", "term", "definition", "decision", "new_name")
TERMS = ("establishment.n.04", "building.n.01", "meal.n.01", "course.n.07")
"""Synsets whose hyponyms are candidates: places of business, buildings, meals and their courses."""


def listed(given: Path | None) -> dict[str, Path]:
    """Name the file of lists."""
    return {"lists": shipped(LISTS) if given is None else given}


def corpus_record(place: Path, final: Path) -> InputRecord:
    """Know a corpus by all that its files hold."""
    del final
    return InputRecord(corpus_digest(place), "a corpus")


def dialects_stage(given: DialectReads, options: DialectOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Build prompts in two dialects.

    Pairs of a list or of a model, met in corpora, and grammatical.
    """
    client = None if options.proposer is None else CLIENTS.make(options.proposer)
    GRAMMARS.check(options.grammar)
    if client is not None and given.lists is not None:
        raise UsageError("pairs are proposed (--llm) or listed (--lists)", expected="one of them")
    corpora = {"standard-corpus": given.standard_corpus, "other-corpus": given.other_corpus}
    texts = {side: place for side, place in corpora.items() if place is not None and any(corpus_files(place))}
    inputs = {**texts, **({} if client is not None else listed(given.lists))}

    def run(work: Work) -> Outcome:
        return build_dialects(work, given, options, client, llm)

    decided = {name: value for name, value in asdict(options).items() if name != "proposer"}
    trees = {side: partial(corpus_record, place) for side, place in texts.items() if place.is_dir()}
    stage = Stage("prompts", "build-dialects", 2, run, inputs, decided, packages=("msgspec", "polars"), trees=trees)
    if client is None or options.proposer is None:
        return stage

    def plan(out: Path, _: object) -> AskPlan:
        return plan_to_ask(client, "questions", pair_requests(options), out, llm)

    words = {"task": PROPOSE_PAIRS, "wording": wording_digest("dialects_propose")}
    stage = replace(stage, version=3, options={**decided, **words})
    return asking_stage(stage, options.proposer, client, unit="questions", plan=plan, ahead=True, go_on=llm.go_on)


@dataclass(frozen=True, slots=True)
class NounReads:
    """Where nouns come from: a list, WordNet, or a sheet that people filled in."""

    lists: Annotated[Path | None, Field(description="YAML with `nouns` and `groups`. [the shipped lists]")] = None
    wordnet: Annotated[
        Path | None, Field(description="NLTK's data folder: its nouns below --term become candidates on a sheet.")
    ] = None
    review: Annotated[
        Path | None, Field(description="The sheet, filled in: prompts are about the nouns that people accept.")
    ] = None


@dataclass(frozen=True, slots=True)
class NounOptions:
    """Which nouns."""

    nouns: Annotated[int | None, Field(ge=1, description="How many nouns of the list. [all]")] = None
    terms: Annotated[
        tuple[str, ...],
        Field(description="Synset whose hyponyms are candidates; repeatable."),
        Typed("term", needs="wordnet"),
    ] = TERMS


ALL_NOUNS = NounOptions()


def neutral_stage(given: NounReads, options: NounOptions = ALL_NOUNS) -> Stage:
    """Build prompts about nouns, of no group and of each.

    With --wordnet a sheet of nouns to look at.
    """
    if given.wordnet is not None:
        idle = {"lists": given.lists, "review": given.review, "nouns": options.nouns}
        if given_besides := [f"--{name}" for name, value in idle.items() if value is not None]:
            raise UsageError("--wordnet gives a sheet to look at, and no prompts", expected="--wordnet, with --term",
                             found=", ".join(given_besides))  # fmt: skip
        return candidates_stage(given.wordnet, options.terms)

    def run(work: Work) -> Outcome:
        known = load_lists(given.lists)
        nouns = known.nouns if given.review is None else accepted(given.review)
        if (options.nouns or 0) > len(nouns):
            raise UsageError(
                "there are fewer nouns than prompts are to be about", expected=f"--nouns of at most {len(nouns)}",
                found=str(options.nouns), where=str(given.review or given.lists or "the shipped lists"),
            )  # fmt: skip
        table = prompt_table(neutral_prompts(nouns[: options.nouns], known.groups))
        write_table(work.out, PROMPTS, table)
        return Outcome({"prompts": table.height, "nouns": len(nouns[: options.nouns])})

    inputs = {**listed(given.lists), **({} if given.review is None else {"review": given.review})}
    trees = {} if given.review is None else {"review": partial(named_by_content, given.review)}
    return Stage("prompts", "build-neutral", 1, run, inputs, {"nouns": options.nouns}, trees=trees)


def candidates_stage(folder: Path, terms: tuple[str, ...]) -> Stage:
    """List the nouns below terms, and write the sheet on which people say which are neutral."""
    place = wordnet_folder(folder)

    def run(work: Work) -> Outcome:
        found = nouns_below(folder, terms)
        rows = [asdict(noun) for noun in found]
        write_table(work.out, NEUTRAL_CANDIDATES, pl.DataFrame(rows, schema=NEUTRAL_CANDIDATES.schema))
        cells = [{**row, "decision": "", "new_name": ""} for row in rows]
        write_atomically(work.out / REVIEW, sheet_bytes(COLUMNS, cells))
        return Outcome({"neutral_candidates": len(found)})

    inputs = {name: place / name for name in ("data.noun", "index.noun")}
    return Stage("prompts", "neutral-candidates", 1, run, inputs, {"terms": list(terms)}, packages=("nltk", "polars"))


def accepted(sheet: Path) -> tuple[str, ...]:
    """Read the nouns that people accept, some under another name; a noun that is accepted twice counts once."""
    names: dict[str, str] = {}

    decided = decided_rows(sheet, ("synset", "noun", "decision"), lambda row: (row.cells["synset"], row.cells["noun"]),
                           cell_mistakes, decision_of)  # fmt: skip
    for (_, noun), decision in decided.items():
        if decision is not None and decision.verdict != "reject":
            said = decision.name or noun
            names.setdefault(said.casefold(), said)
    if not names:
        raise UsageError(
            "people accepted no noun", where=str(sheet), expected="accept, or edit with a new name, in some row"
        )
    return tuple(names[key] for key in sorted(names))


@dataclass(frozen=True, slots=True)
class SpecificReads:
    """Where prompts about groups come from."""

    lists: Annotated[Path | None, Field(description="YAML with `specific`. [the shipped lists]")] = None


NO_LISTS = SpecificReads()


def specific_stage(given: SpecificReads = NO_LISTS) -> Stage:
    """Build prompts about the places of groups."""

    def run(work: Work) -> Outcome:
        table = prompt_table(specific_prompts(load_lists(given.lists).specific))
        write_table(work.out, PROMPTS, table)
        return Outcome({"prompts": table.height, "printed": table.filter(template_id=PRINTED).height})

    return Stage("prompts", "build-specific", 2, run, listed(given.lists))


def joined_prompts_stage(tables: Mapping[str, Path]) -> Stage:
    """Put prompts of several kinds into one table; a kind without any is refused before images of others are bought."""

    def run(work: Work) -> Outcome:
        parts = {kind: read_table(path, PROMPTS).select(list(PROMPTS.schema)) for kind, path in tables.items()}
        for kind, path in tables.items():
            if parts[kind].is_empty():
                hint = f"What became of proposals stands in {path.parent}; ask another model, or leave the kind out."
                raise UsageError(f"there are no prompts of {kind}", where=str(path), hint=hint)
        every = pl.concat(list(parts.values()))
        return table_outcome(work, PROMPTS, every.sort(PROMPTS.key))

    return Stage("prompts", "joined-prompts", 1, run, dict(tables))


@dataclass(frozen=True, slots=True)
class WordnetReads:
    """WordNet as Debian has it."""

    source: Annotated[Path, Field(description="Folder of wordnet-base, such as /usr/share/wordnet.")]


def wordnet_stage(given: WordnetReads) -> Stage:
    """Make a data folder of NLTK of Debian's WordNet.

    With `lexnames` and `index.sense`, which it leaves out.
    """

    def run(work: Work) -> Outcome:
        return Outcome({"senses": mend_wordnet(given.source, work.out)})

    return Stage("wordnet", "mend-wordnet", 1, run, {"source": given.source / "data.noun"})


DIALECTS = AskingCommand(
    dialects_stage,
    f"--llm {quoted('text')} --standard-corpus tweets/sae --other-corpus tweets/aae --out prompts",
)
NEUTRAL = StageCommand(neutral_stage, "--review review.csv --out prompts")
SPECIFIC = StageCommand(specific_stage, "--out prompts")
MEND = StageCommand(wordnet_stage, "--source /usr/share/wordnet --out nltk_data", also=False)
