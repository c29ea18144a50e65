"""The stage that scores diversity within countries: matches of images of prompts that name one."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import polars as pl

from culturekit.families.family_stage import family_stage
from culturekit.families.public_files import prompts_table
from culturekit.metrics.scoring.score_qvs import QvsOptions
from culturekit.metrics.scoring.score_within import score_within
from culturekit.metrics.scoring.scored import Scored
from culturekit.records.schemas import MATCHES, PROMPTS
from culturekit.stages.stage import Stage
from culturekit.storage.tables import read_table

__all__ = ["within_stage"]


def within_stage(matches: Mapping[str, Path], prompts: Path, options: QvsOptions, *, name: str = "scores") -> Stage:
    """Score every table of matches; the prompts say which country each image was asked for."""

    def score(scratch: Path) -> Scored:
        table = pl.concat([read_table(path, MATCHES) for path in matches.values()])
        return score_within(table, read_table(prompts_table(prompts, scratch), PROMPTS), options=options)

    settings = {key: value for key, value in asdict(options).items() if key not in {"kernels", "target", "within"}}
    return family_stage(
        "within", {**matches, "prompts": prompts}, settings, lambda work: score(work.scratch), name=name
    )
