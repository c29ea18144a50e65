"""The stages of the simulated world: pages about it, and what scenes of it truly show."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from culturekit.builders.simulated.simulated_pages import write_pages
from culturekit.errors import UsageError
from culturekit.families.handles.inputs import asked
from culturekit.generation.simulated.scenes.vocabulary import DIMENSIONS, VOCABULARY, world
from culturekit.records.schemas import IMAGES, JUDGMENTS, STEREOTYPES
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.storage.package_data import shipped
from culturekit.storage.tables import read_table, write_table

__all__ = ["TRUTH", "scene_truth_stage", "simulated_pages_stage"]

CAVEAT = "The pages are about a made-up world; nobody wrote them, and no culture is as they say."
TRUTH = "truth"
"""The judge that never errs."""


def simulated_pages_stage(countries: Sequence[str]) -> Stage:
    """Write pages about the activities of countries of the simulated world, and the list `pages.yaml` of them."""

    def run(work: Work) -> Outcome:
        return Outcome({"pages": write_pages(work.out, countries)}, notes={"caveat": CAVEAT})

    return Stage("pages", "simulated-pages", 1, run, {"world": shipped(VOCABULARY)}, {"countries": list(countries)})


def scene_truth_stage(images: Path, prompts: Path, stereotypes: Path | None = None) -> Stage:
    """Write down what simulated scenes really show, as a judge that never errs would say it.

    With a table of stereotypes each of those of the prompt's country has a row, else those that the world knows.
    """
    inputs = {"images": images, "prompts": prompts}
    if stereotypes is not None:
        inputs["stereotypes"] = stereotypes

    def run(work: Work) -> Outcome:
        made = read_table(images, IMAGES).filter(pl.col("status") == "ok")
        if "truth_scene" not in made.columns:
            raise UsageError(
                "these images do not come with the truth", where=str(images), expected="images of simulated-scenes"
            )
        countries = dict(asked(prompts, work.scratch).select("prompt_id", "country").iter_rows())
        known = candidates(None if stereotypes is None else read_table(stereotypes, STEREOTYPES))
        work.progress.begin(made.height, "images")
        rows = [
            row
            for image in made.drop_nulls("truth_scene").sort("image_id").iter_rows(named=True)
            for row in said_of(image, known.get(countries.get(image["prompt_id"], ""), ()))
        ]
        write_table(work.out, JUDGMENTS, pl.DataFrame(rows, schema=JUDGMENTS.schema, orient="row"))
        work.progress.advance(made.height)
        return Outcome({"judgments": len(rows), "images": made.height})

    return Stage("truth", "scene-truth", 1, run, inputs, packages=("msgspec", "polars"))


def candidates(table: pl.DataFrame | None) -> Mapping[str, tuple[str, ...]]:
    """Give the stereotypes of each country."""
    if table is None:
        return {country: world().stereotypes(country) for country in world().countries}
    by_country = table.sort(STEREOTYPES.key).group_by("country", maintain_order=True).agg("token").iter_rows()
    return {country: tuple(tokens) for country, tokens in by_country}


def said_of(image: Mapping[str, Any], stereotypes: tuple[str, ...]) -> Iterator[tuple[object, ...]]:
    """Give the rows about one image: what it shows in each dimension, and how strongly each stereotype."""
    scene = msgspec.json.decode(image["truth_scene"])
    place = (image["image_id"], image["prompt_id"], TRUTH)
    for dimension in DIMENSIONS:
        for token in scene["shown"][dimension] or [""]:
            yield *place, "extract", token, dimension, None, None, "", "ok"
    for token in stereotypes:
        strength = scene["stereotypes"].get(token.casefold(), 0.0)
        yield *place, "stereotype", token, None, strength, None, "", "ok"
