"""The stages of geographic inclusion: prompts of objects in regions, triplets of images, images to be looked at."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
from pydantic import Field

from culturekit.builders.prompting.geographic import GeographicOptions, geographic_prompts
from culturekit.errors import UsageError
from culturekit.families.handles.inputs import Files, ImageTables, VectorFolders, roles_of
from culturekit.generation.place_lists import load_places, place_file
from culturekit.kg.countries import country_files
from culturekit.metrics.inclusion.task2_files import REAL
from culturekit.metrics.inclusion.triplet_combos import ImageSet, image_set, triplets
from culturekit.records.schemas import AUDIT_SAMPLE, IMAGES, OBJECT_ITEMS, PROMPTS, TRIPLETS
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.stages.stage_command import StageCommand, Typed
from culturekit.storage.tables import read_table, table_outcome, write_drops, write_table

__all__ = ["GEOGRAPHIC", "TRIPLETS_OF", "ItemsRead", "PlacesRead", "TripletOptions", "TripletReads",
           "geographic_stage", "object_items_stage", "photographed_stage", "triplets_stage"]  # fmt: skip


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
