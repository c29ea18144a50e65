"""The stages of geographic inclusion: prompts of objects in regions, triplets of images, images to be looked at."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import polars as pl
from pydantic import Field

from culturekit.builders.judging.simulated_people import SimulatedPeople
from culturekit.builders.prompting.geographic import GeographicOptions, geographic_prompts
from culturekit.builders.simulated.form_answers import compares, looks_at, names_region, sees_object
from culturekit.core.defaults import CONFIDENCE
from culturekit.core.errors import UsageError
from culturekit.core.inputs import Files, Numbered, roles_of
from culturekit.core.schemas import ANNOTATIONS, AUDIT_SAMPLE, IMAGES, OBJECT_ITEMS, PROMPTS, TASK2, TRIPLETS
from culturekit.core.stage import Stage
from culturekit.core.stage_command import StageCommand, Typed
from culturekit.core.tables import read_table, table_outcome, write_drops, write_table
from culturekit.core.work import Outcome, Work
from culturekit.generation.linguistic_lists import load_places, place_file
from culturekit.generation.simulated.scenes.objects import ObjectScene
from culturekit.kg.countries import country_files
from culturekit.metrics.inclusion.region_rates import TARGETS, with_region_codes
from culturekit.metrics.inclusion.task2_files import REAL, drop_unreliable
from culturekit.metrics.inclusion.triplet_distances import ImageSet, image_set, triplets
from culturekit.people.inclusion_tables import TASK1_SCHEME, TASK2_SCHEME
from culturekit.people.rated_sample import Answering
from culturekit.people.scheme import Scheme
from culturekit.people.stages import filled_in_stage
from culturekit.scores.family import write_scored
from culturekit.scores.image_collections import Place, mean_rows
from culturekit.scores.inputs import ImageTables, VectorFolders
from culturekit.scores.score_rows import scored
from culturekit.scores.task1 import UNCHECKED, UNRELIABLE


@dataclass(frozen=True, slots=True)
class PlacesRead:
    """Objects and regions that prompts are to name."""

    places: Annotated[
        Path,
        Field(description="YAML file with objects and regions; or a shipped list: study, geode."),
        Typed(read=place_file),
    ]


def geographic_stage(given: PlacesRead, options: GeographicOptions) -> Stage:
    """Build prompts that name an object, alone or in a place.

    A place is a region or a country.
    """

    def run(work: Work) -> Outcome:
        table = geographic_prompts(load_places(given.places), options)
        return table_outcome(work, PROMPTS, table)

    inputs = roles_of(given) | (country_files() if options.naming == "countries" else {})
    return Stage("prompts", "geographic-prompts", 1, run, inputs, asdict(options))


GEOGRAPHIC = StageCommand(geographic_stage, "--places study --out prompts")


def photographed_stage(listed: Path, regional: Path, photographs: Path, *, least: int) -> Stage:
    """Keep the listed prompts of objects of which every region has so many photographs, copies not counted.

    `regional` are the prompts that photographs stand under: those that name a region.
    """

    def run(work: Work) -> Outcome:
        single = read_table(photographs, IMAGES).filter(pl.col("status") == "ok", ~pl.col("sha256").is_duplicated())
        places = read_table(regional, PROMPTS).join(single.group_by("prompt_id").len(), on="prompt_id", how="left")
        few = places.with_columns(pl.col("len").fill_null(0)).filter(pl.col("len") < least).sort("concept", "group")
        kept = read_table(listed, PROMPTS).join(few, on="concept", how="anti").sort("prompt_id")
        if kept.is_empty():
            raise UsageError(
                "no object has enough photographs", expected=f"at least {least} in every region",
                found="; ".join(f"{row['len']} of {row['text']}" for row in few.head(3).to_dicts()),
                hint="Lower photographs.least.",
            )  # fmt: skip
        write_table(work.out, PROMPTS, kept)
        reason = pl.format("{} photographs in {}, fewer than " + str(least), "len", "group")
        fell = few.select(
            "concept", key="prompt_id", stage=pl.lit("photographed-prompts"), reason=reason, detail="text"
        )
        write_drops(work.out, fell)
        left_out = {"objects with too few photographs in a region": fell["concept"].n_unique()} if fell.height else {}
        return Outcome({"prompts": kept.height}, left_out)

    inputs = {"listed": listed, "regional": regional, "photographs": photographs}
    return Stage("prompts", "photographed-prompts", 1, run, inputs, {"least": least}, packages=("polars",))


@dataclass(frozen=True, slots=True)
class TripletReads:
    """Photographs and generated images, their vectors by one extractor, and the prompts that they are of."""

    real: Annotated[VectorFolders, Field(description="Folder of vectors of photographs; repeatable.")]
    fake: Annotated[VectorFolders, Field(description="Folder of vectors of generated images; repeatable.")]
    photographs: Annotated[ImageTables, Field(description="Table of photographs; repeatable.")]
    images: Annotated[ImageTables, Field(description="Table of generated images; repeat it, such as for each model.")]
    prompts: Annotated[
        Files, Field(description="Prompts of the images, with objects as concepts and regions as groups; repeatable.")
    ]


@dataclass(frozen=True, slots=True)
class TripletOptions:
    """How many triplets there are, and where the images compared stand."""

    near: Annotated[int, Field(ge=0, description="References of a cell with the nearest neighbours.")] = 60
    far: Annotated[int, Field(ge=0, description="References of a cell with the farthest.")] = 25
    scaled: Annotated[
        bool, Field(description="Places are those among 100 images, and move with how many there are."),
        Typed("scaled/--exact"),
    ] = True  # fmt: skip


def triplets_stage(given: TripletReads, options: TripletOptions) -> Stage:
    """Build the triplets A to E of each model.

    People compare them.
    """

    def run(work: Work) -> Outcome:
        real = sets_of(given.real, given.photographs, given.prompts, work)
        fakes = sets_of(given.fake, given.images, given.prompts, work)
        if len(real) != 1:
            raise UsageError("photographs are of one model", expected=REAL, found=", ".join(one.source for one in real))
        found = [triplets(real[0], one, near=options.near, far=options.far, scaled=options.scaled) for one in fakes]
        table = pl.concat(found)
        return table_outcome(work, TRIPLETS, table)

    return Stage("triplets", "triplets", 1, run, roles_of(given), asdict(options), packages=("numpy", "polars"))


TRIPLETS_OF = StageCommand(
    triplets_stage,
    "--real real-vectors --fake vectors --photographs real/images.parquet --images images/images.parquet "
    "--prompts prompts/prompts.parquet --out triplets",
)


def prompts_of(prompts: Files) -> pl.DataFrame:
    """Read prompts of several tables as one; a prompt may stand in two of them."""
    table = prompts.together(PROMPTS).select("prompt_id", object="concept", region="group").unique()
    twice = table.filter(pl.col("prompt_id").is_duplicated()).sort("prompt_id")
    if twice.height:
        raise UsageError("two tables say different things of a prompt", found=repr(twice["prompt_id"][0]))
    return table


def sets_of(vectors: VectorFolders, images: ImageTables, prompts: Files, work: Work) -> list[ImageSet]:
    """Put the images of each model together with their vectors; what has no object is in no set."""
    opened = vectors.vectors(work.scratch)
    assert opened is not None
    made = images.together(IMAGES).filter(status="ok").join(prompts_of(prompts), on="prompt_id")
    rows = pl.DataFrame({"image_id": list(opened.ids), "row": range(len(opened.ids))})
    known = made.drop_nulls("object").join(rows, on="image_id", validate="1:1").sort("model", "image_id")
    return [
        image_set(
            part["model"][0], np.asarray(opened.vectors[part["row"].to_numpy()]), ids=part["image_id"].to_list(),
            objects=part["object"].to_list(), regions=part["region"].to_list(),
        )
        for part in known.partition_by("model", maintain_order=True)
    ]  # fmt: skip


NOWHERE = "no region"


@dataclass(frozen=True, slots=True)
class ItemsRead:
    """Images of all models, photographs among them, and their prompts."""

    images: ImageTables
    prompts: Files


def object_items_stage(given: ItemsRead, *, each: int, seed: int) -> Stage:
    """Draw images of each model and prompt for people to look at, each with the same chance."""

    def run(work: Work) -> Outcome:
        made = given.images.together(IMAGES).filter(status="ok").join(prompts_of(given.prompts), on="prompt_id")
        drawn = drawn_images(made, each=each, seed=seed)
        items = drawn.select("image_id", "model", "prompt_id", "object", "region", item_id="image_id",
                             img_path="image_id", source="model")  # fmt: skip
        sample = drawn.select("image_id", "model", "prompt_id", "chance", concept="object",
                              stratum=pl.col("region").fill_null(NOWHERE))  # fmt: skip
        write_table(work.out, OBJECT_ITEMS, items.select(list(OBJECT_ITEMS.schema)).sort("item_id"))
        write_table(work.out, AUDIT_SAMPLE, sample.select(list(AUDIT_SAMPLE.schema)).sort("image_id"))
        return Outcome({"object_items": items.height})

    return Stage("items", "object-items", 1, run, roles_of(given), {"each": each}, {"sample": seed})


def drawn_images(made: pl.DataFrame, *, each: int, seed: int) -> pl.DataFrame:
    """Draw so many images of each model and prompt, with the chance that each had."""
    ordered = made.sort("image_id")
    order = np.random.default_rng(seed).permutation(ordered.height)
    cell: Sequence[str] = ("model", "prompt_id")
    turns = ordered.with_columns(draw=pl.Series(order), size=pl.len().over(cell))
    turns = turns.with_columns(turn=pl.col("draw").rank("ordinal").over(cell))
    taken = turns.filter(pl.col("turn") <= each)
    return taken.with_columns(chance=pl.min_horizontal(pl.lit(1.0), each / pl.col("size"))).sort("image_id")


# The stages of a simulated `inclusion` world, and of people in it: who look, what they name, and what is true.

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
