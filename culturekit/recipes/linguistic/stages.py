"""The stages of the recipe `linguistic` that no other has: who is asked about what, and who knows better."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import polars as pl
from pydantic import Field

from culturekit.builders.asked_rows import wording_digest
from culturekit.builders.asking import AskPlan, asking_stage, plan_to_ask
from culturekit.builders.judging.simulated_people import SimulatedPeople, is_careless, person_draws, step
from culturekit.builders.prompting.dialects import (
    GRAMMARS,
    PRINTED,
    PROPOSE_PAIRS,
    DialectOptions,
    DialectReads,
    build_dialects,
    corpus_digest,
    corpus_files,
    neutral_prompts,
    pair_requests,
    prompt_table,
    specific_prompts,
)
from culturekit.builders.prompting.quotas import cell_mistakes, decided_rows, decision_of
from culturekit.builders.prompting.wordnet import mend_wordnet, nouns_below, wordnet_folder
from culturekit.builders.space.space_files import sheet_bytes
from culturekit.core.atomic import write_atomically
from culturekit.core.digests import InputRecord
from culturekit.core.errors import UsageError
from culturekit.core.inputs import roles
from culturekit.core.package_data import shipped
from culturekit.core.schemas import ANNOTATIONS, AUDIT_SAMPLE, CAPTIONS, IMAGES, NEUTRAL_CANDIDATES, PROMPTS
from culturekit.core.stage import Stage
from culturekit.core.stage_command import AskingCommand, StageCommand, Typed
from culturekit.core.tables import read_table, table_outcome, write_table
from culturekit.core.work import Outcome, Work
from culturekit.generation.linguistic_lists import LISTS, load_lists
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.models import quoted
from culturekit.metrics.linguistic.tone_histograms import MONK_TONES
from culturekit.people.candidate_review import named_by_content
from culturekit.people.rated_sample import Answering
from culturekit.people.scheme import Scheme
from culturekit.people.stages import filled_in_stage

# The stages that build prompts of the recipe `linguistic`: dialects, nouns of no group and of each, groups.

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


DIALECT_FORM, PLACE_FORM = "linguistic_dialect", "linguistic"
"""The forms that people fill in about people and about places."""

TRUTH, TONE, CORRECT = "truth", "monk_tone", "correct"
YES, NO, NOBODY = "yes", "no", "none"


def question_captions_stage(pairs: Sequence[tuple[str, str]]) -> Stage:
    """Write the captions that pictures are asked about, each its own id."""

    def run(work: Work) -> Outcome:
        texts = sorted({caption for pair in pairs for caption in pair})
        rows = [(text, text, "question", "", "en", 0, None) for text in texts]
        return table_outcome(work, CAPTIONS, pl.DataFrame(rows, schema=CAPTIONS.schema, orient="row"))

    return Stage("question-captions", "question-captions", 1, run, {}, {"pairs": [list(pair) for pair in pairs]})


def even_sample_stage(images: Sequence[Path], prompts: Path, *, count: int, seed: int) -> Stage:
    """Draw so many images of each model that were made for these prompts, each with the same chance."""

    def run(work: Work) -> Outcome:
        asked = read_table(prompts, PROMPTS).select("prompt_id")
        parts = []
        for path in images:
            made = read_table(path, IMAGES).filter(status="ok").join(asked, on="prompt_id", how="semi").sort("image_id")
            if made.is_empty():
                raise UsageError("no image was made for these prompts", where=str(path))
            drawn = made[np.random.default_rng(seed).permutation(made.height)[:count].tolist()]
            parts.append(drawn.select(
                "image_id", "model", "concept", "prompt_id", stratum=pl.lit("all"),
                chance=pl.lit(drawn.height / made.height),
            ))  # fmt: skip
        sample = pl.concat(parts).select(list(AUDIT_SAMPLE.schema)).sort(AUDIT_SAMPLE.key)
        return table_outcome(work, AUDIT_SAMPLE, sample)

    inputs = {**roles("images", list(images)), "prompts": prompts}
    return Stage("drawn", "even-sample", 1, run, inputs, {"count": count}, {"sample": seed})


def known_truth_stage(images: Sequence[Path]) -> Stage:
    """Write down what simulated portraits and places truly show, as somebody who never errs answers the forms."""

    def run(work: Work) -> Outcome:
        rows = []
        for path in images:
            made = read_table(path, IMAGES).filter(status="ok")
            if "truth_scene" not in made.columns:
                raise UsageError("these images do not come with the truth", where=str(path),
                                 expected="images of simulated-portraits")  # fmt: skip
            for image, scene in made.select("image_id", "truth_scene").sort("image_id").iter_rows():
                rows += answers_about(image, msgspec.json.decode(scene))
        table = pl.DataFrame(rows, schema=ANNOTATIONS.schema, orient="row").sort(ANNOTATIONS.key)
        return table_outcome(work, ANNOTATIONS, table)

    return Stage("truth", "portrait-truth", 1, run, roles("images", list(images)), packages=("msgspec", "polars"))


def answers_about(image: str, scene: Mapping[str, Any]) -> list[tuple[object, ...]]:
    """Answer the form about one picture."""

    def answer(scheme: str, criterion: str, value: float | None, choice: str | None) -> tuple[object, ...]:
        return image, TRUTH, TRUTH, None, scheme, criterion, value, choice, None, None, []

    if "looks" in scene:
        return [answer(PLACE_FORM, name, 1 + 4 * share, None) for name, share in scene["looks"].items()]
    tone = scene["tone"]
    return [
        answer(DIALECT_FORM, CORRECT, None, YES if scene["correct"] else NO),
        answer(DIALECT_FORM, TONE, tone, NOBODY if tone is None else str(tone)),
    ]


def simulated_choices_stage(project: Path, truth: Path, how: SimulatedPeople, *, seed: int) -> Stage:
    """Let simulated people fill in a form who know the truth: some choices miss it, and ratings scatter."""

    def answering(scheme: Scheme) -> Answering:
        said = read_table(truth, ANNOTATIONS).filter(scheme=scheme.name)
        known = {(row["item_id"], row["criterion"]): row for row in said.iter_rows(named=True)}
        return partial(filled, scheme=scheme, known=known, how=how, seed=seed)

    stage = filled_in_stage("simulated-choices", project, {"truth": truth}, answering, how, seed=seed)
    return replace(stage, name="answers")


def filled(
    person: str, row: Mapping[str, Any], *, scheme: Scheme, known: Mapping[tuple[str, str], Mapping[str, Any]],
    how: SimulatedPeople, seed: int,
) -> Mapping[str, str]:  # fmt: skip
    """Answer every question about one item as one person would."""
    own = person_draws(person, row["item_id"], "again" if row["kind"] != "item" else "first", seed=seed)
    careless, answers = is_careless(person, how, seed=seed), {}
    for criterion in scheme.criteria:
        options = [option.value for option in criterion.options or ()]
        deserved = known.get((row["item_id"], criterion.name))
        if careless or deserved is None:
            answers[criterion.name] = options[int(own.integers(len(options)))] if options else str(own.integers(1, 6))
        elif options:
            answers[criterion.name] = chosen(deserved["choice"], options, how, own)
        else:
            answers[criterion.name] = step(deserved["value"] + own.uniform(-0.5, 0.5) + own.normal(0, how.scatter))
    return answers


def chosen(right: str, options: Sequence[str], how: SimulatedPeople, own: np.random.Generator) -> str:
    """Choose what is right, or something near: one who misses a tone takes the next one."""
    if own.random() < how.accuracy:
        return right
    if right in (YES, NO):
        return NO if right == YES else YES
    if right == NOBODY:
        return options[int(own.integers(len(MONK_TONES)))]
    return str(min(max(int(right) + (1 if own.random() < 0.5 else -1), 1), len(MONK_TONES)))
