"""The stage from images to what a vision model says they show, and what it would cost."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from culturekit.builders.country_names import NAMES
from culturekit.builders.judging.geo_tag import STAGE, TaggedImages, image_rows, tag_images
from culturekit.builders.judging.geo_tag_question import TASK, geo_tag_wording
from culturekit.builders.judging.image_sample import ImageSample, drawn
from culturekit.builders.judging.shown_images import ShownImages, requests_about
from culturekit.families.handles.public_files import space_table
from culturekit.kg.countries import country_files
from culturekit.llm.answers import LlmOptions
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.money.asking_price import check_asking
from culturekit.llm.money.cost_plan import CostPlan, cost_plan_lines
from culturekit.pipeline.asking_cost import cost_of
from culturekit.pipeline.steps.filter_stage import judge_inputs, judge_options
from culturekit.stages.stage import Stage
from culturekit.storage.digests import digest_bytes
from culturekit.storage.package_data import shipped

__all__ = ["TagPlan", "plan_tag", "tag_plan_lines", "tag_stage"]

DEFAULTS = LlmOptions()


def tag_stage(
    images: Path,
    judge: str,
    *,
    cspace: Path | None = None,
    sample: ImageSample | None = None,
    llm: LlmOptions = DEFAULTS,
    name: str = "tag",
) -> Stage:
    """Ask a vision model what images show; what `llm` says of money and speed decides no answer."""
    client = CLIENTS.make(judge)
    return Stage(
        name,
        "tag",
        2,
        lambda work: tag_images(
            work,
            images,
            client,
            cspace=None if cspace is None else space_table(cspace, work.scratch),
            sample=sample,
            llm=llm,
        ),
        {
            "images": images,
            "country-names": shipped(NAMES),
            **country_files(),
            **({} if cspace is None else {"cspace": cspace}),
            **judge_inputs(judge),
        },
        {
            **judge_options(judge, client),
            "task": TASK,
            "wording": digest_bytes(geo_tag_wording().encode()),
            **({} if sample is None else {"sample": asdict(sample)}),
        },
        packages=("msgspec", "pillow", "polars", "pycountry"),
        before=partial(check_asking, client),
    )


@dataclass(frozen=True, slots=True)
class TagPlan:
    """Images, how many of them cannot be shown to the judge, and what asking about the rest takes.

    `cost` is None for a judge that answers in this process.
    """

    judge: str
    images: int
    unreadable: int
    cost: CostPlan | None

    @property
    def units(self) -> int:
        """What is looked at."""
        return self.images


def plan_tag(images: Path, judge: str, out: Path, *, sample: ImageSample | None = None, batch: bool = False) -> TagPlan:
    """Plan, offline: every picture that is drawn is read, nothing is sent."""
    client = CLIENTS.make(judge)
    rows = drawn(image_rows(images), sample)
    tagged = TaggedImages(ShownImages(images.parent, STAGE), client.model, None)
    cost = cost_of(client, requests_about(rows, tagged), out, batch=batch)
    return TagPlan(client.model, rows.height, len(tagged.shown.drops), cost)


def tag_plan_lines(plan: TagPlan) -> Iterator[str]:
    """Say a plan in words."""
    asked = plan.images - plan.unreadable
    yield f"{plan.images:,} images: {plan.unreadable:,} cannot be shown, {asked:,} are asked about, by {plan.judge}"
    if plan.cost is None:
        yield f"{plan.judge} answers in this process and costs nothing"
    else:
        yield from cost_plan_lines(plan.cost)
