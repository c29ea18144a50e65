"""The stage from a SPARQL endpoint to candidates."""

from collections.abc import Sequence
from pathlib import Path

from culturekit.kg.concepts import Concept
from culturekit.kg.countries import country_files
from culturekit.kg.public_address import check_url
from culturekit.kg.sparql_client import SparqlClient, check_contact
from culturekit.kg.sparql_source import extract_from_endpoint
from culturekit.pipeline.graph_stages import described
from culturekit.pipeline.stage import Stage
from culturekit.records.work import Outcome, Work

__all__ = ["sparql_stage"]


def sparql_stage(
    endpoint: str, concepts: Sequence[Concept], *, contact: str, cache: Path | None = None, name: str = "candidates"
) -> Stage:
    """Walk what an endpoint knows from the roots of concepts; replies outlive a cut run, with a cache any run."""
    check_url(endpoint)
    check_contact(contact)

    def run(work: Work) -> Outcome:
        with SparqlClient(endpoint, contact, cache or work.scratch / "replies") as client:
            return extract_from_endpoint(work, client, concepts)

    return Stage(name, "extract-sparql", 1, run, country_files(), {"endpoint": endpoint, **described(concepts)})
