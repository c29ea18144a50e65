"""Words that both a package and the command line must agree on."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

__all__ = [
    "ANSWERED",
    "SEED",
    "TRIPLE_SUFFIXES",
    "Aggregate",
    "ChannelName",
    "ChannelsName",
    "CountryChoice",
    "DrawName",
    "Ended",
    "ExportChoice",
    "ExportFormat",
    "GraphDirection",
    "GraphFormat",
    "Included",
    "KgSource",
    "PictureFormat",
    "PromptKind",
    "Ranks",
    "ReleaseFormat",
    "SchemaKind",
    "Semantics",
    "TemplateSetName",
    "VerdictWord",
]

ANSWERED = ("ok", "repaired")
"""How a reply, or a judgment, ends that is an answer."""

SEED = "Seed of every random choice."
"""What help says of a seed."""

PromptKind: TypeAlias = Literal["cube", "underspecified", "within-country"]
"""Naming an artifact, naming neither artifact nor country, or naming a country only."""

TemplateSetName: TypeAlias = Literal["released", "paper"]
"""The words of the released CUBE-1K, or of the paper's table."""

VerdictWord: TypeAlias = Literal["keep", "remove", "review"]
"""What is decided of a candidate, or of one of its countries."""

DrawName: TypeAlias = Literal["seeded", "fresh"]
"""The draw of a seed, or another one that is independent of it and leaves out what a public draw has."""

Aggregate: TypeAlias = Literal["max", "top3"]
"""An artifact's score from its references: the best one, or the mean of the best three."""

ChannelName: TypeAlias = Literal["image", "text"]
"""How an artifact is known to an index: by pictures that show it, or by texts that name it."""

ChannelsName: TypeAlias = Literal["image", "text", "both"]
"""Which channels of an index are meant."""

PictureFormat: TypeAlias = Literal["png", "webp"]
"""In what form image files are written; both keep every pixel."""

ExportFormat: TypeAlias = Literal["csv", "jsonl"]
"""What a table can be written as besides Parquet."""

ReleaseFormat: TypeAlias = Literal["parquet", "jsonl", "csv", "public", "ntriples", "turtle", "json-ld"]
"""What a release is written as; `public` is the layout that CUBE-1K was released in."""

Included: TypeAlias = Literal["review"]
"""What a release may hold besides what was kept: candidates that still wait for a person to look at."""

ExportChoice: TypeAlias = Literal["csv", "jsonl", "both"]
"""The same as a user says it."""

SchemaKind: TypeAlias = Literal[
    "recipe",
    "concept",
    "countries",
    "templates",
    "texts",
    "prices",
    "models",
    "scenes",
    "captions",
    "linguistic",
    "places",
    "annotation",
]
"""The kinds of YAML file that have a schema."""

Ranks: TypeAlias = Literal["not-deprecated", "truthy", "all"]
"""Which statements count: all but deprecated ones, those of the best rank the item has for the property, or all."""

Ended: TypeAlias = Literal["keep", "drop"]
"""Whether a statement with an end (P582) counts."""

CountryChoice: TypeAlias = Literal["union", "P495-first"]
"""The countries of an artifact: those of all country properties, or those of P17 only where P495 has none."""

Semantics: TypeAlias = Literal["default", "authors"]
"""A walk that visits a node once per root, or one row per way as the published code makes them."""

GraphDirection: TypeAlias = Literal["up", "down", "both"]
"""Along class edges: to classes, to instances and subclasses, or both ways at every hop."""

GraphFormat: TypeAlias = Literal["ntriples", "turtle", "json-ld", "graphml", "node-link"]
"""What a neighbourhood can be written as."""

TRIPLE_SUFFIXES: Mapping[GraphFormat, str] = {"ntriples": ".nt", "turtle": ".ttl", "json-ld": ".jsonld"}
"""The formats of triples, by rdflib's name, and the suffix of their files."""

KgSource: TypeAlias = Literal["dump", "sparql"]
"""Where facts about items come from: a graph made of a dump, or an endpoint."""
