"""Every table that culturekit writes, declared once; `?` marks what may be null."""

from collections.abc import Mapping

from culturekit.records.tables import Table, declare

__all__ = [
    "ANNOTATIONS",
    "ARTIFACTS",
    "AUDITS",
    "CANDIDATES",
    "CSPACE",
    "DESCRIPTORS",
    "DROPS",
    "IMAGES",
    "ITEMS",
    "JUDGMENTS",
    "KEPT",
    "MATCHES",
    "PROMPTS",
    "QUALITY",
    "SCORES",
    "STATEMENTS",
    "STEREOTYPES",
    "TABLES",
    "VALUES",
    "VECTOR_IDS",
]

ITEMS = declare(
    "items",
    key="number",
    columns="""
    qid str, number u32, label str?, label_language str?, description str?, aliases list[str],
    sitelinks u16, title str?, image str?, lat f64?, lon f64?,
    file u16, member u32, line u64, offset u64
    """,
)
"""One row per item of a dump, and where its line stands: file, gzip member, line of the file (from 1)
and byte offset within the decompressed member."""

STATEMENTS = declare(
    "statements",
    key="number property position",
    columns="""
    number u32, property str, position u16, value u32?, snak str, rank str, qualified bool, ended bool
    """,
)
"""One row per statement whose value is an item; `value` is null for somevalue and novalue."""

CANDIDATE_COLUMNS = """
    qid str, label str?, description str?, aliases list[str], concept str, country_qids list[str],
    hop u8, roots list[str], path list[str],
    p31 list[str], p279 list[str], p495 list[str], p17 list[str], p2012 list[str], p361 list[str],
    sitelinks u16, title str?, image str?, lat f64?, lon f64?
    """

CANDIDATES = declare("candidates", key="concept qid", columns=CANDIDATE_COLUMNS)
"""One row per (qid, concept): `hop` is the smallest, `path` one shortest, root first and qid last."""

KEPT = declare("kept", key="concept qid", columns=f"{CANDIDATE_COLUMNS}, verdict str, reason str")
"""The candidates that a judge kept, or wants reviewed."""

DROPS = declare("drops", key="key stage concept", columns="key str, concept str?, stage str, reason str, detail str?")
"""What a stage left out, and why; nothing else disappears."""

CSPACE = declare(
    "cspace",
    key="concept country artifact_id",
    columns="""
    artifact_id str, qid str?, name str, concept str, subconcept str?,
    country str, country_name str, continent str, source str,
    popularity f64?, popularity_source str?, path list[str]
    """,
    optional="country_order u16",
)
"""One row per artifact and country; `artifact_id` is the QID, or `LLM:` and a slug. `country_order` is 0
for the country that the item states first, P495 before P17."""

PROMPTS = declare(
    "prompts",
    key="prompt_id",
    columns="""
    prompt_id str, text str, negative_text str?, benchmark str, kind str, concept str?, country str?,
    group str?, artifact_id str?, language str, template_id str
    """,
)

IMAGES = declare(
    "images",
    key="image_id",
    columns="""
    image_id str, path str, prompt_id str?, model str, model_version str?, seed i64?, seed_honoured bool?,
    repeat u16?, slot u8?, prompt_sent str?, prompt_revised str?, rewriter str, safety str?,
    requested_at datetime?, provider_params str, sha256 str, width u32, height u32, status str, reason str?
    """,
    optional="concept str?, country str?, truth_artifact_id str?, truth_country str?",
)
"""One row per image asked for; `path` is relative to the table's folder, and empty where there is no
file. `concept` and `country` are the prompt's. The simulated backend also stores what it drew; a
culture-free image has no truth."""

MATCHES = declare(
    "matches",
    key="image_id rank",
    columns="""
    image_id str, model str, prompt_id str?, concept str?, repeat u16?, slot u8?, rank u16,
    artifact_id str?, artifact str?, country str?, countries list[str], continent str?,
    score f32, margin f32, country_margin f32, abstained bool, method str
    """,
)
"""What each image shows, nearest first. The artifact is null only where the method says that the
image shows none; a nearest-artifact row always has one."""

QUALITY = declare("quality", key="scorer image_id", columns="image_id str, scorer str, value f64")

SCORES = declare(
    "scores",
    key="metric model benchmark concept country group params",
    columns="""
    metric str, model str, benchmark str, concept str?, country str?, group str?, params str,
    value f64, ci_low f64?, ci_high f64?, n u64, unit str
    """,
)

VALUES = declare(
    "values",
    key="metric model benchmark concept country group params item",
    columns="""
    metric str, model str, benchmark str, concept str?, country str?, group str?, params str,
    item str, prompt_id str?, repeat u16?, value f64?
    """,
)
"""What scores are the means of, one row per item (an image, a prompt, a repeat of a prompt); the value is
null where the item could not be scored. `metric` to `params` name the score that the value went into."""

JUDGMENTS = declare(
    "judgments",
    key="image_id prompt_id judge task item dimension",
    columns="""
    image_id str, prompt_id str?, judge str, task str, item str, dimension str?,
    value f64?, choice str?, raw str, outcome str
    """,
)
"""What a judge model said of an image: one row per question put to it."""

DESCRIPTORS = declare(
    "descriptors",
    key="prompt_id dimension token",
    columns="prompt_id str, dimension str, token str, style str, necessity str, proposers list[str]",
)
"""What a picture of a prompt should show, by dimension."""

STEREOTYPES = declare("stereotypes", key="country token", columns="country str, token str")
"""What pictures of a country overdo."""

AUDITS = declare(
    "audits",
    key="image_id pool annotator",
    columns="""
    image_id str, pool str, annotator str, artifact_id str?, country str?, continent str?, none_of_these bool
    """,
)
"""What people of a pool say an image shows; `none_of_these` is an answer, and has no labels."""

ANNOTATIONS = declare(
    "annotations",
    key="item_id annotator scheme criterion",
    columns="""
    item_id str, annotator str, annotator_region str, in_region bool?, scheme str, criterion str,
    value f64?, choice str?, text str?, seconds f64?, flags list[str]
    """,
)
"""What annotators answered: one row per item, annotator and criterion."""

ARTIFACTS = declare(
    "artifacts",
    key="artifact_id",
    columns="artifact_id str, artifact str, concepts list[str], countries list[str], continents list[str]",
)
"""What an index knows of its artifacts: all countries, the one stated first in front, and the continent of each."""

VECTOR_IDS = declare("ids", key="row", columns="row u32, id str")
"""Which vector of `vectors.npy` belongs to what."""

TABLES: Mapping[str, Table] = {
    table.name: table
    for table in (
        ANNOTATIONS, ARTIFACTS, AUDITS, CANDIDATES, CSPACE, DESCRIPTORS, DROPS, IMAGES, ITEMS, JUDGMENTS, KEPT,
        MATCHES, PROMPTS, QUALITY, SCORES, STATEMENTS, STEREOTYPES, VALUES, VECTOR_IDS,
    )
}  # fmt: skip
"""By the name of the file that holds it: `candidates.parquet` holds `candidates`."""
