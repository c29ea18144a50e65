"""A page for every model of some runs, and one for every artifact that their images were mapped to."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import polars as pl
import yaml

from culturekit.core import roles
from culturekit.core.atomic import write_atomically
from culturekit.core.digests import RUN_RECORD
from culturekit.core.inputs import manifest_of
from culturekit.core.registry import parse_spec
from culturekit.core.roles import Role
from culturekit.core.schemas import SCORES, VALUES
from culturekit.core.tables import read_table
from culturekit.generation.backend import is_paid
from culturekit.report.charts import ModelLine
from culturekit.report.countries import Share, country_names, shares_in
from culturekit.report.differences import KernelTable, kernel_tables
from culturekit.report.run_folders import Figure, RunFolders, plain
from culturekit.report.sections import Cell, SectionPage, name_of, number, render_sections
from culturekit.report.several import RunPart
from culturekit.report.thumbnails import (
    Mosaic,
    Tile,
    artifacts_of,
    looks_of,
    mosaic_of,
    reference_of,
    reference_pictures,
    tiles,
)
from culturekit.report.write import environment
from culturekit.scores.catalog import Metric, scale_of
from culturekit.scores.listing import all_metrics, title_of
from culturekit.trail.evidence import ArtifactEvidence, EvidenceTables
from culturekit.version import VERSION

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
    """An artifact in one run: its evidence, a picture of it, and the images of models that were mapped to it."""

    run: str
    countries: tuple[str, ...]
    evidence: tuple[ArtifactEvidence, ...]
    reference: str | None
    looks: tuple[ModelLook, ...]
    thumbnails: str
    from_dump: bool = True


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
        self.images = {str(key[0]): group for key, group in mapped.partition_by("artifact_id", as_dict=True).items()}
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
        countries = self.space.group_by("artifact_id").agg(pl.col("country").unique().sort())
        return {row[0]: tuple(self.countries.get(code, code) for code in row[1]) for row in countries.iter_rows()}

    def artifact(
        self, artifact_id: str, evidence: Sequence[ArtifactEvidence], countries: tuple[str, ...]
    ) -> ArtifactInRun:
        """Put together what the run has of an artifact."""
        name = reference_of(artifact_id, self.references, self.thumbnails)
        looks = []
        for model in (line.model for line in self.part.models):
            part = self.images[artifact_id].filter(model=model)
            if part.height:
                share, score = part.height / self.mapped[model], float(part["score"].median())  # type: ignore[arg-type]
                some = tuple(tiles(model, part, self.thumbnails))
                looks.append(ModelLook(model, self.page_of(model), part.height, share, score, some))
        return ArtifactInRun(self.part.name, countries, tuple(evidence), name, tuple(looks), self.folder,
                             self.run.has(roles.GRAPH))  # fmt: skip


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
        run=site.part.name, line=line, shows_nothing=model in site.part.verdict.named, size=run.size,
        kernel=run.kernel, confidence=run.confidence(),
        tables=tuple(kernel_tables(run.headline_scores(), [model], size=run.size)), countries=tuple(seen),
        never=0 if shares is None else shares.never(model), corrected=shares is not None and model in shares.corrected,
        artifacts=tuple(site.shown(site.looks[model])), mosaics=mosaics.mosaics, caveats=site.part.caveats,
        thumbnails=site.folder,
    )  # fmt: skip


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


# The scores of a run as others collect them: Every Eval Ever's records, and the Hub's `.eval_results`.

SCHEMA = "0.3.0"  # of Every Eval Ever: the version whose fields these are

EXPORTED = ("mapped", "corrected")
UNKNOWN = "unknown"
SERVED = "externally_managed"
DEPLOYED = {"diffusers": "self_deployed", "simulated": "self_deployed"}
NOT_IN_PATHS = re.compile(r"[^A-Za-z0-9._-]+")
SAME_SCORE = ("metric", "model", "benchmark", "concept", "country", "group", "params")
DETAILS = ("benchmark", "concept", "country", "group", "params", "folder", "row")


class Finished(msgspec.Struct):
    """What a stage notes of its run: when it ended."""

    finished: datetime


def model_id(backend: str, model: str) -> str:
    """Name a model by the service or the library that ran it, and what it is called there; of a folder, its name."""
    spec = parse_spec(backend)
    return f"{spec.name}/{spec.target.rstrip('/').rpartition('/')[2] or model}"


def scored_when(run: RunFolders, folder: str = roles.SCORES.form) -> datetime:
    """Tell when scores of a run were finished."""
    return msgspec.json.decode((run.root / folder / RUN_RECORD).read_bytes(), type=Finished).finished


def exported(run: RunFolders, model: str) -> pl.DataFrame:
    """Take the scores of a model that others may collect: not what is known of a simulated world alone."""
    part = run.headline_scores().filter(pl.col("labels").is_in(EXPORTED), model=model)
    return part.with_columns(confidence=pl.col("params").str.json_path_match("$.confidence").cast(pl.Float64))


def every_eval_ever(
    run: RunFolders, name: str, model: str, backend: str, scores: pl.DataFrame, when: datetime
) -> tuple[dict[str, Any], dict[str, int]]:
    """Give the record of a model, and how many of its scores the schema has no place for, by reason.

    Args:
        run: where the prompts are.
        name: of the run.
        model: as the run calls it.
        backend: that drew its images.
        scores: of the model, with `labels`, `confidence` and `row`, and `kernel` and `folder` where there are some.
        when: they were finished.
    """
    metrics, results, drops = all_metrics(), [], dict[str, int]()
    identity, moment = model_id(backend, model), str(int(when.timestamp()))
    apart = "" if identity.endswith(f"/{model}") else f":{model}"  # several models of a run may be one with options
    evaluation = f"culturekit-{name}{apart}/{identity}/{moment}"
    for row in scores.to_dicts():
        metric = metrics.get(row["metric"])
        ends = None if metric is None else range_of(metric, row)
        if metric is None or ends is None or not math.isfinite(row["value"]):
            no_bounds = "score with no bounds" if ends is None else "score with no number"
            problem = "score of a metric that is not known here" if metric is None else no_bounds
            drops[problem] = drops.get(problem, 0) + 1
            continue
        results.append(result(run, row, metric, ends))
    record = {
        "schema_version": SCHEMA,
        "evaluation_id": evaluation,
        "evaluation_timestamp": when.isoformat(),
        "retrieved_timestamp": moment,
        "source_metadata": {
            "source_name": f"culturekit run {name}",
            "source_type": "evaluation_run",
            "source_organization_name": UNKNOWN,
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "culturekit", "version": VERSION},
        "model_info": {"name": model, "id": identity, "additional_details": deployment(backend)},
        "evaluation_results": results,
    }
    return record, drops


def deployment(backend: str) -> dict[str, str]:
    """Say who ran a model and whether its weights are open, as far as its backend tells."""
    kind, target = parse_spec(backend).name, parse_spec(backend).target
    open_weights = kind == "diffusers" and re.fullmatch(r"[\w.-]+/[\w.-]+", target) is not None
    return {
        "backend": backend,
        "deployment_type": SERVED if is_paid(backend) else DEPLOYED.get(kind, UNKNOWN),
        "model_availability": "open_weights" if open_weights and not Path(target).exists() else UNKNOWN,
    }


def filed_under(record: Mapping[str, Any], collection: str) -> str:
    """Name the file of a record as the datastore of Every Eval Ever files it; the same record has the same name."""
    parts = [NOT_IN_PATHS.sub("-", part).strip("-.") or "model" for part in record["model_info"]["id"].split("/")]
    number = UUID(bytes=sha256(record["evaluation_id"].encode()).digest()[:16], version=4)
    return "/".join(["data", NOT_IN_PATHS.sub("-", collection), *parts, f"{number}.json"])


def samples_of(run: RunFolders, model: str, record: dict[str, Any], path: str) -> list[dict[str, Any]]:
    """Give what each score is reckoned from, where its stage keeps that, and make the record name that file.

    No sample is right or wrong: `is_correct` says whether it has the best value that there can be.
    """
    results = {one["evaluation_result_id"]: one for one in record["evaluation_results"]}
    texts, images = run.prompts(), run.images(model).filter(status="ok").sort("slot")
    prompts = dict(images.select("image_id", "prompt_id").iter_rows())
    shown: dict[tuple[str, int | None], list[str]] = {}
    for image, prompt, repeat in images.select("image_id", "prompt_id", "repeat").iter_rows():
        shown.setdefault((prompt, repeat), []).append(image)
        shown.setdefault((prompt, None), []).append(image)
    samples = []
    for folder in dict.fromkeys(key.rpartition("/")[0] for key in results):
        for row in values_behind(run.root / folder, model):
            prompt, found = row["prompt_id"] or prompts.get(row["item"]), results.get(f"{folder}/{row['row']}")
            if found is not None and prompt in texts:
                ids = [row["item"]] if row["item"] in prompts else shown.get((prompt, row["repeat"]), [])
                samples.append(sample(row, found, texts[prompt], ids))
    whose = {"evaluation_id": record["evaluation_id"], "model_id": record["model_info"]["id"]}
    samples = [{"schema_version": SCHEMA, **whose, **one} for one in samples]
    if samples:
        record["detailed_evaluation_results"] = {
            "format": "jsonl", "file_path": path.removesuffix(".json") + "_samples.jsonl", "hash_algorithm": "sha256",
            "total_rows": len(samples),
        }  # fmt: skip
    return samples


def values_behind(folder: Path, model: str) -> Iterator[dict[str, Any]]:
    """Read the values of a model that the scores of a stage are means of, each with the row of its score."""
    if not (folder / f"{VALUES.name}.parquet").is_file():
        return iter(())
    scores = read_table(folder / TABLE, SCORES).with_row_index("row").select(*SAME_SCORE, "row")
    values = read_table(folder / f"{VALUES.name}.parquet", VALUES).filter(pl.col("value").is_finite(), model=model)
    return values.join(scores, on=SAME_SCORE, nulls_equal=True).sort("row", "item").iter_rows(named=True)


def sample(row: Mapping[str, Any], result: Mapping[str, Any], text: str, images: Sequence[str]) -> dict[str, Any]:
    """Give one value that a score is the mean of."""
    metric = result["metric_config"]
    best = metric["min_score"] if metric["lower_is_better"] else metric["max_score"]
    return {
        "evaluation_name": result["evaluation_name"],
        "evaluation_result_id": result["evaluation_result_id"],
        "sample_id": row["item"],
        "sample_hash": sha256(text.encode()).hexdigest(),
        "interaction_type": "single_turn",
        "input": {"raw": text, "reference": []},
        "output": {"raw": list(images)},
        "answer_attribution": [],
        "evaluation": {"score": row["value"], "is_correct": row["value"] == best},
        "metadata": {"output": "ids of images", "is_correct": "whether the score is the best that there can be"},
    }


def range_of(metric: Metric, row: Mapping[str, Any]) -> tuple[float, float] | None:
    """Give the smallest and the largest value that there can be, by its scorer where that decides; None without."""
    if math.isfinite(metric.low) and math.isfinite(metric.high):
        return metric.low, metric.high
    scorer = str(msgspec.json.decode(row["params"]).get("scorer", ""))
    return scale_of(scorer)


def result(run: RunFolders, row: Mapping[str, Any], metric: Metric, ends: tuple[float, float]) -> dict[str, Any]:
    """Give one score with its interval, and what tells it from the others."""
    about = {key: str(row[key]) for key in DETAILS if row.get(key) is not None}
    kernel = f"{row['kernel']} kernel" if row.get("kernel") else None
    label = [metric.name, kernel, row["labels"], *(row[key] for key in ("concept", "country", "group"))]
    details: dict[str, Any] = {"score": row["value"], "details": about}
    if row["ci_low"] is not None and row["ci_high"] is not None and row["confidence"] is not None:
        limits = {"lower": row["ci_low"], "upper": row["ci_high"], "confidence_level": row["confidence"]}
        details["uncertainty"] = {"confidence_interval": limits, "num_samples": row["n"]}
    prompts = run.found(roles.PROMPTS)
    return {
        "evaluation_result_id": "/".join((row.get("folder") or roles.SCORES.form, str(row["row"]))),
        "evaluation_name": ", ".join(filter(None, label)),
        "source_data": {
            "dataset_name": row["benchmark"],
            "source_type": "other",
            "additional_details": {} if prompts is None else {"prompts": prompts.sha256},
        },
        "metric_config": {
            "evaluation_description": metric.title,
            "metric_id": f"culturekit.{metric.name}",
            "metric_name": metric.title,
            "metric_unit": row["unit"],
            "lower_is_better": metric.direction == "lower",
            "score_type": "continuous",
            "min_score": ends[0],
            "max_score": ends[1],
            "additional_details": {"formula": metric.formula, "unit": row["unit"], "direction": metric.direction},
        },
        "score_details": details,
    }


def hub_results(run: RunFolders, line: ModelLine, dataset: str) -> bytes | None:
    """Give the headline of a model as `.eval_results` of its repository; corrected where people looked at images."""
    entries = list(entries_of(run, line, dataset))
    return yaml.safe_dump(entries, allow_unicode=True, sort_keys=False).encode("utf-8") if entries else None


def entries_of(run: RunFolders, line: ModelLine, dataset: str) -> Iterator[dict[str, Any]]:
    """Give an entry for each headline score that is a number."""
    headline: tuple[tuple[str, Figure | None], ...] = (("corrected", line.corrected), ("mapped", line.mapped))
    for labels, figure in headline:
        if figure is None or math.isnan(figure.value):
            continue
        notes = f"{labels} labels, {run.kernel} kernel, n = {figure.n}"
        if figure.low is not None and figure.high is not None:
            notes += f"; {run.confidence()} interval {figure.low:.4f} to {figure.high:.4f}"
        yield {
            "dataset": {"id": dataset, "task_id": f"vs_{run.size}_{run.kernel}_{labels}"},
            "value": figure.value,
            "date": scored_when(run).isoformat(),
            "notes": notes,
        }


# Runs whose reports are pages of sections, as pages of a site: the report, and all scores of each model.

TABLE = f"{SCORES.name}.parquet"
QUIET = {"confidence", "target", "encoder"}
"""Parameters that say the same of all scores of a table: they stand in its manifest."""


@dataclass(frozen=True, slots=True)
class ScoreLine:
    """A score: what it is, of what, by what of its parameters it differs from others, how many stand behind it."""

    score: str
    about: str
    params: str
    cell: Cell
    n: int
    row: int


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """The scores that one stage gives a model."""

    folder: str
    lines: tuple[ScoreLine, ...]


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """A run of the site."""

    number: int  # its place among the runs
    name: str  # of the run
    run: RunFolders  # its folders
    backends: dict[str, str]  # of its models, by name
    page: SectionPage  # its report
    truths: tuple[Role, ...]  # roles whose scores others may not collect: they come from knowing what images show

    @property
    def report(self) -> str:
        """Name the page of the run."""
        return f"runs/{self.number}-{plain(self.name)}.html"

    @property
    def thumbnails(self) -> str:
        """Where its thumbnails lie below the site."""
        return f"thumbnails/{self.number}"

    def page_of(self, model: str) -> str:
        """Name the page of a model."""
        return f"models/{self.number}-{plain(model)}.html"

    def scores(self, model: str) -> pl.DataFrame:
        """Read all scores of a model, in the order of the stages, with their folder and row."""
        found = [read_table(self.run.root / folder / TABLE, SCORES).with_row_index("row").filter(model=model)
                 .with_columns(folder=pl.lit(folder), stated=pl.lit(self.confidence(folder), pl.Float64))
                 for folder in self.run.stages if (self.run.root / folder / TABLE).is_file()]  # fmt: skip
        stated = pl.col("params").str
        confidence = pl.coalesce(stated.json_path_match("$.confidence").cast(pl.Float64), "stated")
        empty = pl.DataFrame(schema={"row": pl.UInt32, **SCORES.schema, "folder": pl.String, "stated": pl.Float64})
        return pl.concat(found or [empty]).with_columns(
            labels=stated.json_path_match("$.labels"), confidence=confidence
        )

    def confidence(self, folder: str) -> float | None:
        """Read how often the intervals of a stage are to hold the truth."""
        stated = manifest_of(self.run.root / folder).options.get("confidence")
        return stated if isinstance(stated, float) else None

    def exported(self, model: str) -> pl.DataFrame:
        """Take the scores of a model that others may collect."""
        known = [
            folder for folder in self.run.stages if any(role.read(folder, self.run.models) for role in self.truths)
        ]
        return self.scores(model).filter(~pl.col("folder").is_in(known), pl.col("labels").ne_missing("truth"))

    def tables(self, model: str) -> Iterator[ScoreTable]:
        """List the scores of a model by the stage that gives them."""
        for part in self.scores(model).partition_by("folder", maintain_order=True):
            lines = tuple(line_of(row, title_of(row["metric"])) for row in part.to_dicts())
            yield ScoreTable(part["folder"][0], lines)


def line_of(row: Mapping[str, Any], title: str) -> ScoreLine:
    """Say in words what a score is of."""
    labels, country = row["labels"], row["country"]
    of = [row["concept"], name_of(country) if country else None, row["group"]]
    settings = msgspec.json.decode(row["params"])
    params = "; ".join(f"{key} {short(value)}" for key, value in settings.items() if key not in {*QUIET, "labels"})
    return ScoreLine(
        f"{title}, {labels}" if labels else title, ", ".join(filter(None, of)), params,
        number(row["value"], row["ci_low"], row["ci_high"]), row["n"], row["row"],
    )  # fmt: skip


def short(value: object) -> str:
    """Write a parameter."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def write_scored_runs(out: Path, runs: Sequence[ScoredRun], at: Callable[[], None]) -> int:
    """Write the first page, the report of each run and the page of each model; give how many pages there are."""
    pages = {"index.html": environment().get_template("site_runs.html").render(runs=runs, policy=POLICY, style=STYLE)}
    for one in runs:
        links = {model: f"../{one.page_of(model)}" for model in one.run.models}
        pages[one.report] = render_sections(one.page, links, thumbnails=f"../{one.thumbnails}")
        for model in one.run.models:
            pages[one.page_of(model)] = (
                environment()
                .get_template("site_scores.html")
                .render(run=one, model=model, tables=list(one.tables(model)), policy=POLICY, style=STYLE)
            )
        at()
    for name, page in pages.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out / name, page.encode("utf-8"))
    return len(pages)
