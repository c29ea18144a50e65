"""What stands beside the stages of a run and plans them: counts of work, and what would be asked or bought."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeAlias

from culturekit.generation.folder.folder_listing import list_folder
from culturekit.generation.folder.folder_options import FOLDER, folder_of
from culturekit.generation.runner import ImagePlan, known_pace
from culturekit.generation.services.image_services import is_paid
from culturekit.llm.client import FreeClient
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.money.cost_plan import CostPlan
from culturekit.pipeline.planning.paid_images import plan_images, price_of_each
from culturekit.registry import parse_spec
from culturekit.stages.planned import PlannedStage, Slot, ToPlan

__all__ = ["Count", "asks", "makes", "unknown", "works"]

Count: TypeAlias = Callable[[], int | None]
"""Counts what a stage works on, as far as that can be known now."""

EMBEDDED = "embedded"
"""The encoder and the scorer that come with culturekit: how long they take is known."""

SECONDS_PER_UNIT = {"ingest": 8.0e-7, "generate": 2.5e-3, "index": 1.1e-3, "map": 1.3e-3, "quality": 8.0e-4}
"""Per byte of dump, or per image, on one core: `python benchmarks/stage_rates.py`."""

SECONDS_PER_BYTE = 8.0e-8
"""Of a picture file from a folder, to decode it: a PNG of 512 pixels takes about 40 ms, a simulated one 0.3."""

DECODING = {"generate", "index", "map", "quality"}
"""Kinds of stages that decode every picture."""

BYTES_PER_UNIT = {"ingest": 0.5, "generate": 4_900.0, "index": 1_300.0, "map": 1_400.0, "quality": 20.0}
"""Written per byte of dump, or per image: the same script."""


class Priced(Protocol):
    """What looks at so many things, and what that costs; None where it costs nothing."""

    @property
    def units(self) -> int:
        """What is looked at."""
        ...

    @property
    def cost(self) -> CostPlan | None:
        """What the requests cost."""
        ...


def unknown() -> int | None:
    """Count nothing before the stages in front have run."""
    return None


def works(count: Count, unit: str = "images", *, by: str = EMBEDDED, source: str = "simulated") -> Slot:
    """Plan a stage that costs nothing but time; `by` is who looks at the pictures, `source` the backend of these."""

    def planned(plan: ToPlan) -> PlannedStage:
        units = count()
        size = scaled(units, BYTES_PER_UNIT.get(plan.stage.kind))
        seconds = seconds_of(plan, units, by=by, source=source)
        return PlannedStage(plan.stage.name, plan.state, units, unit, bytes=size, seconds=seconds)

    return planned


def asks(
    spec: str,
    exact: Callable[[Path], Priced],
    unit: str,
    *,
    count: Count = unknown,
    requests: Count = unknown,
) -> Slot:
    """Plan a stage that asks a model: `exact`, told its folder, needs what the stage reads; before that are counts."""

    def planned(plan: ToPlan) -> PlannedStage:
        name, state = plan.stage.name, plan.state
        if plan.settled and all(path.exists() for path in plan.stage.inputs.values()):
            found = exact(plan.out)
            if found.cost is None:
                return PlannedStage(name, state, found.units, unit)
            tokens, left = found.cost.input_tokens + found.cost.output_tokens, found.cost.requests - found.cost.bought
            return PlannedStage(name, state, found.units, unit, None, None, left, tokens, found.cost.usd)
        if isinstance(CLIENTS.make(spec), FreeClient):
            return PlannedStage(name, state, count(), unit)
        return PlannedStage(name, state, count(), unit, None, None, requests(), None, None)

    return planned


def makes(images: ImagePlan, backend: str, *, seed: int, count: Count, batch: bool = False) -> Slot:
    """Plan images: dollars of those that are bought, minutes of the others; a folder of pictures is counted."""

    def planned(plan: ToPlan) -> PlannedStage:
        stage = plan.stage
        if "folder" in stage.trees:
            return works(lambda: len(list_folder(stage.inputs["folder"]).pictures), "pictures", source=backend)(plan)
        if not is_paid(backend):
            return works(count, source=backend)(plan)
        prompts = stage.inputs["prompts"]
        if not prompts.is_file():
            units, each = count(), price_of_each(backend, images, batch=batch)
            dollars = None if units is None else units * each
            return PlannedStage(stage.name, plan.state, units, "images", None, None, None, None, dollars)
        found = plan_images(prompts, images, backend=backend, seed=seed, out=plan.out, batch=batch)
        left = found.calls - found.bought
        return PlannedStage(stage.name, plan.state, found.images, "images", None, None, left, found.tokens, found.usd)

    return planned


def seconds_of(plan: ToPlan, units: int | None, *, by: str, source: str) -> float | None:
    """Say how long a stage takes; of a model with weights only a pilot (`generate --pilot`) can tell.

    An encoder or a scorer with weights takes as long as they are large: nobody knows before they have run.
    """
    kind = plan.stage.kind
    if kind == "generate" and "weights" in plan.stage.options:
        return scaled(units, known_pace(plan.out))
    rate = SECONDS_PER_UNIT.get(kind)
    if rate is None or parse_spec(by).name != EMBEDDED:
        return None
    return scaled(units, rate + (SECONDS_PER_BYTE * picture_bytes(source) if kind in DECODING else 0.0))


def picture_bytes(source: str) -> float:
    """Say how large picture files are on average, where they lie in a folder; else they are small."""
    spec = parse_spec(source)
    if spec.name != FOLDER:
        return 0.0
    sizes = [file.size for file in list_folder(folder_of(spec)).pictures]
    return sum(sizes) / max(len(sizes), 1)


def scaled(units: int | None, rate: float | None) -> int | None:
    """Multiply, where both are known, and round up."""
    return None if units is None or rate is None else int(units * rate) + 1
