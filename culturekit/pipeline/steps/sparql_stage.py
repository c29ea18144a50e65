"""The stage from a SPARQL endpoint to candidates."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from culturekit.kg.concepts import Concept
from culturekit.kg.countries import country_files
from culturekit.kg.sparql.sparql_client import SparqlClient
from culturekit.kg.sparql.sparql_source import extract_from_endpoint
from culturekit.kg.walk.extract import ExtractOptions
from culturekit.kg.walk.successors import load_successors
from culturekit.kg.web.pinned_connection import check_contact
from culturekit.kg.web.public_address import check_url
from culturekit.pipeline.steps.graph_stages import described
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage

__all__ = ["sparql_stage"]


def sparql_stage(
    endpoint: str,
    concepts: Sequence[Concept],
    options: ExtractOptions | None = None,
    *,
    contact: str,
    cache: Path | None = None,
    successors: Path | None = None,
    name: str = "candidates",
) -> Stage:
    """Walk what an endpoint knows from the roots of concepts; replies outlive a cut run, with a cache any run."""
    check_url(endpoint)
    check_contact(contact)
    options = options or ExtractOptions()
    heirs = {} if successors is None else load_successors(successors)
    files = country_files() if successors is None else {**country_files(), "successors": successors}

    def run(work: Work) -> Outcome:
        with SparqlClient(endpoint, contact, cache or work.scratch / "replies") as client:
            return extract_from_endpoint(work, client, concepts, options, successors=heirs)

    return Stage(
        name, "extract-sparql", 2, run, files, {"endpoint": endpoint, **described(concepts), **asdict(options)}
    )
