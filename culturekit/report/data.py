"""What a report says, as data: built first, tested as such, then poured into a template."""

from collections.abc import Mapping
from dataclasses import dataclass

from culturekit.report.by_prompt import PromptImages, PromptLine
from culturekit.report.countries import CountryShares
from culturekit.report.differences import DifferenceLine
from culturekit.report.extremes import Extremes
from culturekit.report.faithfulness import Faithfulness
from culturekit.report.gaps import GapLine
from culturekit.report.kernels import Breakdown, KernelTable
from culturekit.report.making import Making
from culturekit.report.metric_tables import MetricTable
from culturekit.report.missing import MissingLine
from culturekit.report.model_lines import ModelLine
from culturekit.report.mosaic import MosaicModel
from culturekit.report.people import People
from culturekit.report.provenance import Paid, Party, StageLine
from culturekit.report.realism import RealismTables
from culturekit.report.routes import TwoRoutes
from culturekit.report.shots import Shot
from culturekit.report.trust import Trust
from culturekit.report.variety import Variety, WithinCountries
from culturekit.report.verdict import Verdict

__all__ = ["ReportData"]


@dataclass(frozen=True, slots=True)
class ReportData:
    """Everything the page shows."""

    title: str
    question: str
    verdict: Verdict
    models: tuple[ModelLine, ...]
    kernel: str
    size: int
    confidence: str
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
    gaps: tuple[GapLine, ...] | None = None
    """None for a run that was not asked for gaps."""
    breakdown: Breakdown | None = None
    mosaics: tuple[MosaicModel, ...] = ()
    extremes: Extremes | None = None
    prompt_images: tuple[PromptImages, ...] = ()
    parties: tuple[Party, ...] = ()
    paid: tuple[Paid, ...] = ()
    missing: tuple[MissingLine, ...] = ()
    """What is missing of each model; empty where nothing is."""
    routes: TwoRoutes | None = None
    making: Making | None = None
    faithfulness: Faithfulness | None = None
    realism: RealismTables | None = None
    variety: Variety | None = None
    within: WithinCountries | None = None
    people: People | None = None
    metrics: tuple[MetricTable, ...] = ()
    """Of the families that the recipe names besides."""

    @property
    def audited(self) -> bool:
        """Tell whether people looked at some images of a model."""
        return any(line.corrected is not None for line in self.models)

    @property
    def ranked(self) -> bool:
        """Tell whether models were compared on corrected diversity."""
        return any(line.rank is not None for line in self.models)

    @property
    def seen(self) -> bool:
        """Tell whether it is known what people saw on some images."""
        return any(line.seen is not None for line in self.models)

    @property
    def truthful(self) -> bool:
        """Tell whether the truth of a model is known."""
        return any(line.truth is not None for line in self.models)

    @property
    def concepts(self) -> tuple[str, ...]:
        """The concepts that have tables, in order."""
        return tuple(dict.fromkeys(name for table in self.tables for name in table.concepts if name is not None))
