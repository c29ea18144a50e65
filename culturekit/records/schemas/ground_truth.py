"""The tables of the ground truth: from the items of a dump to the cultural space and its prompts."""

from culturekit.records.tables import declare

ITEMS = declare(
    "items",
    key="number",
    columns="""
    qid str, number u32, label str?, label_language str?, description str?, aliases list[str],
    sitelinks u16, title str?, image str?, lat f64?, lon f64?,
    file u16, member u32, line u64, offset u64
    """,
    optional="iso str?, demonym str?",
)
"""One row per item of a dump, and where its line stands: file, gzip member, line of the file (from 1)
and byte offset within the decompressed member. `iso` and `demonym` (P297, P1549) stand on countries."""

STATEMENTS = declare(
    "statements",
    key="number property position",
    columns="""
    number u32, property str, position u16, value u32?, snak str, rank str, qualified bool, ended bool
    """,
)
"""One row per statement whose value is an item; `value` is null for somevalue and novalue."""

STARTS = declare("starts", key="file member offset", columns="file u16, member u32, offset u64, begin u64")
"""Where a dump file can be read from without what stands before: the plain bytes of a member from `offset` on begin at
byte `begin` of the file, in bzip2 at that bit. A row per gzip member or zstd frame; of bzip2, one block in 8 MB."""

CANDIDATE_COLUMNS = """
    qid str, label str?, description str?, aliases list[str], concept str, country_qids list[str],
    hop u8, roots list[str], path list[str],
    p31 list[str], p279 list[str], p495 list[str], p17 list[str], p2012 list[str], p361 list[str],
    sitelinks u16, title str?, image str?, lat f64?, lon f64?
    """

CANDIDATE_OPTIONS = "valueless list[str]"

COMPLETION_COLUMNS = "source str, round u8, proposer str?, gained list[str]"

REVIEW_COLUMNS = "reviewer str?, reviewed_on str?"

COUNTRY_COLUMNS = "waiting_qids list[str], refused_qids list[str]"

CANDIDATES = declare("candidates", key="concept qid", columns=CANDIDATE_COLUMNS, optional=CANDIDATE_OPTIONS)
"""One row per (qid, concept): `hop` is the smallest, `path` one shortest, root first and qid last. `p495` and `p17` say
which property states each country, as the item has it; `country_qids` are what follows from them under the concept's
rules. `valueless` names statements of an edge or a country that have no value, such as `P495 novalue`."""

AUTHORS_ROWS = declare(
    "authors_rows",
    key="concept root hop parent qid copy",
    columns="concept str, root str, hop u8, parent str, qid str, copy u32",
)
"""One row per way from a root to an artifact, ways that differ only further up told apart by `copy`, from 1."""

KEPT = declare(
    "kept",
    key="concept qid",
    columns=f"{CANDIDATE_COLUMNS}, verdict str, reason str",
    optional=f"{CANDIDATE_OPTIONS}, {COMPLETION_COLUMNS}, {REVIEW_COLUMNS}, {COUNTRY_COLUMNS}",
)
"""The candidates that a judge kept (`verdict` is keep), or that wait for a person to look at (`review`); a completed or
reviewed table is one of these with more columns. The verdict is about `country_qids`; of what is kept for some
countries, `waiting_qids` wait for a person, and `refused_qids` were refused. `reviewer` and `reviewed_on` say which
person decided, and when."""

REMOVED = declare(
    "removed",
    key="concept qid",
    columns=f"{CANDIDATE_COLUMNS}, verdict str, reason str",
    optional=f"{CANDIDATE_OPTIONS}, {COUNTRY_COLUMNS}",
)
"""The candidates that a judge removed, whole, so that a person can overrule it; why stands in `drops`, too."""

COMPLETED = declare(
    "completed",
    key="concept qid",
    columns=f"{CANDIDATE_COLUMNS}, verdict str, reason str, {COMPLETION_COLUMNS}",
    optional=f"{CANDIDATE_OPTIONS}, {REVIEW_COLUMNS}, {COUNTRY_COLUMNS}",
)
"""The kept candidates and what a model added. `qid` is `LLM:` and a slug where no graph knows the artifact; `source` is
`wikidata` or `llm`. `gained` names, by ISO code, the countries that were added; `round` and `proposer` say when first
and by whom, and are 0 and null where nothing was. `hop` is 0 and `path` empty where no walk came by."""

PROPOSALS = declare(
    "proposals",
    key="concept country round position",
    columns="""
    proposal_id str, concept str, country str, round u8, position u16, name str, other_names list[str], kind str,
    what str, artifact_id str?, outcome str, detail str?
    """,
)
"""Every artifact that a model proposed, and what became of it: `added`, `country added`, `known`, `repeated`,
`refused`, `left out` or `taken back`."""

ROUNDS = declare(
    "rounds",
    key="concept country round",
    columns="""
    concept str, country str, round u8, proposer str, outcome str, proposed u16, added u16, countries_added u16,
    known u16, repeated u16, refused u16, left_out u16, taken_back u16, ended str?, raw str?
    """,
)
"""One row per question to a proposer: what came of its reply, and `ended` where it was the last of its cell. `raw` is
the reply itself where it could not be used. `taken_back` counts additions of the round before."""

DECISIONS = declare(
    "decisions",
    key="concept qid reviewer",
    columns="""
    concept str, qid str, reviewer str, decided_on str, decision str, comment str?, reason str, file str,
    counts bool
    """,
    optional="by_country list[str]",
)
"""What people decided about candidates: accept, for one country at least, or reject; `by_country` has the word on each.
`reason` is why the candidate was in the table before; `counts` is false where reviewers disagree about a country, so
that it still waits."""

DROPS = declare("drops", key="key stage concept", columns="key str, concept str?, stage str, reason str, detail str?")
"""What a stage left out, and why; nothing else disappears."""

DIFF = declare(
    "diff",
    key="part concept qid property value change",
    columns="""
    part str, qid str, concept str?, property str?, value str?, change str, before str?, after str?
    """,
    optional="stage str?, causes list[str], undecided list[str], because str?",
)
"""What changed between two graphs (`part` is item, label, edge, country or statement) or two extractions (candidate,
label, country, root, hop, path or field); `change` is added, removed or changed. Between two cultural spaces `part` is
artifact, or the column that is another; `qid` is the artifact's id and `value` its country, both as they were, and
`change` is added, removed, renamed or reclassified. There each row has the first `stage` at which its item differs,
and what differs in the inputs and options of that stage (dump, config, wording, model, code): in `causes` where it is
one kind of thing, else in `undecided`. `because` is the evidence, in lines."""

CSPACE = declare(
    "cspace",
    key="concept country artifact_id",
    columns="""
    artifact_id str, qid str?, name str, concept str, subconcept str?,
    country str, country_name str, continent str, source str,
    popularity f64?, popularity_source str?, path list[str]
    """,
    optional="country_order u16, aliases list[str]?, verdict str?",
)
"""One row per artifact and country; `artifact_id` is the QID, or a slug after `LLM:`, or after `list:` where a person's
file names the artifact. `source` is `wikidata`, `llm`, or `list`. `country_order` is 0 for the country that the item
states first, P495 before P17. `aliases` are other names of the artifact. `verdict` is `keep`, or `review` where a
release took in what no judge or person kept; null where nobody says."""

PROMPTS = declare(
    "prompts",
    key="prompt_id",
    columns="""
    prompt_id str, text str, negative_text str?, benchmark str, kind str, concept str?, country str?,
    group str?, artifact_id str?, language str, template_id str
    """,
    optional="pair_id str, activity str",
)
"""`pair_id` is shared by the prompts that ask for the same in several languages. `activity` is what the people of the
picture do, in prompts of the kind `activity`."""

DIALECT_PAIRS = declare(
    "dialect_pairs",
    key="position",
    columns="""
    position u32, standard str, other str, frames list[str], proposer str, outcome str, detail str?
    """,
)
"""Every pair of dialects that was proposed or listed, with sentences that have `{}` where the noun stands. `outcome` is
`kept`, or the filter at which it fell: malformed, repeated, not in the corpus, not grammatical; `detail` says why."""

NEUTRAL_CANDIDATES = declare(
    "neutral_candidates",
    key="synset",
    columns="synset str, noun str, term str, definition str",
)
"""Nouns of WordNet below a term, by the names of both synsets, for people to say which are neutral."""

QUOTAS = declare(
    "quotas",
    key="concept country",
    columns="concept str, country str, quota u32, available u32, drawn u32",
)
"""How many artifacts were asked for, how many there were without those rejected in review, how many were drawn."""

DIFFERENCES = declare(
    "differences",
    key="row",
    columns="""
    row u32, artifact_id str?, concept str?, country str?, name str, released str, rebuilt str?, difference str
    """,
)
"""Rows of a public file whose prompt is not what its name and the templates give; `row` is its place, from 0."""

DESCRIPTORS = declare(
    "descriptors",
    key="prompt_id dimension token",
    columns="prompt_id str, dimension str, token str, style str, necessity str, proposers list[str]",
)
"""What a picture of a prompt should show, by dimension."""

STEREOTYPES = declare("stereotypes", key="country token", columns="country str, token str")
"""What pictures of a country overdo."""

QUESTIONS = declare(
    "questions",
    key="prompt_id question_id",
    columns="prompt_id str, question_id str, parents list[str], text str, kind str",
    optional="fact str",
)
"""Questions about the images of a prompt; one whose parents are not all answered yes means nothing. `kind` is what is
asked for, such as entity, attribute, relation or global; `fact` is what the question was made from."""

QUESTION_GRAPHS = declare(
    "question_graphs",
    key="prompt_id",
    columns="prompt_id str, writer str, outcome str, questions u16, depth u16, detail str?, raw str",
)
"""How each prompt ended that a model was to turn into questions: in how many, `depth` of them on the longest way down.
A prompt without questions says why in its outcome."""
