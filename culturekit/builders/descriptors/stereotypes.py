"""What pictures of a country overdo, as a model names it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import polars as pl
from pydantic import Field

from culturekit.builders.asked_rows import AskedRows, bounded, row_id, sifted
from culturekit.builders.descriptors.activity_rows import activities_of, countries_of
from culturekit.builders.descriptors.proposing import read_descriptor, token_problem
from culturekit.builders.wordings import wording
from culturekit.errors import UsageError
from culturekit.kg.countries import country
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Client, FreeClient, Request
from culturekit.metrics.ahead.matching import normalise_phrase
from culturekit.records.schemas import STEREOTYPES
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage_command import Typed
from culturekit.storage.tables import write_table

__all__ = ["STEREOTYPE", "StereotypeOptions", "name_stereotypes", "stereotype_request"]

STEREOTYPE = "stereotypes.propose"
REPLY_TOKENS = 512
MOST_READ = 200


class Stereotypes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model answers about one country."""

    id: str
    stereotypes: Annotated[list[str], msgspec.Meta(max_length=MOST_READ)]


@dataclass(frozen=True, slots=True)
class StereotypeOptions:
    """Who names stereotypes, and how many."""

    proposer: Annotated[
        str,
        Field(description="Who names them, as a SPEC: openai:MODEL, google:MODEL, local:FOLDER, ...."),
        Typed("llm"),
    ]
    at_most: Annotated[int, Field(ge=1, le=100, description="Stereotypes of a country.")] = 15


def stereotype_request(iso: str, *, at_most: int, instructions: str) -> Request:
    """Ask for the stereotypes of a country."""
    name = country(iso).name
    asked = row_id("stereotypes", name)
    data = {"id": asked, "country": name, "at_most": at_most}
    return Request(
        STEREOTYPE, instructions, data, Stereotypes, allowed={"id": (asked,)}, max_tokens=REPLY_TOKENS,
        asks=bounded(Stereotypes, "stereotypes", at_most),
    )  # fmt: skip


def name_stereotypes(
    work: Work, prompts: Path, client: Client | FreeClient, options: StereotypeOptions, llm: LlmOptions = DEFAULTS
) -> Outcome:
    """Ask a model for the stereotypes of each country of some prompts; what is no phrase is dropped with the reason."""
    isos, instructions = countries_of(activities_of(prompts)), wording("stereotypes_propose")
    asked: AskedRows[tuple[str, str]] = AskedRows(STEREOTYPE, client, llm, "/".join)
    kept: list[tuple[str, str]] = []

    def request(row: tuple[str, str]) -> Request:
        return stereotype_request(row[0], at_most=options.at_most, instructions=instructions)

    for (iso, _), value in asked.ask(work, [(iso, "") for iso in isos], request, unit="countries"):
        assert isinstance(value, Stereotypes)
        tokens = (read_descriptor(said, "neutral", "optional").token for said in value.stereotypes)
        for token, why in sifted(tokens, problem=token_problem, key=normalise_phrase, at_most=options.at_most):
            if why:
                asked.drop((iso, token[:80]), why)
            else:
                kept.append((iso, token))
    if not kept:
        ended = ", ".join(f"{count} {outcome}" for outcome, count in sorted(asked.outcomes.items()))
        raise UsageError(
            f"{client.model} names no stereotype of any country", found=f"questions ended {ended}",
            hint="Ask another model: without stereotypes there is no EXAG and no FAITH.",
        )  # fmt: skip
    write_table(work.out, STEREOTYPES, pl.DataFrame(kept, schema=STEREOTYPES.schema, orient="row"))
    return asked.outcome(work, {"countries": len(isos), "stereotypes": len(kept)})
