"""The tables about images: what was made, what each shows, and what models say of it."""

from culturekit.records.tables import declare

IMAGES = declare(
    "images",
    key="image_id",
    columns="""
    image_id str, path str, prompt_id str?, model str, model_version str?, seed i64?, seed_honoured bool?,
    repeat u16?, slot u8?, prompt_sent str?, prompt_revised str?, rewriter str, safety str?,
    requested_at datetime?, provider_params str, sha256 str, width u32, height u32, status str, reason str?
    """,
    optional="""
    concept str?, country str?, truth_artifact_id str?, truth_country str?, truth_scene str?,
    source str?, source_sha256 str?, duplicate_of str?
    """,
)
"""One row per image asked for; `path` is relative to the table's folder, and empty where there is no
file. `concept` and `country` are the prompt's. The simulated backend also stores what it drew; a
culture-free image has no truth. `truth_scene` is JSON: the activity shown, what is shown of it by dimension, and how
strongly stereotypes are, from 0 to 1. Images that came from a folder have the name of their file in it as `source`,
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
"""What each image shows, nearest first. The artifact's id is null only where the method says that the image shows
none, or names one that the cultural space does not know; a nearest-artifact row always has one."""

CALIBRATION = declare(
    "calibration",
    key="threshold",
    columns="""
    threshold f32, references u32, accepted u32, wrong u32, error f64, upper f64, max_error f64, holds bool,
    chosen bool
    """,
)
"""What each margin would accept of the pictures that abstention was calibrated on, and how much of that was wrong;
`upper` bounds that error at 95 %, and `holds` says whether it is shown to be at most `max_error`."""

QUALITY = declare("quality", key="scorer image_id", columns="image_id str, scorer str, value f64")

PAIR_DISTANCES = declare(
    "pair_distances",
    key="measure model prompt_id repeat batch",
    columns="""
    measure str, model str, concept str?, prompt_id str, repeat u16, batch u32, images u32, distance f64
    """,
)
"""How far the images of a batch are apart on average, over all pairs; batches of a repeat of a prompt are numbered in
the order of the slots, from 0."""

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

HUBS = declare(
    "hubs",
    key="model rank",
    columns="""
    model str, rank u32, artifact_id str, artifact str, country str, neighbours u64, nearest u64, share f64
    """,
)
"""The artifacts that most images of a model have among their neighbours: in how many images' k nearest one is, and of
how many it is the nearest; `share` is of the images."""

RECOGNITION = declare(
    "recognition",
    key="country",
    columns="country str?, shown u64, recognised u64, recall f64?, mapped u64, right u64, precision f64?",
)
"""How often held-out references are mapped to the right country, by country; the row without one counts artifacts, over
all. Of `shown` pictures of a country's artifacts `recognised` were mapped to an artifact that has that country; of
`mapped` pictures that were given to a country `right` showed an artifact that has it."""
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
