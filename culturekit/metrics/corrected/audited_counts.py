"""Mapped and audited labels as counts: all that the correction looks at, however many images there are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.metrics.corrected.audit_design import Design
from culturekit.metrics.corrected.audit_gates import NOTHING, audited_answers
from culturekit.metrics.corrected.audited_places import lone_continent
from culturekit.metrics.corrected.imputed_labels import Findings
from culturekit.metrics.corrected.raters import modelled_answers
from culturekit.metrics.diversity.kernels import Weights

__all__ = [
    "NONE",
    "AuditedCounts",
    "audited_counts",
    "continents_of",
    "counted_images",
    "label_column",
    "numbered_images",
    "numbered_parents",
]

NONE = NOTHING

TOLD = 9
"""Digits of what people say of an image that count: labels that are equally likely stay so, and are drawn alike."""


@dataclass(frozen=True, slots=True)
class AuditedCounts:
    """What was mapped and what was found.

    Attributes:
        labels: the labels that occur, mapped or found, in alphabetical order.
        parents: int64, (n_labels,): the continent of each.
        mapped: int64, (n_prompts, n_labels): images by prompt and mapped label.
        found: the audited images in the order of their ids, and what each really shows; shares of labels where raters
            leave a doubt.
        adrift: as in TakenAnswers.
    """

    labels: tuple[str, ...]
    parents: NDArray[np.int64]
    mapped: NDArray[np.int64]
    found: Findings
    adrift: Mapping[str, float] = field(default_factory=dict)

    @property
    def audited(self) -> int:
        """How many images were audited."""
        return len(self.found.prompt)

    @property
    def audit(self) -> NDArray[np.float64]:
        """Audited images by mapped label and what they really show, float64 (n_labels, n_labels)."""
        table = np.zeros((len(self.labels),) * 2)
        np.add.at(table, self.found.mapped, self.found.shown)
        return table


def audited_counts(
    matches: pl.DataFrame,
    audit: pl.DataFrame,
    *,
    weights: Weights,
    pool: str | None = None,
    sample: pl.DataFrame | None = None,
    design: Design = "drawn",
) -> AuditedCounts:
    """Count the nearest matches of one model by label, and the audited ones by label and finding.

    Args:
        matches: MATCHES of one model; only rank 1 counts.
        audit: AUDITS; rows of images that are not among the matches are not looked at, and answers that name a
            continent only say nothing where countries count.
        weights: which levels count: countries or continents.
        pool: whose answers count; needed only when several pools answered.
        sample: AUDIT_SAMPLE: which images people were asked about.
        design: whether the audited images are known to be drawn evenly.
    """
    column = label_column(weights)
    nearest = matches.filter(pl.col("rank") == 1)
    taken = audited_answers(nearest, audit, weights=weights, pool=pool, sample=sample, design=design)
    parents = continents_of(nearest, taken.said, column)
    labels = tuple(sorted(parents))
    number = pl.Enum(labels)
    images = numbered_images(nearest, labels, column)
    said = taken.said.select("image_id", "annotator", label=pl.col("label").cast(number).to_physical())
    model = modelled_answers(said, taken.gold, labels=len(labels))
    seen = images.join(said, on="image_id", how="semi", maintain_order="left")
    shown = model.shares.round(TOLD)
    return AuditedCounts(
        labels=labels,
        parents=numbered_parents(parents),
        mapped=counted_images(images, len(labels)),
        found=Findings(seen["prompt"].to_numpy(), seen["label"].to_numpy(), shown, model.right, model.doubt),
        adrift=taken.adrift,
    )


def numbered_images(nearest: pl.DataFrame, labels: Sequence[str], column: str) -> pl.DataFrame:
    """Give each image, by its id, the numbers of its prompt and of its mapped label."""
    return nearest.sort("image_id").select(
        "image_id",
        prompt=pl.col("prompt_id").fill_null("").rank("dense").cast(pl.Int64) - 1,
        label=pl.col(column).fill_null(NONE).cast(pl.Enum(labels)).to_physical().cast(pl.Int64),
    )


def counted_images(images: pl.DataFrame, labels: int) -> NDArray[np.int64]:
    """Count images by prompt and mapped label, int64 (n_prompts, n_labels)."""
    mapped = np.zeros((int(str(images["prompt"].max())) + 1, labels), np.int64)
    np.add.at(mapped, (images["prompt"].to_numpy(), images["label"].to_numpy()), 1)
    return mapped


def numbered_parents(parents: Mapping[str, str]) -> NDArray[np.int64]:
    """Number the continent of each label, labels in alphabetical order."""
    continents = sorted(set(parents.values()))
    return np.array([continents.index(parents[label]) for label in sorted(parents)])


def label_column(weights: Weights) -> str:
    """Say which column holds the labels of a kernel; artifacts are more than an audit of some images can tell."""
    if weights[2] > 0:
        raise UsageError(
            "the order q = 1 cannot be corrected for kernels with artifacts: a small audit meets most artifacts never",
            expected="weights without the artifact level, or q=2",
            found=f"weights={weights}",
        )
    return "country" if weights[1] > 0 else "continent"


def continents_of(nearest: pl.DataFrame, said: pl.DataFrame, column: str) -> dict[str, str]:
    """Give the continent of every label that was mapped or found; a country lies in one continent.

    One that nobody knows is a continent of its own: a country without is not where pictures of nothing are.
    """
    places = [nearest, said.filter(~pl.col("none_of_these"))]
    pairs = pl.concat([table.select(label=column, continent="continent") for table in places]).unique()
    pairs = pairs.drop_nulls("label").select("label", pl.coalesce("continent", lone_continent(pl.col("label"))))
    return {**dict(pairs.sort("label").iter_rows()), NONE: NONE}
