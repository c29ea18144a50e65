"""The stage from the roots of concepts to candidates: over a graph, or over what an endpoint answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from culturekit.core.choices import KgSource
from culturekit.core.declared import StageCommand
from culturekit.core.errors import UsageError
from culturekit.core.registry import needing
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.kg.concepts import Concept, RootChoice, load_successors
from culturekit.kg.countries import country_files
from culturekit.kg.extract import ExtractOptions, extract
from culturekit.kg.polite_source import check_contact, check_url

EXTRACT_DEFAULTS = ExtractOptions()


@dataclass(frozen=True, slots=True)
class FactSource:
    """Where facts come from: a graph, or an endpoint that is told who asks."""

    graph: Annotated[Path | None, Field(description="Graph store that `kg ingest` wrote.")] = None
    source: Annotated[KgSource, Field(description="Where facts come from: a graph, or an endpoint.")] = "dump"
    endpoint: Annotated[str | None, Field(description="URL of the SPARQL endpoint, for --source sparql.")] = None
    contact: Annotated[
        str | None, Field(description="Mail address or URL that the endpoint is told, for --source sparql.")
    ] = None
    cache: Annotated[Path | None, Field(description="Folder that keeps the endpoint's replies for other runs too.")] = (
        None
    )


def extract_stated(given: FactSource, roots: RootChoice, options: ExtractOptions) -> Stage:
    """Walk the graph from roots and write the candidates."""
    if given.source == "dump":
        if given.graph is None:
            raise UsageError("there is nothing to walk", expected="--graph, or --source sparql with --endpoint")
        if (given.endpoint, given.contact, given.cache) != (None, None, None):
            raise UsageError("--endpoint, --contact and --cache go with --source sparql")
        return extract_stage(given.graph, roots.concepts(), options, successors=roots.successors)
    if given.graph is not None:
        raise UsageError("--graph goes with --source dump")
    if options.semantics == "authors":
        raise UsageError("--semantics authors needs a whole graph", expected="--source dump")
    if given.endpoint is None or given.contact is None:
        raise UsageError(
            "an endpoint is asked by its URL, and is told whom to write to when something goes wrong",
            expected="--endpoint URL and --contact MAIL_OR_URL",
        )
    return _sparql_stage(given, given.endpoint, given.contact, roots, options)


EXTRACT = StageCommand(extract_stated, "--graph graph --roots cuisine --out candidates")


def extract_stage(
    graph: Path,
    concepts: Sequence[Concept],
    options: ExtractOptions = EXTRACT_DEFAULTS,
    *,
    successors: Path | None = None,
) -> Stage:
    """Walk a graph from the roots of concepts; `successors` is a file that names the heirs of historic countries."""
    heirs, files = _heirs_in(successors)
    settings = {**described(concepts), **options.settings()}
    return Stage(
        "candidates", "extract", 2, lambda work: extract(work, graph, concepts, options, successors=heirs),
        {"graph": graph, **country_files(), **files}, settings, packages=("numpy", "polars", "scipy"),
    )  # fmt: skip


def _sparql_stage(given: FactSource, endpoint: str, contact: str, roots: RootChoice, options: ExtractOptions) -> Stage:
    """Walk what an endpoint knows; replies outlive a cut run, with a cache any run."""
    with needing("kg", "--source sparql"):
        from culturekit.kg.exchange.sparql import SparqlClient, extract_from_endpoint

    concepts = roots.concepts()
    check_url(endpoint)
    check_contact(contact)
    heirs, files = _heirs_in(roots.successors)

    def run(work: Work) -> Outcome:
        with SparqlClient(endpoint, contact, given.cache or work.scratch / "replies") as client:
            return extract_from_endpoint(work, client, concepts, options, successors=heirs)

    settings = {"endpoint": endpoint, **described(concepts), **options.settings()}
    return Stage("candidates", "extract-sparql", 2, run, {**country_files(), **files}, settings)


def _heirs_in(successors: Path | None) -> tuple[Mapping[int, int], dict[str, Path]]:
    """Load which country stands for which, and name the file as an input, where there is one."""
    return ({}, {}) if successors is None else (load_successors(successors), {"successors": successors})


def described(concepts: Sequence[Concept]) -> Mapping[str, object]:
    """Give the concepts as they stand in a manifest; the words of prompts decide nothing before the prompts."""
    return {"concepts": {concept.concept: concept.model_dump(mode="json", exclude={"prompts"}) for concept in concepts}}
