"""The stage from prompts to images that are bought, and what they would cost."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from culturekit.families.handles.public_files import prompts_table
from culturekit.generation.runner import ImagePlan
from culturekit.generation.services.image_client import ImagePrice, ImageService, check_image_price
from culturekit.generation.services.image_question import question_of
from culturekit.generation.services.image_services import IMAGE_SERVICES
from culturekit.generation.services.paid_runner import buy_images, planned_calls
from culturekit.llm.answers import LlmOptions
from culturekit.llm.journal.journal_entry import key_of
from culturekit.llm.money.asking_price import check_asking
from culturekit.llm.money.cost_plan import amount
from culturekit.llm.money.shared_budget import journal_for
from culturekit.llm.money.spending import read_spending
from culturekit.llm.money.tokens import ADDED_BY_SERVERS, estimate
from culturekit.records.work import Outcome, Work
from culturekit.registry import parse_spec
from culturekit.stages.asking import Asking, Left
from culturekit.stages.stage import Stage

__all__ = ["paid_images_stage", "plan_images"]

DEFAULTS = LlmOptions()

OF_THE_WAY = ("rpm", "tpm", "price", "image_price", "image_tokens", "timeout", "api_key")
"""Options that decide no image, so that a run goes on when they are changed."""


@dataclass(frozen=True, slots=True)
class ImagesPlan:
    """What is to be bought, and what it costs in US dollars.

    Attributes:
        images: All images of the plan.
        calls: The calls that ask for them.
        bought: Calls that the journal answers already: they cost nothing more.
        tokens: Tokens of the rest, in and out; 0 where each image has its price.
        usd: What the rest costs: the listed tokens of each image, and the prompts as estimated.
        most: What surely suffices when nothing has to be asked twice.
        each: What one image costs, its prompt left out.
        source: Where the price is from, and of which day.
    """

    model: str
    mode: str
    images: int
    calls: int
    bought: int
    tokens: int
    usd: float
    most: float
    each: float
    source: str

    @property
    def units(self) -> int:
        """What is asked for."""
        return self.images

    @property
    def left(self) -> Left:
        """What is left to ask."""
        return Left(self.calls - self.bought, self.tokens, self.usd)

    def lines(self) -> Iterator[str]:
        """Say it in words."""
        left = self.calls - self.bought
        yield (
            f"{self.images:,} images by {self.model}: {self.calls:,} calls, {self.bought:,} bought already, "
            f"{left:,} left"
        )
        yield f"about {amount(self.usd)} USD ({self.mode}), {amount(self.each)} an image; price: {self.source}"
        yield f"a budget of {amount(self.most, up=True)} USD surely suffices, calls that have to be made twice apart"

    def as_data(self) -> dict[str, object]:
        """Give it as data."""
        return asdict(self)


def service_of(backend: str, plan: ImagePlan) -> ImageService:
    """Make the client of a paid backend; nothing is sent."""
    return IMAGE_SERVICES.make(backend, size=plan.size)


def plan_images(
    prompts: Path, plan: ImagePlan, *, backend: str, seed: int, out: Path, batch: bool = False
) -> ImagesPlan:
    """Plan, offline: nothing is sent, and no key is needed.

    Raises:
        UsageError: nobody knows what the images cost.
    """
    client = service_of(backend, plan)
    price = check_image_price(client)
    journal = journal_for(out)
    answered = {one.key for one in read_spending(journal) if one.answered} if journal else set()
    with TemporaryDirectory(prefix="culturekit-plan-") as folder:
        calls = planned_calls(prompts_table(prompts, Path(folder)), plan, client, seed=seed)
    left, sent, bound = [], 0, 0
    for call in calls:
        outgoing = client.compose(question_of(call))
        if key_of(client.identity, outgoing) not in answered:
            left.append(len(call))
            sent += estimate(outgoing)
            bound += len(outgoing.body) + ADDED_BY_SERVERS
    share = price.rate.batch if batch else 1.0
    came = sum(left) * price.tokens
    return ImagesPlan(
        client.model,
        "batch" if batch else "online",
        sum(map(len, calls)),
        len(calls),
        len(calls) - len(left),
        0 if price.by_image else sent + came,
        share * dollars_of(price, sent, came),
        share * dollars_of(price, bound, came + price.room * len(left)),
        share * price.usd,
        price.rate.source,
    )


def price_of_each(backend: str, plan: ImagePlan, *, batch: bool) -> float:
    """Say what one image costs in US dollars, its prompt left out."""
    price = check_image_price(service_of(backend, plan))
    return price.usd * (price.rate.batch if batch else 1.0)


def dollars_of(price: ImagePrice, sent: int, came: int) -> float:
    """Reckon tokens sent and tokens that come."""
    return (sent * price.rate.input + came * price.rate.output) / 1e6


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
