"""The stage from images to what a vision model says they show, and what it would cost."""

from dataclasses import asdict

import polars as pl

from culturekit.builders.country_names import NAMES
from culturekit.builders.judging.geo_tag import (
    STAGE,
    TASK,
    TaggedImages,
    TagOptions,
    TagReads,
    geo_tag_wording,
    image_rows,
    tag_images,
)
from culturekit.builders.judging.image_sample import drawn
from culturekit.builders.judging.shown_images import ShownImages
from culturekit.families.handles.inputs import roles_of
from culturekit.families.handles.public_files import space_table
from culturekit.kg.countries import WORLD, country_files
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.clients.clients import CLIENTS
from culturekit.pipeline.asking_stage import AskPlan, asking_images
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.stages.stage_command import AskingCommand
from culturekit.storage.digests import digest_bytes
from culturekit.storage.package_data import shipped

__all__ = ["TAG", "tag_stage"]


class TagPlan(AskPlan):
    """What tagging takes; as data, images and those that cannot be shown have names of their own, too."""

    __slots__ = ()

    def as_data(self) -> dict[str, object]:
        """Give it as data."""
        return {**AskPlan.as_data(self), "images": self.units, "unreadable": self.left_out}


def tag_stage(given: TagReads, options: TagOptions, llm: LlmOptions = DEFAULTS, *, name: str = "tag") -> Stage:
    """Ask a vision model which artifact each image shows: the alternative to `index map`."""
    client, sample = CLIENTS.make(options.judge), options.sample

    def run(work: Work) -> Outcome:
        cspace = None if given.cspace is None else space_table(given.cspace, work.scratch)
        return tag_images(work, TagReads(given.images, cspace), client, sample, llm)

    def images() -> tuple[pl.DataFrame, TaggedImages]:
        tagged = TaggedImages(ShownImages(given.images.parent, STAGE), client.model, None)
        return drawn(image_rows(given.images), sample), tagged

    stage = Stage(
        name,
        "tag",
        2,
        run,
        {**roles_of(given), "country-names": shipped(NAMES), "world": shipped(WORLD), **country_files()},
        {
            "task": TASK,
            "wording": digest_bytes(geo_tag_wording().encode()),
            **({"sample": asdict(sample)} if sample.images else {}),
        },
        packages=("babel", "msgspec", "pillow", "polars", "pycountry"),
    )
    return asking_images(stage, options.judge, client, images=images, llm=llm, made=TagPlan)


TAG = AskingCommand(
    tag_stage,
    "--images images/images.parquet --llm 'openai:gpt-4o-mini' --cspace cspace/cspace.parquet --out tags --budget 20",
    again="Tag",
)
