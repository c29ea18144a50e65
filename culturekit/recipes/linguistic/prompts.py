"""Lists of nouns, groups and pairs from YAML, and prompts of them: of no group, of each, and of places of groups."""

import re
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import polars as pl
from pydantic import Field, model_validator

from culturekit.core.declared import StageCommand, Typed, builds, staged
from culturekit.core.errors import UsageError
from culturekit.core.package_data import shipped
from culturekit.core.schemas import PROMPTS
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import read_table, table_outcome, write_table
from culturekit.core.yaml_source import StrictModel, load_model
from culturekit.people.candidate_review import named_by_content
from culturekit.recipes.linguistic.wordnet import TERMS, accepted_nouns, candidates_stage

LISTS = "recipes/linguistic/linguistic_lists.yaml"
PAPER, UNREVIEWED = "from the paper", "proposed, unreviewed"  # where a pair is from
VOWELS = frozenset("aeiou")
CONSONANT_SOUNDS = ("eu", "uni", "use")  # words that begin with a vowel and sound otherwise


class Group(StrictModel):
    """A group that neutral prompts are held against: its name, its code in dials, and its adjective."""

    name: str
    code: str
    adjective: str


class SpecificGroup(StrictModel):
    """A group with prompts of its own, some of which are printed in the paper."""

    group: str
    code: str
    prompts: tuple[str, ...]
    printed: tuple[str, ...] = ()

    @model_validator(mode="after")
    def printed_are_prompts(self) -> Self:
        """Refuse a printed prompt that is not among the prompts."""
        if unknown := [text for text in self.printed if text not in self.prompts]:
            raise ValueError(f"{unknown[0]!r} is printed, and not among the prompts of {self.group}")
        return self


class DialectPair(StrictModel):
    """One thing in two dialects, and sentences with a gap for either; `literal` is what else the other may mean.

    A pair without a `dialect` is of any; `source` is where a reader can look the word up.
    """

    standard: str
    other: str
    literal: str = ""
    dialect: str = ""
    origin: Literal["from the paper", "proposed, unreviewed", "reviewed", "listed"] = "listed"
    source: str = ""
    frames: Annotated[tuple[str, ...], Field(min_length=1)]


class Lists(StrictModel):
    """Everything that is asked for; a list that is left out is the shipped one."""

    nouns: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()
    specific: tuple[SpecificGroup, ...] = ()
    pairs: tuple[DialectPair, ...] = ()

    def pairs_of(self, dialect: str) -> tuple[DialectPair, ...]:
        """Select the pairs of a dialect; AAVE is another name of AAE."""
        return tuple(pair for pair in self.pairs if pair.dialect in ("", "AAE" if dialect == "AAVE" else dialect))


@cache
def shipped_lists() -> Lists:
    """Read the shipped lists."""
    return load_model(shipped(LISTS), Lists)


def load_lists(path: Path | None) -> Lists:
    """Read lists of the user; what they leave out is as shipped."""
    if path is None:
        return shipped_lists()
    stated = load_model(path, Lists)
    return shipped_lists().model_copy(update={name: getattr(stated, name) for name in stated.model_fields_set})


def lists_input(path: Path | None) -> dict[str, Path]:
    """Name the file of lists as an input of a stage."""
    return {"lists": shipped(LISTS) if path is None else path}


def article(words: str) -> str:
    """Put a or an before words, by how they begin."""
    first = words.casefold()
    return f"{'an' if first[:1] in VOWELS and not first.startswith(CONSONANT_SOUNDS) else 'a'} {words}"


BENCHMARK = "linguistic"

# Where a prompt about a group is from: its template.
PRINTED, WRITTEN = "printed in the paper", "not printed"


def slug(text: str) -> str:
    """Write a text as a part of an id."""
    return re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-") or "x"


def prompt_row(
    prompt_id: str, text: str, kind: str, *, group: str | None, thing: str | None, template: str
) -> dict[str, Any]:
    """Write one prompt."""
    return {
        "prompt_id": prompt_id, "text": text, "benchmark": BENCHMARK, "kind": kind, "group": group,
        "artifact_id": thing, "language": "en", "template_id": template,
    }  # fmt: skip


def neutral_stage(
    lists: Annotated[Path | None, Field(description="YAML with `nouns` and `groups`. [the shipped lists]")] = None,
    wordnet: Annotated[
        Path | None, Field(description="NLTK's data folder: its nouns below --term become candidates on a sheet.")
    ] = None,
    review: Annotated[
        Path | None, Field(description="The sheet, filled in: prompts are about the nouns that people accept.")
    ] = None,
    *,
    nouns: Annotated[int | None, Field(ge=1, description="How many nouns of the list. [all]")] = None,
    terms: Annotated[
        tuple[str, ...],
        Field(description="Synset whose hyponyms are candidates; repeatable."),
        Typed("term", needs="wordnet"),
    ] = TERMS,
) -> Stage:
    """Build prompts about nouns, of no group and of each.

    With --wordnet a sheet of nouns to look at.
    """
    if wordnet is not None:
        idle = {"lists": lists, "review": review, "nouns": nouns}
        if given := [f"--{name}" for name, value in idle.items() if value is not None]:
            raise UsageError("--wordnet gives a sheet to look at, and no prompts", expected="--wordnet, with --term",
                             found=", ".join(given))  # fmt: skip
        return candidates_stage(wordnet, terms)

    def run(work: Work) -> Outcome:
        known = load_lists(lists)
        listed = known.nouns if review is None else accepted_nouns(review)
        if (nouns or 0) > len(listed):
            raise UsageError(
                "there are fewer nouns than prompts are to be about", expected=f"--nouns of at most {len(listed)}",
                found=str(nouns), where=str(review or lists or "the shipped lists"),
            )  # fmt: skip
        rows = _neutral_prompts(listed[:nouns], known.groups or shipped_lists().groups)
        write_table(work.out, PROMPTS, pl.DataFrame(rows, schema=PROMPTS.schema).sort(PROMPTS.key))
        return Outcome({"prompts": len(rows), "nouns": len(listed[:nouns])})

    inputs = {**lists_input(lists), **({} if review is None else {"review": review})}
    trees = {} if review is None else {"review": partial(named_by_content, review)}
    return Stage("prompts", "build-neutral", 1, run, inputs, {"nouns": nouns}, trees=trees)


def _neutral_prompts(nouns: Sequence[str], groups: Sequence[Group]) -> list[dict[str, Any]]:
    """Write each noun with `typical`, and with the adjective of each group in its place."""
    words: list[tuple[str, str, str | None, str]] = [("typical", "typical", None, "typical")]
    words += [(group.code.lower(), group.adjective, group.name, "specified") for group in groups]
    return [
        prompt_row(f"neutral-{slug(noun)}-{key}", article(f"{word} {noun}"), "neutral", group=group, thing=noun,
                   template=template)
        for noun in nouns for key, word, group, template in words
    ]  # fmt: skip


@builds(
    "build-specific", "prompts", version=2, packages=("numpy", "polars"), example="--out prompts",
    reads=lambda given: lists_input(given["lists"]),
)  # fmt: skip
def specific(
    work: Work, lists: Annotated[Path | None, Field(description="YAML with `specific`. [the shipped lists]")] = None,
) -> Outcome:  # fmt: skip
    """Build prompts about the places of groups."""
    rows = [
        prompt_row(f"specific-{slug(each.group)}-{number:02}", text, "specific", group=each.group, thing=None,
                   template=PRINTED if text in each.printed else WRITTEN)
        for each in load_lists(lists).specific for number, text in enumerate(each.prompts, start=1)
    ]  # fmt: skip
    write_table(work.out, PROMPTS, pl.DataFrame(rows, schema=PROMPTS.schema).sort(PROMPTS.key))
    return Outcome({"prompts": len(rows), "printed": sum(row["template_id"] == PRINTED for row in rows)})


NEUTRAL = StageCommand(neutral_stage, "--review review.csv --out prompts")


@staged("joined-prompts", "prompts", reads=lambda given: given["tables"])
def joined_prompts_stage(work: Work, tables: Mapping[str, Path]) -> Outcome:
    """Put prompts of several kinds into one table; a kind without any is refused before images of others are bought."""
    parts = []
    for kind, path in tables.items():
        parts.append(read_table(path, PROMPTS).select(list(PROMPTS.schema)))
        if parts[-1].is_empty():
            hint = f"What became of proposals stands in {path.parent}; ask another model, or leave the kind out."
            raise UsageError(f"there are no prompts of {kind}", where=str(path), hint=hint)
    return table_outcome(work, PROMPTS, pl.concat(parts).sort(PROMPTS.key))
