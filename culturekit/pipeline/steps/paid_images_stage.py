"""The stage from prompts to images that are bought."""

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from culturekit.families.handles.public_files import prompts_table
from culturekit.generation.runner import ImagePlan
from culturekit.generation.services.image_client import ImageService, check_image_price
from culturekit.generation.services.paid_runner import buy_images
from culturekit.llm.answers import LlmOptions
from culturekit.llm.money.asking_price import check_asking
from culturekit.pipeline.planning.paid_images import plan_images, price_of_each, service_of
from culturekit.records.work import Outcome, Work
from culturekit.registry import parse_spec
from culturekit.stages.asking import Asking
from culturekit.stages.stage import Stage

__all__ = ["paid_images_stage"]

DEFAULTS = LlmOptions()
OF_THE_WAY = ("rpm", "tpm", "price", "image_price", "image_tokens", "timeout", "api_key")
"""Options that decide no image, so that a run goes on when they are changed."""


def paid_images_stage(
    prompts: Path, plan: ImagePlan, *, backend: str, model: str, seed: int, name: str, llm: LlmOptions = DEFAULTS
) -> Stage:
    """Buy the images of a model; what `llm` says of money and speed decides none of them."""
    client = service_of(backend, plan)
    spec = parse_spec(backend)
    spec = replace(spec, options={key: value for key, value in spec.options.items() if key not in OF_THE_WAY})

    def run(work: Work) -> Outcome:
        return buy_images(work, prompts_table(prompts, work.scratch), plan, client, model=model, seed=seed, llm=llm)

    return Stage(
        name,
        "generate",
        1,
        run,
        {"prompts": prompts},
        {**asdict(plan), "backend": str(spec), "model": model, "service": asdict(client.identity)},
        {"images": seed},
        packages=("msgspec", "numpy", "pillow", "polars"),
        before=partial(check_buying, client),
        asking=Asking(
            backend,
            "images",
            free=False,
            each=partial(price_of_each, backend, plan, batch=llm.batch),
            plan=lambda out, _: plan_images(prompts, plan, backend=backend, seed=seed, out=out, batch=llm.batch),
        ),
    )


def check_buying(client: ImageService) -> None:
    """Make sure that images could be bought: their price is known, and the service could be asked."""
    check_image_price(client)
    check_asking(client)
