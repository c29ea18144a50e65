"""The tables of captions: those that a model proposes for a culture, their translations, and objects in pictures."""

from culturekit.records.tables import declare

__all__ = ["CAPTIONS", "CAPTION_PROPOSALS", "CAPTION_STATS", "OBJECTS", "TRANSLATIONS"]

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
    columns="id str, item str, text str, probability f64?, lister str",
)
"""Objects of pictures, or of captions: `id` is ITEM#k for object k of an item, which is how `score c3` finds them in
a folder of vectors of the column `text`."""
