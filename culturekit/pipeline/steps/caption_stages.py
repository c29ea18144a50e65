"""The stages from seed captions of a culture to many, to a sample of them, to translations and objects."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from culturekit.builders.captions.caption_files import USUAL_CAPTION, CaptionsToCount, count_captions, read_captions
from culturekit.builders.captions.cultures import culture_file
from culturekit.builders.captions.expanding import EXPAND, ExpandOptions, expand_captions, expansion_requests
from culturekit.builders.captions.objects import (
    OBJECTS_OF,
    ObjectsOptions,
    ObjectsReads,
    list_objects,
    object_request,
)
from culturekit.builders.captions.sampling import SampleOptions, sample_captions
from culturekit.builders.captions.translating import (
    TRANSLATE,
    TranslateOptions,
    TranslateReads,
    translate_captions,
    translation_request,
)
from culturekit.builders.wordings import wording_digest
from culturekit.families.handles.behind_specs import behind
from culturekit.families.handles.inputs import roles_of
from culturekit.index.encoders import ENCODERS
from culturekit.index.models.object_detector import DETECTORS
from culturekit.kg.countries import country_files
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Request
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.ledger import journal_for, read_spending
from culturekit.llm.models import quoted
from culturekit.pipeline.steps.asking_stage import AskPlan, asking_stage, plan_to_ask, priced_ahead
from culturekit.records.schemas import DROPS
from culturekit.stages.stage import Stage
from culturekit.stages.stage_command import AskingCommand, StageCommand, Typed

__all__ = [
    "EXPAND_CAPTIONS",
    "LIST_OBJECTS",
    "SAMPLE",
    "STATS",
    "TRANSLATE_CAPTIONS",
    "CaptionsRead",
    "CultureRead",
    "caption_stats_stage",
    "expand_stage",
    "objects_stage",
    "sample_stage",
    "translate_stage",
]

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
