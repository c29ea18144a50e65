"""From matches to the images that people should look at, so that their answers correct the diversity."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from culturekit.families.family import Family, kept
from culturekit.families.handles.inputs import Files, roles_of
from culturekit.metrics.corrected.audit_sampling import Per, audit_sample
from culturekit.records.schemas import AUDIT_SAMPLE, MATCHES
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.stages.stage_command import Seed, Typed
from culturekit.storage.tables import table_outcome

__all__ = ["TO_AUDIT", "ToAuditOptions", "ToAuditReads", "draw_audit_sample"]


@dataclass(frozen=True, slots=True)
class ToAuditReads:
    """What images were mapped to."""

    matches: Annotated[Files, Field(description="Table that `index map` wrote; repeatable.")]


@dataclass(frozen=True, slots=True)
class ToAuditOptions:
    """How many images are drawn."""

    images: Annotated[
        int, Field(ge=10, description="Images to draw of each model; each of its concepts gets 30 or more."), Typed("n")
    ] = 150
    per: Annotated[
        Per, Field(description="Of what so many are drawn: of a model in all, or of each concept of a model.")
    ] = "model"
    seed: Seed = 0


def draw_audit_sample(given: ToAuditReads, options: ToAuditOptions, *, name: str = "audit-sample") -> Stage:
    """Draw the images whose audit corrects the diversity.

    Spread evenly over what they were mapped to.
    """

    def run(work: Work) -> Outcome:
        rng = np.random.default_rng(options.seed)
        sample = audit_sample(given.matches.together(MATCHES), n=options.images, rng=rng, per=options.per)
        return table_outcome(work, AUDIT_SAMPLE, sample)

    but = ("seed", "per") if options.per == "concept" else ("seed",)  # a sample of each concept is known without it
    return Stage(name, "audit-sample", 3, run, roles_of(given), kept(options, but=but), {"sample": options.seed})


TO_AUDIT = Family(draw_audit_sample, metrics=(), example="--matches matches/matches.parquet --n 150 --out to-audit")
