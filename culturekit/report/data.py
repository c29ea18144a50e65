"""What a report says, as data: built first, tested as such, then poured into a template."""

from collections.abc import Mapping
from dataclasses import dataclass

from culturekit.trail.evidence import ArtifactEvidence

__all__ = [
    "BoundLine",
    "CountryLine",
    "CountryShares",
    "DifferenceLine",
    "Figure",
    "HubLine",
    "KernelTable",
    "ModelLine",
    "Near",
    "PromptLine",
    "ReportData",
    "Share",
    "Shot",
    "StabilityLine",
    "StageLine",
    "Trust",
    "Verdict",
]


@dataclass(frozen=True, slots=True)
class Figure:
    """One score as it stands in the scores table, and the row it stands in."""

    value: float
    low: float | None
    high: float | None
    n: int
    row: int


@dataclass(frozen=True, slots=True)
class ModelLine:
    """A model in the headline: its mapped diversity, the corrected one after an audit, the true one where known."""

    model: str
    backend: str
    images: int
    mapped: Figure
    corrected: Figure | None
    truth: Figure | None
    quality: Figure | None
    culture_free: int | None
    similarity: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class KernelTable:
    """One metric of one concept: models down, kernels across, and for each kernel a score per kind of labels.

    `limits` are floor and ceiling: what pictures that show nothing score, and pictures that show everything.
    """

    concept: str
    metric: str
    title: str
    kernels: tuple[str, ...]
    labels: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[Figure | None, ...], ...]], ...]
    limits: tuple[tuple[str, tuple[Figure | None, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Near:
    """An artifact near an image, with a reference picture of it."""

    artifact_id: str
    artifact: str
    country: str
    score: float
    margin: float
    thumbnail: str | None


@dataclass(frozen=True, slots=True)
class Shot:
    """An image as evidence: what it was asked for, what it is nearest to, what it really shows."""

    image_id: str
    model: str
    concept: str
    thumbnail: str
    prompt: str
    nearest: tuple[Near, ...]
    truth_known: bool
    truth: str | None
    evidence: ArtifactEvidence | None


@dataclass(frozen=True, slots=True)
class StageLine:
    """A finished stage as its manifest describes it."""

    folder: str
    stage: str
    sha256: str
    inputs: Mapping[str, str]
    counts: Mapping[str, int]
    drops: Mapping[str, int]
    seeds: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Share:
    """The share of images that show something, with its limits, and how many images that is."""

    value: float
    low: float | None
    high: float | None
    images: int


@dataclass(frozen=True, slots=True)
class CountryShares:
    """Which countries the images of each model were mapped to.

    Attributes:
        names: of each country, by its code, in the order of the names.
        models: in the order of the page.
        shares: by model and code.
        images: how many images each model made that were mapped.
        available: the share of each country in the artifacts that images are mapped to.
        off_the_map: countries too small for the map.
    """

    names: Mapping[str, str]
    models: tuple[str, ...]
    shares: Mapping[str, Mapping[str, Share]]
    images: Mapping[str, int]
    available: Mapping[str, float]
    off_the_map: tuple[str, ...]

    def never(self, model: str) -> int:
        """Count the countries that no image of a model was mapped to."""
        return sum(share.images == 0 for share in self.shares[model].values())

    def most(self, model: str) -> str:
        """Name the country that most images of a model were mapped to."""
        return self.names[max(self.shares[model], key=lambda code: self.shares[model][code].value)]


@dataclass(frozen=True, slots=True)
class DifferenceLine:
    """How far two models are apart on one score, and whether that is more than chance.

    Attributes:
        first: the model with the larger score.
        second: the other.
        labels: whether mapped or corrected labels were compared.
        difference: on the common prompts.
        p: corrected for the number of comparisons; None where nothing says how much values scatter.
        common: prompts that both answered.
        left_out: prompts that only one answered.
    """

    first: str
    second: str
    concept: str | None
    metric: str
    labels: str
    difference: Figure
    p: float | None
    common: int
    left_out: int


@dataclass(frozen=True, slots=True)
class PromptLine:
    """The mean score of each model on one prompt and how many batches that is; None for a model without any."""

    prompt_id: str
    text: str
    concept: str | None
    scores: tuple[tuple[float, int] | None, ...]


@dataclass(frozen=True, slots=True)
class CountryLine:
    """How well the mapping tells a country's artifacts, on held-out references; None is the line over all."""

    country: str | None
    shown: int
    recall: float | None
    mapped: int
    precision: float | None


@dataclass(frozen=True, slots=True)
class HubLine:
    """An artifact that is near to many images of a model."""

    model: str
    artifact: str
    artifact_id: str
    country: str
    share: float
    nearest: int


@dataclass(frozen=True, slots=True)
class BoundLine:
    """How far unknown images could move a model's score."""

    model: str
    concept: str | None
    worst: Figure
    best: Figure
    unknown: int
    images: int


@dataclass(frozen=True, slots=True)
class StabilityLine:
    """How far two instruments agree on the order of the models."""

    between: tuple[str, ...]
    metric: str
    concept: str | None
    kernel: str
    tau: float
    stable: bool


@dataclass(frozen=True, slots=True)
class Trust:
    """How far the mapping can be trusted."""

    countries: tuple[CountryLine, ...]
    hubs: tuple[HubLine, ...]
    skew: Mapping[str, float]
    bounds: tuple[BoundLine, ...]
    stability: tuple[StabilityLine, ...]

    @property
    def stable(self) -> bool | None:
        """Tell whether all rankings compared are stable; None where none was compared."""
        return all(line.stable for line in self.stability) if self.stability else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer on the first screen."""

    liar: str | None
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReportData:
    """Everything the page shows."""

    title: str
    question: str
    verdict: Verdict
    models: tuple[ModelLine, ...]
    kernel: str
    tables: tuple[KernelTable, ...]
    shots: tuple[Shot, ...]
    caveats: tuple[str, ...]
    stages: tuple[StageLine, ...]
    versions: Mapping[str, str]
    thumbnails: Mapping[str, str]
    """Name of a thumbnail to the path of the picture it is a copy of."""
    withheld: tuple[str, ...] = ()
    """Why kernels of models and concepts stand uncorrected although some of their images were audited."""
    trust: Trust | None = None
    shares: CountryShares | None = None
    differences: tuple[DifferenceLine, ...] = ()
    prompts: tuple[PromptLine, ...] = ()

    @property
    def audited(self) -> bool:
        """Tell whether people looked at some images of a model."""
        return any(line.corrected is not None for line in self.models)

    @property
    def concepts(self) -> tuple[str, ...]:
        """The concepts that have tables, in order."""
        return tuple(dict.fromkeys(table.concept for table in self.tables))
