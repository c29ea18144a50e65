"""The stages of a simulated `inclusion` world, and of people in it: who look, what they name, and what is true."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from culturekit.annotate.inclusion_tables import TASK1_SCHEME, TASK2_SCHEME
from culturekit.annotate.rated_sample import Answering
from culturekit.annotate.scheme import Scheme
from culturekit.builders.judging.simulated_people import SimulatedPeople
from culturekit.builders.simulated.form_answers import compares, looks_at, names_region, sees_object
from culturekit.defaults import CONFIDENCE
from culturekit.errors import UsageError
from culturekit.families.family_stage import write_scored
from culturekit.families.handles.inputs import Files, ImageTables, Numbered
from culturekit.families.task1 import UNCHECKED, UNRELIABLE
from culturekit.generation.simulated.objects.object_scene import ObjectScene
from culturekit.metrics.inclusion.annotator_quality import drop_unreliable
from culturekit.metrics.inclusion.region_names import with_region_codes
from culturekit.metrics.inclusion.region_rates import TARGETS
from culturekit.metrics.scoring.prompted_images import Place, mean_rows
from culturekit.metrics.scoring.score_rows import scored
from culturekit.pipeline.steps.annotate_stages import filled_in_stage
from culturekit.pipeline.steps.inclusion_stages import prompts_of
from culturekit.records.schemas import ANNOTATIONS, IMAGES, TASK2
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.storage.tables import read_table, table_outcome

__all__ = ["BENCHMARK", "JUDGES", "OBJECT", "REGION", "object_truth_stage", "object_viewers_stage", "seen_marks",
           "seen_marks_stage"]  # fmt: skip

BENCHMARK, TRUTH = "inclusion", "truth"
OBJECT, REGION = "object_seen", "own_region"
"""What people say of an image: that it shows its object; that the object or the background could be from its region."""

JUDGES = {REGION: "region_recognised", OBJECT: "object_presence"}


def scenes_of(images: Sequence[Path]) -> dict[str, ObjectScene]:
    """Read what each image truly shows."""
    tables = [read_table(path, IMAGES).filter(status="ok").select("image_id", "truth_scene") for path in images]
    return {image: ObjectScene.from_data(msgspec.json.decode(scene)) for image, scene in pl.concat(tables).iter_rows()}


def object_truth_stage(
    images: ImageTables, prompts: Files, how: SimulatedPeople
) -> Stage:  # fmt: skip
    """Write down how often people at home in the region of an image truly see that region, and its object, in it."""

    def run(work: Work) -> Outcome:
        table = images.together(IMAGES).filter(status="ok").join(prompts_of(prompts), on="prompt_id")
        scenes, rows = scenes_of(images.places), []
        for row in table.drop_nulls("region").sort("image_id").iter_rows(named=True):
            scene = scenes[row["image_id"]]
            true = {REGION: names_region(scene, row["region"], how), OBJECT: sees_object(scene, how)}
            rows += [(row["model"], JUDGES[what], row["image_id"], row["prompt_id"], row["region"], value)
                     for what, value in true.items()]  # fmt: skip
        values = pl.DataFrame(rows, schema=["model", "metric", "item", "prompt_id", "region", "value"], orient="row")
        scores, behind = [], []
        for place in ("all", "region"):
            keys = ["metric", "model", *(["region"] if place == "region" else [])]
            for part in values.sort(*keys, "item").partition_by(keys, maintain_order=True):
                at = Place(
                    part["metric"][0], part["model"][0], BENCHMARK, None if place == "all" else part["region"][0]
                )
                row, below = mean_rows(part, at, {"labels": TRUTH}, confidence=CONFIDENCE)
                scores.append(row)
                behind += below
        return write_scored(work, scored(scores, behind, left_out={}))

    inputs = {**Numbered(images.places).files("images"), **Numbered(prompts.places).files("prompts")}
    return Stage("truth", "object-truth", 1, run, inputs, asdict(how), packages=("msgspec", "polars"))


def object_viewers_stage(project: Path, images: Sequence[Path], how: SimulatedPeople, *, seed: int) -> Stage:
    """Let simulated people of each region fill in the forms of Task 1 or Task 2: they see what was drawn."""

    def answering(scheme: Scheme) -> Answering:
        scenes = scenes_of(images)
        if scheme.name == TASK1_SCHEME:
            return partial(compares, scenes=scenes, how=how, seed=seed)
        if scheme.name != TASK2_SCHEME:
            raise UsageError("simulated people fill in two forms only", expected=f"{TASK1_SCHEME} or {TASK2_SCHEME}",
                             found=scheme.name)  # fmt: skip
        offered = scheme.criterion("object_regions").fixed_values

        def answer(person: str, row: Mapping[str, Any]) -> Mapping[str, str | Sequence[str]]:
            return looks_at(person, row, scenes[row["item_id"]], offered, how, seed=seed)

        return answer

    inputs = Numbered(images).files("images")
    stage = filled_in_stage("simulated-viewers", project, inputs, answering, how, seed=seed)
    return replace(stage, version=2, packages=("msgspec",))


def seen_marks_stage(task2: Path, *, least: float) -> Stage:
    """Write what people say of each image, of those who see the objects in photographs: the object, its own region."""

    def run(work: Work) -> Outcome:
        marks, left_out = seen_marks(read_table(task2, TASK2), least=least)
        return table_outcome(work, ANNOTATIONS, marks, {why: count for why, count in left_out.items() if count})

    return Stage("marks", "seen-marks", 1, run, {"task2": task2}, {"least": least})


def seen_marks(table: pl.DataFrame, *, least: float) -> tuple[pl.DataFrame, dict[str, int]]:
    """Make answers to two questions of a table of Task 2, and count what is left out of them, or is not sure."""
    reliable = drop_unreliable(table, least=least)
    known = with_region_codes(reliable.annotations)
    seen = pl.any_horizontal(pl.col(column).list.contains(pl.col("own")) for column in TARGETS.values())
    nothing = pl.lit(None, pl.String)
    said = known.with_columns(
        pl.col("shown").cast(pl.Float64).alias(OBJECT),
        pl.when(pl.col("own").is_not_null()).then(seen.cast(pl.Float64)).alias(REGION),
        in_region=pl.col("own") == pl.col("home"), item_id="img_path", annotator="annotator_id",
        annotator_region="annotator_loc", scheme=pl.lit(TASK2_SCHEME), choice=nothing, text=nothing,
        seconds=pl.lit(None, pl.Float64), flags=pl.lit([], pl.List(pl.String)),
    )  # fmt: skip
    index = [column for column in ANNOTATIONS.schema if column not in {"criterion", "value"}]
    rows = said.unpivot([OBJECT, REGION], index=index, variable_name="criterion", value_name="value")
    left_out = {UNRELIABLE: table.height - reliable.annotations.height, UNCHECKED: reliable.unchecked}
    return rows.drop_nulls("value").select(list(ANNOTATIONS.schema)).sort(ANNOTATIONS.key), left_out
