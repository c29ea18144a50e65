"""The stage from candidates to real images of activities."""

from dataclasses import asdict

from culturekit.builders.judging.chosen_references import ChooseOptions, ChooseReads, choose_references
from culturekit.families.handles.inputs import roles_of
from culturekit.stages.stage import Stage
from culturekit.stages.stage_command import StageCommand

__all__ = ["CHOOSE", "choose_stage"]


def choose_stage(given: ChooseReads, options: ChooseOptions, *, name: str = "real") -> Stage:
    """Keep the real images that show each prompt best; the others are listed with the reason."""
    return Stage(
        name,
        "choose-references",
        1,
        lambda work: choose_references(work, given, options),
        roles_of(given),
        asdict(options),
        packages=("polars",),
    )


CHOOSE = StageCommand(
    choose_stage,
    "--images candidates/images.parquet --prompts prompts/prompts.parquet --scores quality/quality.parquet --out real",
)
