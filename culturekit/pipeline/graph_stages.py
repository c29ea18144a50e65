"""The stages from a dump to the cultural space and its prompts."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from culturekit.builders.cspace import release
from culturekit.builders.popularity import SOURCES
from culturekit.builders.prompts import PromptOptions, build_prompts
from culturekit.errors import UsageError
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import country_files
from culturekit.kg.extract import ExtractOptions, extract
from culturekit.kg.successors import load_successors
from culturekit.pipeline.concept_options import released_concepts
from culturekit.pipeline.ingest_stage import ingest_stage
from culturekit.records.choices import ReleaseFormat
from culturekit.stages.stage import Stage
from culturekit.storage.package_data import shipped

__all__ = ["described", "extract_stage", "ingest_stage", "prompts_stage", "release_stage"]

TEMPLATES = "builders/wording/cube_prompts.yaml"
STATEMENTS = "statements"
"""The role of a table that an earlier stage of the same run may still have to write."""


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


def release_stage(
    kept: Sequence[Path],
    concepts: Sequence[Concept],
    popularity: str,
    formats: Sequence[ReleaseFormat] = (),
    *,
    name: str = "cspace",
) -> Stage:
    """Release the cultural space from tables of kept candidates."""
    source = SOURCES.make(popularity)
    tables = {"kept" if number == 1 else f"kept-{number:02}": path for number, path in enumerate(kept, 1)}
    wording = {"templates": shipped(TEMPLATES)} if "public" in formats else {}
    return Stage(
        name,
        "release",
        2,
        lambda work: release(work, kept, concepts, source, formats),
        {**tables, **country_files(), **wording},
        {"popularity": dict(source.decides), "formats": list(formats), **released_concepts(concepts)},
        packages=("polars",),
    )


def prompts_stage(cspace: Path, options: PromptOptions, *, seed: int, name: str = "prompts") -> Stage:
    """Build prompts."""
    options.check()
    for role, path in options.files().items():
        if role != STATEMENTS and not path.is_file():
            raise UsageError("there is no such file", where=str(path), expected="a file that prompts are built from")
    return Stage(
        name,
        "prompts",
        1,
        lambda work: build_prompts(work, cspace, options, seed=seed),
        {"cspace": cspace, **country_files(), "templates": shipped(TEMPLATES), **options.files()},
        options.settings(),
        {"draw": seed} if options.draws else {},
        packages=("polars",),
    )


def described(concepts: Sequence[Concept]) -> Mapping[str, object]:
    """Give the concepts as they stand in a manifest."""
    return {"concepts": {concept.concept: concept.model_dump(mode="json") for concept in concepts}}
