"""The stages from a dump to the cultural space and its prompts."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from culturekit.builders.cspace import release
from culturekit.builders.popularity import SOURCES
from culturekit.builders.prompts import PromptOptions, build_prompts
from culturekit.errors import UsageError
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import country_files
from culturekit.kg.extract import ExtractOptions, extract
from culturekit.kg.ingest import IngestOptions, ingest
from culturekit.kg.members import STDIN, tells_damage
from culturekit.kg.successors import load_successors
from culturekit.pipeline.stage import Stage
from culturekit.storage.package_data import shipped

__all__ = ["described", "extract_stage", "ingest_stage", "prompts_stage", "release_stage"]

logger = logging.getLogger(__name__)

INGEST_VERSION = 4
TEMPLATES = "builders/wording/cube_prompts.yaml"


def ingest_stage(
    dump: Sequence[Path],
    options: IngestOptions,
    *,
    sha256: Sequence[str] = (),
    redirects: Path | None = None,
    name: str = "graph",
) -> Stage:
    """Read a dump into a graph; `sha256` holds its files, in their order, to what was published."""
    if len(sha256) not in {0, len(dump)}:
        raise UsageError("give a SHA-256 for each dump file, in their order", found=f"{len(sha256)} for {len(dump)}")
    if STDIN in dump:
        return stdin_stage(dump, options, sha256, redirects, name=name)
    for path in dump:
        if not sha256 and path.is_file() and not tells_damage(path):
            logger.warning("nothing in %s tells whether it is whole: hold it to its published --sha256", path)
    return Stage(
        name,
        "ingest",
        INGEST_VERSION,
        lambda work: ingest(work, dump, options, redirects=redirects),
        {**{f"dump-{number}": path for number, path in enumerate(dump)}, **redirect_input(redirects)},
        asdict(options),
        packages=("isal", "msgspec", "numpy", "polars"),
        expected={f"dump-{number}": text for number, text in enumerate(sha256)},
    )


def redirect_input(redirects: Path | None) -> dict[str, Path]:
    """Name the file of redirects as an input, where there is one."""
    return {} if redirects is None else {"redirects": redirects}


def stdin_stage(
    dump: Sequence[Path], options: IngestOptions, sha256: Sequence[str], redirects: Path | None, *, name: str
) -> Stage:
    """Read standard input into a graph: what it holds is known only afterwards, so that its graph is never reused."""
    if len(dump) > 1:
        raise UsageError("standard input is the whole dump", expected="- alone", found=" ".join(map(str, dump)))
    if sha256:
        raise UsageError(
            "standard input cannot be held to a SHA-256 before it is read",
            hint="Check the stream on its way: curl ... | tee >(sha256sum >&2) | culturekit kg ingest -",
        )
    return Stage(
        name,
        "ingest",
        INGEST_VERSION,
        lambda work: ingest(work, dump, options, redirects=redirects),
        redirect_input(redirects),
        {**asdict(options), "standard input, begun": datetime.now(UTC).isoformat()},
        packages=("isal", "msgspec", "numpy", "polars"),
    )


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
        {"popularity": popularity, **described(concepts)},
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
