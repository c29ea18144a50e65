"""The tables of activities: from pages about countries to what pictures of an activity should show."""

from culturekit.records.tables import declare

PAGES = declare(
    "pages",
    key="page_id number",
    columns="""
    page_id str, number u16, source str, country str, url str?, title str, revision str?, sha256 str, section str,
    text str, categories list[str]
    """,
)
"""Sections of pages about countries; `sha256` is that of the page's text, `categories` what is looked for there."""

MENTIONS = declare(
    "mentions",
    key="country category page_id number position",
    columns="""
    country str, category str, page_id str, number u16, position u16, name str, quote str, reader str, outcome str
    """,
)
"""Every activity that a reader found in a section, and what came of it: `ok`, or why it is not taken."""

ACTIVITIES = declare(
    "activities",
    key="country category activity",
    columns="""
    activity_id str, country str, category str, form str, activity str, also list[str], quote str?, page_id str?,
    url str?, title str?, revision str?, mentions u16
    """,
)
"""What prompts ask for in each country. `form` is `multi-variant`, `setting` or `single`; only the first have a source:
`quote` stands on the page `title` in its `revision`. `also` are names that were merged, `mentions` how often."""

PROPOSED_DESCRIPTORS = declare(
    "proposed_descriptors",
    key="prompt_id dimension proposer position",
    columns="""
    prompt_id str, dimension str, proposer str, position u16, token str, style str, necessity str, outcome str,
    detail str?
    """,
)
"""Every descriptor that a model proposed, and what came of it: `proposed`, or why it is none."""

DESCRIPTOR_TRAIL = declare(
    "descriptor_trail",
    key="prompt_id dimension number",
    columns="""
    prompt_id str, dimension str, number u16, token str, style str, necessity str, proposers list[str], outcome str,
    kept_as str?, refiner str
    """,
)
"""What became of every proposal: `kept`, `merged` into the descriptor `kept_as`, or why it went. `proposers` are those
of equal phrases; `invented` is what a refiner named that nobody proposed."""

PUBLISHED_DESCRIPTORS = declare(
    "published_descriptors",
    key="file number",
    columns="""
    file str, number u32, country str, category str, activity str, dimension str, token str?, style str?,
    necessity str?, indent u8?, ascii bool, newline bool
    """,
)
"""Files in the layout that descriptors were published in, in their order: a row per descriptor, or one without a token
for an empty list. `indent`, `ascii` and `newline` say how the file was written."""
