"""The stages that choose pairs of captions and images, and write them for training."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field

from culturekit.builders.captions.exporting_pairs import PairFiles, PairOptions, export_pairs
from culturekit.builders.captions.selecting import SelectOptions, counted, select_pairs
from culturekit.families.family import check_options, kept
from culturekit.families.handles.inputs import roles_of
from culturekit.records.schemas import SELECTED, VALUES
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.stages.stage_command import StageCommand
from culturekit.storage.tables import read_table, write_table

__all__ = ["EXPORT", "SELECT", "SelectReads", "export_pairs_stage", "select_stage"]


@dataclass(frozen=True, slots=True)
class SelectReads:
    """What is chosen from."""

    values: Annotated[Path, Field(description="Values that `score c3` wrote beside its scores.")]


def select_stage(given: SelectReads, options: SelectOptions, *, name: str = "selected") -> Stage:
    """Keep the best pairs of captions and images by one strategy or several, and say why the others are left out."""
    check_options(options)

    def select(work: Work) -> Outcome:
        selected = select_pairs(read_table(given.values, VALUES), options)
        write_table(work.out, SELECTED, selected)
        return counted(selected, options)

    return Stage(
        name, "select", 1, select, roles_of(given), kept(options, but=("seed",)), {"draws": options.seed}
    )  # fmt: skip


def export_pairs_stage(given: PairFiles, options: PairOptions, *, name: str = "pairs") -> Stage:
    """Write the pairs that a strategy keeps as a folder of images or as shards, with the licence of each."""
    check_options(options)
    return Stage(
        name, "export-pairs", 1, partial(export_pairs, given=given, options=options), roles_of(given), kept(options)
    )


SELECT = StageCommand(select_stage, "--values scores/values.parquet --keep 500 --strategies c3,random --out selected")
EXPORT = StageCommand(
    export_pairs_stage,
    "--selected selected/selected.parquet --captions translations/translations.parquet --images images/images.parquet "
    "--rights rights.csv --format webdataset --out pairs",
)
