"""Words that both a package and the command line must agree on."""

from typing import Literal, TypeAlias

__all__ = ["Aggregate", "ExportChoice", "ExportFormat", "KgSource", "PromptKind", "SchemaKind", "TemplateSetName"]

PromptKind: TypeAlias = Literal["cube", "underspecified", "within-country"]
"""Naming an artifact, naming neither artifact nor country, or naming a country only."""

TemplateSetName: TypeAlias = Literal["released", "paper"]
"""The words of the released CUBE-1K, or of the paper's table."""

Aggregate: TypeAlias = Literal["max", "top3"]
"""An artifact's score from its references: the best one, or the mean of the best three."""

ExportFormat: TypeAlias = Literal["csv", "jsonl"]
"""What a table can be written as besides Parquet."""

ExportChoice: TypeAlias = Literal["csv", "jsonl", "both"]
"""The same as a user says it."""

SchemaKind: TypeAlias = Literal["recipe", "concept", "countries", "templates"]
"""The kinds of YAML file that have a schema."""

KgSource: TypeAlias = Literal["dump", "sparql"]
"""Where facts about items come from: a graph made of a dump, or an endpoint."""
