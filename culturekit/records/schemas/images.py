"""The tables about images: what was made, what each shows, and what models say of it."""

from culturekit.records.tables import declare

__all__ = [
    "ARTIFACTS",
    "IMAGES",
    "JUDGMENTS",
    "MATCHES",
    "QUALITY",
    "VECTOR_IDS",
]

IMAGES = declare(
    "images",
    key="image_id",
    columns="""
    image_id str, path str, prompt_id str?, model str, model_version str?, seed i64?, seed_honoured bool?,
    repeat u16?, slot u8?, prompt_sent str?, prompt_revised str?, rewriter str, safety str?,
    requested_at datetime?, provider_params str, sha256 str, width u32, height u32, status str, reason str?
    """,
    optional="""
    concept str?, country str?, truth_artifact_id str?, truth_country str?,
    source str?, source_sha256 str?, duplicate_of str?
    """,
)
"""One row per image asked for; `path` is relative to the table's folder, and empty where there is no
file. `concept` and `country` are the prompt's. The simulated backend also stores what it drew; a
culture-free image has no truth. Images that came from a folder have the name of their file in it as `source`,
and the hash of that file; `duplicate_of` is the image_id of the first file with the same bytes."""

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

JUDGMENTS = declare(
    "judgments",
    key="image_id prompt_id judge task item dimension",
    columns="""
    image_id str, prompt_id str?, judge str, task str, item str, dimension str?,
    value f64?, choice str?, raw str, outcome str
    """,
)
"""What a judge model said of an image: one row per question put to it."""

ARTIFACTS = declare(
    "artifacts",
    key="artifact_id",
    columns="artifact_id str, artifact str, concepts list[str], countries list[str], continents list[str]",
)
"""What an index knows of its artifacts: all countries, the one stated first in front, and the continent of each."""

VECTOR_IDS = declare("ids", key="row", columns="row u32, id str")
"""Which vector of `vectors.npy` belongs to what."""
