"""Words and numbers that the package and the command line must agree on: each stands here once."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

ANSWERED = ("ok", "repaired")  # How a reply, or a judgment, ends that is an answer
SEED = "Seed of every random choice."  # What help says of a seed

# Naming an artifact, naming neither artifact nor country, or naming a country only.
PromptKind: TypeAlias = Literal["cube", "underspecified", "within-country"]

TemplateSetName: TypeAlias = Literal["released", "paper"]  # The words of the released CUBE-1K, or of the paper's table

# What is decided of a candidate, or of one of its countries.
VerdictWord: TypeAlias = Literal["keep", "remove", "review"]

# The draw of a seed, or another one that is independent of it and leaves out what a public draw has.
DrawName: TypeAlias = Literal["seeded", "fresh"]

# An artifact's score from its references: the best one, or the mean of the best three.
Aggregate: TypeAlias = Literal["max", "top3"]

# How an artifact is known to an index: by pictures that show it, or by texts that name it.
ChannelName: TypeAlias = Literal["image", "text"]

ChannelsName: TypeAlias = Literal["image", "text", "both"]  # Which channels of an index are meant
PictureFormat: TypeAlias = Literal["png", "webp"]  # In what form image files are written; both keep every pixel
ExportFormat: TypeAlias = Literal["csv", "jsonl"]  # What a table can be written as besides Parquet

# What a release is written as; `public` is the layout that CUBE-1K was released in.
ReleaseFormat: TypeAlias = Literal["parquet", "jsonl", "csv", "public", "ntriples", "turtle", "json-ld"]

# What a release may hold besides what was kept: candidates that still wait for a person to look at.
Included: TypeAlias = Literal["review"]

ExportChoice: TypeAlias = Literal["csv", "jsonl", "both"]  # The same as a user says it

# The kinds of YAML file that have a schema.
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

# Which statements count: all but deprecated ones, those of the best rank the item has for the property, or all.
Ranks: TypeAlias = Literal["not-deprecated", "truthy", "all"]

Ended: TypeAlias = Literal["keep", "drop"]  # Whether a statement with an end (P582) counts

# The countries of an artifact: those of all country properties, or those of P17 only where P495 has none.
CountryChoice: TypeAlias = Literal["union", "P495-first"]

# A walk that visits a node once per root, or one row per way as the published code makes them.
Semantics: TypeAlias = Literal["default", "authors"]

# Along class edges: to classes, to instances and subclasses, or both ways at every hop.
GraphDirection: TypeAlias = Literal["up", "down", "both"]

# What a neighbourhood can be written as.
GraphFormat: TypeAlias = Literal["ntriples", "turtle", "json-ld", "graphml", "node-link"]

# The formats of triples, by rdflib's name, and the suffix of their files.
TRIPLE_SUFFIXES: Mapping[GraphFormat, str] = {"ntriples": ".nt", "turtle": ".ttl", "json-ld": ".jsonld"}

# Where facts about items come from: a graph made of a dump, or an endpoint.
KgSource: TypeAlias = Literal["dump", "sparql"]


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

STUDY_KEYS = ("prolific_pid", "study_id", "session_id")  # The ids that links of Prolific carry into the form
LONGEST_TEXT = 20_000  # Characters of a written answer; a longer one is set aside
LONGEST_RAW = 20_000  # Characters that are kept of an annotation that is set aside


# The published swatches of the Monk scale.

# sRGB as hexadecimal digits, the lightest tone first.
MONK_SWATCHES = ("f6ede4", "f3e7db", "f7ead0", "eadaba", "d7bd96", "a07e56", "825c43", "604134", "3a312a", "292420")


# What people mean who name no place: the audit form tells them apart, since only the first are alike.

NO_CULTURE = "no culture shown"
CANNOT_TELL = "cannot tell"
NOT_IN_LIST = "not in the list"

NONE_MEANS = (NO_CULTURE, CANNOT_TELL, NOT_IN_LIST)  # The values of `none_means` in a table of audits


# How often intervals are to hold the truth: what readers expect of an interval that says nothing else.
CONFIDENCE = 0.95

BATCH_SIZE = 8  # Images in a batch of which diversity is scored: CUBE asks for eight at a time
PERMUTATIONS = 9999  # Draws of a permutation test: p values reach down to one in ten thousand

# Draws of a bootstrap where each is costly: limits are then known to about a hundredth of their distance.
RESAMPLES = 2000

CHEAP_RESAMPLES = 9999  # Draws of a bootstrap where each is cheap: BCa limits lie far out, where few draws fall
RATERS = 3  # People who judge each item: the fewest of whom one side is always the larger

# Answers that one person gives in an hour: 18 seconds each, with time to look something up now and then.
ANSWERS_PER_HOUR = 200.0

SHORTLIST = 12  # Artifacts that a form offers for each image: one screen of them

# A shard is what one worker takes at a time, and what a kill costs at most: seconds to minutes of work, and large
# enough that its marker and its part of the table weigh nothing beside it.

# Images asked of a generator, at least: rounded up to whole batches, so that only a last batch is filled up.
REQUESTS_PER_SHARD = 100

COPIES_PER_SHARD = 200  # Pictures that are read, checked and written again
PICTURES_PER_SHARD = 256  # Pictures that an encoder or a rater looks at, rounded up to its batches
TEXTS_PER_SHARD = 1024  # Texts that an encoder reads; each costs far less than a picture
MATCHES_PER_SHARD = 2000  # Images whose vectors are compared with an index
BLOCKS_PER_SHARD = 4  # Blocks of an index whose hubs are looked for; a block is as large as a comparison at once may be
BATCHES_PER_SHARD = 16  # Batches of images of which every pair is compared
TONES_PER_SHARD = 64  # Pictures in which faces are looked for and their skin is measured
