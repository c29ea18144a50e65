"""The tables of captions: what models propose, translations, objects in pictures, and pairs to train on."""

from culturekit.records.tables import declare

CAPTIONS = declare(
    "captions",
    key="id",
    columns="id str, text str, category str, culture str, language str, round u32, proposer str?",
)
"""Captions of a culture, each with the category of error that pictures of it are likely to show. Round 0 are the seeds,
which nobody proposed."""

CAPTION_PROPOSALS = declare(
    "caption_proposals",
    key="round request position",
    columns="""
    round u32, request u32, position u16, text str, category str, examples list[str], outcome str, caption_id str?,
    nearest str?, similarity f64?
    """,
)
"""Every caption that was proposed, the earlier captions that the question had as `examples`, and what came of it:
`kept` as `caption_id`, or why not. `nearest` is the earlier caption that it is most like, `similarity` their cosine,
or 1 where they are the same but for case and punctuation."""

CAPTION_STATS = declare(
    "caption_stats",
    key="category",
    columns="category str, captions u32, words f64, fewest u32, most u32, counted u32, objects f64?",
)
"""Captions by category, and all of them as `all`: how many, words of each on average, least and most; `objects` are
those of each on average, over the `counted` captions of which they are known."""

TRANSLATIONS = declare(
    "translations",
    key="id",
    columns="id str, text str, source str, language str, translator str",
)
"""Captions in another language: `text` is the translation of `source` into `language`."""

OBJECTS = declare(
    "objects",
    key="id",
    columns="id str, item str, text str, probability f64?",
)
"""Objects of pictures, or of captions: `id` is ITEM#k for object k of an item, which is how `score c3` finds them in
a folder of vectors of the column `text`."""

SELECTED = declare(
    "selected",
    key="strategy item",
    columns="strategy str, item str, rank u32?, value f64?, kept bool, missing list[str], reason str?",
)
"""Every item under every strategy, kept or not. `value` is what it was ranked by, for `random` its draw; equal values
stand in order of the items, and one without has no rank. `missing` are those of the strategy's terms (text, image,
object) that the item lacks; `reason` says why it is not kept."""

RIGHTS = declare("rights", key="image_id", columns="image_id str, licence str?, source str?, author str?")
"""Under which licence an image may be passed on, where it is from, and whose it is."""

EXPORTED = declare(
    "exported",
    key="form path",
    columns="""
    form str, path str, item str, rank u32, text str, sha256 str, licence str?, source str?, author str?
    """,
)
"""Every picture that was exported, with its caption; `path` is that in the folder, or in the shard `a.tar/b`."""

TRAINING = declare("training", key="step", columns="step u32, loss f64?, gradient f64?, probe f64?")
"""Every step of a training: the loss of its batch, and the length of its gradient before that was cut. `probe` is the
loss on the same pairs with the same noise, before the first step and at checkpoints."""
