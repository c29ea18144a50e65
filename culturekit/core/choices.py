"""Words that both a package and the command line must agree on."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

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


# The keys that a task, an annotation, a result and a person have in exports of Label Studio and of the form.


def words(text: str) -> frozenset[str]:
    """Read a list of keys."""
    return frozenset(text.split())


TASK_KEYS = words("""
    id data annotations predictions drafts meta created_at updated_at inner_id total_annotations cancelled_annotations
    total_predictions comment_count unresolved_comment_count last_comment_updated_at project updated_by comment_authors
    file_upload allow_skip overlap is_labeled agreement avg_lead_time draft_exists precomputed_agreement state
""")
ANNOTATION_KEYS = words("""
    id completed_by result was_cancelled ground_truth created_at updated_at draft_created_at lead_time prediction
    result_count unique_id import_id last_action bulk_created task project updated_by parent_prediction
    parent_annotation last_created_by created_username created_ago state
""")
RESULT_KEYS = words("id from_name to_name type value origin meta score readonly hidden")
PERSON_KEYS = words("id email first_name last_name username avatar initials last_activity phone")

STUDY_KEYS = ("prolific_pid", "study_id", "session_id")
"""The ids that links of Prolific carry into the form."""

LONGEST_TEXT = 20_000
"""Characters of a written answer; a longer one is set aside."""

LONGEST_RAW = 20_000
"""Characters that are kept of an annotation that is set aside."""


# The published swatches of the Monk scale.

MONK_SWATCHES = ("f6ede4", "f3e7db", "f7ead0", "eadaba", "d7bd96", "a07e56", "825c43", "604134", "3a312a", "292420")
"""sRGB as hexadecimal digits, the lightest tone first."""


# What people mean who name no place: the audit form tells them apart, since only the first are alike.

NO_CULTURE = "no culture shown"
CANNOT_TELL = "cannot tell"
NOT_IN_LIST = "not in the list"

NONE_MEANS = (NO_CULTURE, CANNOT_TELL, NOT_IN_LIST)
"""The values of `none_means` in a table of audits."""
