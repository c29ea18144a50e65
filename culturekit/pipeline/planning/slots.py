"""What stands beside the stages of a run and plans them: counts of work, and what would be asked or bought."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TypeAlias

from culturekit.builders.space.imported_space import count_of_kinds
from culturekit.generation.folder.folder_listing import list_folder
from culturekit.generation.runner import ImagePlan, known_pace
from culturekit.records.choices import PromptKind
from culturekit.registry import parse_spec
from culturekit.stages.asking import Left
from culturekit.stages.planned import PlannedStage, Slot, ToPlan
from culturekit.stages.stage import Stage

__all__ = ["Count", "Prompts", "asks", "made_by", "makes", "unknown", "works"]

Count: TypeAlias = Callable[[], int | None]
"""Counts what a stage works on, as far as that can be known now."""

Prompts: TypeAlias = Callable[[Sequence[PromptKind]], int | None]
"""Counts the prompts of some kinds, as far as that can be known now."""

EMBEDDED = "embedded"
"""The encoder and the scorer that come with culturekit: how long they take is known."""

SECONDS_PER_UNIT = {"ingest": 8.0e-7, "generate": 2.5e-3, "index": 1.1e-3, "map": 1.3e-3, "quality": 8.0e-4}
"""Per byte of dump, or per image, on one core: `python benchmarks/stage_rates.py`."""

SECONDS_PER_BYTE = 8.0e-8
"""Of a picture file from a folder, to decode it: a PNG of 512 pixels takes about 40 ms, a simulated one 0.3."""

LOOKED_AT = {"index": "references"}
"""The role of the pictures that a kind of stage looks at, where that is not `images`."""

LOOKING = ("encoder", "scorer")
"""The options that say who looks at pictures: of the stage, or of the index that it looks them up in."""

DECODING = {"generate", "index", "map", "quality"}
"""Kinds of stages that decode every picture."""

BYTES_PER_UNIT = {"ingest": 0.5, "generate": 4_900.0, "index": 1_300.0, "map": 1_400.0, "quality": 20.0}
"""Written per byte of dump, or per image: the same script."""


def unknown(*_: object) -> int | None:
    """Count nothing before the stages in front have run."""
    return None


def looks(plan: ToPlan) -> PlannedStage:
    """Plan a stage that takes time alone, for each picture of a stage in front that it reads."""
    pictures = plan.ahead.get(LOOKED_AT.get(plan.stage.kind, "images"))
    return PlannedStage(plan.stage.name, plan.state) if pictures is None else timed(plan, pictures.units)


def works(count: Count, unit: str = "images") -> Slot:
    """Plan a stage that takes time alone, for so many units."""
    return lambda plan: timed(plan, count(), unit)


def timed(plan: ToPlan, units: int | None, unit: str = "images") -> PlannedStage:
    """Say how long so many units take, and what is written of them, where that is known."""
    size = scaled(units, BYTES_PER_UNIT.get(plan.stage.kind))
    return PlannedStage(plan.stage.name, plan.state, units, unit, bytes=size, seconds=seconds_of(plan, units))


def asks(*, count: Count = unknown, requests: Count = unknown) -> Slot:
    """Plan a stage: where it asks a model, exactly once what it reads is there; before that are counts."""

    def planned(plan: ToPlan) -> PlannedStage:
        asking = plan.stage.asking
        if asking is None:
            return makes()(plan) if plan.stage.kind == "generate" else looks(plan)
        if asking.ahead or (plan.settled and all(path.exists() for path in plan.stage.inputs.values())):
            found = asking.plan(plan.out, None)
            return PlannedStage(plan.stage.name, plan.state, found.units, asking.unit, None, None, *found.left)
        units = count()
        dollars = None if units is None or asking.each is None else units * asking.each()
        left = Left() if asking.free else Left(requests(), None, dollars)
        return PlannedStage(plan.stage.name, plan.state, units, asking.unit, None, None, *left)

    return planned


def makes(prompts: Prompts = unknown) -> Slot:
    """Plan images, those of a folder as many as it has; `prompts` counts prompts before their table is there."""

    def planned(plan: ToPlan) -> PlannedStage:
        stage = plan.stage
        if "folder" in stage.trees:
            return timed(plan, len(list_folder(stage.inputs["folder"]).pictures), "pictures")
        made, table = made_by(stage), stage.inputs["prompts"]

        def count() -> int | None:
            asked = count_of_kinds(table, made.kinds) if table.is_file() else prompts(made.kinds)
            return None if asked is None else asked * made.repeats * made.slots

        return timed(plan, count()) if stage.asking is None else asks(count=count, requests=count)(plan)

    return planned


def made_by(stage: Stage) -> ImagePlan:
    """Read what a stage makes from its options."""
    return ImagePlan(**{field.name: stage.options[field.name] for field in fields(ImagePlan)})  # type: ignore[arg-type]


def seconds_of(plan: ToPlan, units: int | None) -> float | None:
    """Say how long a stage takes; of a model with weights only a pilot (`generate --pilot`) can tell.

    An encoder or a scorer with weights takes as long as they are large: nobody knows before they have run.
    """
    kind, stages = plan.stage.kind, [plan.stage, *(one.stage for one in plan.ahead.values())]
    if kind == "generate" and "weights" in plan.stage.options:
        return scaled(units, known_pace(plan.out))
    looking = next((str(one.options[name]) for one in stages for name in LOOKING if name in one.options), EMBEDDED)
    if kind not in SECONDS_PER_UNIT or parse_spec(looking).name != EMBEDDED:
        return None
    bytes_each = max(map(picture_bytes, stages)) if kind in DECODING else 0.0
    return scaled(units, SECONDS_PER_UNIT[kind] + SECONDS_PER_BYTE * bytes_each)


def picture_bytes(stage: Stage) -> float:
    """Say how large picture files are on average, where a stage takes them from a folder; else they are small."""
    if "folder" not in stage.trees:
        return 0.0
    sizes = [file.size for file in list_folder(stage.inputs["folder"]).pictures]
    return sum(sizes) / max(len(sizes), 1)


def scaled(units: int | None, rate: float | None) -> int | None:
    """Multiply, where both are known, and round up."""
    return None if units is None or rate is None else int(units * rate) + 1
