"""A page for every model of some runs, and one for every artifact that their images were mapped to."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from culturekit.report.countries import Share, country_names, shares_in
from culturekit.report.inert import plain
from culturekit.report.kernels import KernelTable, kernel_tables
from culturekit.report.looks import Tile, looks_of, reference_of, reference_pictures
from culturekit.report.model_lines import ModelLine
from culturekit.report.mosaic import Mosaic, artifacts_of, mosaic_of, tiles
from culturekit.report.render import environment
from culturekit.report.run_folders import RunFolders
from culturekit.report.several.page import RunPart
from culturekit.stages import roles
from culturekit.storage.atomic import write_atomically
from culturekit.trail.evidence import ArtifactEvidence, EvidenceTables

__all__ = ["POLICY", "STYLE", "SiteRun", "model_page", "write_artifact_pages", "write_model_pages"]

STYLE = "site.css"
POLICY = "default-src 'none'; style-src 'self' file:; img-src 'self' file: data:; base-uri 'none'; form-action 'none'"
"""What pages may load: the style and the pictures beside them. There is no script at all."""


@dataclass(frozen=True, slots=True)
class Shown:
    """An artifact in the images of a model: how many are mapped to it, of all that are mapped, and some of them."""

    artifact_id: str
    artifact: str
    country: str | None
    images: int
    share: float
    score: float
    page: str


@dataclass(frozen=True, slots=True)
class ModelPage:
    """What the page of a model says; `countries` are the names of those that its images show, most first."""

    run: str
    line: ModelLine
    shows_nothing: bool
    size: int
    kernel: str
    confidence: str
    tables: tuple[KernelTable, ...]
    countries: tuple[tuple[str, Share], ...]
    never: int
    corrected: bool
    artifacts: tuple[Shown, ...]
    mosaics: tuple[Mosaic, ...]
    caveats: tuple[str, ...]
    thumbnails: str


@dataclass(frozen=True, slots=True)
class ModelLook:
    """Images of a model that were mapped to an artifact."""

    model: str
    page: str
    images: int
    share: float
    score: float
    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class ArtifactInRun:
    """An artifact in one run: why it is one, a picture of it, and the images that models were mapped to it by."""

    run: str
    countries: tuple[str, ...]
    evidence: tuple[ArtifactEvidence, ...]
    reference: str | None
    looks: tuple[ModelLook, ...]
    thumbnails: str


class SiteRun:
    """A run of the site, with what its images were mapped to.

    Attributes:
        thumbnails: names of the pictures that pages show, each with its path in the run.
    """

    def __init__(self, number: int, run: RunFolders, part: RunPart) -> None:
        """Read what pages of models and artifacts share."""
        self.number, self.run, self.part = number, run, part
        self.thumbnails: dict[str, str] = {}
        self.countries = country_names(run)
        self.references = reference_pictures(run)
        looks = {line.model: looks_of(run, line.model) for line in part.models}
        self.looks: Mapping[str, pl.DataFrame] = looks
        mapped = pl.concat([table.filter("mapped").with_columns(model=pl.lit(model)) for model, table in looks.items()])
        self.mapped = dict(mapped.group_by("model").len().iter_rows())
        self.images = {str(key[0]): own for key, own in mapped.partition_by("artifact_id", as_dict=True).items()}
        self.space = run.space().filter(pl.col("artifact_id").is_in(list(self.images)))

    @property
    def folder(self) -> str:
        """Where its thumbnails lie below the site."""
        return f"thumbnails/{self.number}"

    def page_of(self, model: str) -> str:
        """Name the page of a model."""
        return f"models/{self.number}-{plain(model)}.html"

    def shown(self, table: pl.DataFrame) -> Iterator[Shown]:
        """List the artifacts that images of a model are mapped to, most images first."""
        mapped = table.filter("mapped")
        for row in artifacts_of(mapped).drop("margin").to_dicts():
            page, country = artifact_page(row["artifact_id"]), self.countries.get(row["country"], row["country"])
            yield Shown(**row | {"share": row["images"] / mapped.height, "country": country, "page": page})

    def evidence(self) -> dict[str, list[ArtifactEvidence]]:
        """Collect why each artifact is one, concept by concept."""
        found: dict[str, list[ArtifactEvidence]] = {}
        tables = EvidenceTables(self.run.folder(roles.CSPACE))
        for (artifact, _), one in tables.evidence_of(self.space.select("artifact_id", "concept").iter_rows()).items():
            found.setdefault(artifact, []).append(one)
        return found

    def countries_of(self) -> dict[str, tuple[str, ...]]:
        """Name the countries of each artifact."""
        own = self.space.group_by("artifact_id").agg(pl.col("country").unique().sort())
        return {row[0]: tuple(self.countries.get(code, code) for code in row[1]) for row in own.iter_rows()}

    def artifact(
        self, artifact_id: str, evidence: Sequence[ArtifactEvidence], countries: tuple[str, ...]
    ) -> ArtifactInRun:
        """Put together what the run has of an artifact."""
        name = reference_of(artifact_id, self.references, self.thumbnails)
        looks = []
        for model in (line.model for line in self.part.models):
            own = self.images[artifact_id].filter(model=model)
            if own.height:
                share, score = own.height / self.mapped[model], float(own["score"].median())  # type: ignore[arg-type]
                some = tuple(tiles(model, own, self.thumbnails))
                looks.append(ModelLook(model, self.page_of(model), own.height, share, score, some))
        return ArtifactInRun(self.part.name, countries, tuple(evidence), name, tuple(looks), self.folder)


def artifact_page(artifact_id: str) -> str:
    """Name the page of an artifact."""
    return f"artifacts/{plain(artifact_id)}.html"


def model_page(site: SiteRun, line: ModelLine) -> ModelPage:
    """Collect the page of a model."""
    run, model = site.run, line.model
    shares = shares_in(run, [model])
    leading = {} if shares is None else shares.leading(model)
    seen = sorted(((site.countries.get(code, code), one) for code, one in leading.items() if one.value > 0),
                  key=lambda each: (-each[1].value, each[0]))  # fmt: skip
    (mosaics,) = mosaic_of(run, {model: site.looks[model]}, site.references, site.thumbnails)
    return ModelPage(
        run=site.part.name,
        line=line,
        shows_nothing=model in site.part.verdict.named,
        size=run.size,
        kernel=run.kernel,
        confidence=run.confidence(),
        tables=tuple(kernel_tables(run.scores(), [model], size=run.size)),
        countries=tuple(seen),
        never=0 if shares is None else shares.never(model),
        corrected=shares is not None and model in shares.corrected,
        artifacts=tuple(site.shown(site.looks[model])),
        mosaics=mosaics.mosaics,
        caveats=site.part.caveats,
        thumbnails=site.folder,
    )


def write_model_pages(out: Path, sites: Sequence[SiteRun]) -> int:
    """Write a page for every model; give their number."""
    (out / "models").mkdir(exist_ok=True)
    template, count = environment().get_template("site_model.html"), 0
    for site in sites:
        for line in site.part.models:
            page = template.render(page=model_page(site, line), policy=POLICY, style=STYLE)
            write_atomically(out / site.page_of(line.model), page.encode("utf-8"))
            count += 1
    return count


def write_artifact_pages(out: Path, sites: Sequence[SiteRun]) -> int:
    """Write a page for every artifact that some image is mapped to; give their number."""
    (out / "artifacts").mkdir(exist_ok=True)
    template = environment().get_template("site_artifact.html")
    known = [(site, site.evidence(), site.countries_of()) for site in sites]
    wanted = sorted({artifact for site in sites for artifact in site.images})
    for artifact in wanted:
        parts = [
            site.artifact(artifact, evidence.get(artifact, []), countries.get(artifact, ()))
            for site, evidence, countries in known
            if artifact in site.images
        ]
        name = next(str(site.images[artifact]["artifact"][0]) for site in sites if artifact in site.images)
        page = template.render(artifact_id=artifact, name=name, parts=parts, policy=POLICY, style=STYLE)
        write_atomically(out / artifact_page(artifact), page.encode("utf-8"))
    return len(wanted)
