"""The tables about images: what was made, what each shows, and what models say of it."""

from culturekit.records.tables import declare

__all__ = [
    "ARTIFACTS",
    "IMAGES",
    "JUDGMENTS",
    "MATCHES",
    "QUALITY",
    "SLICES",
    "TOMBSTONES",
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

VECTOR_IDS = declare("ids", key="row", columns="row u32, id str", optional="channel str, source str")
"""Which vector of `vectors.npy` belongs to what. In an index the id is an artifact's, the channel is `image` or
`text`, and `source` names the reference picture or gives the text; rows stand by channel, the artifact's first
concept and country, its id, and the source."""

SLICES = declare(
    "slices",
    key="channel concept country",
    columns="channel str, concept str, country str, start u32, stop u32",
)
"""Where the vectors of a concept and country stand in `vectors.npy` of an index: rows `start` up to `stop`."""

TOMBSTONES = declare("tombstones", key="part row", columns="part u32, row u32")
"""Rows of an index that no longer count; part 0 is `vectors.npy`, part 1 is `vectors-0001.npy`, and so on."""
