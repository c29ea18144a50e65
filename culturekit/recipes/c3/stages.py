"""The stages from seed captions of a culture to many, to a sample of them, to translations and objects."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from pydantic import Field

from culturekit.builders.asked_rows import wording_digest
from culturekit.builders.captions.caption_files import (
    OBJECTS_OF,
    TRANSLATE,
    USUAL_CAPTION,
    CaptionsToCount,
    ObjectsOptions,
    ObjectsReads,
    SampleOptions,
    TranslateOptions,
    TranslateReads,
    count_captions,
    list_objects,
    object_request,
    read_captions,
    sample_captions,
    translate_captions,
    translation_request,
)
from culturekit.builders.captions.expanding import (
    EXPAND,
    ExpandOptions,
    culture_file,
    expand_captions,
    expansion_requests,
)
from culturekit.builders.captions.pairs import (
    PairFiles,
    PairOptions,
    SelectOptions,
    counted,
    export_pairs,
    select_pairs,
)
from culturekit.core.declared import check_options, kept
from culturekit.core.defaults import CONFIDENCE
from culturekit.core.inputs import roles_of
from culturekit.core.schemas import (
    ANNOTATIONS,
    CAPTIONS,
    DROPS,
    IMAGES,
    PAIR_ITEMS,
    PROMPTS,
    SELECTED,
    TRANSLATIONS,
    VALUES,
)
from culturekit.core.stage import Stage
from culturekit.core.stage_command import AskingCommand, StageCommand, Typed
from culturekit.core.tables import read_table, table_outcome, write_table
from culturekit.core.work import Outcome, Work
from culturekit.index.encoder import ENCODERS
from culturekit.index.models.object_detector import DETECTORS
from culturekit.kg.countries import country_files
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Request
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.ledger import journal_for, read_spending
from culturekit.llm.models import quoted
from culturekit.metrics.linguistic.human_tables import item_scores
from culturekit.recipes.steps.asking_stage import AskPlan, asking_stage, plan_to_ask, priced_ahead
from culturekit.scores.answers import careful_answers
from culturekit.scores.family import write_scored
from culturekit.scores.image_collections import Place, mean_rows
from culturekit.scores.provenance import behind
from culturekit.scores.score_rows import Scored, scored, value_rows

SAMPLED, GIVEN, SURE = SampleOptions(), TranslateOptions(), ObjectsOptions()


@dataclass(frozen=True, slots=True)
class CultureRead:
    """A culture that captions are written for."""

    culture: Annotated[
        Path,
        Field(description="YAML file with culture, language, categories and seeds; or a shipped one: chinese."),
        Typed(read=culture_file),
    ]


def expand_stage(given: CultureRead, options: ExpandOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Have a model write captions like those there are.

    In rounds, until there are enough or it says nothing new.
    """
    client = CLIENTS.make(options.proposer)

    def plan(out: Path, _: object) -> AskPlan:
        answered = sum(one.answered for one in read_spending(journal_for(out)))
        left = expansion_requests(given.culture, options, answered=answered)
        return plan_to_ask(client, "questions, if no caption is dropped", left, out, llm)

    decided = {each: value for each, value in asdict(options).items() if each not in {"proposer", "seed"}}
    stage = Stage(
        "captions",
        "expand-captions",
        2,
        lambda work: expand_captions(work, given.culture, client, options, llm),
        roles_of(given),
        {
            "task": EXPAND,
            "wording": wording_digest("captions_expand"),
            **decided,
            **({} if options.encoder is None else behind(ENCODERS, options.encoder)),
        },
        {"seed": options.seed},
        packages=("msgspec", "numpy", "polars"),
    )
    return asking_stage(stage, options.proposer, client, unit="questions", plan=plan, ahead=True, go_on=llm.go_on)


@dataclass(frozen=True, slots=True)
class CaptionsRead:
    """Captions with categories of error."""

    captions: Annotated[Path, Field(description="Table that `captions expand` wrote.")]


def sample_stage(given: CaptionsRead, options: SampleOptions = SAMPLED) -> Stage:
    """Draw captions by category of error, and write prompts.

    Each category has its share; each caption gets a prompt.
    """
    return Stage(
        "sample",
        "sample-captions",
        1,
        lambda work: sample_captions(work, given.captions, options),
        {**roles_of(given), **country_files()},
        {"size": options.size},
        {"seed": options.seed},
        packages=("numpy", "polars"),
    )


def caption_stats_stage(given: CaptionsToCount) -> Stage:
    """Count captions, their words and objects, by error.

    It takes any file of captions.
    """
    return Stage(
        "stats",
        "caption-stats",
        1,
        lambda work: count_captions(work, given),
        {**roles_of(given), **drops_beside(given.objects)},
        {"columns": asdict(given.columns)},
        packages=("msgspec", "polars"),
    )


def drops_beside(objects: Path | None) -> dict[str, Path]:
    """Name the list of what has no object, where there is one, or where a stage is still to write both: it counts."""
    if objects is None:
        return {}
    beside = objects.parent / f"{DROPS.name}.parquet"
    return {"no-objects": beside} if beside.is_file() or not objects.exists() else {}


def translate_stage(given: TranslateReads, options: TranslateOptions = GIVEN, llm: LlmOptions = DEFAULTS) -> Stage:
    """Translate captions by a model, or take translations.

    What is no translation says why.
    """
    spec, language = options.translator, options.language
    client = None if spec is None else CLIENTS.make(spec)
    stage = Stage(
        "translations",
        "translate-captions",
        1,
        lambda work: translate_captions(work, given, language, client, llm),
        roles_of(given),
        {"task": TRANSLATE, "language": language, "columns": asdict(given.columns)},
        packages=("msgspec", "polars"),
    )
    request = partial(translation_request, language=language)
    return asked_of_captions(stage, given, spec, "captions_translate", request, llm)


def objects_stage(given: ObjectsReads, options: ObjectsOptions = SURE, llm: LlmOptions = DEFAULTS) -> Stage:
    """List the objects of pictures or captions.

    `score c3` and `captions stats` take them.
    """
    spec, detector = options.lister, options.detector
    client = None if spec is None else CLIENTS.make(spec)
    decided = {} if detector is None else {"detector": detector, **behind(DETECTORS, detector)}
    stage = Stage(
        "objects",
        "list-objects",
        1,
        lambda work: list_objects(work, given, options, client, llm),
        roles_of(given),
        {"task": OBJECTS_OF, "threshold": options.threshold, "columns": asdict(given.columns), **decided},
        packages=("msgspec", "polars"),
    )
    return asked_of_captions(stage, given, spec, "captions_objects", object_request, llm)


def asked_of_captions(
    stage: Stage,
    given: TranslateReads | ObjectsReads,
    spec: str | None,
    words: str,
    request: Callable[[Mapping[str, Any]], Request],
    llm: LlmOptions,
) -> Stage:
    """Give a stage that asks a model about each caption; without a model it is as it was."""
    if spec is None or given.captions is None:
        return stage
    path, columns, client = given.captions, given.columns, CLIENTS.make(spec)

    def plan(out: Path, _: object) -> AskPlan:
        captions, _ = read_captions(path, columns)
        return plan_to_ask(client, "captions", map(request, captions.iter_rows(named=True)), out, llm)

    stage = replace(stage, options={**stage.options, "wording": wording_digest(words)})
    made = asking_stage(stage, spec, client, unit="captions", plan=plan, go_on=llm.go_on)
    return priced_ahead(made, client, lambda: [request({"id": "usual", "text": USUAL_CAPTION})], llm=llm)


EXPAND_CAPTIONS = AskingCommand(
    expand_stage,
    f"--culture chinese --llm {quoted('text')} --encoder sentence:LaBSE --out captions --budget 20",
)
SAMPLE = StageCommand(sample_stage, "--captions captions/captions.parquet --out sample")
STATS = StageCommand(caption_stats_stage, "--captions captions/captions.parquet --out stats")
TRANSLATE_CAPTIONS = AskingCommand(
    translate_stage, f"--captions alt-texts.csv --llm {quoted('text-small')} --out translations --budget 20"
)
LIST_OBJECTS = AskingCommand(
    objects_stage, "--images images/images.parquet --detector owl:owlv2 --labels things.txt --out objects"
)


# Strategies that choose pairs of captions and images: what they keep, its export, and what it is worth.


@dataclass(frozen=True, slots=True)
class SelectReads:
    """What is chosen from."""

    values: Annotated[Path, Field(description="Values that `score c3` wrote beside its scores.")]


def select_stage(given: SelectReads, options: SelectOptions) -> Stage:
    """Keep the best pairs of captions and images.

    By one strategy or several; it says why the others are left out.
    """
    check_options(options)

    def select(work: Work) -> Outcome:
        selected = select_pairs(read_table(given.values, VALUES), options)
        write_table(work.out, SELECTED, selected)
        return counted(selected, options)

    return Stage(
        "selected", "select", 1, select, roles_of(given), kept(options, but=("seed",)), {"draws": options.seed}
    )  # fmt: skip


def export_pairs_stage(given: PairFiles, options: PairOptions) -> Stage:
    """Write the pairs that a strategy keeps, with their licences.

    As a folder of images or as shards.
    """
    check_options(options)
    return Stage(
        "pairs", "export-pairs", 1, partial(export_pairs, given=given, options=options), roles_of(given), kept(options)
    )


SELECT = StageCommand(select_stage, "--values scores/values.parquet --keep 500 --strategies c3,random --out selected")
EXPORT = StageCommand(
    export_pairs_stage,
    "--selected selected/selected.parquet --captions translations/translations.parquet --images images/images.parquet "
    "--rights rights.csv --format webdataset --out pairs",
)


RATING, BENCHMARK = "rating_mean", "c3"
PEOPLE = "people"
KEYS = ("model", "metric", "criterion", "labels")


def captioned_images_stage(images: Path, prompts: Path) -> Stage:
    """Write the caption of each image that was made, by its id."""

    def run(work: Work) -> Outcome:
        made = read_table(images, IMAGES).filter(status="ok").select("image_id", "prompt_id")
        asked = made.join(read_table(prompts, PROMPTS), on="prompt_id").sort("image_id")
        captions = asked.select(
            "text", "language", id="image_id", category=pl.col("concept").fill_null(""),
            culture=pl.col("country").fill_null(""), round=pl.lit(0, pl.UInt32), proposer=pl.lit(None, pl.String),
        )  # fmt: skip
        return table_outcome(work, CAPTIONS, captions.select(list(CAPTIONS.schema)))

    return Stage("captioned", "captioned-images", 1, run, {"images": images, "prompts": prompts})


def pair_items_stage(images: Path, translations: Path, *, count: int, seed: int) -> Stage:
    """Draw pairs of pictures and translated captions that people are to rate, each with the same chance."""

    def run(work: Work) -> Outcome:
        made = read_table(images, IMAGES).filter(status="ok").select("image_id", "model")
        pairs = read_table(translations, TRANSLATIONS).join(made, left_on="id", right_on="image_id").sort("id")
        drawn = pairs[np.random.default_rng(seed).permutation(pairs.height)[:count].tolist()]
        items = drawn.select(item_id="id", image_id="id", model="model", caption="source", translation="text")
        return table_outcome(work, PAIR_ITEMS, items.sort("item_id"))

    inputs = {"images": images, "translations": translations}
    return Stage("rated-pairs", "pair-items", 1, run, inputs, {"count": count}, {"sample": seed})


def ranked_values_stage(selected: Path) -> Stage:
    """Write what each strategy ranks pairs by as values, to be held against people."""

    def run(work: Work) -> Outcome:
        ranked = read_table(selected, SELECTED)
        parts = [
            value_rows({"metric": "c3", "model": "captions", "benchmark": BENCHMARK}, {"strategy": part["strategy"][0]},
                       part.select("item", "value").sort("item"))
            for part in ranked.sort("strategy").partition_by("strategy", maintain_order=True)
        ]  # fmt: skip
        table = pl.concat(parts)
        return table_outcome(work, VALUES, table.sort(VALUES.key))

    return Stage("ranked-values", "ranked-values", 1, run, {"selected": selected})


def worth_stage(selected: Path, answers: Path | None, truth: Path | None) -> Stage:
    """Average, over the pairs that each strategy keeps, what people rate, and what is true where that is known."""

    def run(work: Work) -> Outcome:
        rated = None if answers is None else read_table(answers, ANNOTATIONS)
        known = None if truth is None else read_table(truth, VALUES)
        return write_scored(work, worth_of(read_table(selected, SELECTED), rated, known))

    given = {"selected": selected, "answers": answers, "truth": truth}
    return Stage("worth", "pair-worth", 2, run, {role: path for role, path in given.items() if path is not None})


def worth_of(selected: pl.DataFrame, answers: pl.DataFrame | None, truth: pl.DataFrame | None) -> Scored:
    """Average over the pairs that each strategy keeps, criterion by criterion; a strategy stands as the model.

    Args:
        selected: conforms to SELECTED.
        answers: conforms to ANNOTATIONS: what people say of some pairs; flagged answers do not count.
        truth: conforms to VALUES: the ratings that all pairs deserve.
    """
    kept = selected.filter("kept").select("item", model="strategy")
    parts: list[pl.DataFrame] = []
    if answers is not None:
        _, means = item_scores(careful_answers(answers))
        parts.append(means.select("criterion", item="item_id", value="score", labels=pl.lit(PEOPLE)))
    if truth is not None:
        said = {name: pl.col("params").str.json_path_match(f"$.{name}") for name in ("criterion", "labels")}
        parts.append(truth.filter(metric=RATING).select(said["criterion"].alias("criterion"), "item", "value",
                                                        said["labels"].alias("labels")))  # fmt: skip
    every = pl.concat(parts).join(kept, on="item")
    return means_of(every.with_columns(metric=pl.lit(RATING), prompt_id=pl.lit(None, pl.String)))


def means_of(values: pl.DataFrame, keys: Sequence[str] = KEYS) -> Scored:
    """Average values by model, metric, criterion and labels; the values stand beside the scores."""
    rows, behind = [], []
    for part in values.sort(*keys, "item").partition_by(keys, maintain_order=True):
        about = part.row(0, named=True)
        params = {"criterion": about["criterion"], "labels": about["labels"]}
        row, below = mean_rows(part, Place(about["metric"], about["model"], BENCHMARK), params, confidence=CONFIDENCE)
        rows.append(row)
        behind += below
    return scored(rows, behind, left_out={})
