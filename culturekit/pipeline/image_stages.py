"""The stages from prompts to images, their nearest artifacts, their quality and their scores."""

from collections import Counter
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
from culturekit.metrics.scoring.score_corrected import NO_CORRECTION, Correction, score_corrected
from culturekit.metrics.scoring.score_qvs import QvsOptions, score_qvs
from culturekit.metrics.scoring.scored import Scored
from culturekit.pipeline.family_stage import write_scored
from culturekit.pipeline.public_files import prompts_table, space_table
from culturekit.pipeline.stage import Stage
from culturekit.records.schemas import AUDITS, MATCHES, PROMPTS, QUALITY
from culturekit.records.work import Outcome, Work
from culturekit.registry import Spec, parse_spec
from culturekit.storage.manifest import read_manifest
from culturekit.storage.tables import read_table
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
    audits: Mapping[str, Path] | None = None,
    correction: Correction = NO_CORRECTION,
    prompts: Path | None = None,
    name: str = "scores",
) -> Stage:
    """Score the diversity of what images show: by mapping, corrected by audits, and in truth where it is known."""
    truth, audits = truth or {}, audits or {}

    def run(work: Work) -> Outcome:
        images = pl.concat([read_table(path, QUALITY) for path in quality.values()]) if quality else None
        mapped = [read_table(path, MATCHES) for path in matches.values()]
        true = [read_table(path, MATCHES) for path in truth.values()]
        said = pl.concat([read_table(path, AUDITS) for path in audits.values()]) if audits else None
        countries = None if prompts is None else countries_of(prompts_table(prompts, work.scratch))
        return score(work, mapped, true, said, images, options, correction, countries)

    return Stage(
        name,
        "score-qvs",
        3,
        run,
        {**matches, **truth, **quality, **audits, **({} if prompts is None else {"prompts": prompts})},
        {**asdict(options), **(asdict(correction) if audits else {})},
        {"correction": correction.seed} if audits else {},
        packages=("numpy", "polars", "scipy"),
    )


def score(
    work: Work,
    matches: Sequence[pl.DataFrame],
    truth: Sequence[pl.DataFrame],
    audits: pl.DataFrame | None,
    quality: pl.DataFrame | None,
    options: QvsOptions,
    correction: Correction,
    countries: Mapping[str, str] | None,
) -> Outcome:
    """Score every table of matches together with the quality of its images.

    In truth a culture-free image shows none of the artifacts, and all such images are alike in that.
    """
    work.progress.begin(len(matches) + len(truth), "tables of matches")
    none_alike = replace(options, missing="equal")
    found, left_out = [], Counter[str]()
    for table, how in [*((table, options) for table in matches), *((table, none_alike) for table in truth)]:
        found.append(score_qvs(table, quality, options=how, countries=countries))
        left_out.update(found[-1].left_out)
        if table["concept"].n_unique() > 1:
            found.append(score_qvs(over_all_prompts(table), quality, options=how, countries=countries))
        work.progress.advance(1)
    if audits is not None:
        found.append(score_corrected(pl.concat(matches), audits, quality, options=correction.of(options)))
        left_out.update(found[-1].left_out)
    scores, values = pl.concat([each.scores for each in found]), pl.concat([each.values for each in found])
    return write_scored(work, Scored(scores, values, dict(sorted(left_out.items()))))


def countries_of(prompts: Path) -> dict[str, str]:
    """Read which country each prompt names; those that name none are left out."""
    return dict(read_table(prompts, PROMPTS).select("prompt_id", "country").drop_nulls().iter_rows())


def over_all_prompts(matches: pl.DataFrame) -> pl.DataFrame:
    """Take the prompts of all concepts together: their scores have no concept."""
    return matches.with_columns(concept=pl.lit(None, pl.String))
