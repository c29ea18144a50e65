"""The formats of triples: the name each has in rdflib, and the suffix of its files."""

from collections.abc import Mapping

__all__ = ["TRIPLES"]

TRIPLES: Mapping[str, tuple[str, str]] = {
    "ntriples": ("nt", ".nt"),
    "turtle": ("turtle", ".ttl"),
    "json-ld": ("json-ld", ".jsonld"),
}
