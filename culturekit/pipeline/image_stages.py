"""The stages from prompts to images, their nearest artifacts, their quality and their scores."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import polars as pl

from culturekit.generation.backends import BACKENDS
from culturekit.generation.runner import ImagePlan, Maker, generate
from culturekit.index.build import build_index
from culturekit.index.mapping import MappingOptions, map_images
from culturekit.index.score_pictures import score_pictures
from culturekit.index.truth import true_matches
from culturekit.metrics.scoring.score_qvs import QvsOptions, score_qvs
from culturekit.pipeline.public_files import prompts_table, space_table
from culturekit.pipeline.stage import Stage
from culturekit.records.schemas import MATCHES, QUALITY, SCORES
from culturekit.records.work import Outcome, Work
from culturekit.registry import Spec, parse_spec
from culturekit.storage.manifest import read_manifest
from culturekit.storage.tables import read_table, write_table
from culturekit.trail.upstream import upstream

__all__ = ["cspace_behind", "generate_stage", "index_stage", "map_stage", "quality_stage", "score_stage", "truth_stage"]


def cspace_behind(prompts: Path) -> Path | None:
    """Find the cultural space that prompts were built from, where their folder still knows it."""
    manifest = read_manifest(prompts.parent)
    return upstream(prompts.parent, "cspace") if manifest is not None and "cspace" in manifest.inputs else None


def generate_stage(
    prompts: Path, plan: ImagePlan, *, backend: str, model: str, seed: int, name: str, cspace: Path | None = None
) -> Stage:
    """Make the images of a model; a backend that draws from a cultural space has it as an input."""
    spec, space = parse_spec(backend), None
    inputs = {"prompts": prompts}
    if "cspace" in BACKENDS.find(spec).needs:
        stated = spec.options.get("cspace")
        spec = Spec(spec.name, spec.target, {key: text for key, text in spec.options.items() if key != "cspace"})
        space = Path(stated) if stated else cspace
        if space is not None:
            inputs["cspace"] = space
    BACKENDS.check(str(spec))
    return Stage(
        name,
        "generate",
        1,
        lambda work: generate(
            work, prompts_table(prompts, work.scratch), plan, maker_of(model, str(spec), space, work.scratch), seed=seed
        ),
        inputs,
        {**asdict(plan), "backend": str(spec), "model": model},
        {"images": seed},
        packages=("numpy", "pillow", "polars"),
    )


def maker_of(model: str, backend: str, space: Path | None, scratch: Path) -> Maker:
    """Describe who makes images; a backend that draws from a cultural space gets it as a table."""
    return Maker(model, backend, None if space is None else space_table(space, scratch))


def index_stage(
    cspace: Path, references: Path, *, encoder: str, prompts: Path | None = None, name: str = "index"
) -> Stage:
    """Build the index of artifacts."""
    inputs = {"cspace": cspace, "references": references} | ({"prompts": prompts} if prompts else {})
    return Stage(
        name,
        "index",
        1,
        lambda work: build_index(
            work,
            space_table(cspace, work.scratch),
            references,
            encoder,
            prompts_path=None if prompts is None else prompts_table(prompts, work.scratch),
        ),
        inputs,
        {"encoder": encoder},
        packages=("numpy", "pillow", "polars"),
    )


def map_stage(index: Path, images: Path, options: MappingOptions, *, name: str) -> Stage:
    """Map images to their nearest artifacts."""
    return Stage(
        name,
        "map",
        1,
        lambda work: map_images(work, index, images, options),
        {"index": index, "images": images},
        asdict(options),
        packages=("numpy", "pillow", "polars"),
    )


def truth_stage(images: Path, cspace: Path, *, name: str) -> Stage:
    """Write down what simulated images really show."""
    inputs = {"images": images, "cspace": cspace}
    return Stage(
        name,
        "truth",
        1,
        lambda work: true_matches(work, images, space_table(cspace, work.scratch)),
        inputs,
        packages=("polars",),
    )


def quality_stage(images: Path, *, scorer: str, name: str) -> Stage:
    """Score the quality of images."""
    return Stage(
        name,
        "quality",
        1,
        lambda work: score_pictures(work, images, scorer),
        {"images": images},
        {"scorer": scorer},
        packages=("numpy", "pillow", "polars"),
    )


def score_stage(
    matches: Mapping[str, Path],
    quality: Mapping[str, Path],
    options: QvsOptions,
    *,
    truth: Mapping[str, Path] | None = None,
    name: str = "scores",
) -> Stage:
    """Score the diversity of what images show, by mapping and, where it is known, in truth."""
    truth = truth or {}
    return Stage(
        name,
        "score-qvs",
        1,
        lambda work: score(work, list(matches.values()), list(truth.values()), list(quality.values()), options),
        {**matches, **truth, **quality},
        asdict(options),
        packages=("numpy", "polars", "scipy"),
    )


def score(
    work: Work, matches: Sequence[Path], truth: Sequence[Path], quality: Sequence[Path], options: QvsOptions
) -> Outcome:
    """Score every table of matches together with the quality of its images.

    In truth a culture-free image shows none of the artifacts, and all such images are alike in that.
    """
    work.progress.begin(len(matches) + len(truth), "tables of matches")
    images = pl.concat([read_table(path, QUALITY) for path in quality]) if quality else None
    none_alike = replace(options, missing="equal")
    tables = []
    for path, how in [*((path, options) for path in matches), *((path, none_alike) for path in truth)]:
        table = read_table(path, MATCHES)
        tables.append(score_qvs(table, images, options=how))
        if table["concept"].n_unique() > 1:
            tables.append(score_qvs(over_all_prompts(table), images, options=how))
        work.progress.advance(1)
    scores = pl.concat(tables)
    write_table(work.out, SCORES, scores)
    return Outcome({"scores": scores.height})


def over_all_prompts(matches: pl.DataFrame) -> pl.DataFrame:
    """Take the prompts of all concepts together: their scores have no concept."""
    return matches.with_columns(concept=pl.lit(None, pl.String))
