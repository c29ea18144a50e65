"""How many images of a finished run people would have to look at, for corrected scores of a certain width."""

import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
from pydantic import Field

from culturekit.defaults import RATERS
from culturekit.errors import UsageError
from culturekit.families.handles.inputs import Files
from culturekit.families.qvs import answers_of
from culturekit.metrics.corrected.audit_forecast import audit_forecast, images_for
from culturekit.metrics.corrected.audit_gates import closest_level
from culturekit.metrics.corrected.audit_marks import MARKS, ONE_RATER, marks_of
from culturekit.metrics.corrected.audited_counts import audited_counts
from culturekit.metrics.diversity.kernels import STANDARD_KERNELS, Weights
from culturekit.pipeline.steps.report_stage import folders_of
from culturekit.records.schemas import AUDITS, RECOGNITION
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles
from culturekit.stages.stage_command import Seed
from culturekit.storage.tables import read_table
from culturekit.trail.upstream import upstream

__all__ = ["AuditPlan", "AuditWish", "as_data", "audit_plan", "audit_plan_lines"]

ASSUMED = 0.8
"""How often a mapping is taken to be right where neither a first audit nor a diagnosis tells."""

FIRST = "first audit"


@dataclass(frozen=True, slots=True)
class AuditWish:
    """What is wanted of an audit."""

    width: Annotated[
        float, Field(ge=0.001, le=1, description="Of the interval of each model's corrected diversity.")
    ] = 0.05
    kernel: Annotated[str, Field(description="Diversity that is meant: country, continent or hierarchical.")] = (
        "country"
    )
    accuracy: Annotated[
        float | None,
        Field(ge=0.01, le=1, description="How often the mapping is right. [by the run's audit, diagnosis, else 0.8]"),
    ] = None
    per_hour: Annotated[float, Field(ge=1, description="Answers that one person gives in an hour.")] = 200.0
    people: Annotated[int, Field(ge=1, le=50, description="People who look at every image.")] = RATERS
    seed: Seed = 0


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """The audit of a model: how many images, how wide the interval is then, and with half and twice as many; hours."""

    model: str
    images: int
    of: int
    width: float
    half: float | None
    twice: float | None
    hours: float
    reached: bool


def audit_plan(root: Path, wish: AuditWish, *, pilot: Path | None = None) -> tuple[list[AuditPlan], str, list[str]]:
    """Plan the audit of each model of a run; say what the plan takes to be known, and how a first audit is marked.

    Raises:
        UsageError: there is no such run, or what is wished for breaks a rule.
    """
    weights = STANDARD_KERNELS.get(wish.kernel)
    if weights is None or weights[2] > 0:
        known = [name for name, each in STANDARD_KERNELS.items() if each[2] == 0]
        raise UsageError(
            "the width is forecast for kernels without artifacts only", expected=" or ".join(known), found=wish.kernel
        )
    if pilot is not None and wish.accuracy is not None:
        raise UsageError("a first audit says how often the mapping is right", expected="--audits or --accuracy")
    run = folders_of(root)
    size = int(run.manifest(roles.SCORES).options["size"])
    first = None if pilot is None else read_table(pilot, AUDITS)
    first, accuracy, source = (first, None, f"{FIRST}: {pilot}") if pilot else known_of(run, wish, weights)
    plans, marks = [], set[str]()
    for number, model in enumerate(run.models):
        rng = np.random.default_rng([wish.seed, number])
        forecast = audit_forecast(
            run.matches(model), weights=weights, size=size, accuracy=accuracy, pilot=first, rng=rng
        )
        if first is not None:
            nearest = run.matches(model).filter(pl.col("rank") == 1)
            marks |= set(marks_of(nearest, first, None, "drawn", closest_level(weights)[1]))
        width_at = cache(forecast.width)
        least, most = forecast.least(), forecast.images
        images = images_for(width_at, wish.width, least=least, most=most)
        half, twice = (width_at(n) if least <= n <= most else None for n in (images // 2, images * 2))
        hours = images * wish.people / wish.per_hour
        width = width_at(images)
        plans.append(AuditPlan(model, images, most, width, half, twice, hours, width <= wish.width))
    return plans, source, [mark for mark in MARKS if mark in marks]


def known_of(run: RunFolders, wish: AuditWish, weights: Weights) -> tuple[pl.DataFrame | None, float | None, str]:
    """Give the answers that corrected the scores of a run, or else how often its mapping is right, and who says so."""
    folder = run.folder(roles.SCORES)
    tables = [role for role in run.manifest(roles.SCORES).inputs if role.startswith("audit")]
    if wish.accuracy is None and tables:
        own = answers_of(Files({role: upstream(folder, role) for role in tables}))
        try:
            for model in run.models:
                for images in run.matches(model).filter(pl.col("rank") == 1).partition_by("concept"):
                    audited_counts(images, own, weights=weights)
        except UsageError as error:
            return None, *accuracy_of(run, None, f"; answers of this run tell nothing: {error.problem}")
        return own, None, f"{FIRST}: that of this run"
    return None, *accuracy_of(run, wish.accuracy)


def accuracy_of(run: RunFolders, stated: float | None, more: str = "") -> tuple[float, str]:
    """Say how often the mapping is right, and who says so; `more` is said too."""
    if stated is not None:
        return stated, f"the mapping is right in {stated:.0%}, as stated"
    known = run.read(roles.DIAGNOSIS, RECOGNITION)
    counts = (
        None if known is None else known.filter(pl.col("country").is_not_null()).select("shown", "recognised").sum()
    )
    if counts is None or not counts["shown"][0]:
        return ASSUMED, f"the mapping is taken to be right in {ASSUMED:.0%}: no diagnosis tells; see --accuracy{more}"
    found = max(counts["recognised"][0] / counts["shown"][0], 0.01)
    return (
        found,
        f"the mapping is right in {found:.0%} of held-out references; of generated images it may be less{more}",
    )


def audit_plan_lines(
    root: Path, plans: list[AuditPlan], source: str, marks: list[str], wish: AuditWish
) -> Iterator[str]:
    """Say a plan in words."""
    yield f"{'model':<20} {'images':>7} {'of':>8} {'width':>7} {'half':>7} {'twice':>7} {'hours':>7}"
    for plan in plans:
        half, twice = ("" if width is None else f"{width:.3f}" for width in (plan.half, plan.twice))
        yield (
            f"{plan.model:<20} {plan.images:>7,} {plan.of:>8,} {plan.width:>7.3f} {half:>7} {twice:>7} "
            f"{plan.hours:>7.1f}{'' if plan.reached else '  not reached'}"
        )
    yield (
        f"Width of the 95 % interval of corrected diversity (kernel {wish.kernel}); the concepts of a model share its "
        f"images. Half, twice: with half and twice as many; blank: too few, or more than there are. Hours: of all "
        f"{wish.people} people, at {wish.per_hour:g} answers."
    )
    told = source.startswith(FIRST) and ONE_RATER not in marks
    people = "err as there" if told else "are taken to be right: only a first audit of several people tells more"
    yield f"Simulated: {source}. People {people}."
    yield from (f"Marked: {mark}. {MARKS[mark]}" for mark in marks)
    if plans:
        most = max(plan.images for plan in plans)
        people = "" if wish.people == RATERS else f" --people {wish.people}"
        yield f"Next: culturekit annotate serve {shlex.quote(str(root))} --images {most}{people}"


def as_data(plans: list[AuditPlan], source: str, marks: list[str]) -> dict[str, object]:
    """Give a plan as data."""
    return {"models": [asdict(plan) for plan in plans], "source": source, "marked": marks}
