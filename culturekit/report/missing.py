"""What is missing from the numbers of a run: images, prompts, labels, ratings and answers, counted for each model."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from culturekit.records.schemas import JUDGMENTS, QUALITY
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles

__all__ = ["MissingLine", "missing_lines"]

READ = ("ok", "repaired")


@dataclass(frozen=True, slots=True)
class MissingLine:
    """What of one model is missing.

    Attributes:
        model: its name.
        asked: images asked for.
        not_made: those of them that are not there, by status.
        prompts: that enter its diversity over all prompts: there is a full batch of each.
        prompts_asked: of which any model has an image.
        unmapped: images made that were mapped to nothing.
        abstained: images of which the mapping is not sure.
        unrated: images made without a quality.
        batchless: images mapped that enter no diversity, since their batch is incomplete.
        unanswered: images about which the tagger gave no answer that could be read; None where nothing was tagged.
    """

    model: str
    asked: int
    not_made: Mapping[str, int]
    prompts: int
    prompts_asked: int
    unmapped: int
    abstained: int
    unrated: int
    batchless: int
    unanswered: int | None

    @property
    def whole(self) -> bool:
        """Tell whether nothing is missing."""
        counts = (self.unmapped, self.abstained, self.unrated, self.batchless, self.unanswered or 0)
        return not self.not_made and not any(counts) and self.prompts == self.prompts_asked


def missing_lines(run: RunFolders, scores: pl.DataFrame) -> Iterator[MissingLine]:
    """Count what is missing of each model; nothing where nothing is missing of any."""
    images = {model: run.images(model) for model in run.models}
    asked = {prompt for table in images.values() for prompt in table["prompt_id"].drop_nulls()}
    scored = prompts_scored(run.values())
    lines = [line_of(run, model, table, (scored.get(model, 0), len(asked)), scores) for model, table in images.items()]
    if not all(line.whole for line in lines):
        yield from lines


def prompts_scored(values: pl.DataFrame) -> dict[str, int]:
    """Count the prompts of each model of which a batch was scored."""
    known = values.filter(pl.col("metric") == "vs", pl.col("labels") == "mapped").drop_nulls(["prompt_id", "value"])
    return dict(known.group_by("model").agg(pl.col("prompt_id").n_unique()).iter_rows())


def line_of(
    run: RunFolders, model: str, images: pl.DataFrame, prompts: tuple[int, int], scores: pl.DataFrame
) -> MissingLine:
    """Count what is missing of one model; `prompts` are those that are scored, and all."""
    made = images.filter(pl.col("status") == "ok")
    lost = images.filter(pl.col("status") != "ok").group_by("status").len().sort("status")
    nearest = run.matches(model).filter(pl.col("rank") == 1)
    rated = run.read(roles.QUALITY, QUALITY, model)
    said = run.read(roles.TAGS, JUDGMENTS, model)
    return MissingLine(
        model,
        images.height,
        dict(lost.iter_rows()),
        *prompts,
        made.join(nearest, on="image_id", how="anti").height,
        nearest.filter("abstained").height,
        0 if rated is None else made.join(rated, on="image_id", how="anti").height,
        left_out_of_batches(scores.filter(pl.col("model") == model)),
        None if said is None else said.filter(~pl.col("outcome").is_in(READ)).height,
    )


def left_out_of_batches(scores: pl.DataFrame) -> int:
    """Add up over concepts the mapped images that entered no diversity."""
    about = scores.filter(pl.col("metric") == "vs", pl.col("labels") == "mapped", pl.col("country").is_null())
    counted = about.with_columns(
        left=pl.col("params").str.json_decode(pl.Struct({"images_left_out": pl.Int64})).struct.field("images_left_out")
    )
    parts = counted.filter(pl.col("concept").is_not_null())
    chosen = parts if parts.height else counted
    return int(chosen.group_by("concept").agg(pl.col("left").max())["left"].sum())
