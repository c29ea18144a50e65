"""The stages from seed captions of a culture to many, to a sample of them, to translations and objects."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from culturekit.builders.captions.caption_files import CaptionsToCount, count_captions
from culturekit.builders.captions.cultures import culture_file
from culturekit.builders.captions.expanding import EXPAND, ExpandOptions, expand_captions, expansion_requests
from culturekit.builders.captions.sampling import SampleOptions, sample_captions
from culturekit.builders.wordings import wording
from culturekit.families.handles.behind_specs import behind
from culturekit.families.handles.inputs import roles_of
from culturekit.index.encoders import ENCODERS
from culturekit.kg.countries import country_files
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.money.shared_budget import journal_for
from culturekit.llm.money.spending import read_spending
from culturekit.pipeline.asking_stage import AskPlan, asking_stage, cost_of
from culturekit.records.schemas import DROPS
from culturekit.stages.stage import Stage
from culturekit.stages.stage_command import AskingCommand, StageCommand, Typed
from culturekit.storage.digests import digest_bytes

__all__ = [
    "EXPAND_CAPTIONS",
    "SAMPLE",
    "STATS",
    "CaptionsRead",
    "CultureRead",
    "caption_stats_stage",
    "expand_stage",
    "sample_stage",
]

SAMPLED = SampleOptions()


@dataclass(frozen=True, slots=True)
class CultureRead:
    """A culture that captions are written for."""

    culture: Annotated[
        Path,
        Field(description="YAML file with culture, language, categories and seeds; or a shipped one: chinese."),
        Typed(read=culture_file),
    ]


def expand_stage(
    given: CultureRead, options: ExpandOptions, llm: LlmOptions = DEFAULTS, *, name: str = "captions"
) -> Stage:
    """Have a model write captions like those there are, in rounds, until there are enough or it says nothing new."""
    client, instructions = CLIENTS.make(options.proposer), wording("captions_expand")

    def plan(out: Path, _: object) -> AskPlan:
        journal = journal_for(out)
        answered = sum(one.answered for one in read_spending(journal)) if journal else 0
        left = list(expansion_requests(given.culture, options, answered=answered))
        cost = cost_of(client, left, out, batch=llm.batch)
        return AskPlan(client.model, "questions, if no caption is dropped", len(left), 0, len(left), cost)

    decided = {each: value for each, value in asdict(options).items() if each not in {"proposer", "seed"}}
    stage = Stage(
        name,
        "expand-captions",
        1,
        lambda work: expand_captions(work, given.culture, client, options, llm),
        roles_of(given),
        {
            "task": EXPAND,
            "wording": digest_bytes(instructions.encode()),
            **decided,
            **({} if options.encoder is None else behind(ENCODERS, options.encoder)),
        },
        {"seed": options.seed},
        packages=("msgspec", "numpy", "polars"),
    )
    return asking_stage(stage, options.proposer, client, unit="questions", plan=plan, ahead=True)


@dataclass(frozen=True, slots=True)
class CaptionsRead:
    """Captions with categories of error."""

    captions: Annotated[Path, Field(description="Table that `captions expand` wrote.")]


def sample_stage(given: CaptionsRead, options: SampleOptions = SAMPLED, *, name: str = "sample") -> Stage:
    """Draw captions, each category of error its share, and write a prompt for each."""
    return Stage(
        name,
        "sample-captions",
        1,
        lambda work: sample_captions(work, given.captions, options),
        {**roles_of(given), **country_files()},
        {"size": options.size},
        {"seed": options.seed},
        packages=("numpy", "polars"),
    )


def caption_stats_stage(given: CaptionsToCount, *, name: str = "stats") -> Stage:
    """Count captions, their words and their objects, by category of error; of any file of captions."""
    return Stage(
        name,
        "caption-stats",
        1,
        lambda work: count_captions(work, given),
        {**roles_of(given), **drops_beside(given.objects)},
        packages=("msgspec", "polars"),
    )


def drops_beside(objects: Path | None) -> dict[str, Path]:
    """Name the list of what has no object, where there is one: it counts."""
    beside = None if objects is None else objects.parent / f"{DROPS.name}.parquet"
    return {"no-objects": beside} if beside is not None and beside.is_file() else {}


EXPAND_CAPTIONS = AskingCommand(
    expand_stage,
    "--culture chinese --llm 'openai:gpt-4o?temperature=1' --encoder sentence:LaBSE --out captions --budget 20",
)
SAMPLE = StageCommand(sample_stage, "--captions captions/captions.parquet --out sample")
STATS = StageCommand(caption_stats_stage, "--captions captions/captions.parquet --out stats")
