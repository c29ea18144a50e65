"""Several runs as one page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import polars as pl
from markupsafe import Markup

from culturekit.report.charts import diversity_chart
from culturekit.report.differences import DifferenceLine, lines_of
from culturekit.report.headline import apart_in, floor_in
from culturekit.report.model_lines import ModelLine, in_order, model_lines
from culturekit.report.provenance import caveats
from culturekit.report.render import page_of
from culturekit.report.run_folders import RunFolders
from culturekit.report.several.ground import Apart, Ground, apart, ground_of, image_traits
from culturekit.report.verdict import Verdict, verdict_on
from culturekit.stages import roles
from culturekit.version import VERSION

__all__ = ["RunPart", "SeveralData", "collect_several", "render_several"]


@dataclass(frozen=True, slots=True)
class RunPart:
    """A run on the page of several: its models, what is to be known of it, and the hash of its scores."""

    name: str
    models: tuple[ModelLine, ...]
    verdict: Verdict
    caveats: tuple[str, ...]
    scores: str


@dataclass(frozen=True, slots=True)
class SeveralData:
    """Everything the page of several runs shows.

    Attributes:
        apart: in what the runs differ.
        traits: in what the images of models differ besides the model, in sentences.
        differences: of models of different runs, on the prompts that both answered.
        compared: runs on the same ground, whose models were compared.
    """

    runs: tuple[RunPart, ...]
    grounds: tuple[Ground, ...]
    apart: tuple[Apart, ...]
    traits: tuple[str, ...]
    differences: tuple[DifferenceLine, ...]
    compared: tuple[tuple[str, ...], ...]
    kernel: str
    versions: Mapping[str, str]

    @property
    def title(self) -> str:
        """What the page is about."""
        return f"{len(self.runs)} runs side by side" if len(self.runs) > 1 else f"The models of {self.runs[0].name}"

    @property
    def ranked(self) -> bool:
        """Tell whether models of a run were compared on corrected diversity."""
        return any(line.rank is not None for run in self.runs for line in run.models)

    @property
    def audited(self) -> bool:
        """Tell whether people looked at some images of a model."""
        return any(line.corrected is not None for run in self.runs for line in run.models)

    @property
    def truthful(self) -> bool:
        """Tell whether the truth of a model is known."""
        return any(line.truth is not None for run in self.runs for line in run.models)


def collect_several(
    runs: Sequence[tuple[str, RunFolders]], comparison: pl.DataFrame | None, compared: Sequence[tuple[str, ...]]
) -> SeveralData:
    """Collect the page; `comparison` are differences of models of different runs, where some were computed."""
    grounds = [ground_of(run, name) for name, run in runs]
    return SeveralData(
        runs=tuple(part(name, run) for name, run in runs),
        grounds=tuple(grounds),
        apart=tuple(apart(grounds)),
        traits=tuple(image_traits(runs)),
        differences=() if comparison is None else tuple(lines_of(comparison, kernel=runs[0][1].kernel)),
        compared=tuple(compared),
        kernel=runs[0][1].kernel,
        versions={"culturekit": VERSION},
    )


def part(name: str, run: RunFolders) -> RunPart:
    """Read the headline of one run."""
    scores = run.scores()
    models = in_order(model_lines(run, scores))
    verdict = verdict_on(models, floor=floor_in(run, scores), apart=apart_in(run))
    return RunPart(name, models, verdict, caveats(run), run.manifest(roles.SCORES).sha256)


def render_several(data: SeveralData, pages: Mapping[tuple[str, str], str] = MappingProxyType({})) -> str:
    """Render the page: it has no script at all; `pages` are those that models have, by run and model."""
    alone = len(data.runs) == 1
    lines = [
        line if alone else replace(line, model=f"{line.model} ({run.name})") for run in data.runs for line in run.models
    ]
    return page_of("several.html", data=data, pages=pages, chart=Markup(diversity_chart(lines)))
