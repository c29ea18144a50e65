"""The stages from a dump to the cultural space and its prompts."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from culturekit.builders.cspace import release
from culturekit.builders.popularity import SOURCES
from culturekit.builders.prompts import PromptOptions, build_prompts
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import country_files
from culturekit.kg.extract import ExtractOptions, extract
from culturekit.kg.successors import load_successors
from culturekit.pipeline.concept_options import released_concepts
from culturekit.pipeline.ingest_stage import ingest_stage
from culturekit.pipeline.stage import Stage
from culturekit.storage.package_data import shipped

__all__ = ["described", "extract_stage", "ingest_stage", "prompts_stage", "release_stage"]

TEMPLATES = "builders/wording/cube_prompts.yaml"


def extract_stage(
    graph: Path,
    concepts: Sequence[Concept],
    options: ExtractOptions | None = None,
    *,
    successors: Path | None = None,
    name: str = "candidates",
) -> Stage:
    """Walk a graph from the roots of concepts; `successors` is a file that names the heirs of historic countries."""
    options = options or ExtractOptions()
    heirs = {} if successors is None else load_successors(successors)
    files = {} if successors is None else {"successors": successors}
    return Stage(
        name,
        "extract",
        2,
        lambda work: extract(work, graph, concepts, options, successors=heirs),
        {"graph": graph, **country_files(), **files},
        {**described(concepts), **asdict(options)},
        packages=("numpy", "polars", "scipy"),
    )


def release_stage(kept: Path, concepts: Sequence[Concept], popularity: str, *, name: str = "cspace") -> Stage:
    """Release the cultural space."""
    source = SOURCES.make(popularity)
    return Stage(
        name,
        "release",
        1,
        lambda work: release(work, kept, concepts, source),
        {"kept": kept, **country_files()},
        {"popularity": popularity, **released_concepts(concepts)},
        packages=("polars",),
    )


def prompts_stage(cspace: Path, options: PromptOptions, *, seed: int, name: str = "prompts") -> Stage:
    """Build prompts."""
    return Stage(
        name,
        "prompts",
        1,
        lambda work: build_prompts(work, cspace, options, seed=seed),
        {"cspace": cspace, **country_files(), "templates": shipped(TEMPLATES)},
        asdict(options),
        {"draw": seed} if options.per is not None else {},
        packages=("polars",),
    )


def described(concepts: Sequence[Concept]) -> Mapping[str, object]:
    """Give the concepts as they stand in a manifest."""
    return {"concepts": {concept.concept: concept.model_dump(mode="json") for concept in concepts}}
